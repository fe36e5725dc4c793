/* SPDX-License-Identifier: MIT */
/* From a CUDA address to its memory object: found, proven, or refused; never the neighbour's. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "fake_rm.h"
#include "harness.h"
#include "rm/memory.h"
#include "rm/range.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

static struct gdri_rm_client *client;

static void start(const struct fake_machine *machine)
{
	struct gdri_rm_failure failure;

	fake_reset(machine);
	REQUIRE_EQ(gdri_rm_client_acquire(&client, &failure), 0);
	/* Known for the life of a process, whose machine does not change elsewhere. */
	atomic_store(&client->ipc_layout, 0);
	atomic_store(&client->record_layout, 0);
	fake_cuda_init(0);
}

/* Everything that the case took must be back, but for attached devices. */
static void finish(void)
{
	static const struct fake_usage nothing;

	CHECK_EQ(gdri_rm_client_release(client), 0);
	CHECK(fake_usage_equal(fake_usage(), nothing));
}

static int acquire(uint64_t addr, uint64_t length, struct gdri_rm_range *range)
{
	return gdri_rm_range_acquire(client, fake_cuda(), addr, length, &fake_quiet, range);
}

/* The first bytes of the range, read through a window of the object. */
static uint64_t read_range(const struct gdri_rm_range *range)
{
	struct gdri_rm_failure failure;
	struct gdri_rm_window window;
	const uint64_t start = range->offset & ~(uint64_t)4095;
	uint64_t value;

	REQUIRE_EQ(gdri_rm_memory_map(client, range->device, range->object, start, 4096, &window,
				      &failure), 0);
	memcpy(&value, (char *)window.base + (range->offset - start), sizeof(value));
	CHECK_EQ(gdri_rm_memory_unmap(client, range->device, range->object, &window), 0);
	return value;
}

/* Marks the buffer with its own address and expects to find that through the range. */
static void expect_own(uint64_t addr, uint64_t length)
{
	struct gdri_rm_range range;

	memcpy(fake_bytes(addr), &addr, sizeof(addr));
	REQUIRE_EQ(acquire(addr, length, &range), 0);
	CHECK_EQ(range.length, length);
	CHECK(range.offset + length <= range.object_size);
	CHECK(read_range(&range) == addr);
	CHECK_EQ(gdri_rm_range_release(&range), 0);
}

/* A refusal keeps nothing and writes nothing. */
static void expect_refused(uint64_t addr, uint64_t length, int error)
{
	struct gdri_rm_range range, untouched;
	struct fake_usage before = fake_usage();
	struct fake_usage after;

	memset(&range, 0x5a, sizeof(range));
	untouched = range;
	CHECK_EQ(acquire(addr, length, &range), error);
	CHECK(memcmp(&range, &untouched, sizeof(range)) == 0);
	after = fake_usage();
	before.objects = after.objects > before.objects ? after.objects : before.objects;
	before.descriptors = after.descriptors > before.descriptors ? after.descriptors :
								      before.descriptors;
	CHECK(after.objects <= 2 * FAKE_GPUS && after.descriptors <= 1 + FAKE_GPUS);
	CHECK(fake_usage_equal(before, after));
}

static void malloc_memory(void)
{
	uint64_t small1, small2, middle, big;

	start(NULL);
	small1 = fake_mem_alloc(64 * KIB);
	small2 = fake_mem_alloc(512);
	middle = fake_mem_alloc(3 * MIB);
	big = fake_mem_alloc(5120 * MIB);
	expect_own(small1, 64 * KIB);
	expect_own(small1 + 4096, 100);
	expect_own(small2, 8);
	expect_own(middle, 3 * MIB);
	expect_own(middle + 64 * KIB, MIB);
	expect_own(big, 5120 * MIB);
	expect_own(big + 4608 * MIB, 64 * KIB);
	finish();
}

