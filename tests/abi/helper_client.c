/* SPDX-License-Identifier: MIT */
/*
 * A program that uses every call of 2.6, in C and C++, with whichever header
 * DECLARATIONS names.  link.sh builds it against one library and runs it with
 * another.  Its exit status is the line of the first surprise.
 *
 *   client emu      GPU memory from the emulated driver
 *   client ADDRESS  memory of a library that believes every address
 */
#include DECLARATIONS

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECT(condition)                                                      \
	do {                                                                   \
		if (!(condition)) {                                            \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition); \
			exit(1);                                               \
		}                                                              \
	} while (0)

typedef int (*init_fn)(unsigned);
typedef int (*retain_fn)(void **, int);
typedef int (*set_fn)(void *);
typedef int (*alloc_fn)(unsigned long long *, size_t);

static void find(void *library, const char *name, void *function)
{
	void *address = dlsym(library, name);

	EXPECT(address != NULL);
	memcpy(function, &address, sizeof(address));
}

static unsigned long emulated_memory(size_t size)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	unsigned long long ptr = 0;
	void *context = NULL;
	init_fn init;
	retain_fn retain;
	set_fn set;
	alloc_fn alloc;

	EXPECT(library != NULL);
	find(library, "cuInit", &init);
	find(library, "cuDevicePrimaryCtxRetain", &retain);
	find(library, "cuCtxSetCurrent", &set);
	find(library, "cuMemAlloc_v2", &alloc);
	EXPECT(init(0) == 0 && retain(&context, 0) == 0 && set(context) == 0);
	EXPECT(alloc(&ptr, size + GPU_PAGE_OFFSET) == 0);
	return (unsigned long)(ptr + GPU_PAGE_OFFSET) & GPU_PAGE_MASK;
}

static void use_versions(gdr_t g)
{
	const char *name = NULL;
	int major = -1, minor = -1, value = -1;

	gdr_runtime_get_version(&major, &minor);
	EXPECT(major == GDR_API_MAJOR_VERSION && minor == GDR_API_MINOR_VERSION);
	major = minor = -1;
	EXPECT(gdr_driver_get_version(g, &major, &minor) == 0);
	EXPECT(((major << 16) | minor) >= MINIMUM_GDRDRV_VERSION);
	EXPECT(gdr_get_attribute(g, GDR_ATTR_USE_PERSISTENT_MAPPING, &value) == 0 && value == 1);
	EXPECT(gdr_get_attribute(g, GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE, &value) == 0);
	EXPECT(value == 0 || value == 1);
	EXPECT(gdr_get_attribute(g, GDR_ATTR_USING_DMA_BUF_MMAP, &value) == 0 && value == 0);
	EXPECT(gdr_get_attribute(g, GDR_ATTR_MAX, &value) == EINVAL);
	EXPECT(gdr_get_mapping_type_string(GDR_MAPPING_TYPE_WC, &name) == 0);
	EXPECT(strcmp(name, "Write Combining") == 0);
	EXPECT(gdr_get_mapping_type_string(GDR_MAPPING_TYPE_MAX, &name) == EINVAL);
}

static void use_copies(gdr_mh_t handle, unsigned char *bytes)
{
	unsigned char out[512], in[512];
	volatile uint64_t *flag = (volatile uint64_t *)bytes;

	for (size_t i = 0; i < sizeof(out); i++)
		out[i] = (unsigned char)(i * 7 + 1);
	memset(in, 0, sizeof(in));
	EXPECT(gdr_copy_to_mapping(handle, bytes + 4096 + 5, out + 3, 500) == 0);
	EXPECT(gdr_copy_from_mapping(handle, in + 1, bytes + 4096 + 5, 500) == 0);
	EXPECT(memcmp(in + 1, out + 3, 500) == 0 && in[0] == 0 && in[501] == 0);
	EXPECT(gdr_copy_to_mapping(handle, bytes, out, 0) == 0);
	*flag = 0x1122334455667788ull;
	EXPECT(gdr_copy_from_mapping(handle, in, bytes, 8) == 0);
	EXPECT(memcmp(in, "\x88\x77\x66\x55\x44\x33\x22\x11", 8) == 0);
}

