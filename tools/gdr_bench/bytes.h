/* SPDX-License-Identifier: MIT */
/* The bytes that a copy must leave, and their complements, with which destinations are poisoned. */
#ifndef GDR_BENCH_BYTES_H
#define GDR_BENCH_BYTES_H

#include <stddef.h>

#include "session.h"

struct bytes {
	unsigned char *base;	/* differs from place to place */
	unsigned char *wanted;	/* differs from the last turn's at every place */
	unsigned char *poison;	/* differs from wanted at every place */
	unsigned char *got;
	unsigned turn;
	size_t size;
};

void bytes_alloc(struct bytes *bytes, size_t size);
void bytes_free(struct bytes *bytes);

/* New wanted bytes, and their poison. */
void bytes_turn(struct bytes *bytes, size_t size);

/* By CUDA, complete on return. */
void bytes_upload(const struct device_buffer *buffer, const void *host, size_t size);

/* Compare every byte; what names the copy.  End the program at the first wrong one. */
void bytes_check_host(const struct bytes *bytes, const void *got, size_t size, const char *what);
void bytes_check_device(struct bytes *bytes, const struct device_buffer *buffer, size_t size,
			const char *what);

#endif
