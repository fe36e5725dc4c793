/* SPDX-License-Identifier: MIT */
/*
 * Looks for one stale byte: copies by every copy engine at once, each byte of
 * each destination compared, while CUDA moves large buffers beside them.
 *
 *	dma_soak SECONDS [host|flushed|unsafe]
 *
 * A third of the time each for reads, writes and copies within the device, of 1 B
 * to 4 KiB, 64 KiB and 1 MiB in turn, 90, 9 and 1 in a hundred.  What a destination held
 * before differs from what must arrive in nearly every byte.  Exits 1 when a
 * byte was wrong; with "unsafe", the way of completion that delivers stale bytes, when
 * none was.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "copy/dma/dma.h"
#include "copy/dma/port_rm.h"
#include "os/cuda.h"
#include "rm/range.h"

#define HALF ((size_t)2 << 20)
#define LOAD_SIZE ((size_t)32 << 20)
#define ENGINES 10

enum way { READS, WRITES, WITHIN, WAYS };
static const char *const way_names[WAYS] = { "read", "write", "within" };
static const size_t class_sizes[] = { 4096, 65536, 1 << 20 };
#define CLASSES 3

struct engine {
	int number;
	bool open;
	struct gdri_dma *dma;
	struct gdri_dma_target *target;
	unsigned char *reference;	/* what the first half of the target holds */
	unsigned char *host;		/* registered */
	unsigned char *pageable;
	unsigned long copies[WAYS][CLASSES], stale[WAYS][CLASSES];
	uint64_t random;
};

static struct gdri_log log_warnings = { .level = GDRI_LOG_WARN };
static struct gdri_cuda cuda;
static void *context;
static double end_at, seconds;
static atomic_bool over;

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void fail(const char *what, int rc)
{
	fprintf(stderr, "%s: %d\n", what, rc);
	exit(2);
}

static void must(const char *what, int rc)
{
	if (rc)
		fail(what, rc);
}

/* Large copies of CUDA's, both ways and within, on a stream of each kind of thread. */
static void *load(void *arg)
{
	int (*host_alloc)(void **, size_t, unsigned), (*synchronize)(void);
	int (*htod)(gdri_cu_ptr, const void *, size_t), (*dtoh)(void *, gdri_cu_ptr, size_t);
	int (*dtod)(gdri_cu_ptr, gdri_cu_ptr, size_t);
	gdri_cu_ptr device;
	void *pinned;

	*(void **)&host_alloc = dlsym(cuda.library, "cuMemHostAlloc");
	*(void **)&synchronize = dlsym(cuda.library, "cuCtxSynchronize");
	*(void **)&htod = dlsym(cuda.library, "cuMemcpyHtoD_v2");
	*(void **)&dtoh = dlsym(cuda.library, "cuMemcpyDtoH_v2");
	*(void **)&dtod = dlsym(cuda.library, "cuMemcpyDtoD_v2");
	must("current context", cuda.ctx_set_current(context));
	must("device memory", cuda.mem_alloc(&device, 2 * LOAD_SIZE));
	must("pinned memory", host_alloc(&pinned, LOAD_SIZE, 0));
	while (!atomic_load(&over)) {
		if (arg)
			must("load", htod(device, pinned, LOAD_SIZE));
		else
			must("load", dtoh(pinned, device, LOAD_SIZE));
		must("load", dtod(device + LOAD_SIZE, device, LOAD_SIZE));
		must("load", synchronize());
	}
	return NULL;
}

static size_t pick_class(struct engine *engine, size_t *size)
{
	const uint64_t dice = next_random(&engine->random) % 100;
	const size_t class = dice < 90 ? 0 : dice < 99 ? 1 : 2;

	*size = class ? class_sizes[class] : 1 + next_random(&engine->random) % 4096;
	return class;
}

static void complement(unsigned char *dst, const unsigned char *src, size_t size)
{
	for (size_t i = 0; i < size; i++)
		dst[i] = (unsigned char)~src[i];
}

static bool read_is_wrong(struct engine *engine, uint64_t offset, const unsigned char *expected,
			  unsigned char *host, size_t size)
{
	complement(host, expected, size);
	must("read", gdri_dma_from_device(engine->target, offset, host, size));
	return memcmp(host, expected, size) != 0;
}

static void copy_once(struct engine *engine, enum way way)
{
	enum gdri_dma_route route;
	size_t size, class = pick_class(engine, &size);
	const size_t from = next_random(&engine->random) % (HALF - size);
	const size_t to = next_random(&engine->random) % (HALF - size);
	unsigned char *host = next_random(&engine->random) % 8 ? engine->host : engine->pageable;
	bool wrong;

	switch (way) {
	case READS:
		wrong = read_is_wrong(engine, from, engine->reference + from, host + to, size);
		break;
	case WRITES:
		memcpy(host + from, engine->reference + from, size);
		must("write", gdri_dma_to_device(engine->target, HALF + to, host + from, size));
		wrong = read_is_wrong(engine, HALF + to, engine->reference + from, engine->host,
				      size);
		break;
	default:
		must("within", gdri_dma_between(engine->target, HALF + to, engine->target, from, size,
						GDRI_DMA_ROUTE_AUTO, &route));
		wrong = read_is_wrong(engine, HALF + to, engine->reference + from, engine->host,
				      size);
	}
	engine->copies[way][class]++;
	engine->stale[way][class] += wrong;
}

