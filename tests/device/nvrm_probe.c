/* SPDX-License-Identifier: MIT */
/*
 * Back end nvrm on a real GPU, through the public API: every kind of memory,
 * what must be refused, and what it costs.  nvrm_probe.sh builds and runs it.
 *
 *	nvrm_probe			all cases but the next
 *	nvrm_probe persistent		first pins of a process while a kernel runs
 *
 * Prints "ok NAME: facts" or "not ok NAME: what"; exit status 1 on any failure.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cuda.h"
#include "gdrapi.h"

#define MIB ((size_t)1 << 20)
#define PAGE ((size_t)65536)

/* The driver's calls, looked up at run time: gdr_open is also timed before libcuda is loaded. */
#define CALLS(X)                                                                            \
	X(cuInit, "") X(cuCtxCreate_v2, "") X(cuCtxSetCurrent, "") X(cuCtxGetCurrent, "")    \
	X(cuMemAlloc_v2, "") X(cuMemFree_v2, "") X(cuMemcpyDtoH_v2, "") X(cuMemcpyHtoD_v2, "") \
	X(cuMemsetD8_v2, "") X(cuMemAllocManaged, "") X(cuMemAllocAsync, "")                  \
	X(cuMemHostAlloc, "") X(cuMemCreate, "") X(cuMemRelease, "") X(cuMemMap, "")          \
	X(cuMemUnmap, "") X(cuMemAddressReserve, "") X(cuMemSetAccess, "")                   \
	X(cuPointerGetAttribute, "") X(cuIpcGetMemHandle, "") X(cuIpcOpenMemHandle_v2, "")    \
	X(cuMemHostGetDevicePointer_v2, "") X(cuModuleLoadData, "") X(cuModuleGetFunction, "") \
	X(cuStreamCreate, "") X(cuStreamSynchronize, "") X(cuLaunchKernel, "")
#define DECLARE(name, unused) static __typeof__(name) *p_##name;
CALLS(DECLARE)

static int failures;
static CUcontext context;

static void load_cuda(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		printf("skip all: %s\n", dlerror());
		exit(77);
	}
#define LOOK_UP(name, unused) *(void **)&p_##name = dlsym(library, #name);
	CALLS(LOOK_UP)
	if (p_cuInit(0) || p_cuCtxCreate_v2(&context, 0, 0)) {
		printf("not ok cuda: no context\n");
		exit(1);
	}
}

