/* SPDX-License-Identifier: MIT */
/* Every request of gdrdrv, and every refusal, with raw calls. */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define SIZE (2ull << 20)
#define BAD_POINTER ((void *)8)

static int fd;
static struct buffer buffer;

static void begin(void)
{
	bench_start();
	fd = drv_open();
	buffer = bench_alloc(SIZE);
}

static void end(void)
{
	close(fd);
	bench_free(&buffer);
	bench_end();
}

static void version(void)
{
	struct gdrdrv_get_version args = { 0 };

	begin();
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_GET_VERSION, &args), 0);
	CHECK_EQ(args.gdrdrv_version, 0x00020006);
	CHECK_EQ(args.minimum_gdr_api_version, 0x00020000);
	end();
}

static void unknown_requests(void)
{
	uint64_t args[8] = { 0 };

	begin();
	for (unsigned nr = 0; nr < 256; nr++)
		if (nr == 0 || (nr > 8 && nr < 255))
			CHECK_EQ(drv_call(fd, _IOWR(GDRDRV_IOCTL_TYPE, nr, uint64_t), args),
				 -ENOTTY);
	CHECK_EQ(drv_call(fd, _IOWR(0xDB, 1, struct gdrdrv_pin_buffer), args), -EINVAL);
	CHECK_EQ(drv_call(fd, TCGETS, args), -EINVAL);
	CHECK_EQ(bench_stats().pins, 0);
	end();
}

/* A number whose size or direction differs is another number. */
static void other_sizes_of_a_number(void)
{
	uint64_t args[8] = { 0 };

	begin();
	CHECK_EQ(drv_call(fd, _IOWR(GDRDRV_IOCTL_TYPE, 1, uint64_t), args), -ENOTTY);
	CHECK_EQ(drv_call(fd, _IOWR(GDRDRV_IOCTL_TYPE, 4, struct gdrdrv_get_info), args),
		 -ENOTTY);
	CHECK_EQ(drv_call(fd, _IO(GDRDRV_IOCTL_TYPE, 255), args), -ENOTTY);
	end();
}

static void bad_pointers(void)
{
	static const unsigned long requests[] = {
		GDRDRV_IOC_PIN_BUFFER, GDRDRV_IOC_UNPIN_BUFFER, GDRDRV_IOC_GET_CB_FLAG,
		GDRDRV_IOC_GET_INFO, GDRDRV_IOC_GET_INFO_V2, GDRDRV_IOC_GET_ATTR,
		GDRDRV_IOC_PIN_BUFFER_V2, GDRDRV_IOC_REQ_MAPPING_TYPE, GDRDRV_IOC_GET_VERSION,
	};

	begin();
	for (unsigned i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		CHECK_EQ(drv_call(fd, requests[i], BAD_POINTER), -EFAULT);
		CHECK_EQ(drv_call(fd, requests[i], NULL), -EFAULT);
	}
	CHECK_NO_PINS();
	end();
}

/* The pin succeeds inside, its handle cannot be handed out: nothing may stay pinned. */
static void result_cannot_be_written(void)
{
	struct gdrdrv_pin_buffer_v2 *args;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	begin();
	REQUIRE(page != MAP_FAILED);
	args = page;
	*args = (struct gdrdrv_pin_buffer_v2){ .addr = buffer.va, .size = GPU_PAGE };
	mprotect(page, 4096, PROT_READ);
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_PIN_BUFFER_V2, page), -EFAULT);
	CHECK_NO_PINS();
	munmap(page, 4096);
	end();
}

static void bad_ranges(void)
{
	uint64_t handle;
	int ret;

	begin();
	CHECK_EQ(drv_pin(fd, 0, GPU_PAGE, &handle), -EINVAL);
	CHECK_EQ(drv_pin(fd, buffer.va, 0, &handle), -EINVAL);
	CHECK_EQ(drv_pin(fd, buffer.va, UINT64_MAX, &handle), -EINVAL);
	CHECK_EQ(drv_pin(fd, buffer.va, UINT64_MAX - buffer.va, &handle), -EINVAL);
	CHECK_EQ(drv_pin(fd, UINT64_MAX - 4096, 4096, &handle), -EINVAL);
	CHECK_EQ(drv_pin(fd, UINT64_MAX - 65535, 65536, &handle), -EINVAL);
	/* The bookkeeping of this one is beyond the pool, which may notice first. */
	ret = drv_pin(fd, buffer.va, 1ull << 63, &handle);
	CHECK(ret == -EINVAL || ret == -ENOMEM);
	CHECK_EQ(drv_pin(fd, buffer.va, SIZE + 1, &handle), -EINVAL);
	CHECK_EQ(drv_pin(fd, buffer.va - 1, 1, &handle), -EINVAL);
	CHECK_EQ(drv_pin(fd, (uintptr_t)&handle, 8, &handle), -EINVAL);
	CHECK_NO_PINS();
	end();
}

