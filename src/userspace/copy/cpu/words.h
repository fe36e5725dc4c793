/* SPDX-License-Identifier: MIT */
/* Single accesses of 1, 2, 4 and 8 bytes to a mapping. */
#ifndef GDRI_COPY_WORDS_H
#define GDRI_COPY_WORDS_H

#include <stdint.h>

/*
 * gdri_copy_store<bits>(mapping, host) and gdri_copy_load<bits>(host, mapping)
 * move one word.  The mapping's address is a multiple of the word's size, the
 * host's need not be.  The access to the mapping is volatile: compilers emit
 * exactly one instruction for it and neither join, split, repeat nor replace
 * it by a library call, at any optimisation level.
 */
#define GDRI_COPY_DEFINE_WORD(bits)                                                        \
	typedef volatile uint##bits##_t __attribute__((may_alias)) gdri_copy_bus##bits;    \
	struct gdri_copy_host##bits {                                                      \
		uint##bits##_t word;                                                       \
	} __attribute__((packed, may_alias));                                              \
                                                                                           \
	static inline void gdri_copy_store##bits(void *mapping, const void *host)          \
	{                                                                                  \
		*(gdri_copy_bus##bits *)mapping =                                          \
			((const struct gdri_copy_host##bits *)host)->word;                 \
	}                                                                                  \
                                                                                           \
	static inline void gdri_copy_load##bits(void *host, const void *mapping)           \
	{                                                                                  \
		((struct gdri_copy_host##bits *)host)->word =                              \
			*(const gdri_copy_bus##bits *)mapping;                             \
	}

GDRI_COPY_DEFINE_WORD(8)
GDRI_COPY_DEFINE_WORD(16)
GDRI_COPY_DEFINE_WORD(32)
GDRI_COPY_DEFINE_WORD(64)

#undef GDRI_COPY_DEFINE_WORD

#endif