static double now_us(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

__attribute__((format(printf, 3, 4)))
static bool report(bool good, const char *name, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("%s %s: ", good ? "ok" : "not ok", name);
	vprintf(format, args);
	putchar('\n');
	va_end(args);
	failures += !good;
	return good;
}

static int open_descriptors(void)
{
	int count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* A different value for every address and turn. */
static uint64_t mark_of(CUdeviceptr addr, unsigned turn)
{
	return (addr * UINT64_C(0x9e3779b97f4a7c15)) ^ ((uint64_t)turn << 32 | 0xabcd);
}

/*
 * Pins and maps whole pages and compares both ways at the first and last eight
 * bytes of the buffer in them: what CUDA writes must show in the mapping, and
 * the reverse.
 */
static int check_buffer(gdr_t g, CUdeviceptr addr, size_t size, CUdeviceptr buffer,
			size_t buffer_size, const char **what)
{
	const size_t at[] = { buffer - addr, buffer - addr + buffer_size - 8 };
	gdr_mh_t handle;
	void *map = NULL;
	int rc;

	rc = gdr_pin_buffer(g, addr, size, 0, 0, &handle);
	*what = "pin";
	if (rc)
		return rc;
	rc = gdr_map(g, handle, &map, size);
	*what = "map";
	for (int i = 0; rc == 0 && i < 2; i++) {
		const uint64_t down = mark_of(addr + at[i], 1), up = mark_of(addr + at[i], 2);
		uint64_t seen = 0;

		/* CUDA returns before a small copy has reached GPU memory. */
		p_cuMemcpyHtoD_v2(addr + at[i], &down, 8);
		p_cuStreamSynchronize(NULL);
		gdr_copy_from_mapping(handle, &seen, (char *)map + at[i], 8);
		*what = "bytes written by CUDA";
		if (seen != down)
			rc = -1;
		gdr_copy_to_mapping(handle, (char *)map + at[i], &up, 8);
		gdr_copy_from_mapping(handle, &seen, (char *)map + at[i], 8);
		p_cuMemcpyDtoH_v2(&seen, addr + at[i], 8);
		if (rc == 0)
			*what = "bytes written through the mapping";
		if (seen != up)
			rc = -1;
	}
	if (map && gdr_unmap(g, handle, map, size) && rc == 0)
		rc = -2;
	if (gdr_unpin_buffer(g, handle) && rc == 0)
		rc = -3;
	return rc;
}

static int check_page(gdr_t g, CUdeviceptr addr, size_t size, const char **what)
{
	return check_buffer(g, addr, size, addr, size, what);
}

/* MSCCL++ and NIXL pin so: the page around a small buffer. */
static void expect_good_around(gdr_t g, const char *name, CUdeviceptr buffer, size_t size)
{
	const char *what = "";
	int rc = check_buffer(g, buffer & ~(PAGE - 1), PAGE, buffer, size, &what);

	report(rc == 0, name, "%#llx + %#zx%s%s %d", (unsigned long long)buffer, size,
	       rc ? " fails at " : "", rc ? what : "", rc);
}

static void expect_good(gdr_t g, const char *name, CUdeviceptr addr, size_t size)
{
	const char *what = "";
	int rc = check_page(g, addr, size, &what);

	report(rc == 0, name, "%#llx + %#zx%s%s %d", (unsigned long long)addr, size,
	       rc ? " fails at " : "", rc ? what : "", rc);
}

static void expect_refused(gdr_t g, const char *name, CUdeviceptr addr, size_t size)
{
	gdr_mh_t handle = { 1 };
	int rc = gdr_pin_buffer(g, addr, size, 0, 0, &handle);

	report(rc == EINVAL && handle.h == 0, name, "pin of %#llx + %#zx gives %d (%s)",
	       (unsigned long long)addr, size, rc, strerror(rc));
	if (rc == 0)
		gdr_unpin_buffer(g, handle);
}

static CUdeviceptr alloc_bytes(size_t size)
{
	CUdeviceptr addr = 0;

	if (p_cuMemAlloc_v2(&addr, size) || p_cuMemsetD8_v2(addr, 0, size) ||
	    p_cuStreamSynchronize(NULL)) {
		printf("not ok cuMemAlloc: %zu bytes\n", size);
		exit(1);
	}
	return addr;
}

/* At a page; buffers below 1 MiB would start anywhere, so they get room to move. */
static CUdeviceptr alloc(size_t size)
{
	return size < MIB ? (alloc_bytes(size + PAGE - 1) + PAGE - 1) & ~(PAGE - 1) :
			    alloc_bytes(size);
}

static void map_vmm(CUdeviceptr addr, size_t size, bool exportable)
{
	const CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = exportable ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : 0,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE },
		.allocFlags = { .gpuDirectRDMACapable = 1 },
	};
	const CUmemAccessDesc access = {
		.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemGenericAllocationHandle handle;

	if (p_cuMemCreate(&handle, size, &properties, 0) || p_cuMemMap(addr, size, 0, handle, 0) ||
	    p_cuMemSetAccess(addr, size, &access, 1) || p_cuMemsetD8_v2(addr, 0, size) ||
	    p_cuStreamSynchronize(NULL))
		report(false, "vmm", "cuMemCreate or cuMemMap of %zu bytes", size);
	p_cuMemRelease(handle);
}

static CUdeviceptr alloc_vmm(size_t size, bool exportable)
{
	CUdeviceptr addr = 0;

	p_cuMemAddressReserve(&addr, size, 0, 0, 0);
	map_vmm(addr, size, exportable);
	return addr;
}

static void malloc_cases(gdr_t g)
{
	CUdeviceptr page = alloc(PAGE), small = alloc_bytes(512), odd = alloc(3 * MIB);
	CUdeviceptr twin1 = alloc(4 * MIB), twin2 = alloc(4 * MIB), big = alloc(5120 * MIB);
	uint64_t block = 0, seen = 1;

	expect_good(g, "cudaMalloc 64 KiB", page, PAGE);
	expect_good_around(g, "page around a buffer of 512 bytes", small, 512);
	expect_good(g, "3 MiB", odd, 3 * MIB);
	expect_good(g, "3 MiB, page 17", odd + 17 * PAGE, PAGE);
	expect_good(g, "second of two equal zeroed buffers", twin2, 4 * MIB);
	p_cuMemcpyDtoH_v2(&seen, twin1, 8);
	report(seen == 0, "first of them untouched", "%#llx", (unsigned long long)seen);
	expect_good(g, "5 GiB, whole", big, 5120 * MIB);
	expect_good(g, "5 GiB, page at 4.5 GiB", big + 4608 * MIB, PAGE);
	p_cuPointerGetAttribute(&block, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, odd);
	report(true, "block of a 3 MiB buffer", "%#llx bytes", (unsigned long long)block);
	p_cuMemFree_v2(big);
}

/* Noise on the heap moves the driver's records about. */
static void vmm_cases(gdr_t g)
{
	CUdeviceptr pair = 0;
	unsigned good = 0, total = 0;

	expect_good(g, "VMM exportable", alloc_vmm(2 * MIB, true), 2 * MIB);
	expect_good(g, "VMM private", alloc_vmm(2 * MIB, false), 2 * MIB);
	expect_good(g, "VMM private, page at 5 MiB of 6", alloc_vmm(6 * MIB, false) + 5 * MIB,
		    PAGE);
	p_cuMemAddressReserve(&pair, 8 * MIB, 0, 0, 0);
	map_vmm(pair, 2 * MIB, false);
	map_vmm(pair + 2 * MIB, 4 * MIB, false);
	expect_good(g, "VMM second of one reservation", pair + 3 * MIB, PAGE);
	expect_refused(g, "VMM range across two", pair + MIB, 2 * MIB);
	for (unsigned i = 0; i < 40; i++) {
		const size_t size = (1 + i % 3) * 2 * MIB;
		CUdeviceptr addr = alloc_vmm(size, false);
		const char *what;
		void *noise = malloc(16 + i * 37 % 900);

		total++;
		good += check_page(g, addr, size, &what) == 0;
		if (i % 5 == 4)
			p_cuMemUnmap(addr, size);
		if (i % 2)
			free(noise);
	}
	report(good == total, "VMM private, 40 in a row", "%u of %u", good, total);
}

static CUdeviceptr open_foreign(CUipcMemHandle *handle)
{
	CUdeviceptr addr = 0;

	p_cuIpcOpenMemHandle_v2(&addr, *handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	report(addr != 0, "cuIpcOpenMemHandle", "%#llx", (unsigned long long)addr);
	return addr;
}

static void refusals(gdr_t g, CUipcMemHandle *foreign)
{
	CUdeviceptr managed = 0, pool = 0, freed = alloc(4 * MIB), small = alloc(PAGE);
	void *host = NULL;

	p_cuMemFree_v2(freed);
	expect_refused(g, "freed buffer", freed, PAGE);
	p_cuMemAllocManaged(&managed, MIB, CU_MEM_ATTACH_GLOBAL);
	p_cuMemAllocAsync(&pool, MIB, NULL);
	p_cuStreamSynchronize(NULL);
	p_cuMemHostAlloc(&host, PAGE, 0);
	expect_refused(g, "managed memory", managed, PAGE);
	expect_refused(g, "pool memory", pool, PAGE);
	expect_refused(g, "host memory", (CUdeviceptr)host, PAGE);
	expect_refused(g, "an address of the stack", (CUdeviceptr)&small, 8);
	expect_refused(g, "two pages too many", small, 3 * PAGE);
	expect_refused(g, "memory of another process", open_foreign(foreign), PAGE);
}

static void kept_after_free(gdr_t g)
{
	CUdeviceptr addr = alloc(4 * MIB), again;
	uint64_t mark = mark_of(addr, 3), seen = 0;
	gdr_mh_t handle;
	void *map = NULL;
	int rc;

	rc = gdr_pin_buffer(g, addr, 4 * MIB, 0, 0, &handle);
	rc = rc ? rc : gdr_map(g, handle, &map, 4 * MIB);
	if (rc) {
		report(false, "kept after free", "pin or map gives %d", rc);
		return;
	}
	gdr_copy_to_mapping(handle, map, &mark, 8);
	p_cuMemFree_v2(addr);
	again = alloc(4 * MIB);
	p_cuMemsetD8_v2(again, 0x77, 4 * MIB);
	gdr_copy_from_mapping(handle, &seen, map, 8);
	report(seen == mark, "kept after free", "old bytes %s, new buffer %#llx (old %#llx)",
	       seen == mark ? "there" : "gone", (unsigned long long)again,
	       (unsigned long long)addr);
	rc = gdr_unmap(g, handle, map, 4 * MIB);
	rc = rc ? rc : gdr_unpin_buffer(g, handle);
	report(rc == 0, "unmap and unpin after free", "%d", rc);
}

static void *pin_without_context(void *arg)
{
	gdr_t g = ((void **)arg)[0];
	CUdeviceptr addr = (CUdeviceptr)((void **)arg)[1];
	CUcontext current = NULL;
	gdr_mh_t handle;
	int rc = gdr_pin_buffer(g, addr, PAGE, 0, 0, &handle);

	p_cuCtxGetCurrent(&current);
	report(rc == 0 && !current, "thread without a context", "pin gives %d, context after %p",
	       rc, (void *)current);
	if (rc == 0)
		gdr_unpin_buffer(g, handle);
	return NULL;
}

static void without_context(gdr_t g)
{
	void *arg[2] = { g, (void *)alloc(PAGE) };
	CUcontext current = NULL;
	pthread_t thread;

	pthread_create(&thread, NULL, pin_without_context, arg);
	pthread_join(thread, NULL);
	arg[1] = (void *)alloc_vmm(2 * MIB, false);
	pthread_create(&thread, NULL, pin_without_context, arg);
	pthread_join(thread, NULL);
	p_cuCtxGetCurrent(&current);
	report(current == context, "caller's context", "unchanged: %d", current == context);
}

static int status_of_child(void (*body)(gdr_t, gdr_mh_t, void *), gdr_t g, gdr_mh_t handle,
			   void *map)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		body(g, handle, map);
		_exit(1);
	}
	waitpid(child, &status, 0);
	return status;
}