static void bad_flags(void)
{
	struct gdrdrv_pin_buffer_v2 args = { .addr = buffer.va, .size = GPU_PAGE };
	struct gdrdrv_get_attr attr = { .attr = GDRDRV_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE };
	bool persistent;

	begin();
	persistent = drv_persistent(fd);
	for (unsigned bit = 1; bit < 32; bit++) {
		args = (struct gdrdrv_pin_buffer_v2){
			.addr = buffer.va, .size = GPU_PAGE, .flags = 1u << bit
		};
		CHECK_EQ(drv_call(fd, GDRDRV_IOC_PIN_BUFFER_V2, &args), -EINVAL);
	}
	args.flags = GDRDRV_PIN_FLAG_FORCE_PCIE;
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_GET_ATTR, &attr), 0);
	if (!persistent)
		CHECK_EQ(attr.val, 0);
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_PIN_BUFFER_V2, &args),
		 attr.val ? -KERNEL_ENOTSUPP : -EINVAL);
	CHECK_NO_PINS();
	end();
}

static void forced_pcie_on_a_coherent_gpu(void)
{
	struct gdrdrv_get_attr attr = { .attr = GDRDRV_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE };
	struct nvidia_emu_settings settings = bench_defaults();
	struct gdrdrv_pin_buffer_v2 args;

	begin();
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_GET_ATTR, &attr), 0);
	settings.coherent = 1;
	bench_set(&settings);
	args = (struct gdrdrv_pin_buffer_v2){
		.addr = buffer.va, .size = GPU_PAGE, .flags = GDRDRV_PIN_FLAG_FORCE_PCIE
	};
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_PIN_BUFFER_V2, &args), attr.val ? 0 : -EINVAL);
	end();
}

/* Padding that 2.6 never looked at may hold anything. */
static void padding_is_ignored(void)
{
	struct gdrdrv_pin_buffer_v2 args;
	struct gdrdrv_req_mapping_type request;

	begin();
	args = (struct gdrdrv_pin_buffer_v2){
		.addr = buffer.va, .size = GPU_PAGE, .reserved = 0xffffffff
	};
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_PIN_BUFFER_V2, &args), 0);
	request = (struct gdrdrv_req_mapping_type){
		.handle = args.handle, .mapping_type = GDRDRV_MAPPING_TYPE_WC,
		.reserved = 0xffffffff
	};
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_REQ_MAPPING_TYPE, &request), 0);
	end();
}

static void tokens(void)
{
	struct gdrdrv_pin_buffer args;
	bool persistent;

	begin();
	persistent = drv_persistent(fd);
	args = (struct gdrdrv_pin_buffer){ .addr = buffer.va, .size = GPU_PAGE };
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_PIN_BUFFER, &args), 0);
	CHECK_EQ(drv_unpin(fd, args.handle), 0);
	args = (struct gdrdrv_pin_buffer){
		.addr = buffer.va, .size = GPU_PAGE, .p2p_token = 1, .va_space = 2
	};
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_PIN_BUFFER, &args), persistent ? -EINVAL : 0);
	args = (struct gdrdrv_pin_buffer){ .addr = buffer.va, .size = GPU_PAGE, .va_space = 2 };
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_PIN_BUFFER, &args), persistent ? -EINVAL : 0);
	end();
}