static void vmm_memory(void)
{
	uint64_t exported, private, pair;

	start(NULL);
	exported = fake_mem_vmm(2 * MIB, true);
	private = fake_mem_vmm(6 * MIB, false);
	pair = fake_mem_vmm_pair(2 * MIB, 4 * MIB);
	expect_own(exported, 2 * MIB);
	expect_own(exported + MIB, 64 * KIB);
	expect_own(private, 6 * MIB);
	expect_own(private + 5 * MIB, 64 * KIB);
	/* Two objects in one reservation, which CUDA reports as one range. */
	expect_own(pair, 2 * MIB);
	expect_own(pair + 2 * MIB, 4 * MIB);
	expect_own(pair + 5 * MIB, 64 * KIB);
	expect_refused(pair + MIB, 2 * MIB, -EINVAL);
	finish();
}

static void memory_on_every_gpu(void)
{
	start(NULL);
	for (int gpu = FAKE_GPUS - 1; gpu >= 0; gpu--) {
		struct gdri_rm_range range;
		uint64_t addr;

		fake_cuda_init(gpu);
		addr = fake_mem_alloc(64 * KIB);
		expect_own(addr, 64 * KIB);
		expect_own(fake_mem_vmm(2 * MIB, false), 2 * MIB);
		REQUIRE_EQ(acquire(addr, 8, &range), 0);
		CHECK_EQ(range.device->pci_bus, gpu == 0 ? 0x65 : gpu == 1 ? 0x1a : 0xc8);
		CHECK_EQ(gdri_rm_range_release(&range), 0);
	}
	finish();
}

/* MSCCL++ and NIXL pin the 64 KiB page around a small buffer, which may start before it. */
static void pages_around_a_buffer(void)
{
	struct gdri_rm_range range;
	uint64_t gap, buffer;

	start(NULL);
	gap = fake_mem_alloc(8 * KIB);
	buffer = fake_mem_alloc(512);
	fake_mem_free(gap);
	memcpy(fake_bytes(buffer), "neighbours see this", 20);
	REQUIRE_EQ(acquire(buffer & ~(64 * KIB - 1), 64 * KIB, &range), 0);
	CHECK_EQ(range.offset, 0);
	CHECK_EQ(gdri_rm_range_release(&range), 0);
	REQUIRE_EQ(acquire(buffer - 512, 1024, &range), 0);
	CHECK_EQ(gdri_rm_range_release(&range), 0);
	expect_refused(gap, 8 * KIB, -EINVAL);
	finish();
}

static void ranges_outside_are_refused(void)
{
	uint64_t small, next, big;

	start(NULL);
	small = fake_mem_alloc(64 * KIB);
	next = fake_mem_alloc(64 * KIB);
	big = fake_mem_alloc(4 * MIB);
	CHECK_EQ(next, small + 64 * KIB);
	expect_refused(small, 128 * KIB, -EINVAL);
	expect_refused(small, 64 * KIB + 1, -EINVAL);
	expect_refused(big, 4 * MIB + 1, -EINVAL);
	expect_refused(big - 4096, 8192, -EINVAL);
	expect_refused(0x1000, 64 * KIB, -EINVAL);
	expect_refused((uint64_t)(uintptr_t)&small, 8, -EINVAL);
	expect_refused(UINT64_MAX - 64 * KIB, 4096, -EINVAL);
	finish();
}

static void other_kinds_are_refused(void)
{
	uint64_t freed;

	start(NULL);
	expect_refused(fake_mem_managed(4 * MIB), 4096, -EINVAL);
	expect_refused(fake_mem_pool(4 * MIB), 4096, -EINVAL);
	expect_refused(fake_mem_host(4 * MIB), 4096, -EINVAL);
	expect_refused(fake_mem_ipc_opened(4 * MIB), 4096, -EINVAL);
	freed = fake_mem_alloc(4 * MIB);
	fake_mem_free(freed);
	expect_refused(freed, 4096, -EINVAL);
	finish();
}

static void old_cuda_is_refused(void)
{
	start(&(struct fake_machine){ .no_block_attributes = true });
	expect_refused(fake_mem_alloc(4 * MIB), 4096, -EINVAL);
	finish();
}

