/* SPDX-License-Identifier: MIT */
/*
 * Back end dmabuf against a scripted CUDA driver: what it asks for, every
 * refusal, a failure at each system call and each CUDA call, threads.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "harness.h"
#include "scripted_cuda.h"
#include "scripted_log.h"
#include "scripted_sys.h"

#define GPU_PAGE 65536
#define BIG 0x7f0000200000		/* 2 MiB, GPU 1 */
#define BIG_SIZE 0x200000
#define SMALL 0x7f0000600000		/* 4096 bytes at the start of a GPU page */
#define INNER 0x7f0000601200		/* 1000 bytes in the middle of the same page */
#define MANAGED 0x7f0000800000
#define POOL 0x7f0000a00000
#define HOST 0x7f0000c00000
#define NOWHERE 0x7f0000f00000

static const struct scripted_allocation allocations[] = {
	{ .base = BIG, .size = BIG_SIZE, .device = 1, .memory_type = 2 },
	{ .base = SMALL, .size = 4096, .memory_type = 2 },
	{ .base = INNER, .size = 1000, .memory_type = 2 },
	{ .base = MANAGED, .size = BIG_SIZE, .memory_type = 2, .managed = 1 },
	{ .base = POOL, .size = BIG_SIZE, .memory_type = 2, .pool = 0x1234 },
	{ .base = HOST, .size = BIG_SIZE, .memory_type = 1 },
};

static struct gdri_config config = { .log = { GDRI_LOG_OFF } };
static const struct gdri_backend_ops *const ops = &gdri_backend_dmabuf;
static int mmap_error;

static int answer_system_call(void *device, const struct scripted_call *call)
{
	(void)device;
	return call->op == SCRIPTED_MMAP ? -mmap_error : 0;
}

static void start(void)
{
	mmap_error = 0;
	scripted_sys_device(answer_system_call, NULL);
	scripted_cuda_start(allocations, sizeof(allocations) / sizeof(allocations[0]));
}

static struct gdri_backend_session *open_session(void)
{
	struct gdri_backend_session *session = NULL;
	struct gdri_reason why = { "" };
	int fd = 0;

	REQUIRE_EQ(ops->open(&config, &session, &fd, &why), 0);
	CHECK_EQ(fd, -1);
	return session;
}

static void check_nothing_held(void)
{
	int depth;

	scripted_cuda_current(&depth);
	CHECK_EQ(depth, 0);
	CHECK_EQ(scripted_cuda.primary_references[0], 0);
	CHECK_EQ(scripted_cuda.primary_references[1], 0);
	CHECK_EQ(scripted_sys_open_fds(), 0);
	CHECK_EQ(scripted_sys_mappings(), 0);
	CHECK_EQ(scripted_sys_stray_releases(), 0);
}

static void close_session(struct gdri_backend_session *session)
{
	CHECK_EQ(ops->close(session), 0);
	CHECK_EQ(scripted_cuda.loads, 0);
	check_nothing_held();
}

static void check_open_fails(int error, const char *word)
{
	struct gdri_backend_session *session = NULL;
	struct gdri_reason why = { "" };
	int fd = -7;

	CHECK_EQ(ops->open(&config, &session, &fd, &why), -error);
	CHECK(strstr(why.text, word));
	CHECK(session == NULL);
	CHECK_EQ(fd, -7);
	CHECK_EQ(scripted_cuda.loads, 0);
	check_nothing_held();
}

static void open_names_the_reason(void)
{
	start();
	scripted_cuda.load_error = -ENOENT;
	check_open_fails(ENOENT, "install the NVIDIA driver");
	scripted_cuda.load_error = -ENOSYS;
	check_open_fails(ENOSYS, "NVIDIA's?");
	start();
	scripted_cuda.version = 13020;
	check_open_fails(EOPNOTSUPP, "CUDA 13.2, dma-bufs can be mapped from 13.3 on");
	start();
	scripted_cuda.version_result = 34;
	check_open_fails(ENODEV, "cuDriverGetVersion");
	start();
	scripted_cuda.has_range_export = false;
	check_open_fails(ENOSYS, "cuMemGetHandleForAddressRange");
}

