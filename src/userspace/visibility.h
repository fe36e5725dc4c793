/* SPDX-License-Identifier: MIT */
/* Marks what the library exports; everything else is hidden by the build. */
#ifndef GDRI_VISIBILITY_H
#define GDRI_VISIBILITY_H

#define GDRI_PUBLIC __attribute__((visibility("default")))

#endif