static void info(void)
{
	struct gdrdrv_get_info old = { 0 };
	struct gdrdrv_get_info_v2 now;
	uint64_t handle;

	begin();
	REQUIRE_EQ(drv_pin(fd, buffer.va + GPU_PAGE + 100, GPU_PAGE, &handle), 0);
	CHECK_EQ(drv_info(fd, handle, &now), 0);
	CHECK_EQ(now.va, buffer.va + GPU_PAGE);
	CHECK_EQ(now.mapped_size, 2 * GPU_PAGE);
	CHECK_EQ(now.page_size, GPU_PAGE);
	CHECK_EQ(now.mapping_type, GDRDRV_MAPPING_TYPE_NONE);
#ifdef __x86_64__
	CHECK(now.tm_cycles > 0);
	CHECK(now.tsc_khz > 0);
#else
	/* As 2.6 has it where there is no such counter. */
	CHECK_EQ(now.tm_cycles, 0);
	CHECK_EQ(now.tsc_khz, 0);
#endif
	old.handle = handle;
	CHECK_EQ(drv_call(fd, GDRDRV_IOC_GET_INFO, &old), 0);
	CHECK_EQ(old.va, now.va);
	CHECK_EQ(old.mapped_size, now.mapped_size);
	CHECK_EQ(old.page_size, now.page_size);
	CHECK_EQ(old.tm_cycles, now.tm_cycles);
	CHECK_EQ(old.tsc_khz, now.tsc_khz);
	CHECK_EQ(old.mapped, 0);
	CHECK_EQ(old.wc_mapping, 0);
	end();
}

/* Handles count pages, so that the places of two pins in the file never meet. */
static void handle_numbers(void)
{
	uint64_t first, second, third;

	begin();
	REQUIRE_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &first), 0);
	REQUIRE_EQ(drv_pin(fd, buffer.va, SIZE, &second), 0);
	REQUIRE_EQ(drv_pin(fd, buffer.va, 1, &third), 0);
	CHECK_EQ(first, 0);
	CHECK_EQ(second, first + GPU_PAGE / 4096);
	CHECK_EQ(third, second + SIZE / 4096);
	CHECK_EQ(drv_unpin(fd, second), 0);
	CHECK_EQ(bench_stats().pins, 2);
	end();
}

static void expect_unknown(int at, uint64_t handle)
{
	struct gdrdrv_get_info old = { .handle = handle };
	struct gdrdrv_get_info_v2 now;
	uint32_t flag;

	CHECK_EQ(drv_unpin(at, handle), -EINVAL);
	CHECK_EQ(drv_info(at, handle, &now), -EINVAL);
	CHECK_EQ(drv_call(at, GDRDRV_IOC_GET_INFO, &old), -EINVAL);
	CHECK_EQ(drv_callback_flag(at, handle, &flag), -EINVAL);
	CHECK_EQ(drv_request(at, handle, GDRDRV_MAPPING_TYPE_WC), -EINVAL);
}

static void unknown_handles(void)
{
	uint64_t handle, other_handle;
	int other;

	begin();
	other = drv_open();
	expect_unknown(fd, 0);
	REQUIRE_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &handle), 0);
	REQUIRE_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &other_handle), 0);
	expect_unknown(fd, 1);
	expect_unknown(fd, 0xffffffff);
	expect_unknown(fd, UINT64_MAX);
	expect_unknown(fd, other_handle + (1ull << 32));
	expect_unknown(other, handle);
	expect_unknown(other, other_handle);
	CHECK_EQ(drv_unpin(fd, handle), 0);
	expect_unknown(fd, handle);
	CHECK_EQ(bench_stats().pins, 1);
	close(other);
	end();
}

static void mapping_types(void)
{
	uint64_t handle;

	begin();
	REQUIRE_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &handle), 0);
	CHECK_EQ(drv_request(fd, handle, 4), -EINVAL);
	CHECK_EQ(drv_request(fd, handle, UINT32_MAX), -EINVAL);
	CHECK_EQ(drv_request(fd, handle, GDRDRV_MAPPING_TYPE_WC), 0);
	CHECK_EQ(drv_request(fd, handle, GDRDRV_MAPPING_TYPE_CACHING), -EOPNOTSUPP);
	CHECK_EQ(drv_request(fd, handle, GDRDRV_MAPPING_TYPE_DEVICE), -EOPNOTSUPP);
	end();
}