/*
 * Buffers of one size, all zero: nothing but the right handle tells them
 * apart.  With the IPC handle's words elsewhere there is no telling.
 */
static void shifted_ipc_handle(void)
{
	for (unsigned shift = 1; shift <= 8; shift++) {
		uint64_t neighbour, addr;

		start(&(struct fake_machine){ .blob_shift = shift });
		neighbour = fake_mem_alloc(4 * MIB);
		addr = fake_mem_alloc(4 * MIB);
		expect_refused(addr, 4 * MIB, -EOPNOTSUPP);
		expect_refused(neighbour, 4 * MIB, -EOPNOTSUPP);
		finish();
	}
	start(&(struct fake_machine){ .blob_wrong_id = true });
	expect_refused(fake_mem_alloc(4 * MIB), 4 * MIB, -EOPNOTSUPP);
	finish();
}

/* A driver that was not tested: the layout is tried on a probe, and refused for good. */
static void ipc_handle_of_an_untested_driver(void)
{
	const struct fake_machine good = { .version = "999.1", .kernel_running = true };
	const struct fake_machine bad[] = {
		{ .version = "580.142", .blob_names_neighbour = true },
		/* A younger libcuda. */
		{ .cuda_version = 13010, .blob_names_neighbour = true },
	};
	uint64_t neighbour, addr;

	start(&good);
	expect_own(fake_mem_alloc(4 * MIB), 4 * MIB);
	expect_own(fake_mem_alloc(64 * KIB), 64 * KIB);
	CHECK(!fake_waited());
	finish();

	/* Neighbours that are smaller and larger than the probe. */
	for (int i = 0; i < 4; i++) {
		const uint64_t size = (i < 2 ? 4 : 8) * MIB;

		start(&bad[i % 2]);
		neighbour = fake_mem_alloc(size);
		addr = fake_mem_alloc(size);
		expect_refused(addr, size, -EOPNOTSUPP);
		expect_refused(neighbour, size, -EOPNOTSUPP);
		finish();
	}
}

static void shifted_record(void)
{
	for (unsigned shift = 1; shift <= 8; shift++) {
		uint64_t neighbour, addr;

		start(&(struct fake_machine){ .record_shift = shift });
		neighbour = fake_mem_vmm(4 * MIB, false);
		addr = fake_mem_vmm(4 * MIB, false);
		expect_refused(addr, 4 * MIB, -EOPNOTSUPP);
		expect_refused(neighbour, 4 * MIB, -EOPNOTSUPP);
		expect_own(fake_mem_vmm(4 * MIB, true), 4 * MIB);
		finish();
	}
}

/*
 * Records that look right in every field but lead to the neighbour's object.
 * 10 MiB is the size of the private probe, so that size alone proves nothing.
 */
static void record_of_the_neighbour(void)
{
	for (uint64_t size = 4 * MIB; size <= 10 * MIB; size += 6 * MIB) {
		uint64_t neighbour, addr;

		start(&(struct fake_machine){ .record_names_neighbour = true });
		neighbour = fake_mem_vmm(size, false);
		addr = fake_mem_vmm(size, false);
		expect_refused(addr, size, -EOPNOTSUPP);
		expect_refused(neighbour, size, -EOPNOTSUPP);
		finish();
	}
}

static void private_records_differ(void)
{
	start(&(struct fake_machine){ .record_names_neighbour = true,
				      .only_private_records = true });
	fake_mem_vmm(4 * MIB, false);
	expect_refused(fake_mem_vmm(4 * MIB, false), 4 * MIB, -EOPNOTSUPP);
	finish();
}

/* A full GPU leaves no room for probes; the fields of the record must fit all the same. */
static void records_that_contradict(void)
{
	start(&(struct fake_machine){ .record_wrong_size = true, .memory_limit = 5 * MIB });
	expect_refused(fake_mem_vmm(4 * MIB, false), 4 * MIB, -EOPNOTSUPP);
	finish();
	start(&(struct fake_machine){ .record_wrong_id = true });
	expect_refused(fake_mem_vmm(4 * MIB, false), 4 * MIB, -EOPNOTSUPP);
	finish();
}

