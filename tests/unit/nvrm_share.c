/* SPDX-License-Identifier: MIT */
/* Back end nvrm: memory that is exported and imported, on a simulated driver. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "backend/backend.h"
#include "fake_rm.h"
#include "harness.h"
#include "os/sys.h"
#include "rm/abi/r580.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define SIZE (4 * MIB)

static const struct gdri_backend_ops *const ops = &gdri_backend_nvrm;
static const struct fake_usage nothing;
static struct gdri_config config;

struct session {
	struct gdri_backend_session *backend;
	int fd;
};

static int try_open(struct session *session)
{
	struct gdri_reason why;
	int rc = ops->open(&config, &session->backend, &session->fd, &why);

	if (rc == 0)
		session->backend->fd = &session->fd;
	return rc;
}

static void open_session(struct session *session, const struct fake_machine *machine)
{
	fake_reset(machine);
	config = (struct gdri_config){ .log = fake_quiet, .backend = GDRI_BACKEND_AUTO };
	REQUIRE_EQ(try_open(session), 0);
	fake_cuda_init(0);
}

static void close_session(struct session *session)
{
	CHECK_EQ(ops->close(session->backend), 0);
	CHECK(fake_usage_equal(fake_usage(), nothing));
}

static void pin(struct session *session, uint64_t addr, size_t size, struct gdri_pin *out)
{
	REQUIRE_EQ(ops->pin(session->backend, addr, size, 0, 0, 0, out), 0);
}

static struct gdri_backend_share whole(int device)
{
	return (struct gdri_backend_share){ device, SIZE, 0, SIZE };
}

static int import(struct session *session, struct gdri_backend_share share, int fd,
		  struct gdri_pin *out)
{
	return ops->import_memory(session->backend, &share, fd, out);
}

/* The import shows the exporter's bytes from its offset on, and nothing else is needed. */
static void check_import(struct session *session, struct gdri_backend_share share, int fd,
			 const void *bytes, size_t count)
{
	struct gdri_mapping mapping;
	struct gdri_pin pinned;

	REQUIRE_EQ(import(session, share, fd, &pinned), 0);
	CHECK_EQ(pinned.addr, GDRI_BACKEND_IMPORT_BASE + share.offset);
	CHECK_EQ(pinned.va % GDRI_GPU_PAGE_SIZE, 0);
	CHECK_EQ(pinned.length, share.length);
	REQUIRE_EQ(ops->map(session->backend, &pinned, pinned.size, 0, &mapping), 0);
	CHECK(memcmp((char *)mapping.base + (pinned.addr - pinned.va), bytes, count) == 0);
	CHECK_EQ(ops->unmap(session->backend, &pinned, &mapping), 0);
	CHECK_EQ(ops->unpin(session->backend, &pinned), 0);
}

static void export_and_import(void)
{
	struct session session;
	struct gdri_pin pinned;
	uint64_t addr;
	int fd = -1;

	open_session(&session, NULL);
	addr = fake_mem_alloc(SIZE);
	memcpy(fake_bytes(addr), "exported", 8);
	pin(&session, addr, SIZE, &pinned);
	REQUIRE_EQ(ops->export_memory(session.backend, &pinned, &fd), 0);
	check_import(&session, whole(0), fd, "exported", 8);
	/* The same descriptor any number of times, and with the pin gone. */
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	check_import(&session, whole(0), fd, "exported", 8);
	fake_mem_free(addr);
	fake_mem_alloc(SIZE);
	check_import(&session, whole(0), fd, "exported", 8);
	gdri_os_close(fd);
	close_session(&session);
}

