/* SPDX-License-Identifier: MIT */
/*
 * Copies as callers see them: the right bytes with every routine and mapping
 * type; whole words; and what a copy never does: a system call, an allocation,
 * a lock, a call of CUDA.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <errno.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_CALLS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS_CALLS 0
#endif
#endif
#ifndef COUNTS_CALLS
#define COUNTS_CALLS 1
#endif

/* Both sides as one array each, with the bytes around the range left to check. */
static void check_random_copies(const struct gpu_mapping *mapping, int rounds)
{
	enum { AREA = 20000 };
	static unsigned char gpu[AREA], expected[AREA], host[AREA];

	gpu_fill(expected, AREA, 1);
	gpu_write(mapping->buffer.ptr, expected, AREA);
	srand(1);
	for (int i = 0; i < rounds; i++) {
		size_t size = (size_t)rand() % (i % 4 ? 300 : AREA / 2);
		size_t there = (size_t)rand() % (AREA - size);
		size_t here = (size_t)rand() % (AREA - size);

		gpu_fill(host, AREA, (unsigned)i);
		CHECK_EQ(gdr_copy_to_mapping(mapping->handle, mapping->va + there, host + here,
					     size), 0);
		memcpy(expected + there, host + here, size);
		gpu_read(gpu, mapping->buffer.ptr, AREA);
		REQUIRE(memcmp(gpu, expected, AREA) == 0);

		gpu_fill(gpu, AREA, (unsigned)i + 7);
		memcpy(host, gpu, AREA);
		CHECK_EQ(gdr_copy_from_mapping(mapping->handle, host + here, mapping->va + there,
					       size), 0);
		memcpy(gpu + here, expected + there, size);
		REQUIRE(memcmp(gpu, host, AREA) == 0);
	}
}

static void random_copies(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);

	check_random_copies(&mapping, api_rounds(1500));
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static void large_copies(void)
{
	const size_t size = 16 * MIB;
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), size);
	unsigned char *out = malloc(size + 1), *in = malloc(size + 1);

	gpu_fill(out, size, 3);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va, out, size), 0);
	gpu_read(in, mapping.buffer.ptr, size);
	CHECK(memcmp(in, out, size) == 0);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va + 3, out, size - 3), 0);
	CHECK_EQ(gdr_copy_from_mapping(mapping.handle, in + 1, mapping.va, size), 0);
	CHECK(memcmp(in + 4, out, size - 3) == 0);
	free(out);
	free(in);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* A reader that polls a flag never sees half of one. */
struct words {
	struct team *team;
	const unsigned char *va;
	int torn, seen;
};

static void *poll_words(void *arg)
{
	struct words *words = arg;

	while (!atomic_load(&words->team->stop)) {
		uint64_t eight = __atomic_load_n((const uint64_t *)words->va, __ATOMIC_RELAXED);
		uint32_t four = __atomic_load_n((const uint32_t *)(words->va + 16),
						__ATOMIC_RELAXED);
		uint16_t two = __atomic_load_n((const uint16_t *)(words->va + 32),
					       __ATOMIC_RELAXED);

		words->torn += eight != 0 && eight != UINT64_MAX;
		words->torn += four != 0 && four != UINT32_MAX;
		words->torn += two != 0 && two != UINT16_MAX;
		words->seen += eight != 0;
	}
	return NULL;
}