static void touch_map(gdr_t g, gdr_mh_t handle, void *map)
{
	(void)g;
	(void)handle;
	*(volatile int *)map = 7;
}

static void use_parents_session(gdr_t g, gdr_mh_t handle, void *map)
{
	gdr_t own;

	(void)map;
	if (gdr_unpin_buffer(g, handle) != EACCES)
		_exit(2);
	own = gdr_open();
	if (!own || gdr_close(own))
		_exit(3);
	_exit(0);
}

static void fork_cases(gdr_t g)
{
	CUdeviceptr addr = alloc(PAGE);
	gdr_mh_t handle;
	void *map = NULL;
	int status;

	gdr_pin_buffer(g, addr, PAGE, 0, 0, &handle);
	gdr_map(g, handle, &map, PAGE);
	status = status_of_child(touch_map, g, handle, map);
	report(WIFSIGNALED(status), "child touches the mapping", "signal %d", WTERMSIG(status));
	status = status_of_child(use_parents_session, g, handle, map);
	report(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	       "child: parent's session, own session", "exit %d", WEXITSTATUS(status));
	gdr_unmap(g, handle, map, PAGE);
	gdr_unpin_buffer(g, handle);
	expect_good(g, "parent after that", addr, PAGE);
}

static void swapped_descriptor(gdr_t g)
{
	CUdeviceptr addr = alloc(PAGE);
	int *behind = (int *)g, own = *behind, other = open("/dev/nvidiactl", O_RDWR);
	gdr_mh_t handle;
	int rc;

	*behind = other;
	rc = gdr_pin_buffer(g, addr, PAGE, 0, 0, &handle);
	*behind = own;
	close(other);
	report(rc != 0, "another descriptor behind gdr_t", "pin gives %d", rc);
	expect_good(g, "own descriptor again", addr, PAGE);
}

