/* SPDX-License-Identifier: MIT */
/*
 * Version 3: buffers that one process exports and another imports.  The bytes are
 * the same ones, they outlive pin, allocation and exporter, and nothing but
 * what gdr_export gave is taken.
 *
 * The second process is forked before either has CUDA.  It uses REQUIRE alone,
 * which ends it with status 1.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api3/helper_buffer.h"

#define SIZE (4 * MIB)		/* a memory object of its own */

struct peer {
	int socket;
	pid_t pid;
};

static void start_peer(struct peer *peer, void (*body)(int socket))
{
	int pair[2];

	REQUIRE_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	fflush(NULL);
	peer->pid = fork();
	REQUIRE(peer->pid >= 0);
	if (peer->pid == 0) {
		close(pair[0]);
		alarm(120);
		body(pair[1]);
		_exit(0);
	}
	close(pair[1]);
	peer->socket = pair[0];
}

static void end_peer(struct peer *peer)
{
	int status = -1;

	CHECK_EQ(waitpid(peer->pid, &status, 0), peer->pid);
	CHECK_EQ(status, 0);
	close(peer->socket);
}

/* A byte that says "go on". */
static void tell(int socket)
{
	REQUIRE_EQ(send(socket, "", 1, MSG_NOSIGNAL), 1);
}

static void hear(int socket)
{
	char byte;

	REQUIRE_EQ(recv(socket, &byte, 1, 0), 1);
}

static void send_export(int socket, const gdr_export_desc_t *desc, int fd)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { .header = {
		.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	} };
	gdr_export_desc_t copy = *desc;
	struct iovec part = { &copy, sizeof(copy) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	REQUIRE_EQ(sendmsg(socket, &message, MSG_NOSIGNAL), sizeof(copy));
}