static void aligned_words_are_whole(void)
{
	const int rounds = api_rounds(2000000);
	struct gpu_mapping mapping;
	struct words words;
	struct team team;

#if !COUNTS_CALLS
	SKIP("the routines' stores are no atomics to the sanitizer");
#endif
	mapping = gpu_map_new(gpu_open(), GPU_PAGE_SIZE);
	words = (struct words){ &team, mapping.va, 0, 0 };
	memset(mapping.va, 0, 64);
	team_start(&team, 1, poll_words, &words, 0);
	for (int i = 0; i < rounds || (words.seen == 0 && i < rounds + 10000); i++) {
		const uint64_t value = i % 2 ? UINT64_MAX : 0;

		/* valgrind lets a thread that never sleeps starve the other. */
		if (i >= rounds)
			usleep(100);
		gdr_copy_to_mapping(mapping.handle, mapping.va, &value, 8);
		gdr_copy_to_mapping(mapping.handle, mapping.va + 16, &value, 4);
		gdr_copy_to_mapping(mapping.handle, mapping.va + 32, &value, 2);
	}
	team_join(&team);
	CHECK_EQ(words.torn, 0);
	CHECK(words.seen > 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* Stores through the pointer, and copies, see each other in program order. */
static void pointer_and_copies_agree(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), GPU_PAGE_SIZE);
	uint64_t seen;

	for (uint64_t i = 1; i < 1000; i++) {
		*(volatile uint64_t *)(mapping.va + 64) = i;
		CHECK_EQ(gdr_copy_from_mapping(mapping.handle, &seen, mapping.va + 64, 8), 0);
		CHECK_EQ(seen, i);
		seen = ~i;
		CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va + 64, &seen, 8), 0);
		CHECK_EQ(*(volatile uint64_t *)(mapping.va + 64), ~i);
	}
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* All kinds of copies: done, refused for the range, refused for the handle. */
static int copy_all_kinds(const struct gpu_mapping *mapping, unsigned char *host)
{
	static const size_t sizes[] = { 0, 1, 2, 4, 8, 16, 63, 64, 65, 1000, 65536, MIB };
	const gdr_mh_t none = { 128 };
	int wrong = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (size_t offset = 0; offset < 3 && sizes[i] + offset <= MIB; offset++) {
			wrong += gdr_copy_to_mapping(mapping->handle, mapping->va + offset, host,
						     sizes[i]) != 0;
			wrong += gdr_copy_from_mapping(mapping->handle, host, mapping->va + offset,
						       sizes[i]) != 0;
		}
	}
	wrong += gdr_copy_to_mapping(mapping->handle, mapping->va, host, MIB + 1) != EINVAL;
	wrong += gdr_copy_from_mapping(mapping->handle, host, mapping->va - 1, 1) != EINVAL;
	wrong += gdr_copy_to_mapping(none, mapping->va, host, 8) != EINVAL;
	wrong += gdr_copy_from_mapping(none, host, mapping->va, 8) != EINVAL;
	return wrong;
}

/* From here on, in all threads: write and exit_group, or death. */
static void forbid_system_calls(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		_exit(99);
}

struct sealed {
	const struct gpu_mapping *mapping;
	unsigned char *host;
	_Atomic int ready;
	_Atomic int go;
	_Atomic int result;
};

/* The thread's first copies of all happen behind the filter. */
static void *copy_sealed(void *arg)
{
	struct sealed *sealed = arg;

	atomic_store(&sealed->ready, 1);
	while (!atomic_load(&sealed->go))
		continue;
	atomic_store(&sealed->result, 1 + copy_all_kinds(sealed->mapping, sealed->host));
	while (atomic_load(&sealed->go))
		continue;
	return NULL;
}

_Noreturn static void copy_behind_filter(void)
{
	static unsigned char host[MIB + 1];
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	struct sealed sealed = { .mapping = &mapping, .host = host };
	pthread_t thread;
	int wrong;

	if (pthread_create(&thread, NULL, copy_sealed, &sealed) != 0)
		_exit(98);
	while (!atomic_load(&sealed.ready))
		continue;
	forbid_system_calls();
	wrong = copy_all_kinds(&mapping, host);
	atomic_store(&sealed.go, 1);
	while (!atomic_load(&sealed.result))
		continue;
	_exit(wrong + sealed.result - 1);
}

static void no_system_calls(void)
{
	int status = 0;
	pid_t child;

	if (api_is_sanitized())
		SKIP("the sanitizer makes system calls of its own");
	child = fork();
	if (child == 0)
		copy_behind_filter();
	REQUIRE_EQ(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 99)
		SKIP("no seccomp filters here");
	CHECK_EQ(status, 0);
}