/* Neither open nor the attributes need, or make, an initialised CUDA. */
static void open_before_cuinit(void)
{
	struct gdri_backend_session *session;
	uint32_t version = 0;
	int value = 9;

	start();
	scripted_cuda.initialised = false;
	session = open_session();
	CHECK_EQ(scripted_cuda_calls(), 1);
	CHECK_EQ(ops->get_version(session, &version), 0);
	CHECK_EQ(version, 0x00020006);
	CHECK_EQ(ops->get_attribute(session, GDR_ATTR_USE_PERSISTENT_MAPPING, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(ops->get_attribute(session, GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE, &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(ops->get_attribute(session, GDR_ATTR_USING_DMA_BUF_MMAP, &value), 0);
	CHECK_EQ(value, 1);
	close_session(session);
}

static void touch(void *addr)
{
	*(volatile char *)addr = 1;
}

/* Sanitizers catch SIGSEGV themselves; the test wants the plain signal. */
static void touch_and_die(void *addr)
{
	signal(SIGSEGV, SIG_DFL);
	touch(addr);
}

static void pin_is_a_mapping(void)
{
	struct gdri_backend_session *session;
	struct gdri_mapping mapping;
	struct gdri_pin pin;
	int status, flag = 9;
	unsigned calls;

	start();
	session = open_session();
	REQUIRE_EQ(ops->pin(session, BIG + GPU_PAGE, 0x18000, 0, 11, 22, &pin), 0);
	CHECK_EQ(pin.va, BIG + GPU_PAGE);
	CHECK_EQ(pin.size, 0x20000);
	CHECK_EQ(pin.addr, BIG + GPU_PAGE);
	CHECK_EQ(pin.length, 0x18000);
	CHECK_EQ(pin.page_size, GPU_PAGE);
	CHECK_EQ(pin.tm_cycles, 0);
	CHECK_EQ(scripted_cuda.export_start, BIG + GPU_PAGE);
	CHECK_EQ(scripted_cuda.export_size, 0x20000);
	CHECK_EQ(scripted_cuda.export_flags, 0);
	CHECK_EQ(scripted_sys_open_fds(), 0);
	CHECK_EQ(scripted_sys_inherited(), 0);

	/* From here on the driver may be gone. */
	scripted_cuda.dead = true;
	calls = scripted_cuda_calls();
	REQUIRE_EQ(ops->map(session, &pin, 0x10000, GDR_MAP_FLAG_DEFAULT, &mapping), 0);
	CHECK_EQ(mapping.type, GDR_MAPPING_TYPE_WC);
	CHECK_EQ(mapping.length, 0x10000);
	*(volatile int *)mapping.base = 4711;
	CHECK_EQ(ops->get_callback_flag(session, &pin, &flag), 0);
	CHECK_EQ(flag, 0);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	status = harness_fork(touch_and_die, mapping.base);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);

	REQUIRE_EQ(ops->map(session, &pin, 0x20000, GDR_MAP_FLAG_REQ_WC_MAPPING, &mapping), 0);
	CHECK_EQ(*(volatile int *)mapping.base, 4711);
	CHECK_EQ(scripted_sys_inherited(), 0);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->refresh(session, &pin), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	close_session(session);
	CHECK_EQ(scripted_cuda_calls(), calls);
}

static void current_context_is_kept(void)
{
	struct gdri_backend_session *session;
	struct gdri_pin pin;
	int mine, depth;

	start();
	session = open_session();
	scripted_cuda_push(&mine);
	REQUIRE_EQ(ops->pin(session, BIG, GPU_PAGE, 0, 0, 0, &pin), 0);
	CHECK(scripted_cuda_current(&depth) == &mine);
	CHECK_EQ(depth, 1);
	CHECK_EQ(scripted_cuda.primary_references[1], 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	CHECK_EQ(ops->close(session), 0);
}

static void coherent_gpu(void)
{
	struct gdri_backend_session *session;
	struct gdri_mapping mapping;
	struct gdri_pin pin;
	int value = 0;

	start();
	scripted_cuda.coherent[1] = 1;
	session = open_session();
	CHECK_EQ(ops->get_attribute(session, GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE, &value), 0);
	CHECK_EQ(value, 1);
	REQUIRE_EQ(ops->pin(session, BIG, GPU_PAGE, GDR_PIN_FLAG_DEFAULT, 0, 0, &pin), 0);
	CHECK_EQ(ops->map(session, &pin, GPU_PAGE, GDR_MAP_FLAG_REQ_WC_MAPPING, &mapping), -EINVAL);
	REQUIRE_EQ(ops->map(session, &pin, GPU_PAGE, GDR_MAP_FLAG_REQ_CACHE_MAPPING, &mapping), 0);
	CHECK_EQ(mapping.type, GDR_MAPPING_TYPE_CACHING);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);

	REQUIRE_EQ(ops->pin(session, BIG, GPU_PAGE, GDR_PIN_FLAG_FORCE_PCIE, 0, 0, &pin), 0);
	CHECK_EQ(scripted_cuda.export_flags, 1);
	REQUIRE_EQ(ops->map(session, &pin, GPU_PAGE, GDR_MAP_FLAG_DEFAULT, &mapping), 0);
	CHECK_EQ(mapping.type, GDR_MAPPING_TYPE_WC);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	/* GPU 0 is a plain one. */
	CHECK_EQ(ops->pin(session, SMALL, 4096, GDR_PIN_FLAG_FORCE_PCIE, 0, 0, &pin), -EOPNOTSUPP);
	close_session(session);
}

/* Runs one pin that must fail, and compares the line that it logs. */
static void check_pin_fails(struct gdri_backend_session *session, uint64_t addr, size_t size,
			    uint32_t flags, int error, const char *word)
{
	struct gdri_pin pin, before;
	int ret;

	memset(&pin, 0x5a, sizeof(pin));
	before = pin;
	config.log.level = GDRI_LOG_ERROR;
	scripted_log_start();
	ret = ops->pin(session, addr, size, flags, 0, 0, &pin);
	CHECK(strstr(scripted_log_take(), word));
	config.log.level = GDRI_LOG_OFF;
	CHECK_EQ(ret, -error);
	CHECK(memcmp(&pin, &before, sizeof(pin)) == 0);
	check_nothing_held();
}

static void pin_refusals(void)
{
	struct gdri_backend_session *session;

	start();
	session = open_session();
	check_pin_fails(session, MANAGED, GPU_PAGE, 0, EINVAL, "managed memory");
	check_pin_fails(session, POOL, GPU_PAGE, 0, EINVAL, "stream-ordered pool memory");
	CHECK_EQ(scripted_cuda.exports, 0);
	check_pin_fails(session, HOST, GPU_PAGE, 0, EINVAL, "no GPU memory");
	check_pin_fails(session, NOWHERE, GPU_PAGE, 0, EINVAL, "what cudaMalloc gave");
	check_pin_fails(session, BIG, GPU_PAGE, 2, EINVAL, "unknown pin flags");
	check_pin_fails(session, BIG, GPU_PAGE, 1, EOPNOTSUPP, "use flags 0");
	check_pin_fails(session, BIG + GPU_PAGE, BIG_SIZE, 0, EINVAL, "leave their allocation");
	check_pin_fails(session, SMALL, GPU_PAGE + 1, 0, EINVAL, "leave their allocation");
	CHECK_EQ(scripted_cuda.exports, 0);
	scripted_cuda.dma_buf[1] = 0;
	check_pin_fails(session, BIG, GPU_PAGE, 0, EOPNOTSUPP, "open flavour");
	scripted_cuda.dma_buf[1] = 1;
	mmap_error = 524;
	check_pin_fails(session, BIG, GPU_PAGE, 0, EOPNOTSUPP, "does not let its dma-bufs");
	mmap_error = ENOMEM;
	check_pin_fails(session, BIG, GPU_PAGE, 0, ENOMEM, "mmap of 65536 bytes");
	mmap_error = 0;
	scripted_cuda.initialised = false;
	check_pin_fails(session, BIG, GPU_PAGE, 0, EINVAL, "has not initialised CUDA");
	close_session(session);
}

/* Whole GPU pages where the driver agrees, as on every other back end. */
static void small_allocation(void)
{
	struct gdri_backend_session *session;
	struct gdri_mapping mapping;
	struct gdri_pin pin;

	start();
	session = open_session();
	REQUIRE_EQ(ops->pin(session, SMALL, 100, 0, 0, 0, &pin), 0);
	CHECK_EQ(scripted_cuda.export_size, GPU_PAGE);
	CHECK_EQ(ops->map(session, &pin, GPU_PAGE, 0, &mapping), 0);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	close_session(session);
}

/* Otherwise the allocation's own host pages. */
static void small_allocation_of_a_strict_driver(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct gdri_backend_session *session;
	struct gdri_mapping mapping;
	struct gdri_pin pin;

	if (page != 4096)
		SKIP("host pages of %zu bytes: the allocations of this test want 4096", page);
	start();
	scripted_cuda.strict_ranges = true;
	session = open_session();
	REQUIRE_EQ(ops->pin(session, SMALL, 100, 0, 0, 0, &pin), 0);
	CHECK_EQ(scripted_cuda.exports, 2);
	CHECK_EQ(scripted_cuda.export_start, SMALL);
	CHECK_EQ(scripted_cuda.export_size, 4096);
	CHECK_EQ(pin.va, SMALL);
	CHECK_EQ(pin.size, GPU_PAGE);
	CHECK_EQ(ops->map(session, &pin, GPU_PAGE, 0, &mapping), -EINVAL);
	REQUIRE_EQ(ops->map(session, &pin, 4096, 0, &mapping), 0);
	touch(mapping.base);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);

	/* Cannot be mapped, since it starts inside a GPU page, but pins. */
	REQUIRE_EQ(ops->pin(session, INNER, 1000, 0, 0, 0, &pin), 0);
	CHECK_EQ(scripted_cuda.export_start, INNER & ~4095ull);
	CHECK_EQ(scripted_cuda.export_size, 4096);
	CHECK_EQ(pin.va, SMALL);
	CHECK_EQ(pin.size, GPU_PAGE);
	CHECK_EQ(pin.addr, INNER);
	CHECK_EQ(ops->unpin(session, &pin), 0);

	/* A range inside its allocation is not asked for twice. */
	scripted_cuda.exports = 0;
	scripted_cuda.export_result = 1;
	CHECK_EQ(ops->pin(session, BIG, GPU_PAGE, 0, 0, 0, &pin), -EINVAL);
	CHECK_EQ(scripted_cuda.exports, 1);
	close_session(session);
}

static void unmap_without_room_to_move(void)
{
	struct gdri_backend_session *session;
	struct gdri_mapping mapping;
	struct gdri_pin pin;

	start();
	session = open_session();
	REQUIRE_EQ(ops->pin(session, BIG, GPU_PAGE, 0, 0, 0, &pin), 0);
	REQUIRE_EQ(ops->map(session, &pin, GPU_PAGE, 0, &mapping), 0);
	scripted_sys_fail(1, ENOMEM);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(scripted_sys_mappings(), 0);
	CHECK_EQ(ops->map(session, &pin, GPU_PAGE, 0, &mapping), -ENOMEM);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	close_session(session);
}

/* The whole life of a pin, from open to close; the first error. */
static int live_once(void)
{
	struct gdri_backend_session *session;
	struct gdri_reason why;
	struct gdri_mapping mapping;
	struct gdri_pin pin;
	int fd, ret, unpin_ret;

	ret = ops->open(&config, &session, &fd, &why);
	if (ret < 0)
		return ret;
	ret = ops->pin(session, BIG, BIG_SIZE, 0, 0, 0, &pin);
	if (ret == 0) {
		ret = ops->map(session, &pin, BIG_SIZE, 0, &mapping);
		if (ret == 0)
			ret = ops->unmap(session, &pin, &mapping);
		unpin_ret = ops->unpin(session, &pin);
		ret = ret ? ret : unpin_ret;
	}
	CHECK_EQ(ops->close(session), 0);
	return ret;
}

static void failure_at_each_system_call(void)
{
	unsigned calls;

	start();
	CHECK_EQ(live_once(), 0);
	calls = scripted_sys_calls();
	/* mmap, dontfork, close; move; munmap */
	CHECK_EQ(calls, 5);
	for (unsigned nth = 1; nth <= calls; nth++) {
		static const bool is_passed_on[] = { true, true, false, false, true };

		start();
		scripted_sys_fail(nth, EDOM);
		CHECK_EQ(live_once(), is_passed_on[nth - 1] ? -EDOM : 0);
		check_nothing_held();
		CHECK_EQ(scripted_cuda.loads, 0);
	}
}

/*
 * 999 is CUDA_ERROR_UNKNOWN.  The failure must surface, but for questions
 * whose answer is optional and for giving back what was borrowed.
 */
static void failure_at_each_cuda_call(void)
{
	unsigned calls, failures = 0;

	start();
	CHECK_EQ(live_once(), 0);
	calls = scripted_cuda_calls();
	for (unsigned nth = 1; nth <= calls; nth++) {
		int ret;

		start();
		scripted_cuda_fail(nth, 999);
		ret = live_once();
		failures += ret != 0;
		CHECK(ret == 0 || ret == -EIO || ret == -EOPNOTSUPP);
		check_nothing_held();
		CHECK_EQ(scripted_cuda.loads, 0);
	}
	/* Not: managed, pool, coherent, pop, release. */
	CHECK_EQ(failures, calls - 5);
}

static void ten_thousand_maps(void)
{
	enum { COUNT = 10000 };
	struct gdri_mapping *mappings = calloc(COUNT, sizeof(*mappings));
	struct gdri_pin *pins = calloc(COUNT, sizeof(*pins));
	struct gdri_backend_session *session;

	start();
	session = open_session();
	for (int i = 0; i < COUNT; i++) {
		REQUIRE_EQ(ops->pin(session, BIG, 4096, 0, 0, 0, &pins[i]), 0);
		REQUIRE_EQ(ops->map(session, &pins[i], 4096, 0, &mappings[i]), 0);
	}
	CHECK(pins[0].driver_handle != pins[COUNT - 1].driver_handle);
	for (int i = COUNT - 1; i >= 0; i--) {
		CHECK_EQ(ops->unmap(session, &pins[i], &mappings[i]), 0);
		CHECK_EQ(ops->unpin(session, &pins[i]), 0);
	}
	close_session(session);
	free(mappings);
	free(pins);
}

static void *pin_and_map_often(void *arg)
{
	struct gdri_backend_session *session = arg;
	struct gdri_mapping mapping;
	struct gdri_pin pin;

	for (int i = 0; i < 300; i++) {
		if (!CHECK_EQ(ops->pin(session, BIG, GPU_PAGE, 0, 0, 0, &pin), 0))
			break;
		CHECK_EQ(ops->map(session, &pin, GPU_PAGE, 0, &mapping), 0);
		memset(mapping.base, i, GPU_PAGE);
		CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
		CHECK_EQ(ops->unpin(session, &pin), 0);
	}
	return NULL;
}

static void threads_share_a_session(void)
{
	struct gdri_backend_session *session;
	pthread_t threads[4];

	start();
	session = open_session();
	for (int i = 0; i < 4; i++)
		REQUIRE_EQ(pthread_create(&threads[i], NULL, pin_and_map_often, session), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	close_session(session);
}

static const struct harness_case cases[] = {
	{ "dmabuf_open_names_the_reason", open_names_the_reason },
	{ "dmabuf_open_before_cuinit", open_before_cuinit },
	{ "dmabuf_pin_is_a_mapping", pin_is_a_mapping },
	{ "dmabuf_current_context_is_kept", current_context_is_kept },
	{ "dmabuf_coherent_gpu", coherent_gpu },
	{ "dmabuf_pin_refusals", pin_refusals },
	{ "dmabuf_small_allocation", small_allocation },
	{ "dmabuf_small_allocation_of_a_strict_driver", small_allocation_of_a_strict_driver },
	{ "dmabuf_unmap_without_room_to_move", unmap_without_room_to_move },
	{ "dmabuf_failure_at_each_system_call", failure_at_each_system_call },
	{ "dmabuf_failure_at_each_cuda_call", failure_at_each_cuda_call },
	{ "dmabuf_ten_thousand_maps", ten_thousand_maps },
	{ "dmabuf_threads_share_a_session", threads_share_a_session },
};

HARNESS_MAIN(cases)