/* Records are probed once, give their memory back, and do without it on a full tested GPU. */
static void probes_of_records(void)
{
	uint64_t addr;
	unsigned first;

	start(NULL);
	addr = fake_mem_vmm(4 * MIB, false);
	fake_fail_cuda_at(0, 0);
	expect_own(addr, 4096);
	first = fake_cuda_calls();
	fake_fail_cuda_at(0, 0);
	expect_own(addr, 4096);
	CHECK(fake_cuda_calls() < first);
	finish();

	start(&(struct fake_machine){ .memory_limit = 5 * MIB });
	expect_own(fake_mem_vmm(4 * MIB, false), 4096);
	finish();

	start(&(struct fake_machine){ .memory_limit = 5 * MIB, .version = "999.1" });
	expect_refused(fake_mem_vmm(4 * MIB, false), 4096, -ENOMEM);
	finish();
}

/*
 * The address is freed and handed out anew at every moment of the search: that
 * is noticed, unless it comes so late that the pin already stands.
 */
static void replaced_meanwhile(void)
{
	unsigned refused = 0;

	for (unsigned call = 1; call < 40; call++) {
		struct gdri_rm_range range;
		uint64_t addr, value;

		start(NULL);
		fake_mem_alloc(4 * MIB);
		addr = fake_mem_alloc(4 * MIB);
		memcpy(fake_bytes(addr), "old mark", 8);
		fake_replace_at(call, addr);
		if (acquire(addr, 4 * MIB, &range)) {
			refused++;
			expect_own(addr, 4 * MIB);
		} else {
			memcpy(fake_bytes(addr), "new mark", 8);
			value = read_range(&range);
			CHECK(memcmp(&value, "new mark", 8) == 0 ||
			      memcmp(&value, "old mark", 8) == 0);
			CHECK_EQ(gdri_rm_range_release(&range), 0);
		}
		finish();
	}
	CHECK(refused > 5);
}

/* The buffer is freed and its object's handle given to a stranger's, at every system call. */
static void handle_recycled_meanwhile(void)
{
	unsigned refused = 0;

	for (unsigned call = 1; call < 20; call++) {
		struct gdri_rm_range range;
		uint64_t addr, value;

		start(NULL);
		addr = fake_mem_alloc(4 * MIB);
		memcpy(fake_bytes(addr), "old mark", 8);
		fake_recycle_at(call, addr);
		if (acquire(addr, 4 * MIB, &range)) {
			refused++;
		} else {
			fake_fail_at(0, 0);
			value = read_range(&range);
			CHECK(memcmp(&value, "old mark", 8) == 0);
			CHECK_EQ(gdri_rm_range_release(&range), 0);
		}
		finish();
	}
	CHECK(refused > 5);
}

static void contexts_stay_as_they_are(void)
{
	uint64_t addr, vmm, other;
	void *context;

	start(&(struct fake_machine){ .kernel_running = true });
	addr = fake_mem_alloc(64 * KIB);
	vmm = fake_mem_vmm(2 * MIB, false);
	fake_cuda_init(1);
	other = fake_mem_alloc(64 * KIB);
	context = fake_current_context();
	expect_own(addr, 64 * KIB);
	CHECK(fake_current_context() == context);
	expect_own(other, 64 * KIB);
	fake_set_current_context(NULL);
	expect_own(addr, 64 * KIB);
	expect_own(vmm, 2 * MIB);
	expect_refused(fake_mem_ipc_opened(2 * MIB), 4096, -EINVAL);
	CHECK(fake_current_context() == NULL);
	CHECK(!fake_waited());
	finish();
}

static void survives_the_free(void)
{
	struct gdri_rm_range range;
	uint64_t addr, again;

	start(NULL);
	addr = fake_mem_alloc(4 * MIB);
	memcpy(fake_bytes(addr), &addr, sizeof(addr));
	REQUIRE_EQ(acquire(addr, 4 * MIB, &range), 0);
	fake_mem_free(addr);
	again = fake_mem_alloc(4 * MIB);
	memset(fake_bytes(again), 0xff, 4096);
	CHECK(read_range(&range) == addr);
	CHECK_EQ(gdri_rm_range_release(&range), 0);
	finish();
}