/* A buffer in the middle of an object, at an odd place. */
static void part_of_an_object(void)
{
	struct session session;
	struct gdri_pin pinned;
	uint64_t first, addr;
	int fd = -1;

	open_session(&session, NULL);
	first = fake_mem_alloc(512 * KIB);
	addr = fake_mem_alloc(512 * KIB) + 77;
	memcpy(fake_bytes(addr), "within", 6);
	pin(&session, addr, 1001, &pinned);
	REQUIRE_EQ(ops->export_memory(session.backend, &pinned, &fd), 0);
	check_import(&session, (struct gdri_backend_share){ 0, 2 * MIB, addr - first, 1001 }, fd,
		     "within", 6);
	gdri_os_close(fd);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

static int passed_on;

/* Its client is its own; the descriptor came over. */
static void in_another_process(void *arg)
{
	struct session session;

	(void)arg;
	fake_cuda_of_child(1);
	REQUIRE_EQ(try_open(&session), 0);
	check_import(&session, whole(1), passed_on, "for the child", 13);
	CHECK_EQ(ops->close(session.backend), 0);
}

static void another_process(void)
{
	struct session session;
	struct gdri_pin pinned;
	uint64_t addr;

	open_session(&session, NULL);
	fake_cuda_init(1);
	addr = fake_mem_alloc(SIZE);
	memcpy(fake_bytes(addr), "for the child", 13);
	pin(&session, addr, SIZE, &pinned);
	REQUIRE_EQ(ops->export_memory(session.backend, &pinned, &passed_on), 0);
	CHECK_EQ(harness_fork(in_another_process, NULL), 0);
	gdri_os_close(passed_on);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

static void refused(struct session *session, struct gdri_backend_share share, int fd)
{
	const struct fake_usage before = fake_usage();
	struct gdri_pin pinned = { .va = 1 };

	CHECK_EQ(import(session, share, fd, &pinned), -EINVAL);
	CHECK_EQ(pinned.va, 1);
	CHECK(fake_usage_equal(fake_usage(), before));
}

static void other_descriptors_and_sizes(void)
{
	struct session session;
	struct gdri_pin pinned;
	int fd = -1, other;

	open_session(&session, NULL);
	pin(&session, fake_mem_alloc(SIZE), SIZE, &pinned);
	/* GPU 1 is attached already, so that a refusal leaves what was there before. */
	fake_cuda_init(1);
	check_import(&session, whole(0), (ops->export_memory(session.backend, &pinned, &fd), fd),
		     "", 1);
	refused(&session, (struct gdri_backend_share){ 0, SIZE + 2 * MIB, 0, SIZE }, fd);
	refused(&session, (struct gdri_backend_share){ 0, SIZE - 2 * MIB, 0, 2 * MIB }, fd);
	refused(&session, whole(0), -1);
	refused(&session, whole(0), session.fd);
	other = fake_foreign_descriptor();
	refused(&session, whole(0), other);
	gdri_os_close(other);
	other = gdri_os_open("/dev/nvidia4", 0);
	REQUIRE(other >= 0);
	refused(&session, whole(0), other);
	gdri_os_close(other);
	gdri_os_close(fd);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

/* The manager would import it there, and show other memory. */
static void another_gpu(void)
{
	struct session session;
	struct gdri_pin pinned, on_other;
	int fd = -1;

	open_session(&session, NULL);
	pin(&session, fake_mem_alloc(SIZE), SIZE, &pinned);
	fake_cuda_init(1);
	pin(&session, fake_mem_alloc(SIZE), SIZE, &on_other);
	REQUIRE_EQ(ops->export_memory(session.backend, &pinned, &fd), 0);
	refused(&session, whole(1), fd);
	CHECK_EQ(ops->unpin(session.backend, &on_other), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	gdri_os_close(fd);
	close_session(&session);
}

static void other_class(void)
{
	struct session session;
	struct gdri_pin pinned;
	int fd = -1;

	open_session(&session, &(struct fake_machine){ .import_class = 0x3e });
	pin(&session, fake_mem_alloc(SIZE), SIZE, &pinned);
	REQUIRE_EQ(ops->export_memory(session.backend, &pinned, &fd), 0);
	refused(&session, whole(0), fd);
	gdri_os_close(fd);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	close_session(&session);
}

/* Found out when the GPU is attached, which an import may be the first to do. */
static void slices_of_a_gpu_are_refused(void)
{
	struct session session;
	struct gdri_pin pinned;
	int fd = -1;

	open_session(&session, NULL);
	pin(&session, fake_mem_alloc(SIZE), SIZE, &pinned);
	REQUIRE_EQ(ops->export_memory(session.backend, &pinned, &fd), 0);
	CHECK_EQ(ops->unpin(session.backend, &pinned), 0);
	CHECK_EQ(ops->close(session.backend), 0);
	fake_machine.smc_mode = GDRI_RM_SMC_MODE_ENABLED;
	REQUIRE_EQ(try_open(&session), 0);
	CHECK_EQ(import(&session, whole(0), fd, &pinned), -EOPNOTSUPP);
	gdri_os_close(fd);
	close_session(&session);
}

/* How far it came: nothing, an export, an import. */
static int export_then_import(uint64_t addr)
{
	struct gdri_pin pinned, imported = { .va = 1 };
	struct fake_usage before;
	struct session session;
	int fd = -1, stage = 0;

	if (try_open(&session))
		return 0;
	if (ops->pin(session.backend, addr, SIZE, 0, 0, 0, &pinned) == 0) {
		before = fake_usage();
		if (ops->export_memory(session.backend, &pinned, &fd) == 0)
			stage = 1;
		else
			CHECK(fd == -1 && fake_usage_equal(fake_usage(), before));
		before = fake_usage();
		if (stage && import(&session, whole(0), fd, &imported) == 0) {
			stage = 2;
			ops->unpin(session.backend, &imported);
		} else if (stage) {
			CHECK_EQ(imported.va, 1);
			CHECK(fake_usage_equal(fake_usage(), before));
		}
		if (fd >= 0)
			gdri_os_close(fd);
		ops->unpin(session.backend, &pinned);
	}
	ops->close(session.backend);
	return stage;
}

static void failure_at_each_step(void)
{
	unsigned reached[3] = { 0 };

	for (unsigned step = 1; step < 160; step++) {
		fake_reset(NULL);
		config = (struct gdri_config){ .log = fake_quiet, .backend = GDRI_BACKEND_AUTO };
		fake_cuda_init(0);
		fake_fail_at(step / 2 + 1, step % 2 ? GDRI_RM_NO_MEMORY : 0);
		reached[export_then_import(fake_mem_alloc(SIZE))]++;
		fake_fail_at(0, 0);
		CHECK(fake_usage_equal(fake_usage(), nothing));
	}
	CHECK(reached[0] > 10 && reached[1] > 6 && reached[2] > 10);
}

static const struct harness_case cases[] = {
	{ "export_and_import", export_and_import },
	{ "part_of_an_object", part_of_an_object },
	{ "another_process", another_process },
	{ "other_descriptors_and_sizes", other_descriptors_and_sizes },
	{ "another_gpu", another_gpu },
	{ "other_class", other_class },
	{ "slices_of_a_gpu_are_refused", slices_of_a_gpu_are_refused },
	{ "failure_at_each_step", failure_at_each_step },
};

HARNESS_MAIN(cases)