#undef gdr_get_info
#ifdef __cplusplus
extern "C"
#endif
int gdr_get_info(gdr_t g, gdr_mh_t handle, gdr_info_v1_t *info);

static void use_info(gdr_t g, gdr_mh_t handle, unsigned long addr, size_t size, int mapped)
{
	union {
		gdr_info_v1_t v1;
		gdr_info_v2_t v2;
		unsigned char bytes[64];
	} info;

	memset(&info, 0xee, sizeof(info));
	EXPECT(gdr_get_info(g, handle, &info.v1) == 0);
	for (size_t i = 40; i < sizeof(info.bytes); i++)
		EXPECT(info.bytes[i] == 0xee);
	EXPECT(info.v1.va == addr && info.v1.mapped_size == size && info.v1.page_size == 65536);
	EXPECT((int)info.v1.mapped == mapped);
	memset(&info, 0xee, sizeof(info));
	EXPECT(gdr_get_info_v2(g, handle, &info.v2) == 0);
	for (size_t i = 48; i < sizeof(info.bytes); i++)
		EXPECT(info.bytes[i] == 0xee);
	EXPECT(info.v2.va == addr && (int)info.v2.mapped == mapped);
	EXPECT((info.v2.mapping_type != GDR_MAPPING_TYPE_NONE) == mapped);
	EXPECT((info.v2.mapping_type == GDR_MAPPING_TYPE_WC) == (int)info.v2.wc_mapping);
}

/* What the original's own sanity program does behind the handles. */
static void look_behind_handles(gdr_t g, gdr_mh_t handle)
{
	unsigned char session[48], region[104];
	uint32_t mapping_type, driver_handle;
	int fd;

	memcpy(session, g, sizeof(session));
	memcpy(region, (void *)handle.h, sizeof(region));
	memcpy(&fd, session, sizeof(fd));
	memcpy(&mapping_type, region + 16, sizeof(mapping_type));
	memcpy(&driver_handle, region + 24, sizeof(driver_handle));
	EXPECT(fd >= 0);
	EXPECT(mapping_type == GDR_MAPPING_TYPE_WC);
	EXPECT(driver_handle != 0);
}

int main(int argc, char **argv)
{
	const size_t size = 3 * GPU_PAGE_SIZE;
	unsigned long addr;
	gdr_mh_t handle, second;
	void *va = NULL;
	int flag = -1;
	gdr_t g;

	EXPECT(argc == 2);
	addr = strcmp(argv[1], "emu") == 0 ? emulated_memory(size) : strtoul(argv[1], NULL, 0);
	g = gdr_open();
	EXPECT(g != NULL);
	use_versions(g);
	handle.h = second.h = 0;
	EXPECT(gdr_pin_buffer(g, addr, size, 0, 0, &handle) == 0 && handle.h != 0);
	EXPECT(gdr_pin_buffer_v2(g, addr, size, GDR_PIN_FLAG_DEFAULT, &second) == 0);
	EXPECT(second.h != 0 && second.h != handle.h);
	use_info(g, handle, addr, size, 0);
	EXPECT(gdr_copy_to_mapping(handle, &flag, &flag, 4) == EINVAL);
	EXPECT(gdr_map(g, handle, &va, size - 100) == 0 && va != NULL);
	use_info(g, handle, addr, size, 1);
	look_behind_handles(g, handle);
	use_copies(handle, (unsigned char *)va);
	EXPECT(gdr_get_callback_flag(g, handle, &flag) == 0 && flag == 0);
	EXPECT(gdr_unmap(g, handle, va, size - 100) == 0);
	EXPECT(gdr_map_v2(g, second, &va, size, GDR_MAP_FLAG_REQ_WC_MAPPING) == 0);
	EXPECT(gdr_map_v2(g, second, &va, size, 99) != 0);
	EXPECT(gdr_unpin_buffer(g, handle) == 0);
	EXPECT(gdr_unpin_buffer(g, second) == 0);
	EXPECT(gdr_close(g) == 0);
	return 0;
}
