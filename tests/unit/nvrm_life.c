/* SPDX-License-Identifier: MIT */
/* Back end nvrm from open to close on a simulated driver. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "backend/backend.h"
#include "fake_rm.h"
#include "harness.h"
#include "os/sys.h"
#include "rm/abi/r580.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

static const struct gdri_backend_ops *const ops = &gdri_backend_nvrm;
static const struct fake_usage nothing;
static struct gdri_config config;

struct session {
	struct gdri_backend_session *backend;
	int fd;
};

static int try_open(struct session *session, struct gdri_reason *why)
{
	int rc = ops->open(&config, &session->backend, &session->fd, why);

	if (rc == 0)
		session->backend->fd = &session->fd;
	return rc;
}

static void open_session(struct session *session, const struct fake_machine *machine)
{
	struct gdri_reason why = { "" };

	fake_reset(machine);
	config = (struct gdri_config){ .log = fake_quiet, .backend = GDRI_BACKEND_AUTO };
	REQUIRE_EQ(try_open(session, &why), 0);
	fake_cuda_init(0);
}

static void close_session(struct session *session)
{
	CHECK_EQ(ops->close(session->backend), 0);
	CHECK(fake_usage_equal(fake_usage(), nothing));
}

static int pin(struct session *session, uint64_t addr, size_t size, struct gdri_pin *out)
{
	return ops->pin(session->backend, addr, size, 0, 0, 0, out);
}

static void write_reaches_its_buffer(void)
{
	const uint64_t neighbour_mark = 0x1111111111111111;
	struct gdri_mapping mapping;
	struct session session;
	struct gdri_pin pinned;
	uint64_t neighbour, addr;

	open_session(&session, NULL);
	neighbour = fake_mem_alloc(64 * KIB);
	addr = fake_mem_alloc(64 * KIB);
	memcpy(fake_bytes(neighbour), &neighbour_mark, 8);
	REQUIRE_EQ(pin(&session, addr, 64 * KIB, &pinned), 0);
	CHECK_EQ(pinned.va, addr);
	CHECK_EQ(pinned.size, 64 * KIB);
	CHECK_EQ(pinned.page_size, 65536);
	CHECK_EQ(pinned.addr, addr);
	CHECK_EQ(pinned.length, 64 * KIB);
	CHECK(pinned.driver_handle != 0);
	REQUIRE_EQ(ops->map(session.backend, &pinned, 64 * KIB, 0, &mapping), 0);
	CHECK_EQ(mapping.type, GDR_MAPPING_TYPE_WC);
	CHECK_EQ(mapping.length, 64 * KIB);
	memset(mapping.base, 0xab, 64 * KIB);
	CHECK(((unsigned char *)fake_bytes(addr))[64 * KIB - 1] == 0xab);
	CHECK(memcmp(fake_bytes(neighbour), &neighbour_mark, 8) == 0);
	CHECK_EQ(ops->unmap(session.backend, &pinned, &mapping), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

static void odd_addresses(void)
{
	struct gdri_mapping mapping;
	struct session session;
	struct gdri_pin pinned;
	uint64_t first, addr;

	open_session(&session, NULL);
	first = fake_mem_alloc(512);
	addr = fake_mem_alloc(4 * KIB);
	CHECK_EQ(addr, first + 512);
	REQUIRE_EQ(pin(&session, addr + 4, 8, &pinned), 0);
	CHECK_EQ(pinned.va, first);
	CHECK_EQ(pinned.size, 64 * KIB);
	REQUIRE_EQ(ops->map(session.backend, &pinned, 4 * KIB, 0, &mapping), 0);
	memcpy((char *)mapping.base + (addr - pinned.va), "here", 4);
	CHECK(memcmp(fake_bytes(addr), "here", 4) == 0);
	CHECK_EQ(ops->unmap(session.backend, &pinned, &mapping), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

static void beyond_4_gib(void)
{
	const uint64_t far = 5000 * MIB;
	struct gdri_mapping mapping;
	struct session session;
	struct gdri_pin pinned;
	uint64_t addr;

	open_session(&session, NULL);
	addr = fake_mem_alloc(5120 * MIB);
	REQUIRE_EQ(pin(&session, addr + far, MIB, &pinned), 0);
	REQUIRE_EQ(ops->map(session.backend, &pinned, MIB, 0, &mapping), 0);
	memcpy(mapping.base, "far", 3);
	CHECK(memcmp((char *)fake_bytes(addr) + far, "far", 3) == 0);
	CHECK_EQ(ops->unmap(session.backend, &pinned, &mapping), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	REQUIRE_EQ(pin(&session, addr, 5120 * MIB, &pinned), 0);
	REQUIRE_EQ(ops->map(session.backend, &pinned, 5120 * MIB, 0, &mapping), 0);
	CHECK(memcmp((char *)mapping.base + far, "far", 3) == 0);
	CHECK_EQ(ops->unmap(session.backend, &pinned, &mapping), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

static void attributes_flags_version(void)
{
	struct session session;
	struct gdri_pin pinned;
	uint32_t version = 0;
	int value = -1;
	uint64_t addr;

	open_session(&session, NULL);
	addr = fake_mem_alloc(64 * KIB);
	CHECK_EQ(ops->get_attribute(session.backend, 1, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(ops->get_attribute(session.backend, 2, &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(ops->get_attribute(session.backend, 3, &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(ops->get_version(session.backend, &version), 0);
	CHECK_EQ(version, 2 << 16 | 6);
	CHECK_EQ(ops->pin(session.backend, addr, 4, GDR_PIN_FLAG_FORCE_PCIE, 0, 0, &pinned),
		 -EOPNOTSUPP);
	CHECK_EQ(ops->pin(session.backend, addr, 4, 2, 0, 0, &pinned), -EINVAL);
	close_session(&session);
}

static void mapping_type_is_the_drivers(void)
{
	struct gdri_mapping mapping;
	struct session session;
	struct gdri_pin pinned;

	open_session(&session, &(struct fake_machine){ .map_caching = GDRI_RM_CACHING_WRITE_BACK });
	REQUIRE_EQ(pin(&session, fake_mem_alloc(64 * KIB), 4, &pinned), 0);
	REQUIRE_EQ(ops->map(session.backend, &pinned, 4096, 0, &mapping), 0);
	CHECK_EQ(mapping.type, GDR_MAPPING_TYPE_CACHING);
	CHECK_EQ(ops->unmap(session.backend, &pinned, &mapping), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

/* 2.6's sanity program puts the descriptor of another process behind gdr_t. */
static void swapped_descriptor(void)
{
	struct gdri_mapping mapping;
	struct session session;
	struct gdri_pin pinned, other;
	uint64_t addr;
	int own, wrong[3];

	open_session(&session, NULL);
	addr = fake_mem_alloc(64 * KIB);
	REQUIRE_EQ(pin(&session, addr, 4, &pinned), 0);
	own = session.fd;
	wrong[0] = fake_foreign_descriptor();
	wrong[1] = -1;
	wrong[2] = 2;
	for (int i = 0; i < 3; i++) {
		session.fd = wrong[i];
		CHECK_EQ(pin(&session, addr, 4, &other), -EACCES);
		CHECK_EQ(ops->map(session.backend, &pinned, 4096, 0, &mapping), -EACCES);
	}
	session.fd = own;
	gdri_os_close(wrong[0]);
	CHECK_EQ(ops->map(session.backend, &pinned, 4096, 0, &mapping), 0);
	CHECK_EQ(ops->unmap(session.backend, &pinned, &mapping), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

static void touch(void *address)
{
	signal(SIGSEGV, SIG_DFL);
	*(volatile char *)address = 1;
}

static void child_does_not_inherit(void)
{
	struct gdri_mapping mapping;
	struct session session;
	struct gdri_pin pinned;
	int status;

	open_session(&session, NULL);
	REQUIRE_EQ(pin(&session, fake_mem_alloc(64 * KIB), 64 * KIB, &pinned), 0);
	REQUIRE_EQ(ops->map(session.backend, &pinned, 64 * KIB, 0, &mapping), 0);
	memcpy(mapping.base, "parent", 6);
	status = harness_fork(touch, mapping.base);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	CHECK(memcmp(mapping.base, "parent", 6) == 0);
	CHECK_EQ(ops->unmap(session.backend, &pinned, &mapping), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

/* After the memory and CUDA itself are gone. */
static void end_without_cuda(void)
{
	struct gdri_mapping mapping;
	struct session session;
	struct gdri_pin pinned;
	uint64_t addr;

	open_session(&session, NULL);
	addr = fake_mem_alloc(4 * MIB);
	REQUIRE_EQ(pin(&session, addr, 4 * MIB, &pinned), 0);
	REQUIRE_EQ(ops->map(session.backend, &pinned, 4 * MIB, 0, &mapping), 0);
	memcpy(mapping.base, "kept", 4);
	fake_mem_free(addr);
	CHECK(memcmp(mapping.base, "kept", 4) == 0);
	fake_fail_cuda_at(0, 0);
	CHECK_EQ(ops->unmap(session.backend, &pinned, &mapping), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	CHECK_EQ(ops->close(session.backend), 0);
	CHECK_EQ(fake_cuda_calls(), 0);
	CHECK(fake_usage_equal(fake_usage(), nothing));
}

static void many_maps_few_descriptors(void)
{
	enum { COUNT = 10000 };
	struct gdri_mapping *mapping = calloc(COUNT, sizeof(*mapping));
	struct gdri_pin *pinned = calloc(COUNT, sizeof(*pinned));
	struct session session;
	uint64_t addr;
	int i;

	open_session(&session, NULL);
	addr = fake_mem_alloc(64 * MIB);
	for (i = 0; i < COUNT; i++) {
		const uint64_t at = addr + (uint64_t)(i % 1024) * 64 * KIB;

		if (!CHECK_EQ(pin(&session, at, 64 * KIB, &pinned[i]), 0) ||
		    !CHECK_EQ(ops->map(session.backend, &pinned[i], 4096, 0, &mapping[i]), 0))
			break;
	}
	CHECK_EQ(i, COUNT);
	CHECK(fake_peak_descriptors() <= 4);
	while (i-- > 0) {
		CHECK_EQ(ops->unmap(session.backend, &pinned[i], &mapping[i]), 0);
		CHECK_EQ(ops->unpin(session.backend, &pinned[i]), 0);
	}
	close_session(&session);
	free(mapping);
	free(pinned);
}

struct worker {
	struct session *session;
	uint64_t addr;
};

static void *pin_and_map(void *arg)
{
	const struct worker *worker = arg;
	struct gdri_mapping mapping;
	struct gdri_pin pinned;
	uint64_t mark = worker->addr;

	fake_set_current_context(NULL);
	for (int i = 0; i < 60; i++) {
		if (!CHECK_EQ(pin(worker->session, worker->addr, 64 * KIB, &pinned), 0))
			return NULL;
		CHECK_EQ(ops->map(worker->session->backend, &pinned, 64 * KIB, 0, &mapping), 0);
		memcpy(mapping.base, &mark, sizeof(mark));
		CHECK(memcmp(mapping.base, &mark, sizeof(mark)) == 0);
		CHECK_EQ(ops->unmap(worker->session->backend, &pinned, &mapping), 0);
		CHECK_EQ(ops->unpin(worker->session->backend, &pinned), 0);
	}
	return NULL;
}

static void threads_of_one_session(void)
{
	struct session session;
	struct worker worker[4];
	pthread_t thread[4];

	open_session(&session, NULL);
	for (int i = 0; i < 4; i++) {
		worker[i].session = &session;
		worker[i].addr = i < 2 ? fake_mem_alloc(64 * KIB) : fake_mem_vmm(2 * MIB, i == 2);
	}
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, pin_and_map, &worker[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	close_session(&session);
}

static void sessions_are_independent(void)
{
	struct session one, two;
	struct gdri_reason why;
	struct gdri_pin pinned;

	open_session(&one, NULL);
	REQUIRE_EQ(try_open(&two, &why), 0);
	CHECK(one.fd != two.fd);
	REQUIRE_EQ(pin(&two, fake_mem_alloc(64 * KIB), 4, &pinned), 0);
	CHECK_EQ(ops->close(one.backend), 0);
	CHECK_EQ(ops->unpin(two.backend, &pinned), 0);
	close_session(&two);
}

static void expect_no_open(const struct fake_machine *machine, const char *word)
{
	struct gdri_reason why = { "" };
	struct session session;

	fake_reset(machine);
	config = (struct gdri_config){ .log = fake_quiet, .backend = GDRI_BACKEND_AUTO };
	CHECK(try_open(&session, &why) < 0);
	if (!CHECK(strstr(why.text, word) != NULL))
		fprintf(stderr, "the reason is: %s\n", why.text);
	CHECK(fake_usage_equal(fake_usage(), nothing));
}

static void reasons_not_to_open(void)
{
	expect_no_open(&(struct fake_machine){ .no_control_file = true },
		       "/dev/nvidiactl: errno 2");
	expect_no_open(&(struct fake_machine){ .version = "" }, "version");
	expect_no_open(&(struct fake_machine){ .wsl = true }, "WSL");
	expect_no_open(&(struct fake_machine){ .mps = true }, "MPS");
	expect_no_open(&(struct fake_machine){ .conf_compute = true }, "confidential");
	expect_no_open(&(struct fake_machine){ .no_libcuda = true }, "libcuda");
}

static void asked_by_name(void)
{
	static const struct fake_machine machine[] = {
		{ .wsl = true }, { .mps = true }, { .conf_compute = true },
		{ .smc_mode = GDRI_RM_SMC_MODE_ENABLED },
		{ .virtualization = GDRI_RM_VIRTUALIZATION_VGX_GUEST },
	};

	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++) {
		struct gdri_reason why;
		struct session session;
		struct gdri_pin pinned;

		fake_reset(&machine[i]);
		config = (struct gdri_config){ .log = fake_quiet, .backend = GDRI_BACKEND_NVRM };
		REQUIRE_EQ(try_open(&session, &why), 0);
		fake_cuda_init(0);
		REQUIRE_EQ(pin(&session, fake_mem_alloc(64 * KIB), 4, &pinned), 0);
		CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
		close_session(&session);
	}
}

/* These show only once the GPU is attached. */
static void slices_of_a_gpu_are_refused(void)
{
	static const struct fake_machine machine[] = {
		{ .smc_mode = GDRI_RM_SMC_MODE_ENABLED },
		{ .virtualization = GDRI_RM_VIRTUALIZATION_VGX_GUEST },
	};

	for (size_t i = 0; i < sizeof(machine) / sizeof(machine[0]); i++) {
		struct session session;
		struct gdri_pin pinned;

		open_session(&session, &machine[i]);
		CHECK_EQ(pin(&session, fake_mem_alloc(64 * KIB), 4, &pinned), -EOPNOTSUPP);
		close_session(&session);
	}
}

/* Sets out like a program does; returns how far it came. */
static int whole_life(uint64_t addr, struct fake_usage *after_open, struct fake_usage *at_error)
{
	struct gdri_reason why;
	struct gdri_mapping mapping;
	struct session session;
	struct gdri_pin pinned;
	int stage = 0;

	if (try_open(&session, &why))
		return 0;
	*after_open = fake_usage();
	if (pin(&session, addr, 64 * KIB, &pinned) == 0) {
		stage = 1;
		*after_open = fake_usage();
		if (ops->map(session.backend, &pinned, 64 * KIB, 0, &mapping) == 0) {
			stage = 2;
			CHECK(memcmp(mapping.base, &addr, sizeof(addr)) == 0);
			ops->unmap(session.backend, &pinned, &mapping);
		}
	}
	*at_error = fake_usage();
	if (stage > 0)
		ops->unpin(session.backend, &pinned);
	ops->close(session.backend);
	return stage;
}

/* Whatever fails, the session's end leaves nothing; a failed map leaves nothing at once. */
static void failure_at_each_step(void)
{
	unsigned reached[3] = { 0 };

	for (unsigned step = 1; step < 200; step++) {
		struct fake_usage after_open = { 0 }, at_error = { 0 };
		uint64_t addr;
		int stage;

		fake_reset(NULL);
		config = (struct gdri_config){ .log = fake_quiet, .backend = GDRI_BACKEND_AUTO };
		fake_cuda_init(0);
		addr = step % 4 < 2 ? fake_mem_alloc(64 * KIB) : fake_mem_vmm(2 * MIB, false);
		memcpy(fake_bytes(addr), &addr, sizeof(addr));
		fake_fail_at(step / 4 + 1, step % 2 ? 0x51 : 0);
		stage = whole_life(addr, &after_open, &at_error);
		fake_fail_at(0, 0);
		reached[stage]++;
		if (stage == 1)
			CHECK(fake_usage_equal(after_open, at_error));
		CHECK(fake_usage_equal(fake_usage(), nothing));
	}
	CHECK(reached[0] > 20 && reached[1] > 5 && reached[2] > 20);
}

static const struct harness_case cases[] = {
	{ "write_reaches_its_buffer", write_reaches_its_buffer },
	{ "odd_addresses", odd_addresses },
	{ "beyond_4_gib", beyond_4_gib },
	{ "attributes_flags_version", attributes_flags_version },
	{ "mapping_type_is_the_drivers", mapping_type_is_the_drivers },
	{ "swapped_descriptor", swapped_descriptor },
	{ "child_does_not_inherit", child_does_not_inherit },
	{ "end_without_cuda", end_without_cuda },
	{ "many_maps_few_descriptors", many_maps_few_descriptors },
	{ "threads_of_one_session", threads_of_one_session },
	{ "sessions_are_independent", sessions_are_independent },
	{ "reasons_not_to_open", reasons_not_to_open },
	{ "asked_by_name", asked_by_name },
	{ "slices_of_a_gpu_are_refused", slices_of_a_gpu_are_refused },
	{ "failure_at_each_step", failure_at_each_step },
};
HARNESS_MAIN(cases)