static void pin_in_child(void *arg)
{
	struct gdri_rm_failure failure;

	REQUIRE_EQ(gdri_rm_client_acquire(&client, &failure), 0);
	expect_refused(*(uint64_t *)arg, 4096, -ENODEV);
	CHECK_EQ(gdri_rm_client_release(client), 0);
}

static void child_cannot_pin_its_parents_memory(void)
{
	uint64_t addr;
	int status;

	start(NULL);
	addr = fake_mem_alloc(4 * MIB);
	status = harness_fork(pin_in_child, &addr);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	expect_own(addr, 4096);
	finish();
}

/* Each call of the os layer and of CUDA fails once; what comes back is an error or the truth. */
static void failure_at_each_step_of(uint64_t (*alloc)(void), const char *version)
{
	unsigned failed = 0;

	for (unsigned step = 1; step < 120; step++) {
		struct gdri_rm_range range;
		uint64_t addr;
		int rc;

		start(&(struct fake_machine){ .version = version });
		addr = alloc();
		memcpy(fake_bytes(addr), &addr, sizeof(addr));
		if (step % 3 == 0)
			fake_fail_cuda_at(step / 3, 1);
		else
			fake_fail_at(step / 3 + 1, step % 3 == 1 ? 0 : 0x51);
		rc = acquire(addr, 4096, &range);
		fake_fail_at(0, 0);
		fake_fail_cuda_at(0, 0);
		failed += rc != 0;
		if (rc == 0) {
			CHECK(read_range(&range) == addr);
			CHECK_EQ(gdri_rm_range_release(&range), 0);
		}
		CHECK_EQ(fake_usage().retained, 0);
		CHECK_EQ(fake_usage().windows, 0);
		finish();
	}
	CHECK(failed > 15);
}

static uint64_t alloc_malloc(void)
{
	return fake_mem_alloc(4 * MIB);
}

static uint64_t alloc_exported(void)
{
	return fake_mem_vmm(4 * MIB, true);
}

static uint64_t alloc_private(void)
{
	return fake_mem_vmm(4 * MIB, false);
}

static void failure_at_each_step(void)
{
	failure_at_each_step_of(alloc_malloc, NULL);
	failure_at_each_step_of(alloc_malloc, "999.1");
	failure_at_each_step_of(alloc_exported, NULL);
	failure_at_each_step_of(alloc_private, NULL);
}

static const struct harness_case cases[] = {
	{ "malloc_memory", malloc_memory },
	{ "vmm_memory", vmm_memory },
	{ "memory_on_every_gpu", memory_on_every_gpu },
	{ "pages_around_a_buffer", pages_around_a_buffer },
	{ "ranges_outside_are_refused", ranges_outside_are_refused },
	{ "other_kinds_are_refused", other_kinds_are_refused },
	{ "old_cuda_is_refused", old_cuda_is_refused },
	{ "shifted_ipc_handle", shifted_ipc_handle },
	{ "ipc_handle_of_an_untested_driver", ipc_handle_of_an_untested_driver },
	{ "shifted_record", shifted_record },
	{ "record_of_the_neighbour", record_of_the_neighbour },
	{ "private_records_differ", private_records_differ },
	{ "records_that_contradict", records_that_contradict },
	{ "probes_of_records", probes_of_records },
	{ "replaced_meanwhile", replaced_meanwhile },
	{ "handle_recycled_meanwhile", handle_recycled_meanwhile },
	{ "contexts_stay_as_they_are", contexts_stay_as_they_are },
	{ "survives_the_free", survives_the_free },
	{ "child_cannot_pin_its_parents_memory", child_cannot_pin_its_parents_memory },
	{ "failure_at_each_step", failure_at_each_step },
};
HARNESS_MAIN(cases)
