/* SPDX-License-Identifier: MIT */
/* Catches what a call writes to stderr, for tests of log lines. */
#ifndef TESTS_SCRIPTED_LOG_H
#define TESTS_SCRIPTED_LOG_H

/* From here on stderr goes into a file of its own. */
void scripted_log_start(void);

/* Ends that and returns what was written; valid until the next start. */
const char *scripted_log_take(void);

#endif