static void many_maps(gdr_t g)
{
	enum { COUNT = 10000 };
	gdr_mh_t *handle = calloc(COUNT, sizeof(*handle));
	void **map = calloc(COUNT, sizeof(*map));
	CUdeviceptr addr = alloc(COUNT * PAGE);
	const int before = open_descriptors();
	double start = now_us(), middle;
	int done, wrong = 0, rc = 0;

	for (done = 0; done < COUNT && rc == 0; done++) {
		rc = gdr_pin_buffer(g, addr + (size_t)done * PAGE, PAGE, 0, 0, &handle[done]);
		rc = rc ? rc : gdr_map(g, handle[done], &map[done], PAGE);
		if (rc == 0)
			*(volatile int *)map[done] = done;
	}
	middle = now_us();
	for (int i = 0; i < done; i++)
		wrong += *(volatile int *)map[i] != i;
	report(rc == 0 && wrong == 0 && open_descriptors() == before, "10,000 maps at once",
	       "%d maps (error %d), %d wrong, %d descriptors more, %.1f us each", done, rc, wrong,
	       open_descriptors() - before, (middle - start) / COUNT);
	start = now_us();
	for (int i = 0; i < done; i++)
		rc |= gdr_unmap(g, handle[i], map[i], PAGE) | gdr_unpin_buffer(g, handle[i]);
	report(rc == 0, "their end", "%.1f us each", (now_us() - start) / COUNT);
	p_cuMemFree_v2(addr);
	free(handle);
	free(map);
}

