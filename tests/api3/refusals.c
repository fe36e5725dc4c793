/* SPDX-License-Identifier: MIT */
/*
 * Version 3: errors that come from the machine and from kinds of memory; one line in the log
 * for each, with the remedy, and not a word where logging is off.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api3/helper_buffer.h"

#define SIZE (2 * MIB)

static gdr_t g;
static CUdeviceptr ptr;

static void begin(void)
{
	ptr = buffer_alloc(0, SIZE);
	g = buffer_session();
}

static uint64_t pin(void)
{
	uint64_t handle = 0;

	REQUIRE_OK(gdr_pin_buffer(g, ptr, SIZE, 0, 0, &handle));
	return handle;
}

#define REFUSED_PIN(addr, size, flags, result, hint)                                            \
	do {                                                                                    \
		uint64_t made_ = 5;                                                             \
		CHECK_REFUSED(gdr_pin_buffer(g, addr, size, flags, 0, &made_), result, hint);   \
		CHECK_EQ(made_, 0);                                                             \
	} while (0)

static void no_device(void)
{
	gdr_t opened = (gdr_t)&opened;
	const char *text;
	int lines;

	api_capture_begin();
	CHECK_EQ(gdr_open(&opened), GDR_ERR_NO_DEVICE);
	text = api_capture_end(&lines);
	CHECK(opened == NULL);
	CHECK(lines >= 1);
	CHECK(strncmp(text, "ERR:  ", 6) == 0);
	CHECK_REFUSED(gdr_open(NULL), GDR_ERR_INVALID_ARG, "NULL");
}

static void pin_runs_out(void)
{
	begin();
	REFUSED_PIN(ptr, SIZE, 0, GDR_ERR_NO_MEMORY, "pin");
	CHECK_OK(gdr_unpin(g, pin()));
	CHECK_OK(gdr_close(g));
}

/* The emulated BAR1 has room for one pin of this size. */
static void bar1_runs_out(void)
{
	uint64_t first;

	begin();
	first = pin();
	REFUSED_PIN(ptr, SIZE, 0, GDR_ERR_NO_MEMORY, "unpin other buffers");
	CHECK_OK(gdr_unpin(g, first));
	CHECK_OK(gdr_unpin(g, pin()));
	CHECK_OK(gdr_close(g));
}

/* The second buffer gets no window for the CPU, and lives by the engines. */
static void window_runs_out(void)
{
	unsigned char *data = malloc(SIZE), *seen = malloc(SIZE);
	gdr_info_t info = { .size = sizeof(info) };
	void *va = &va;
	uint64_t first, second;

	REQUIRE(data && seen);
	begin();
	first = pin();
	ptr = buffer_alloc(0, SIZE);
	second = pin();
	CHECK_REFUSED(gdr_map(g, second, &va, SIZE), GDR_ERR_NO_MEMORY, "unpin other buffers");
	CHECK(va == NULL);
	CHECK_OK(gdr_get_info(g, second, &info));
	CHECK_EQ(info.mapping_type, 0);
	CHECK_EQ(info.has_engine, 1);
	for (size_t size = 1; size <= SIZE; size = size * 3 + 1) {
		buffer_fill(data, size, (uint32_t)size);
		CHECK_OK(gdr_copy_from_host(g, second, SIZE - size, data, size));
		buffer_get(seen, ptr + SIZE - size, size);
		CHECK(memcmp(seen, data, size) == 0);
		memset(seen, 0, size);
		CHECK_OK(gdr_copy_to_host(g, second, SIZE - size, seen, size));
		CHECK(memcmp(seen, data, size) == 0);
	}
	CHECK_OK(gdr_copy_to_device(g, second, first, 0, 0, SIZE));
	CHECK_OK(gdr_copy_to_device(g, first, second, 0, 0, SIZE));
	CHECK_OK(gdr_copy_to_host(g, first, 0, seen, SIZE));
	buffer_get(data, ptr, SIZE);
	CHECK(memcmp(seen, data, SIZE) == 0);
	CHECK_OK(gdr_flush(g));
	/* With the first one gone there is room. */
	CHECK_OK(gdr_unpin(g, second));
	CHECK_OK(gdr_unpin(g, first));
	second = pin();
	CHECK_OK(gdr_map(g, second, &va, SIZE));
	CHECK_OK(gdr_close(g));
	free(data);
	free(seen);
}

