/* SPDX-License-Identifier: MIT */
/* Reads and writes of memory that may not be there. */
#ifndef SANITY_FAULT_H
#define SANITY_FAULT_H

#include <stdint.h>

/* 0 and the word, or the signal that the access raised.  One thread at a time. */
int fault_read(const volatile uint32_t *word, uint32_t *value);
int fault_write(volatile uint32_t *word, uint32_t value);

#endif