#if COUNTS_CALLS
static _Atomic int allocations, locks;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *memory);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
	allocations++;
	return __libc_realloc(old, size);
}

void free(void *memory)
{
	allocations++;
	__libc_free(memory);
}

extern int pthread_mutex_trylock(pthread_mutex_t *mutex);

/* Good enough for a counter: nobody in this program needs the real one's queue. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int rc;

	locks++;
	while ((rc = pthread_mutex_trylock(mutex)) == EBUSY)
		sched_yield();
	return rc;
}
#endif

static void no_allocation_and_no_lock(void)
{
#if COUNTS_CALLS
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	unsigned char *host = malloc(MIB + 1);
	int allocations_before, locks_before;
	gdr_info_t info;

	memset(host, 0, MIB + 1);
	allocations_before = allocations;
	locks_before = locks;
	CHECK_EQ(copy_all_kinds(&mapping, host), 0);
	CHECK_EQ(allocations, allocations_before);
	CHECK_EQ(locks, locks_before);
	/* The counters count what they are meant to. */
	CHECK(allocations_before > 0);
	CHECK_EQ(gdr_get_info(mapping.g, mapping.handle, &info), 0);
	CHECK(locks > locks_before);
	free(host);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
#else
	SKIP("the sanitizer has these functions");
#endif
}

/* Takes the right to run libcuda's code away: whoever calls it dies. */
static int forbid_object(struct dl_phdr_info *object, size_t size, void *arg)
{
	int *found = arg;

	(void)size;
	if (!strstr(object->dlpi_name, "libcuda.so"))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];
		uintptr_t start = object->dlpi_addr + header->p_vaddr;

		if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
			continue;
		if (mprotect((void *)(start & ~(uintptr_t)4095),
			     header->p_memsz + (start & 4095), PROT_READ) == 0)
			(*found)++;
	}
	return 0;
}

static void forbid_cuda(void)
{
	int found = 0;

	dl_iterate_phdr(forbid_object, &found);
	REQUIRE(found > 0);
}

static void query_everything(const struct gpu_mapping *mapping)
{
	const char *name;
	gdr_info_t info;
	int a, b;

	CHECK_EQ(gdr_get_info(mapping->g, mapping->handle, &info), 0);
	CHECK_EQ(gdr_get_callback_flag(mapping->g, mapping->handle, &a), 0);
	CHECK_EQ(gdr_driver_get_version(mapping->g, &a, &b), 0);
	gdr_runtime_get_version(&a, &b);
	CHECK_EQ(gdr_get_mapping_type_string(GDR_MAPPING_TYPE_WC, &name), 0);
}

/* The emulated GPU's memory comes from libcuda, so only copies can do without. */
static void copies_without_cuda(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	unsigned char *host = calloc(1, MIB + 1);

	forbid_cuda();
	CHECK_EQ(copy_all_kinds(&mapping, host), 0);
	query_everything(&mapping);
	free(host);
	fflush(NULL);
	_exit(0);
}

/* With CUDA's own dma-bufs nothing after the pin needs CUDA, up to gdr_close. */
static void all_but_pin_without_cuda(void)
{
	struct gpu_buffer buffer = gpu_alloc(4 * MIB);
	struct gpu_mapping mapping = { .buffer = buffer, .g = gpu_open() };
	unsigned char *host = calloc(1, MIB + 1);
	int value = 0;
	gdr_mh_t left;

	CHECK_EQ(gdr_get_attribute(mapping.g, GDR_ATTR_USING_DMA_BUF_MMAP, &value), 0);
	CHECK_EQ(value, 1);
	mapping.handle = gpu_pin(mapping.g, buffer.ptr, MIB);
	left = gpu_pin(mapping.g, buffer.ptr + MIB, MIB);
	forbid_cuda();
	mapping.va = gpu_map(mapping.g, mapping.handle, MIB);
	CHECK_EQ(copy_all_kinds(&mapping, host), 0);
	query_everything(&mapping);
	CHECK_EQ(gdr_unmap(mapping.g, mapping.handle, mapping.va, MIB), 0);
	CHECK_EQ(gdr_unpin_buffer(mapping.g, mapping.handle), 0);
	gpu_map(mapping.g, left, MIB);
	CHECK_EQ(gdr_close(mapping.g), 0);
	free(host);
	fflush(NULL);
	_exit(0);
}