static void *soak(void *arg)
{
	struct engine *engine = arg;

	for (int way = 0; way < WAYS; way++) {
		const double until = end_at - seconds + seconds * (way + 1) / WAYS;

		while (now() < until)
			for (int i = 0; i < 64; i++)
				copy_once(engine, (enum way)way);
	}
	return NULL;
}

static void open_engine(struct gdri_dma_port *port, struct gdri_rm_client *client,
			struct engine *engine, enum gdri_dma_completion completion)
{
	const struct gdri_dma_options options = {
		.engine = engine->number, .completion = completion
	};
	struct gdri_rm_range *range = calloc(1, sizeof(*range));
	struct gdri_dma_memory memory;
	gdri_cu_ptr ptr;

	must("device memory", cuda.mem_alloc(&ptr, 2 * HALF));
	must("range", gdri_rm_range_acquire(client, &cuda, ptr, 2 * HALF, &log_warnings, range));
	memory = gdri_dma_port_rm_memory(range, range->offset, 2 * HALF);
	must("engine", gdri_dma_create(port, &options, &engine->dma));
	if (gdri_dma_attach(engine->dma, &memory, &engine->target))
		return;
	engine->open = true;
	engine->random = 0x9e3779b97f4a7c15u * (unsigned)(engine->number + 1);
	engine->reference = aligned_alloc(4096, HALF);
	engine->host = aligned_alloc(4096, HALF);
	engine->pageable = aligned_alloc(4096, HALF);
	for (size_t i = 0; i < HALF; i++)
		engine->reference[i] = (unsigned char)(next_random(&engine->random) >> 32);
	memset(engine->host, 0, HALF);
	memset(engine->pageable, 0, HALF);
	must("register", gdri_dma_register(engine->dma, engine->host, HALF));
	must("fill", gdri_dma_to_device(engine->target, 0, engine->reference, HALF));
}

static unsigned long report(const struct engine *engines)
{
	unsigned long copies = 0, stale = 0;

	printf("%-8s %-8s %12s %12s %12s %8s\n", "engine", "", "<= 4 KiB", "64 KiB", "1 MiB", "wrong");
	for (int n = 0; n < ENGINES; n++)
		for (int way = 0; way < WAYS && engines[n].open; way++) {
			const unsigned long *done = engines[n].copies[way];
			unsigned long wrong = 0;

			for (int class = 0; class < CLASSES; class++) {
				wrong += engines[n].stale[way][class];
				copies += done[class];
			}
			stale += wrong;
			printf("COPY%-4d %-8s %12lu %12lu %12lu %8lu\n", n, way_names[way], done[0],
			       done[1], done[2], wrong);
		}
	printf("%lu copies, %lu wrong\n", copies, stale);
	return stale;
}

int main(int argc, char **argv)
{
	const char *way = argc > 2 ? argv[2] : "host";
	enum gdri_dma_completion completion = strcmp(way, "unsafe") == 0 ?
		GDRI_DMA_BY_ENGINE_UNSAFE : strcmp(way, "flushed") == 0 ?
		GDRI_DMA_BY_ENGINE_FLUSHED : GDRI_DMA_BY_HOST;
	static struct engine engines[ENGINES];
	pthread_t thread[ENGINES], loader[2];
	struct gdri_rm_failure failure;
	struct gdri_rm_client *client;
	struct gdri_dma_port_rm port;
	unsigned long stale;
	int device;

	seconds = argc > 1 ? atof(argv[1]) : 30;
	must("libcuda", gdri_os_cuda_load(&cuda));
	must("CUDA", cuda.init(0) || cuda.device_get(&device, 0) ||
		     cuda.primary_ctx_retain(&context, device) || cuda.ctx_set_current(context));
	must("client", gdri_rm_client_acquire(&client, &failure));
	gdri_dma_port_rm_init(&port, client, false, &log_warnings);
	for (int n = 0; n < ENGINES; n++) {
		engines[n].number = n;
		open_engine(&port.base, client, &engines[n], completion);
	}
	end_at = now() + seconds;
	for (intptr_t i = 0; i < 2; i++)
		must("thread", pthread_create(&loader[i], NULL, load, (void *)i));
	for (int n = 0; n < ENGINES; n++)
		if (engines[n].open)
			must("thread", pthread_create(&thread[n], NULL, soak, &engines[n]));
	for (int n = 0; n < ENGINES; n++)
		if (engines[n].open)
			pthread_join(thread[n], NULL);
	atomic_store(&over, true);
	pthread_join(loader[0], NULL);
	pthread_join(loader[1], NULL);
	stale = report(engines);
	for (int n = 0; n < ENGINES; n++)
		if (engines[n].open) {
			gdri_dma_detach(engines[n].target);
			must("destroy", gdri_dma_destroy(engines[n].dma));
		}
	return completion == GDRI_DMA_BY_ENGINE_UNSAFE ? stale == 0 : stale != 0;
}