static int receive_export(int socket, gdr_export_desc_t *desc)
{
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { desc, sizeof(*desc) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	int fd;

	REQUIRE_EQ(recvmsg(socket, &message, MSG_CMSG_CLOEXEC), sizeof(*desc));
	REQUIRE(message.msg_controllen >= CMSG_LEN(sizeof(int)));
	memcpy(&fd, CMSG_DATA(&control.header), sizeof(fd));
	return fd;
}

/* A buffer of this process, and what it is exported as. */
struct shared {
	gdr_t g;
	CUdeviceptr ptr;
	uint64_t handle;
	gdr_export_desc_t desc;
	int fd;
};

static void export_buffer(struct shared *shared, int device, size_t size, uint32_t flags)
{
	shared->g = buffer_session();
	shared->ptr = buffer_alloc(device, size);
	REQUIRE_OK(gdr_pin_buffer(shared->g, shared->ptr, size, 0, device, &shared->handle));
	shared->desc = (gdr_export_desc_t){ .size = sizeof(shared->desc) };
	REQUIRE_OK(gdr_export(shared->g, shared->handle, flags, &shared->desc, &shared->fd));
}

static void end_export(struct shared *shared)
{
	close(shared->fd);
	CHECK_OK(gdr_unpin(shared->g, shared->handle));
	CHECK_OK(gdr_close(shared->g));
	CHECK_EQ(cuMemFree(shared->ptr), CUDA_SUCCESS);
}

static unsigned char *pattern(size_t size, uint32_t seed)
{
	unsigned char *bytes = malloc(size);

	REQUIRE(bytes != NULL);
	buffer_fill(bytes, size, seed);
	return bytes;
}

/* The buffer's bytes, as the session's copies read them. */
static bool reads_as(gdr_t g, uint64_t handle, uint64_t offset, size_t size, uint32_t seed)
{
	unsigned char *expected = pattern(size, seed), *seen = malloc(size);
	bool same;

	REQUIRE(seen != NULL);
	REQUIRE_OK(gdr_copy_to_host(g, handle, offset, seen, size));
	same = memcmp(seen, expected, size) == 0;
	free(seen);
	free(expected);
	return same;
}

static void write_pattern(gdr_t g, uint64_t handle, uint64_t offset, size_t size, uint32_t seed)
{
	unsigned char *bytes = pattern(size, seed);

	REQUIRE_OK(gdr_copy_from_host(g, handle, offset, bytes, size));
	free(bytes);
}

static uint64_t import_from(gdr_t g, int socket, int device)
{
	gdr_export_desc_t desc;
	uint64_t handle = 0;
	int fd = receive_export(socket, &desc);

	REQUIRE_OK(gdr_import(g, &desc, fd, device, &handle));
	REQUIRE(handle != 0);
	close(fd);
	return handle;
}

/* Every kind of copy on an import; the exporter looks at the result. */
static void use_import(int socket)
{
	gdr_info_t info = { .size = sizeof(info) };
	gdr_status_t status = { .size = sizeof(status) };
	uint64_t handle, own;
	CUdeviceptr ptr;
	void *va;
	gdr_t g;

	REQUIRE_EQ(cuInit(0), CUDA_SUCCESS);
	g = buffer_session();
	handle = import_from(g, socket, 0);
	REQUIRE_OK(gdr_get_info(g, handle, &info));
	REQUIRE_EQ(info.addr, 0);
	REQUIRE_EQ(info.length, SIZE);
	REQUIRE_OK(gdr_query(g, handle, &status));
	REQUIRE(!status.freed && !status.mapped);
	REQUIRE(reads_as(g, handle, 0, SIZE, 1));
	write_pattern(g, handle, 0, 1 * MIB, 2);
	REQUIRE_OK(gdr_map(g, handle, &va, SIZE));
	buffer_fill((char *)va + 1 * MIB, 64 * KIB, 3);
	REQUIRE_OK(gdr_unmap(g, handle, va, SIZE));
	REQUIRE_OK(gdr_copy_to_device(g, handle, handle, 0, 2 * MIB, 1 * MIB));

	ptr = buffer_alloc(0, 1 * MIB);
	REQUIRE_OK(gdr_pin_buffer(g, ptr, 1 * MIB, 0, 0, &own));
	write_pattern(g, own, 0, 1 * MIB, 4);
	REQUIRE_OK(gdr_copy_to_device(g, own, handle, 0, 3 * MIB, 1 * MIB));
	tell(socket);
	hear(socket);
	REQUIRE(reads_as(g, handle, 0, 4096, 5));
	REQUIRE_OK(gdr_unpin(g, handle));
	REQUIRE_EQ(gdr_unpin(g, handle), GDR_ERR_STALE_HANDLE);
	REQUIRE_OK(gdr_close(g));
}

static void bytes_agree(void)
{
	unsigned char *bytes = pattern(SIZE, 1);
	struct shared shared;
	struct peer peer;

	start_peer(&peer, use_import);
	export_buffer(&shared, 0, SIZE, 0);
	CHECK_EQ(shared.desc.size, sizeof(gdr_export_desc_t));
	CHECK_EQ(shared.desc.version, GDR_EXPORT_VERSION);
	CHECK_EQ(shared.desc.object_size, SIZE);
	CHECK_EQ(shared.desc.offset, 0);
	CHECK_EQ(shared.desc.length, SIZE);
	CHECK_EQ(shared.desc.flags, 0);
	CHECK_EQ(fcntl(shared.fd, F_GETFD), FD_CLOEXEC);
	buffer_set(shared.ptr, bytes, SIZE);
	send_export(peer.socket, &shared.desc, shared.fd);
	hear(peer.socket);
	CHECK(reads_as(shared.g, shared.handle, 0, 1 * MIB, 2));
	CHECK(reads_as(shared.g, shared.handle, 1 * MIB, 64 * KIB, 3));
	CHECK(reads_as(shared.g, shared.handle, 2 * MIB, 1 * MIB, 2));
	CHECK(reads_as(shared.g, shared.handle, 3 * MIB, 1 * MIB, 4));
	write_pattern(shared.g, shared.handle, 0, 4096, 5);
	tell(peer.socket);
	end_peer(&peer);
	end_export(&shared);
	free(bytes);
}

/* Imports when the exporter has freed everything and allocated anew. */
static void import_late(int socket)
{
	uint64_t handle;
	gdr_t g;

	hear(socket);
	REQUIRE_EQ(cuInit(0), CUDA_SUCCESS);
	g = buffer_session();
	handle = import_from(g, socket, 0);
	REQUIRE(reads_as(g, handle, 0, SIZE, 7));
	write_pattern(g, handle, 0, SIZE, 8);
	tell(socket);
	hear(socket);
	REQUIRE(reads_as(g, handle, 0, SIZE, 8));
	/* Closed with the session, by whom it was not unpinned. */
	REQUIRE_OK(gdr_close(g));
}

static void outlives_the_allocation(void)
{
	enum { OTHERS = 8 };
	CUdeviceptr other[OTHERS];
	struct shared shared;
	struct peer peer;
	unsigned char *seen, *filled;

	/* Before anything that the peer would not free. */
	start_peer(&peer, import_late);
	seen = pattern(SIZE, 9);
	filled = pattern(SIZE, 9);
	export_buffer(&shared, 0, SIZE, 0);
	write_pattern(shared.g, shared.handle, 0, SIZE, 7);
	tell(peer.socket);
	send_export(peer.socket, &shared.desc, shared.fd);
	end_export(&shared);
	for (int i = 0; i < OTHERS; i++) {
		other[i] = buffer_alloc(0, SIZE);
		buffer_set(other[i], filled, SIZE);
	}
	hear(peer.socket);
	for (int i = 0; i < OTHERS; i++) {
		buffer_get(seen, other[i], SIZE);
		CHECK(memcmp(seen, filled, SIZE) == 0);
		buffer_set(other[i], filled, SIZE);
	}
	tell(peer.socket);
	end_peer(&peer);
	free(seen);
	free(filled);
}

/* Nobody claims the memory any more, so it is there for others, zeroed. */
static void is_given_back(void)
{
	struct shared shared;
	unsigned char *seen = pattern(SIZE, 1);
	CUdeviceptr ptr;

	for (int round = 0; round < 50; round++) {
		export_buffer(&shared, 0, SIZE, 0);
		write_pattern(shared.g, shared.handle, 0, SIZE, 7);
		CHECK_OK(gdr_unpin(shared.g, shared.handle));
		CHECK_OK(gdr_close(shared.g));
		REQUIRE_EQ(cuMemFree(shared.ptr), CUDA_SUCCESS);
		ptr = buffer_alloc(0, SIZE);
		buffer_get(seen, ptr, SIZE);
		CHECK(seen[0] == 0 && memcmp(seen, seen + 1, SIZE - 1) == 0);
		REQUIRE_EQ(cuMemFree(ptr), CUDA_SUCCESS);
		close(shared.fd);
	}
	free(seen);
}

static void export_and_end(int socket)
{
	struct shared shared;

	export_buffer(&shared, 1, SIZE, 0);
	write_pattern(shared.g, shared.handle, 0, SIZE, 3);
	send_export(socket, &shared.desc, shared.fd);
}

static void outlives_the_exporter(void)
{
	gdr_export_desc_t desc;
	struct peer peer;
	uint64_t handle;
	gdr_t g;
	int fd;

	start_peer(&peer, export_and_end);
	fd = receive_export(peer.socket, &desc);
	end_peer(&peer);
	REQUIRE_EQ(cuInit(0), CUDA_SUCCESS);
	g = buffer_session();
	REQUIRE_OK(gdr_import(g, &desc, fd, 1, &handle));
	close(fd);
	CHECK(reads_as(g, handle, 0, SIZE, 3));
	CHECK_OK(gdr_unpin(g, handle));
	CHECK_OK(gdr_close(g));
}

/* Another process's memory of device 1, to a buffer of ours on device 0 and back. */
static void between_devices(void)
{
	gdr_export_desc_t desc;
	uint64_t theirs, ours;
	struct peer peer;
	gdr_t g;
	int fd;

	start_peer(&peer, export_and_end);
	fd = receive_export(peer.socket, &desc);
	end_peer(&peer);
	g = buffer_session();
	REQUIRE_OK(gdr_pin_buffer(g, buffer_alloc(0, SIZE), SIZE, 0, 0, &ours));
	REQUIRE_OK(gdr_import(g, &desc, fd, 1, &theirs));
	close(fd);
	CHECK_OK(gdr_copy_to_device(g, theirs, ours, 0, 0, SIZE));
	CHECK(reads_as(g, ours, 0, SIZE, 3));
	write_pattern(g, ours, 0, SIZE, 4);
	CHECK_OK(gdr_copy_to_device(g, ours, theirs, 0, 0, SIZE));
	CHECK(reads_as(g, theirs, 0, SIZE, 4));
	CHECK_OK(gdr_close(g));
}

/* Two imports of one object: overlapping copies between them are those of memmove. */
static void overlapping_imports(void)
{
	static const size_t distances[] = { 4096, 65536, 1 * MIB };
	unsigned char *expected = malloc(SIZE), *seen = malloc(SIZE);
	struct shared shared;
	uint64_t one, two;

	REQUIRE(expected && seen);
	export_buffer(&shared, 0, SIZE, 0);
	REQUIRE_OK(gdr_import(shared.g, &shared.desc, shared.fd, 0, &one));
	REQUIRE_OK(gdr_import(shared.g, &shared.desc, shared.fd, 0, &two));
	for (int i = 0; i < 6; i++) {
		const size_t low = 8192, high = low + distances[i / 2], size = 2 * MIB;
		const size_t from = i % 2 ? low : high, to = i % 2 ? high : low;

		buffer_fill(expected, SIZE, (uint32_t)i);
		REQUIRE_OK(gdr_copy_from_host(shared.g, one, 0, expected, SIZE));
		memmove(expected + to, expected + from, size);
		CHECK_OK(gdr_copy_to_device(shared.g, one, two, from, to, size));
		REQUIRE_OK(gdr_copy_to_host(shared.g, two, 0, seen, SIZE));
		CHECK(memcmp(seen, expected, SIZE) == 0);
	}
	CHECK_OK(gdr_unpin(shared.g, one));
	CHECK_OK(gdr_unpin(shared.g, two));
	end_export(&shared);
	free(expected);
	free(seen);
}

/* Small allocations share an object with neighbours. */
static void neighbours(void)
{
	gdr_export_desc_t desc = { .size = sizeof(desc), .version = 77 };
	CUdeviceptr before = buffer_alloc(0, 64 * KIB), ptr = buffer_alloc(0, 64 * KIB);
	gdr_t g = buffer_session();
	uint64_t pinned, odd, imported;
	char text[8] = "";
	int fd = -5;

	REQUIRE_OK(gdr_pin_buffer(g, ptr, 64 * KIB, 0, 0, &pinned));
	CHECK_REFUSED(gdr_export(g, pinned, 0, &desc, &fd), GDR_ERR_PERMISSION,
		      "GDR_EXPORT_WHOLE_OBJECT");
	CHECK_EQ(fd, -5);
	CHECK_EQ(desc.version, 77);
	REQUIRE_OK(gdr_pin_buffer(g, ptr + 77, 1001, GDR_PIN_BUFFER_UNALIGNED, 0, &odd));
	REQUIRE_OK(gdr_export(g, odd, GDR_EXPORT_WHOLE_OBJECT, &desc, &fd));
	CHECK_EQ(desc.object_size, 2 * MIB);
	CHECK_EQ(desc.offset, ptr - before + 77);
	CHECK_EQ(desc.length, 1001);
	CHECK_EQ(desc.flags, GDR_PIN_BUFFER_UNALIGNED);
	REQUIRE_OK(gdr_import(g, &desc, fd, 0, &imported));
	CHECK_OK(gdr_copy_from_host(g, imported, 3, "hello", 6));
	buffer_get(text, ptr + 80, 6);
	CHECK(strcmp(text, "hello") == 0);
	CHECK_REFUSED(gdr_copy_from_host(g, imported, 996, "hello", 6), GDR_ERR_INVALID_ARG,
		      "leave");
	CHECK_OK(gdr_copy_to_device(g, imported, imported, 3, 10, 6));
	close(fd);
	CHECK_OK(gdr_close(g));
}

/* The whole VMM mapping is the object. */
static void vmm_memory(void)
{
	CUmemAllocationProp properties = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
		.allocFlags.gpuDirectRDMACapable = 1,
	};
	CUmemAccessDesc access = {
		{ CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE
	};
	gdr_export_desc_t desc = { .size = sizeof(desc) };
	CUmemGenericAllocationHandle memory;
	uint64_t pinned, imported;
	CUdeviceptr ptr;
	gdr_t g;
	int fd;

	buffer_use_device(0);
	REQUIRE_EQ(cuMemCreate(&memory, SIZE, &properties, 0), CUDA_SUCCESS);
	REQUIRE_EQ(cuMemAddressReserve(&ptr, SIZE, 0, 0, 0), CUDA_SUCCESS);
	REQUIRE_EQ(cuMemMap(ptr, SIZE, 0, memory, 0), CUDA_SUCCESS);
	REQUIRE_EQ(cuMemSetAccess(ptr, SIZE, &access, 1), CUDA_SUCCESS);
	g = buffer_session();
	REQUIRE_OK(gdr_pin_buffer(g, ptr, SIZE, 0, 0, &pinned));
	REQUIRE_OK(gdr_export(g, pinned, 0, &desc, &fd));
	REQUIRE_OK(gdr_import(g, &desc, fd, 0, &imported));
	write_pattern(g, pinned, 0, SIZE, 5);
	CHECK(reads_as(g, imported, 0, SIZE, 5));
	close(fd);
	CHECK_OK(gdr_close(g));
}

static const char *const no_descriptor = "give";

/* Each field of the struct, one off. */
static void wrong_structs(void)
{
	struct shared shared;
	uint64_t handle;

	export_buffer(&shared, 0, SIZE, 0);
#define REFUSED_IMPORT(change, hint)                                                       \
	do {                                                                               \
		gdr_export_desc_t desc = shared.desc;                                      \
											   \
		change;                                                                    \
		handle = 5;                                                                \
		CHECK_REFUSED(gdr_import(shared.g, &desc, shared.fd, 0, &handle),          \
			      GDR_ERR_INVALID_ARG, hint);                                  \
		CHECK_EQ(handle, 0);                                                       \
	} while (0)
	REFUSED_IMPORT(desc.size--, "pass on");
	REFUSED_IMPORT(desc.size++, "pass on");
	REFUSED_IMPORT(desc.size = 0, "pass on");
	REFUSED_IMPORT(desc.version++, "pass on");
	REFUSED_IMPORT(desc.flags = GDR_PIN_BUFFER_SYNC, "nothing that gdr_export");
	REFUSED_IMPORT(desc.flags = 1u << 31, "nothing that gdr_export");
	REFUSED_IMPORT(desc.uuid[15] ^= 1, "another GPU");
	REFUSED_IMPORT(desc.object_size += 2 * MIB, no_descriptor);
	REFUSED_IMPORT(desc.object_size *= 2, no_descriptor);
	REFUSED_IMPORT((desc.object_size -= 2 * MIB, desc.length = 2 * MIB), no_descriptor);
	REFUSED_IMPORT(desc.object_size = UINT64_MAX, "nothing that gdr_export");
	REFUSED_IMPORT(desc.object_size = 0, "nothing that gdr_export");
	REFUSED_IMPORT(desc.offset = 4096, "nothing that gdr_export");
	REFUSED_IMPORT(desc.offset = UINT64_MAX - 4095, "nothing that gdr_export");
	REFUSED_IMPORT(desc.length += 4096, "nothing that gdr_export");
	REFUSED_IMPORT(desc.length = 0, "nothing that gdr_export");
	REFUSED_IMPORT(desc.length--, "nothing that gdr_export");
	REFUSED_IMPORT(desc.length = UINT64_MAX, "nothing that gdr_export");
	end_export(&shared);
}

static void refused_descriptor(const struct shared *shared, int fd)
{
	uint64_t handle = 5;

	CHECK_REFUSED(gdr_import(shared->g, &shared->desc, fd, 0, &handle), GDR_ERR_INVALID_ARG,
		      no_descriptor);
	CHECK_EQ(handle, 0);
}

/* Files that look like memory, but that no export claims. */
static void refused_file(const struct shared *shared, const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	REQUIRE(fd >= 0);
	REQUIRE_EQ(ftruncate(fd, (off_t)SIZE), 0);
	refused_descriptor(shared, fd);
	close(fd);
}

static void wrong_descriptors(void)
{
	struct shared shared, other;
	int fds, pair[2], fd;

	export_buffer(&shared, 0, SIZE, 0);
	export_buffer(&other, 0, 2 * SIZE, 0);
	refused_descriptor(&shared, -1);
	fds = harness_count_fds();
	refused_descriptor(&shared, 100000);
	refused_descriptor(&shared, other.fd);
	REQUIRE_EQ(pipe(pair), 0);
	refused_descriptor(&shared, pair[0]);
	refused_descriptor(&shared, pair[1]);
	close(pair[0]);
	close(pair[1]);
	fd = open("/dev/null", O_RDWR);
	refused_descriptor(&shared, fd);
	close(fd);
	fd = open("/", O_RDONLY | O_DIRECTORY);
	refused_descriptor(&shared, fd);
	close(fd);
	refused_file(&shared, "something");
	refused_file(&shared, "gdrcopy-emu-memory-gpu0");
	refused_file(&shared, "gdrcopy-emu-share-gpu0");
	refused_file(&shared, "gdrcopy-emu-memory-gpu99");
	REQUIRE_EQ(lseek(shared.fd, 4096, SEEK_CUR) >= 0, true);
	refused_descriptor(&shared, shared.fd);
	CHECK_EQ(harness_count_fds(), fds);
	end_export(&other);
	end_export(&shared);
}

static void wrong_devices(void)
{
	gdr_export_desc_t desc;
	struct shared shared;
	uint64_t handle;
	CUuuid uuid;

	export_buffer(&shared, 0, SIZE, 0);
	desc = shared.desc;
	CHECK_REFUSED(gdr_import(shared.g, &desc, shared.fd, 1, &handle), GDR_ERR_INVALID_ARG,
		      "another GPU");
	CHECK_REFUSED(gdr_import(shared.g, &desc, shared.fd, 2, &handle), GDR_ERR_INVALID_ARG,
		      "does not exist");
	CHECK_REFUSED(gdr_import(shared.g, &desc, shared.fd, -1, &handle), GDR_ERR_INVALID_ARG,
		      "does not exist");
	REQUIRE_EQ(cuDeviceGetUuid(&uuid, 1), CUDA_SUCCESS);
	memcpy(desc.uuid, uuid.bytes, sizeof(desc.uuid));
	CHECK_REFUSED(gdr_import(shared.g, &desc, shared.fd, 1, &handle), GDR_ERR_INVALID_ARG,
		      "another GPU");
	CHECK_REFUSED(gdr_import(shared.g, NULL, shared.fd, 0, &handle), GDR_ERR_INVALID_ARG,
		      "NULL");
	CHECK_REFUSED(gdr_import(shared.g, &desc, shared.fd, 0, NULL), GDR_ERR_INVALID_ARG,
		      "NULL");
	end_export(&shared);
}

static void wrong_exports(void)
{
	struct {
		gdr_export_desc_t desc;
		uint64_t younger;
	} large = { .desc = { .size = sizeof(large) }, .younger = 7 };
	gdr_export_desc_t desc = { .size = sizeof(desc) - 1, .version = 9 };
	struct shared shared;
	int fd = -5;

	export_buffer(&shared, 0, SIZE, 0);
	CHECK_REFUSED(gdr_export(shared.g, shared.handle, 0, &desc, &fd), GDR_ERR_INVALID_ARG,
		      "size");
	desc.size = sizeof(desc);
	CHECK_REFUSED(gdr_export(shared.g, shared.handle, 2, &desc, &fd), GDR_ERR_INVALID_ARG,
		      "flags");
	CHECK_REFUSED(gdr_export(shared.g, shared.handle, 0, NULL, &fd), GDR_ERR_INVALID_ARG,
		      "NULL");
	CHECK_REFUSED(gdr_export(shared.g, shared.handle, 0, &desc, NULL), GDR_ERR_INVALID_ARG,
		      "NULL");
	CHECK_REFUSED(gdr_export(shared.g, 12345, 0, &desc, &fd), GDR_ERR_STALE_HANDLE, "handle");
	CHECK_EQ(desc.version, 9);
	CHECK_EQ(fd, -5);
	CHECK_OK(gdr_export(shared.g, shared.handle, 0, &large.desc, &fd));
	CHECK_EQ(large.desc.size, sizeof(gdr_export_desc_t));
	CHECK_EQ(large.younger, 7);
	close(fd);
	end_export(&shared);
}

static void injected_failures(void)
{
	gdr_export_desc_t desc = { .size = sizeof(desc) };
	uint64_t handle;
	gdr_t g = buffer_session();
	int fd = -5, fds;

	REQUIRE_OK(gdr_pin_buffer(g, buffer_alloc(0, SIZE), SIZE, 0, 0, &handle));
	fds = harness_count_fds();
	CHECK_EQ(gdr_export(g, handle, 0, &desc, &fd), GDR_ERR_NO_MEMORY);
	CHECK_EQ(fd, -5);
	REQUIRE_OK(gdr_export(g, handle, 0, &desc, &fd));
	handle = 5;
	CHECK_EQ(gdr_import(g, &desc, fd, 0, &handle), GDR_ERR_NO_MEMORY);
	CHECK_EQ(handle, 0);
	close(fd);
	CHECK_EQ(harness_count_fds(), fds);
	CHECK_OK(gdr_close(g));
}

/* One buffer fits, and an import is one more. */
static void bar1_is_full(void)
{
	struct shared shared;
	uint64_t handle = 5;
	int fds;

	export_buffer(&shared, 0, SIZE, 0);
	fds = harness_count_fds();
	CHECK_EQ(gdr_import(shared.g, &shared.desc, shared.fd, 0, &handle), GDR_ERR_NO_MEMORY);
	CHECK_EQ(handle, 0);
	CHECK_EQ(harness_count_fds(), fds);
	CHECK_OK(gdr_unpin(shared.g, shared.handle));
	CHECK_OK(gdr_import(shared.g, &shared.desc, shared.fd, 0, &handle));
	CHECK_OK(gdr_unpin(shared.g, handle));
	CHECK_OK(gdr_close(shared.g));
	close(shared.fd);
}

static void without_cuda(int socket)
{
	gdr_export_desc_t desc;
	uint64_t handle;
	gdr_t g = buffer_session();
	int fd = receive_export(socket, &desc);

	REQUIRE_EQ(gdr_import(g, &desc, fd, 0, &handle), GDR_ERR_INVALID_ARG);
	REQUIRE_EQ(cuInit(0), CUDA_SUCCESS);
	REQUIRE_OK(gdr_import(g, &desc, fd, 0, &handle));
	REQUIRE_OK(gdr_close(g));
}

static void uninitialised_importer(void)
{
	struct shared shared;
	struct peer peer;

	start_peer(&peer, without_cuda);
	export_buffer(&shared, 0, SIZE, 0);
	send_export(peer.socket, &shared.desc, shared.fd);
	end_peer(&peer);
	end_export(&shared);
}

static void in_child(void *arg)
{
	const struct shared *shared = arg;
	gdr_export_desc_t desc = { .size = sizeof(desc) };
	uint64_t handle;
	int fd;

	CHECK_EQ(gdr_export(shared->g, shared->handle, 0, &desc, &fd), GDR_ERR_PERMISSION);
	CHECK_EQ(gdr_import(shared->g, &shared->desc, shared->fd, 0, &handle), GDR_ERR_PERMISSION);
}

static void handles_and_children(void)
{
	gdr_export_desc_t desc = { .size = sizeof(desc) };
	gdr_t other = buffer_session();
	struct shared shared;
	uint64_t imported;
	int fd;

	export_buffer(&shared, 0, SIZE, 0);
	REQUIRE_OK(gdr_import(other, &shared.desc, shared.fd, 0, &imported));
	CHECK_EQ(gdr_unpin(shared.g, imported), GDR_ERR_STALE_HANDLE);
	CHECK_EQ(gdr_export(shared.g, imported, 0, &desc, &fd), GDR_ERR_STALE_HANDLE);
	CHECK_EQ(harness_fork(in_child, &shared), 0);
	/* An import is exported like any buffer. */
	CHECK_OK(gdr_export(other, imported, 0, &desc, &fd));
	CHECK_EQ(memcmp(&desc, &shared.desc, sizeof(desc)), 0);
	close(fd);
	CHECK_OK(gdr_close(other));
	CHECK_EQ(gdr_export(other, imported, 0, &desc, &fd), GDR_ERR_STALE_HANDLE);
	CHECK_EQ(gdr_import(other, &desc, shared.fd, 0, &imported), GDR_ERR_STALE_HANDLE);
	end_export(&shared);
}

static void nothing_is_left(void)
{
	struct shared shared;
	uint64_t handle;
	size_t maps = 0;
	int fds = 0;

	for (int round = 0; round < api_rounds(400); round++) {
		export_buffer(&shared, 0, SIZE, 0);
		REQUIRE_OK(gdr_import(shared.g, &shared.desc, shared.fd, 0, &handle));
		if (round % 2)
			CHECK_OK(gdr_unpin(shared.g, handle));
		end_export(&shared);
		if (round == 2) {
			fds = harness_count_fds();
			maps = api_count_maps();
		}
	}
	CHECK_EQ(harness_count_fds(), fds);
	CHECK_EQ(api_count_maps(), maps);
}

static struct shared contended;
static uint64_t contended_import;
static atomic_bool over;

static void *export_until_refused(void *arg)
{
	gdr_export_desc_t desc = { .size = sizeof(desc) };
	uint64_t handle;
	int fd;

	(void)arg;
	while (!atomic_load(&over) &&
	       gdr_export(contended.g, contended.handle, 0, &desc, &fd) == GDR_SUCCESS) {
		if (gdr_import(contended.g, &desc, fd, 0, &handle) == GDR_SUCCESS)
			gdr_unpin(contended.g, handle);
		close(fd);
	}
	return NULL;
}

static void *copy_until_refused(void *arg)
{
	char host[5000] = "";

	(void)arg;
	while (!atomic_load(&over) &&
	       gdr_copy_from_host(contended.g, contended_import, 64, host, sizeof(host)) ==
	       GDR_SUCCESS)
		continue;
	return NULL;
}

static void ends_beside_calls(void)
{
	pthread_t thread[3];

	for (int round = 0; round < api_rounds(100); round++) {
		export_buffer(&contended, 0, SIZE, 0);
		REQUIRE_OK(gdr_import(contended.g, &contended.desc, contended.fd, 0,
				      &contended_import));
		atomic_store(&over, false);
		for (int i = 0; i < 3; i++)
			REQUIRE_EQ(pthread_create(&thread[i], NULL, i ? export_until_refused :
						  copy_until_refused, NULL), 0);
		if (round % 2) {
			CHECK_OK(gdr_unpin(contended.g, contended_import));
			CHECK_OK(gdr_unpin(contended.g, contended.handle));
		} else {
			CHECK_OK(gdr_close(contended.g));
		}
		atomic_store(&over, true);
		for (int i = 0; i < 3; i++)
			pthread_join(thread[i], NULL);
		if (round % 2)
			CHECK_OK(gdr_close(contended.g));
		close(contended.fd);
		REQUIRE_EQ(cuMemFree(contended.ptr), CUDA_SUCCESS);
	}
}

#define LOUD "GDRCOPY_ENABLE_LOGGING=1 "
#define TWO "GDRCOPY_EMU=devices=2"

static const struct api_case cases[] = {
	{ "bytes_agree", bytes_agree, NULL },
	{ "bytes_agree_cpu", bytes_agree, "GDRCOPY_DMA=0" },
	{ "bytes_agree_engine", bytes_agree, "GDRCOPY_DMA=min=0" },
	{ "bytes_agree_coherent", bytes_agree, "GDRCOPY_EMU=coherent" },
	{ "outlives_the_allocation", outlives_the_allocation, NULL },
	{ "is_given_back", is_given_back, NULL },
	{ "outlives_the_exporter", outlives_the_exporter, TWO },
	{ "between_devices", between_devices, TWO " GDRCOPY_DMA=min=0" },
	{ "between_devices_no_peer", between_devices, TWO ",no-peer GDRCOPY_DMA=min=0" },
	{ "between_devices_cpu", between_devices, TWO " GDRCOPY_DMA=0" },
	{ "overlapping_imports", overlapping_imports, "GDRCOPY_DMA=0" },
	{ "overlapping_imports_engine", overlapping_imports, "GDRCOPY_DMA=min=0" },
	{ "neighbours", neighbours, LOUD },
	{ "vmm_memory", vmm_memory, NULL },
	{ "wrong_structs", wrong_structs, LOUD },
	{ "wrong_descriptors", wrong_descriptors, LOUD },
	{ "wrong_devices", wrong_devices, LOUD TWO },
	{ "wrong_exports", wrong_exports, LOUD },
	{ "injected_failures", injected_failures, "GDRCOPY_EMU=fail=export:1,fail=pin:2" },
	{ "bar1_is_full", bar1_is_full, "GDRCOPY_EMU=bar1=6M" },
	{ "uninitialised_importer", uninitialised_importer, NULL },
	{ "handles_and_children", handles_and_children, NULL },
	{ "nothing_is_left", nothing_is_left, NULL },
	{ "ends_beside_calls", ends_beside_calls, NULL },
};

API_MAIN(cases)