/* Neither window nor engine. */
static void no_road(void)
{
	gdr_info_t info = { .size = sizeof(info) };
	char host[16] = "";
	uint64_t first, second;

	begin();
	first = pin();
	ptr = buffer_alloc(0, SIZE);
	second = pin();
	CHECK_REFUSED(gdr_copy_from_host(g, second, 0, host, 16), GDR_ERR_OP_NOT_SUPPORTED,
		      "unpin other buffers");
	CHECK_REFUSED(gdr_copy_to_host(g, second, 0, host, 16), GDR_ERR_OP_NOT_SUPPORTED,
		      "unpin other buffers");
	CHECK_REFUSED(gdr_copy_to_device(g, first, second, 0, 0, 4096), GDR_ERR_OP_NOT_SUPPORTED,
		      "unpin other buffers");
	CHECK_REFUSED(gdr_copy_to_device(g, second, first, 0, 0, 4096), GDR_ERR_OP_NOT_SUPPORTED,
		      "unpin other buffers");
	CHECK_OK(gdr_copy_to_device(g, second, first, 0, 0, 0));
	CHECK_OK(gdr_get_info(g, second, &info));
	CHECK_EQ(info.has_engine, 0);
	CHECK_EQ(info.read_crossover, UINT64_MAX);
	CHECK_EQ(info.write_crossover, UINT64_MAX);
	CHECK_OK(gdr_copy_to_host(g, first, 0, host, 16));
	CHECK_OK(gdr_close(g));
}

static void registration_runs_out(void)
{
	char *host = aligned_alloc(4096, SIZE);

	REQUIRE(host != NULL);
	begin();
	pin();
	CHECK_REFUSED(gdr_host_register(g, host, SIZE), GDR_ERR_NO_MEMORY, "ulimit -l");
	CHECK_REFUSED(gdr_host_unregister(g, host), GDR_ERR_INVALID_ARG, "not registered");
	CHECK_OK(gdr_close(g));
	free(host);
}

/* cuMemCreate's memory has no attribute SYNC_MEMOPS. */
static void mapped_memory(void)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };
	CUmemAccessDesc access = { .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle memory;
	CUdeviceptr va;
	uint64_t handle;
	char text[8] = "";

	begin();
	prop.location.type = access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.allocFlags.gpuDirectRDMACapable = 1;
	REQUIRE_EQ(cuMemCreate(&memory, SIZE, &prop, 0), CUDA_SUCCESS);
	REQUIRE_EQ(cuMemAddressReserve(&va, SIZE, 0, 0, 0), CUDA_SUCCESS);
	REQUIRE_EQ(cuMemMap(va, SIZE, 0, memory, 0), CUDA_SUCCESS);
	REQUIRE_EQ(cuMemSetAccess(va, SIZE, &access, 1), CUDA_SUCCESS);
	REFUSED_PIN(va, SIZE, GDR_PIN_BUFFER_SYNC, GDR_ERR_OP_NOT_SUPPORTED, "without the flag");
	REQUIRE_OK(gdr_pin_buffer(g, va, SIZE, 0, 0, &handle));
	CHECK_OK(gdr_copy_from_host(g, handle, 4096, "mapped", 7));
	buffer_get(text, va + 4096, 7);
	CHECK(strcmp(text, "mapped") == 0);
	CHECK_OK(gdr_close(g));
}

struct exchange {
	CUipcMemHandle handle;
	bool made, over;
};

static struct exchange *shared;

/* Another process, whose CUDA begins in it. */
static pid_t start_exporter(void)
{
	pid_t child = fork();

	if (child != 0)
		return child;
	ptr = buffer_alloc(0, SIZE);
	if (cuIpcGetMemHandle(&shared->handle, ptr) != CUDA_SUCCESS)
		_exit(1);
	__atomic_store_n(&shared->made, true, __ATOMIC_RELEASE);
	alarm(60);
	while (!__atomic_load_n(&shared->over, __ATOMIC_ACQUIRE))
		usleep(1000);
	_exit(0);
}

