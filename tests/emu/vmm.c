/* SPDX-License-Identifier: MIT */
/* Virtual memory management, and its handles in another process. */
#include "helper_case.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define BLOCK (2 * MIB)

static CUmemAllocationProp make_prop(CUmemAllocationHandleType type, int rdma)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = type,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};

	prop.allocFlags.gpuDirectRDMACapable = (unsigned char)rdma;
	return prop;
}

static void allow(CUdeviceptr ptr, size_t size, CUmemAccess_flags flags)
{
	CUmemAccessDesc desc = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, flags };

	CHECK_CU(cuMemSetAccess(ptr, size, &desc, 1));
}

static void map_and_copy(void)
{
	CUmemAllocationProp prop = make_prop(CU_MEM_HANDLE_TYPE_NONE, 1), got;
	CUmemGenericAllocationHandle a, b, retained;
	unsigned char in[64], out[64];
	size_t granularity, free_bytes, total;
	CUdeviceptr ptr;
	int flag = 1;

	emu_start(0);
	REQUIRE_CU(cuMemGetAllocationGranularity(&granularity, &prop,
						 CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK_EQ(granularity, BLOCK);
	CHECK_EQ(cuMemCreate(&a, 4096, &prop, 0), CUDA_ERROR_INVALID_VALUE);
	REQUIRE_CU(cuMemCreate(&a, BLOCK, &prop, 0));
	REQUIRE_CU(cuMemCreate(&b, 2 * BLOCK, &prop, 0));
	REQUIRE_CU(cuMemAddressReserve(&ptr, 4 * BLOCK, 0, 0, 0));
	REQUIRE_CU(cuMemMap(ptr, BLOCK, 0, a, 0));
	REQUIRE_CU(cuMemMap(ptr + BLOCK, BLOCK, BLOCK, b, 0));
	CHECK_EQ(cuMemMap(ptr, BLOCK, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemMap(ptr + 4 * BLOCK, BLOCK, 0, b, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemcpyHtoD(ptr, in, 64), CUDA_ERROR_INVALID_VALUE);
	allow(ptr, 2 * BLOCK, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	/* A copy may cross the seam of two mappings. */
	memset(in, 0x33, sizeof(in));
	CHECK_CU(cuMemcpyHtoD(ptr + BLOCK - 32, in, 64));
	CHECK_CU(cuMemcpyDtoH(out, ptr + BLOCK - 32, 64));
	CHECK(memcmp(in, out, 64) == 0);
	CHECK_EQ(cuMemcpyDtoH(out, ptr + 2 * BLOCK - 32, 64), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuPointerSetAttribute(&flag, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, ptr),
		 CUDA_ERROR_NOT_SUPPORTED);
	allow(ptr, BLOCK, CU_MEM_ACCESS_FLAGS_PROT_READ);
	CHECK_EQ(cuMemsetD8(ptr, 0, 1), CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuMemcpyDtoH(out, ptr, 64));

	REQUIRE_CU(cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)(ptr + 5)));
	CHECK_EQ(retained, a);
	CHECK_CU(cuMemGetAllocationPropertiesFromHandle(&got, retained));
	CHECK_EQ(got.allocFlags.gpuDirectRDMACapable, 1);
	CHECK_CU(cuMemRelease(retained));
	CHECK_CU(cuMemRelease(a));
	CHECK_EQ(cuMemRelease(a), CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuMemcpyDtoH(out, ptr, 64));	/* mapped memory stays */
	CHECK_EQ(cuMemAddressFree(ptr, 4 * BLOCK), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemUnmap(ptr, BLOCK / 2), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemFree(ptr), CUDA_ERROR_INVALID_VALUE);
	CHECK_CU(cuMemUnmap(ptr, 2 * BLOCK));
	CHECK_CU(cuMemAddressFree(ptr, 4 * BLOCK));
	CHECK_CU(cuMemRelease(b));
	CHECK_CU(cuMemGetInfo(&free_bytes, &total));
	CHECK_EQ(free_bytes, total);
}

static void refusals(void)
{
	CUmemAllocationProp prop = make_prop(CU_MEM_HANDLE_TYPE_FABRIC, 0);
	CUmemGenericAllocationHandle handle;
	CUdeviceptr ptr;
	int fd;

	emu_start(0);
	CHECK_EQ(cuMemCreate(&handle, BLOCK, &prop, 0), CUDA_ERROR_NOT_SUPPORTED);
	prop = make_prop(CU_MEM_HANDLE_TYPE_NONE, 0);
	prop.location.id = 1;
	CHECK_EQ(cuMemCreate(&handle, BLOCK, &prop, 0), CUDA_ERROR_INVALID_DEVICE);
	prop.location.id = 0;
	REQUIRE_CU(cuMemCreate(&handle, BLOCK, &prop, 0));
	CHECK_EQ(cuMemExportToShareableHandle(&fd, handle,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		 CUDA_ERROR_NOT_PERMITTED);
	CHECK_EQ(cuMemExportToShareableHandle(&fd, handle + 1,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		 CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemAddressReserve(&ptr, 4096, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	CHECK_EQ(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)STDIN_FILENO,
						CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		 CUDA_ERROR_INVALID_VALUE);
}

static void peers_need_access(void)
{
	CUmemAllocationProp prop = make_prop(CU_MEM_HANDLE_TYPE_NONE, 1);
	CUmemAccessDesc desc = {
		{ CU_MEM_LOCATION_TYPE_DEVICE, 1 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr ptr;

	emu_start(0);
	REQUIRE_CU(cuMemCreate(&handle, BLOCK, &prop, 0));
	REQUIRE_CU(cuMemAddressReserve(&ptr, BLOCK, 0, 0, 0));
	REQUIRE_CU(cuMemMap(ptr, BLOCK, 0, handle, 0));
	CHECK_EQ(cuMemSetAccess(ptr, BLOCK, &desc, 1), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	desc.location.id = 2;
	CHECK_EQ(cuMemSetAccess(ptr, BLOCK, &desc, 1), CUDA_ERROR_INVALID_DEVICE);
}

static void send_fd(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	REQUIRE_EQ(sendmsg(socket, &message, 0), 1);
}

static int receive_fd(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd;

	REQUIRE_EQ(recvmsg(socket, &message, 0), 1);
	REQUIRE(CMSG_FIRSTHDR(&message) != NULL);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

static CUdeviceptr map_handle(CUmemGenericAllocationHandle handle, size_t size)
{
	CUdeviceptr ptr;

	REQUIRE_CU(cuMemAddressReserve(&ptr, size, 0, 0, 0));
	REQUIRE_CU(cuMemMap(ptr, size, 0, handle, 0));
	allow(ptr, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	return ptr;
}

/* Reads what the exporter wrote and answers in the same memory. */
static void importer(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop;
	unsigned value = 0;
	CUdeviceptr ptr;
	int fd;

	emu_start(0);
	fd = receive_fd(STDIN_FILENO);
	REQUIRE_CU(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	CHECK_CU(cuMemGetAllocationPropertiesFromHandle(&prop, handle));
	CHECK_EQ(prop.allocFlags.gpuDirectRDMACapable, 1);
	ptr = map_handle(handle, 2 * BLOCK);
	CHECK_CU(cuMemcpyDtoH(&value, ptr + 2 * BLOCK - 4, 4));
	CHECK_EQ(value, 0xabcd);
	CHECK_CU(cuMemsetD32(ptr, 0x1234, 1));
}

static void share_over_a_socket(void)
{
	CUmemAllocationProp prop = make_prop(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1);
	CUmemGenericAllocationHandle handle;
	unsigned value = 0;
	CUdeviceptr ptr;
	int ends[2], fd, role;

	emu_start(0);
	REQUIRE_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	REQUIRE_CU(cuMemCreate(&handle, 2 * BLOCK, &prop, 0));
	ptr = map_handle(handle, 2 * BLOCK);
	CHECK_CU(cuMemsetD32(ptr + 2 * BLOCK - 4, 0xabcd, 1));
	REQUIRE_CU(cuMemExportToShareableHandle(&fd, handle,
						CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	role = emu_start_role("importer", ends[1]);
	close(ends[1]);
	send_fd(ends[0], fd);
	CHECK(emu_role_passed(role));
	CHECK_CU(cuMemcpyDtoH(&value, ptr, 4));
	CHECK_EQ(value, 0x1234);
}

static const struct emu_case cases[] = {
	{ .name = "map_and_copy", .run = map_and_copy },
	{ .name = "refusals", .run = refusals },
	{ .name = "peers_need_access", .emu = "devices=2,no-peer", .run = peers_need_access },
	{ .name = "share_over_a_socket", .run = share_over_a_socket },
	{ .name = "importer", .run = importer, .role = true },
};

EMU_CASE_MAIN(cases)
