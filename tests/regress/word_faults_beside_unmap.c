/* SPDX-License-Identifier: MIT */
/*
 * Symptom: SIGSEGV in gdr_copy_to_mapping of one word while another thread
 * unmapped, about once in 200,000 unmaps on a busy machine.
 *
 * A word that is stored in a restartable sequence announces itself nowhere.
 * Unmap aborts the sequences of all threads, but not a page fault of the store
 * that is on its way into the kernel: it arrives after the mapping has gone.
 * So sequences may only store where no access faults.  Here userfaultfd holds
 * the fault up for as long as the unmap needs.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct writer {
	struct gpu_mapping mapping;
	int faults;
	_Atomic bool is_done;
	int rc;
};

static int open_faults(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0)
		SKIP("no userfaultfd here");
	return fd;
}

static void watch_faults(int fd, void *start, size_t size)
{
	struct uffdio_register range = {
		.range = { (uintptr_t)start, size },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};

	REQUIRE_EQ(ioctl(fd, UFFDIO_REGISTER, &range), 0);
}

static void *write_word(void *arg)
{
	struct writer *writer = arg;
	uint64_t value = 7;

	writer->rc = gdr_copy_to_mapping(writer->mapping.handle, writer->mapping.va, &value,
					 sizeof(value));
	atomic_store(&writer->is_done, true);
	return NULL;
}

/* Lets a store go on 50 ms after it has faulted, if it faults at all. */
static void *resolve_fault(void *arg)
{
	struct writer *writer = arg;
	struct pollfd poll_fd = { .fd = writer->faults, .events = POLLIN };
	struct uffd_msg message;

	while (!atomic_load(&writer->is_done)) {
		struct uffdio_zeropage zero = { .range.len = 4096 };

		if (poll(&poll_fd, 1, 10) != 1 ||
		    read(writer->faults, &message, sizeof(message)) != sizeof(message))
			continue;
		thread_nap(50000);
		zero.range.start = message.arg.pagefault.address & ~UINT64_C(4095);
		/* Where the mapping has gone, the thread is only woken. */
		if (ioctl(writer->faults, UFFDIO_ZEROPAGE, &zero) != 0)
			ioctl(writer->faults, UFFDIO_WAKE, &zero.range);
	}
	return NULL;
}

static void unmap_beside_word(size_t size)
{
	struct writer writer = { .mapping = gpu_map_new(gpu_open(), size), .faults = open_faults() };
	pthread_t storing, resolving;

	watch_faults(writer.faults, writer.mapping.va, size);
	REQUIRE_EQ(pthread_create(&resolving, NULL, resolve_fault, &writer), 0);
	REQUIRE_EQ(pthread_create(&storing, NULL, write_word, &writer), 0);
	thread_nap(20000);
	CHECK_EQ(gdr_unmap(writer.mapping.g, writer.mapping.handle, writer.mapping.va, size), 0);
	pthread_join(storing, NULL);
	pthread_join(resolving, NULL);
	/* 20 ms were enough for the copy to begin, but on a starved machine. */
	CHECK(writer.rc == 0 || writer.rc == EINVAL);
	CHECK_EQ(gdr_close(writer.mapping.g), 0);
	gpu_free(writer.mapping.buffer);
	close(writer.faults);
}

/* The emulated back end fills the page table for small mappings. */
static void small_mapping(void)
{
	unmap_beside_word(MIB);
}

static void large_mapping(void)
{
	unmap_beside_word(64 * MIB);
}

static const struct api_case cases[] = {
	{ "small_mapping", small_mapping, "GDRCOPY_DMA=0" },
	{ "large_mapping", large_mapping, "GDRCOPY_DMA=0" },
};

API_MAIN(cases)
