/* SPDX-License-Identifier: MIT */
/*
 * Emulated GPU memory in the BAR of a PCI device, for tests of the kernel module.
 *
 * The stand-in for nvidia.ko (tests/kernel/standin) hands out the memory.  It is told
 * under which device address each piece lies, so that the module can pin it by that
 * address as it does with the real driver.
 */
#include "provider.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "../../tests/kernel/standin/nvidia_emu.h"

/*
 * One descriptor for each process.  The stand-in frees what it owns when the last copy
 * of it is closed, so memory that is not freed lives as long as a forked child does.
 */
static int file = -1;

static int open_file(void)
{
	if (file >= 0)
		return 0;
	file = open(NVIDIA_EMU_PATH, O_RDWR | O_CLOEXEC);
	return file >= 0 ? 0 : -errno;
}

static int call(unsigned long request, void *args)
{
	return ioctl(file, request, args) == 0 ? 0 : -errno;
}

static int allocate(int device, uint64_t size, bool shareable, struct emu_extent *extent)
{
	struct nvidia_emu_alloc args = { .size = size, .device = (uint32_t)device };
	int ret;

	if (shareable)
		return -EOPNOTSUPP;
	ret = open_file();
	if (ret == 0)
		ret = call(NVIDIA_EMU_ALLOC, &args);
	if (ret != 0)
		return ret;
	*extent = (struct emu_extent){
		.fd = file, .device = device, .offset = args.offset, .size = size
	};
	return 0;
}

static void release(struct emu_extent *extent)
{
	struct nvidia_emu_free args = { .offset = extent->offset };

	call(NVIDIA_EMU_FREE, &args);
}

static int bind_address(const struct emu_extent *extent, uint64_t offset, uint64_t size,
			uint64_t va)
{
	struct nvidia_emu_bind args = {
		.va = va, .size = size, .offset = extent->offset + offset
	};

	return call(NVIDIA_EMU_BIND, &args);
}

static void unbind_address(const struct emu_extent *extent, uint64_t offset, uint64_t size,
			   uint64_t va)
{
	struct nvidia_emu_bind args = {
		.va = va, .size = size, .offset = extent->offset + offset
	};

	call(NVIDIA_EMU_UNBIND, &args);
}

const struct emu_provider emu_provider_bar = {
	.name = "bar",
	.allocate = allocate,
	.release = release,
	.bind = bind_address,
	.unbind = unbind_address,
};