static int compare_doubles(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void costs(gdr_t g, const char *name, CUdeviceptr addr, size_t size)
{
	enum { ROUNDS = 201 };
	static double time[4][ROUNDS];
	gdr_mh_t handle;
	void *map;

	for (int i = 0; i < ROUNDS; i++) {
		double t[5];

		t[0] = now_us();
		gdr_pin_buffer(g, addr, size, 0, 0, &handle);
		t[1] = now_us();
		gdr_map(g, handle, &map, size);
		t[2] = now_us();
		gdr_unmap(g, handle, map, size);
		t[3] = now_us();
		gdr_unpin_buffer(g, handle);
		t[4] = now_us();
		for (int k = 0; k < 4; k++)
			time[k][i] = t[k + 1] - t[k];
	}
	for (int k = 0; k < 4; k++)
		qsort(time[k], ROUNDS, sizeof(double), compare_doubles);
	report(true, name, "median us: pin %.1f, map %.1f, unmap %.1f, unpin %.1f",
	       time[0][ROUNDS / 2], time[1][ROUNDS / 2], time[2][ROUNDS / 2],
	       time[3][ROUNDS / 2]);
}

/* Spins until a word of host memory is not zero. */
static const char spin_ptx[] =
	".version 6.4\n.target sm_50\n.address_size 64\n"
	".visible .entry spin(.param .u64 flag) {\n"
	".reg .u64 %a; .reg .u32 %v; .reg .pred %p;\n"
	"ld.param.u64 %a, [flag];\n"
	"LOOP: ld.volatile.global.u32 %v, [%a];\n"
	"setp.eq.u32 %p, %v, 0;\n@%p bra LOOP;\nret;\n}\n";

/* A pin that waits for the kernel would never end; the alarm ends the process. */
static void persistent(void)
{
	CUdeviceptr plain, exported, private, flag_addr = 0;
	void *flag = NULL, *parameters[] = { &flag_addr };
	CUmodule module;
	CUfunction function;
	CUstream stream;
	gdr_t g;
	struct { const char *name; CUdeviceptr addr; } first[3];
	int rc;

	load_cuda();
	plain = alloc(PAGE);
	exported = alloc_vmm(2 * MIB, true);
	private = alloc_vmm(2 * MIB, false);
	p_cuMemHostAlloc(&flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP);
	*(volatile int *)flag = 0;
	p_cuMemHostGetDevicePointer_v2(&flag_addr, flag, 0);
	rc = p_cuModuleLoadData(&module, spin_ptx) ||
	     p_cuModuleGetFunction(&function, module, "spin") ||
	     p_cuStreamCreate(&stream, 0) ||
	     p_cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
	if (!report(rc == 0, "kernel runs", "launch %d", rc))
		return;
	alarm(20);
	first[0].name = "kernel runs: VMM private, first pin";
	first[0].addr = private;
	first[1].name = "kernel runs: cudaMalloc";
	first[1].addr = plain;
	first[2].name = "kernel runs: VMM exportable";
	first[2].addr = exported;
	g = gdr_open();
	for (int i = 0; g && i < 3; i++) {
		const double start = now_us();
		uint64_t mark = mark_of(first[i].addr, 5), seen = 0;
		gdr_mh_t handle;
		void *map = NULL;

		rc = gdr_pin_buffer(g, first[i].addr, PAGE, 0, 0, &handle);
		rc = rc ? rc : gdr_map(g, handle, &map, PAGE);
		if (rc == 0) {
			gdr_copy_to_mapping(handle, map, &mark, 8);
			gdr_copy_from_mapping(handle, &seen, map, 8);
		}
		report(rc == 0 && seen == mark, first[i].name, "%d after %.0f us", rc,
		       now_us() - start);
	}
	rc = g ? gdr_close(g) : -1;
	*(volatile int *)flag = 1;
	p_cuStreamSynchronize(stream);
	for (int i = 0; i < 3; i++) {
		uint64_t seen = 0;

		p_cuMemcpyDtoH_v2(&seen, first[i].addr, 8);
		report(seen == mark_of(first[i].addr, 5), first[i].name, "CUDA sees the bytes");
	}
	report(rc == 0, "kernel runs: close", "%d", rc);
}

/* Another process that offers 4 MiB over CUDA IPC until it is told to end. */
static pid_t start_owner(int handle_pipe[2], int end_pipe[2])
{
	CUipcMemHandle handle;
	pid_t child;
	char byte;

	if (pipe(handle_pipe) || pipe(end_pipe))
		exit(1);
	child = fork();
	if (child)
		return child;
	load_cuda();
	p_cuIpcGetMemHandle(&handle, alloc(4 * MIB));
	if (write(handle_pipe[1], &handle, sizeof(handle)) != sizeof(handle) ||
	    read(end_pipe[0], &byte, 1) != 1)
		_exit(1);
	_exit(0);
}

static gdr_t timed_open(const char *name)
{
	const double start = now_us();
	gdr_t g = gdr_open();
	const double took = now_us() - start;

	report(g && took < 2000, name, "%.0f us", took);
	if (!g)
		exit(1);
	return g;
}

int main(int argc, char **argv)
{
	const struct rlimit limit = { 256, 256 };
	int handle_pipe[2], end_pipe[2];
	CUipcMemHandle foreign;
	pid_t owner;
	gdr_t g;

	setvbuf(stdout, NULL, _IOLBF, 0);
	setrlimit(RLIMIT_NOFILE, &limit);
	if (argc > 1 && strcmp(argv[1], "persistent") == 0) {
		persistent();
		return failures != 0;
	}
	owner = start_owner(handle_pipe, end_pipe);
	gdr_close(timed_open("open, libcuda not loaded before"));
	load_cuda();
	g = timed_open("open, libcuda loaded");
	if (read(handle_pipe[0], &foreign, sizeof(foreign)) != sizeof(foreign))
		return 1;
	malloc_cases(g);
	vmm_cases(g);
	refusals(g, &foreign);
	kept_after_free(g);
	without_context(g);
	fork_cases(g);
	swapped_descriptor(g);
	costs(g, "64 KiB of cudaMalloc", alloc(PAGE), PAGE);
	costs(g, "8 MiB of cudaMalloc", alloc(8 * MIB), 8 * MIB);
	costs(g, "64 KiB of VMM private", alloc_vmm(2 * MIB, false), PAGE);
	costs(g, "64 KiB of VMM exportable", alloc_vmm(2 * MIB, true), PAGE);
	many_maps(g);
	report(gdr_close(g) == 0, "close", "done");
	if (write(end_pipe[1], "x", 1) != 1)
		return 1;
	waitpid(owner, NULL, 0);
	return failures != 0;
}
