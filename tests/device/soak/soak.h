/* SPDX-License-Identifier: MIT */
/* What the parts of soak share: the machine, memory that every road reaches, small helpers. */
#ifndef TESTS_DEVICE_SOAK_H
#define TESTS_DEVICE_SOAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "copy/dma/dma.h"
#include "copy/engine.h"
#include "os/cuda.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* A GPU, real or emulated, with its copy engines and a current CUDA context. */
struct machine {
	struct gdri_dma_port *port;
	struct gdri_cuda cuda;
	void *context;
	struct gdri_copy_engine routines;
	struct gdri_log log;
};

/* Device memory that engines reach once it is attached, and the CPU through a window. */
struct memory {
	gdri_cu_ptr ptr;
	size_t size;
	uint8_t *window;
	gdri_copy_fn store, load;	/* into the window and out of it */
	struct gdri_dma_memory described;
	void *priv;
};

/* Opens device 0.  Failures in here and in the calls below end the program with one line. */
void machine_open(struct machine *machine, bool emulated);
void memory_open(struct machine *machine, size_t size, struct memory *memory);
void memory_close(struct machine *machine, struct memory *memory);

/* The device's copy engines, at most GDRI_DMA_MAX_ENGINES. */
unsigned machine_list_engines(struct machine *machine, struct gdri_dma_engine *engines);

/* A call of the CUDA driver, by its exported name. */
void *machine_find(const struct machine *machine, const char *symbol);

/* Large copies by CUDA in every direction, by a thread, until it is stopped. */
struct load;
struct load *load_start(struct machine *machine);
uint64_t load_stop(struct load *load);	/* bytes that were moved */

/* Ends the program unless rc is 0. */
void must(const char *what, int rc);
void *must_alloc(size_t size);	/* zeroed pages, for good */

double now(void);		/* seconds */
uint64_t random_next(uint64_t *state);
size_t random_below(uint64_t *state, size_t bound);
size_t random_size(uint64_t *state, size_t most);	/* 1 to most; each power of two as often */
void random_fill(uint64_t *state, void *bytes, size_t size);

/* dst becomes the bitwise complement of src: what must arrive there differs in every byte. */
void complement(uint8_t *dst, const uint8_t *src, size_t size);

/*
 * Bytes that differ, the last blocks first, since what a copy brings late is most often
 * its end.  A difference that is gone at the second look counts as one byte.
 */
size_t count_differences(const uint8_t *found, const uint8_t *expected, size_t size);

/* The modes of the program; 0 or the exit status. */
struct options {
	bool emulated, with_load;
	enum gdri_dma_completion completion;
	int engine;		/* number, or one of the two below */
	unsigned ways;		/* mask over enum way */
	double seconds;
	uint64_t copies[3];	/* small, 64 KiB, 1 MiB; for each engine and way */
	const char *counters;	/* file, or NULL */
	uint64_t rounds;	/* of order, mixed or spin; 0: their defaults */
	unsigned threads;	/* 0: their defaults */
};

#define ENGINE_ALL (-1)
#define ENGINE_WIDEST (-2)

enum way { WAY_TO, WAY_FROM, WAY_WITHIN, WAYS };
enum size_class { CLASS_SMALL, CLASS_64K, CLASS_1M, CLASSES };
extern const char *const way_names[WAYS];
extern const char *const class_names[CLASSES];
#define COMPLETIONS 3
extern const char *const completion_names[COMPLETIONS];	/* by enum gdri_dma_completion */

int soak_stale(struct machine *machine, const struct options *options);
int soak_mixed(struct machine *machine, const struct options *options);
int soak_spin(struct machine *machine, const struct options *options);
int soak_order(struct machine *machine, const struct options *options);

#endif