static void type_of_a_mapped_handle(void)
{
	uint64_t handle;
	void *map;

	begin();
	REQUIRE_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &handle), 0);
	REQUIRE_EQ(drv_map(fd, handle, GPU_PAGE, &map), 0);
	CHECK_EQ(drv_request(fd, handle, GDRDRV_MAPPING_TYPE_WC), -EBUSY);
	munmap(map, GPU_PAGE);
	CHECK_EQ(drv_request(fd, handle, GDRDRV_MAPPING_TYPE_WC), 0);
	end();
}

static void attributes(void)
{
	struct gdrdrv_get_attr args;
	static const uint32_t unknown[] = { 0, 3, 4, UINT32_MAX };

	begin();
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(*unknown); i++) {
		args = (struct gdrdrv_get_attr){ .attr = unknown[i] };
		CHECK_EQ(drv_call(fd, GDRDRV_IOC_GET_ATTR, &args), -EINVAL);
	}
	for (uint32_t attr = 1; attr <= 2; attr++) {
		args = (struct gdrdrv_get_attr){ .attr = attr, .val = 77 };
		CHECK_EQ(drv_call(fd, GDRDRV_IOC_GET_ATTR, &args), 0);
		CHECK(args.val <= 1);
	}
	end();
}

static void driver_errors(void)
{
	static const int errors[] = { EINVAL, ENOMEM, EIO, EBUSY, ENODEV, KERNEL_ENOTSUPP };
	struct nvidia_emu_settings settings = bench_defaults();
	uint64_t handle;

	begin();
	for (unsigned i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		settings.fail_every = 1;
		settings.fail_errno = (uint32_t)errors[i];
		bench_set(&settings);
		CHECK_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &handle), -errors[i]);
		CHECK_NO_PINS();
	}
	end();
}

static void strange_page_tables(void)
{
	struct nvidia_emu_settings settings = bench_defaults();
	uint64_t handle;

	begin();
	settings.table_version = 0x00030000;
	bench_set(&settings);
	CHECK_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &handle), -EFAULT);
	CHECK_NO_PINS();
	settings = bench_defaults();
	for (settings.page_size_type = 0; settings.page_size_type < 4; settings.page_size_type++) {
		bench_set(&settings);
		if (settings.page_size_type == 1)
			continue;
		CHECK_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &handle), -EINVAL);
		CHECK_NO_PINS();
	}
	end();
}

/* In a forked child, on the descriptor of the parent. */
static void try_as_other_process(void *arg)
{
	uint64_t handle = *(uint64_t *)arg;
	struct gdrdrv_get_version version_args;
	struct gdrdrv_get_info_v2 now;
	void *map;

	if (drv_call(fd, GDRDRV_IOC_GET_VERSION, &version_args) != -EACCES)
		_exit(1);
	if (drv_unpin(fd, handle) != -EACCES)
		_exit(2);
	if (drv_info(fd, handle, &now) != -EACCES)
		_exit(3);
	if (drv_map(fd, handle, GPU_PAGE, &map) != -EACCES)
		_exit(4);
	if (drv_pin(fd, buffer.va, GPU_PAGE, &handle) != -EACCES)
		_exit(5);
	_exit(0);
}

static void other_process(void)
{
	uint64_t handle;

	begin();
	REQUIRE_EQ(drv_pin(fd, buffer.va, GPU_PAGE, &handle), 0);
	CHECK_EQ(harness_fork(try_as_other_process, &handle), 0);
	CHECK_EQ(bench_stats().pins, 1);
	end();
}

static const struct harness_case cases[] = {
	{ "version", version },
	{ "unknown_requests", unknown_requests },
	{ "other_sizes_of_a_number", other_sizes_of_a_number },
	{ "bad_pointers", bad_pointers },
	{ "result_cannot_be_written", result_cannot_be_written },
	{ "bad_ranges", bad_ranges },
	{ "bad_flags", bad_flags },
	{ "forced_pcie_on_a_coherent_gpu", forced_pcie_on_a_coherent_gpu },
	{ "padding_is_ignored", padding_is_ignored },
	{ "tokens", tokens },
	{ "info", info },
	{ "handle_numbers", handle_numbers },
	{ "unknown_handles", unknown_handles },
	{ "mapping_types", mapping_types },
	{ "type_of_a_mapped_handle", type_of_a_mapped_handle },
	{ "attributes", attributes },
	{ "driver_errors", driver_errors },
	{ "strange_page_tables", strange_page_tables },
	{ "other_process", other_process },
};
HARNESS_MAIN(cases)