static void memory_of_another_process(void)
{
	CUdeviceptr theirs;
	pid_t child;
	int status;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	REQUIRE(shared != MAP_FAILED);
	child = start_exporter();
	REQUIRE(child > 0);
	while (!__atomic_load_n(&shared->made, __ATOMIC_ACQUIRE)) {
		REQUIRE_EQ(waitpid(child, &status, WNOHANG), 0);
		usleep(1000);
	}
	begin();
	REQUIRE_EQ(cuIpcOpenMemHandle(&theirs, shared->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
		   CUDA_SUCCESS);
	REFUSED_PIN(theirs, SIZE, 0, GDR_ERR_OP_NOT_SUPPORTED, "pin");
	CHECK_OK(gdr_close(g));
	__atomic_store_n(&shared->over, true, __ATOMIC_RELEASE);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void memory_without_rdma(void)
{
	begin();
	REFUSED_PIN(ptr, SIZE, 0, GDR_ERR_OP_NOT_SUPPORTED, "RDMA");
	CHECK_OK(gdr_close(g));
}

static void dead_handles_are_logged(void)
{
	gdr_info_t info = { .size = sizeof(info), .addr = 3 };
	gdr_status_t status = { .size = sizeof(status), .freed = 4 };
	uint64_t old;
	char host[8] = "unharmed";
	void *va = host;

	begin();
	old = pin();
	CHECK_OK(gdr_unpin(g, old));
	CHECK_REFUSED(gdr_unpin(g, old), GDR_ERR_STALE_HANDLE, "unpin");
	CHECK_REFUSED(gdr_map(g, old, &va, 4096), GDR_ERR_STALE_HANDLE, "map");
	CHECK(va == NULL);
	CHECK_REFUSED(gdr_unmap(g, old, host, 4096), GDR_ERR_STALE_HANDLE, "unmap");
	CHECK_REFUSED(gdr_copy_from_host(g, old, 0, host, 8), GDR_ERR_STALE_HANDLE, "invented");
	CHECK_REFUSED(gdr_copy_to_host(g, old, 0, host, 8), GDR_ERR_STALE_HANDLE, "invented");
	CHECK_REFUSED(gdr_copy_to_device(g, old, old, 0, 4096, 4096), GDR_ERR_STALE_HANDLE,
		      "invented");
	CHECK_REFUSED(gdr_get_info(g, old, &info), GDR_ERR_STALE_HANDLE, "get_info");
	CHECK_REFUSED(gdr_query(g, old, &status), GDR_ERR_STALE_HANDLE, "query");
	CHECK_EQ(info.addr, 3);
	CHECK_EQ(status.freed, 4);
	CHECK_EQ(info.size, sizeof(info));
	CHECK(memcmp(host, "unharmed", 8) == 0);
	CHECK_OK(gdr_close(g));
	CHECK_REFUSED(gdr_close(g), GDR_ERR_STALE_HANDLE, "not an open session");
	CHECK_REFUSED(gdr_flush(g), GDR_ERR_STALE_HANDLE, "not an open session");
	CHECK_REFUSED(gdr_host_register(g, host, 8), GDR_ERR_STALE_HANDLE, "not an open session");
	CHECK_REFUSED(gdr_host_unregister(g, host), GDR_ERR_STALE_HANDLE, "not an open session");
	CHECK_REFUSED(gdr_copy_to_host(g, old, 0, host, 8), GDR_ERR_STALE_HANDLE, "session");
	REFUSED_PIN(ptr, 4096, 0, GDR_ERR_STALE_HANDLE, "not an open session");
}

/* A struct as a younger program has it, and one that is too short for anything. */
static void query_sizes(void)
{
	struct {
		gdr_status_t status;
		uint64_t younger;
	} large = { .status = { .size = sizeof(large) }, .younger = 7 };
	gdr_status_t small = { .size = 12, .mapped = 5, .freed = 6 };
	gdr_status_t none = { .size = 7, .mapped = 5 };
	uint64_t handle;

	begin();
	handle = pin();
	CHECK_OK(gdr_query(g, handle, &large.status));
	CHECK_EQ(large.status.size, sizeof(gdr_status_t));
	CHECK_EQ(large.younger, 7);
	CHECK_OK(gdr_query(g, handle, &small));
	CHECK_EQ(small.size, 12);
	CHECK_EQ(small.mapped, 0);
	CHECK_EQ(small.freed, 6);
	CHECK_REFUSED(gdr_query(g, handle, &none), GDR_ERR_INVALID_ARG, "size");
	CHECK_EQ(none.mapped, 5);
	CHECK_EQ(none.size, 7);
	CHECK_OK(gdr_close(g));
}

/* Every kind of refusal once more, without logging. */
static void refuse_much(void *arg)
{
	char *host = arg;
	uint64_t handle, made;
	gdr_info_t info = { .size = 3 };
	void *va;

	begin();
	handle = pin();
	CHECK_EQ(gdr_open(NULL), GDR_ERR_INVALID_ARG);
	CHECK_EQ(gdr_pin_buffer(g, ptr, 1, 0, 0, &made), GDR_ERR_INVALID_ARG);
	CHECK_EQ(gdr_pin_buffer(g, ptr, 4096, 0, 7, &made), GDR_ERR_INVALID_ARG);
	CHECK_EQ(gdr_map(g, handle, &va, 1), GDR_ERR_INVALID_ARG);
	CHECK_EQ(gdr_unmap(g, handle, host, 4096), GDR_ERR_INVALID_ARG);
	CHECK_EQ(gdr_copy_to_host(g, handle, SIZE, host, 1), GDR_ERR_INVALID_ARG);
	CHECK_EQ(gdr_copy_to_device(g, handle, handle, 1, 0, 4096), GDR_ERR_INVALID_ARG);
	CHECK_EQ(gdr_host_unregister(g, host), GDR_ERR_INVALID_ARG);
	CHECK_EQ(gdr_get_info(g, handle, &info), GDR_ERR_INVALID_ARG);
	CHECK_EQ(gdr_unpin(g, 1), GDR_ERR_STALE_HANDLE);
	CHECK_OK(gdr_close(g));
	CHECK_EQ(gdr_close(g), GDR_ERR_STALE_HANDLE);
}

static void silence(void)
{
	char host[8];
	int lines;

	api_capture_begin();
	refuse_much(host);
	api_capture_end(&lines);
	CHECK_EQ(lines, 0);
}

#define LOUD "GDRCOPY_ENABLE_LOGGING=1"

static const struct api_case cases[] = {
	{ "no_device", no_device, LOUD " GDRCOPY_EMU=devices=0" },
	{ "pin_runs_out", pin_runs_out, LOUD " GDRCOPY_EMU=fail=pin:1:12" },
	{ "bar1_runs_out", bar1_runs_out, LOUD " GDRCOPY_EMU=bar1=3M" },
	{ "window_runs_out", window_runs_out, LOUD " GDRCOPY_EMU=fail=map:2:12" },
	{ "no_road", no_road, LOUD " GDRCOPY_EMU=fail=map:2:12 GDRCOPY_DMA=0" },
	{ "no_road_busy", no_road, LOUD " GDRCOPY_EMU=fail=map:2:12,dma=busy" },
	{ "registration_runs_out", registration_runs_out,
	  LOUD " GDRCOPY_EMU=fail=dma-host:2:12,fail=dma-host:3:12,fail=dma-host:4:12" },
	{ "mapped_memory", mapped_memory, LOUD },
	{ "memory_of_another_process", memory_of_another_process, LOUD },
	{ "memory_without_rdma", memory_without_rdma, LOUD " GDRCOPY_EMU=no-rdma" },
	{ "dead_handles_are_logged", dead_handles_are_logged, LOUD },
	{ "query_sizes", query_sizes, LOUD },
	{ "silence", silence, NULL },
};

API_MAIN(cases)