/* A case that must end in _exit, since libcuda cannot run at exit any more. */
static void run_to_exit(void (*body)(void))
{
	int status = 0;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (child == 0)
		body();
	REQUIRE_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void copies_make_no_cuda_call(void)
{
	run_to_exit(copies_without_cuda);
}

static void only_pin_calls_cuda(void)
{
	run_to_exit(all_but_pin_without_cuda);
}

/* R22, R23: no context needed, none changed. */
static void *pin_without_context(void *arg)
{
	const struct gpu_mapping *mapping = arg;
	CUcontext current = (CUcontext)arg;
	uint64_t value = 9, seen = 0;
	gdr_mh_t handle;
	void *va;

	CHECK_EQ(gdr_pin_buffer(mapping->g, mapping->buffer.ptr, MIB, 0, 0, &handle), 0);
	CHECK_EQ(gdr_map(mapping->g, handle, &va, MIB), 0);
	CHECK_EQ(gdr_copy_to_mapping(handle, va, &value, 8), 0);
	CHECK_EQ(gdr_copy_from_mapping(handle, &seen, va, 8), 0);
	CHECK_EQ(seen, value);
	CHECK_EQ(gdr_unpin_buffer(mapping->g, handle), 0);
	CHECK_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
	CHECK(current == NULL);
	return NULL;
}

static void context_of_the_caller(void)
{
	struct gpu_mapping mapping = { .buffer = gpu_alloc(MIB), .g = gpu_open() };
	CUcontext other, current;

	thread_run(pin_without_context, &mapping);
	REQUIRE_EQ(cuCtxCreate(&other, NULL, 0, 1), CUDA_SUCCESS);
	mapping.handle = gpu_pin(mapping.g, mapping.buffer.ptr, MIB);
	mapping.va = gpu_map(mapping.g, mapping.handle, MIB);
	CHECK_EQ(cuCtxGetCurrent(&current), CUDA_SUCCESS);
	CHECK(current == other);
	CHECK_EQ(cuCtxDestroy(other), CUDA_SUCCESS);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

#define DMABUF "GDRCOPY_BACKEND=dmabuf GDRCOPY_EMU=driver=13030,devices=2"

static const struct api_case cases[] = {
	{ "random_copies", random_copies, NULL },
	{ "random_copies_cached", random_copies, "GDRCOPY_EMU=coherent" },
	{ "random_copies_device", random_copies, "GDRCOPY_EMU=wc=0" },
	{ "random_copies_dmabuf", random_copies, DMABUF },
	{ "random_copies_plain", random_copies, "GDRCOPY_COPY=plain" },
	{ "large_copies", large_copies, NULL },
	{ "aligned_words_are_whole", aligned_words_are_whole, NULL },
	{ "pointer_and_copies_agree", pointer_and_copies_agree, NULL },
	{ "no_system_calls", no_system_calls, NULL },
	{ "no_system_calls_cached", no_system_calls, "GDRCOPY_EMU=coherent" },
	{ "no_system_calls_device", no_system_calls, "GDRCOPY_EMU=wc=0" },
	{ "no_allocation_and_no_lock", no_allocation_and_no_lock, NULL },
	{ "copies_make_no_cuda_call", copies_make_no_cuda_call, NULL },
	{ "only_pin_calls_cuda", only_pin_calls_cuda, DMABUF },
	{ "context_of_the_caller", context_of_the_caller, "GDRCOPY_EMU=devices=2" },
	{ "context_of_the_caller_dmabuf", context_of_the_caller, DMABUF },
};

API_MAIN(cases)
