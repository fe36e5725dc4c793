/* SPDX-License-Identifier: MIT */
/* The memory object of VMM memory (cuMemCreate): exported, or named by the driver's own record. */
#include <errno.h>
#include <string.h>

#include "os/sys.h"
#include "rm/identify.h"

/*
 * The handle that cuMemRetainAllocationHandle gives is the address of the
 * driver's record of the allocation.  In 64-bit words of that record, and in
 * 32-bit words of what one of them points at, for driver 580.159.04 with CUDA
 * 13.0 (all of 32 exportable allocations, whose objects were known for
 * certain; the same words also lie at fixed distances from the record, but
 * only where the heap happened to put the second part behind the first).
 */
enum {
	RECORD_PART = 12,	/* address of the second part */
	RECORD_SIZE = 20,
	RECORD_BLOCK_ID = 28,
	RECORD_COUNT = 29,
	PART_CLIENT = 13,
	PART_OBJECT = 14,
	PART_COUNT = 15
};

/* A size that no other allocation is likely to have: five granules. */
#define PRIVATE_PROBE_SIZE (5 * GDRI_RM_BLOCK_GRANULE)
#define CUDA_OUT_OF_MEMORY 2

/* CUmemAllocationProp of cuda.h, CUDA 13.0 */
struct allocation_properties {
	int type;		/* 1: pinned */
	int handle_types;
	int location_type;	/* 1: device */
	int location_id;
	void *metadata;
	unsigned char compression;
	unsigned char rdma_capable;
	unsigned short usage;
	unsigned char reserved[4];
};
_Static_assert(sizeof(struct allocation_properties) == 32, "CUmemAllocationProp");

struct object_name {
	uint32_t client;
	uint32_t object;
};

static int refuse_layout(const struct gdri_rm_subject *subject)
{
	gdri_error(subject->log, "pin: nvrm: the CUDA driver's records of VMM memory are laid "
		   "out in an unknown way (driver %s); create the memory with "
		   "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR or load the gdrdrv module",
		   subject->client->version);
	return -EOPNOTSUPP;
}

static int cuda_failed(const struct gdri_rm_subject *subject, const char *call, int result)
{
	gdri_error(subject->log, "pin: nvrm: %s for %#llx: CUDA error %d", call,
		   (unsigned long long)subject->address, result);
	return gdri_os_cuda_errno(result);
}

/* block_id 0: not known (the allocation is not mapped anywhere). */
static bool read_record(uint64_t handle, uint64_t size, uint64_t block_id,
			struct object_name *name)
{
	uint64_t record[RECORD_COUNT];
	uint32_t part[PART_COUNT];

	if (gdri_os_peek(handle, record, sizeof(record)) ||
	    record[RECORD_SIZE] != size ||
	    (block_id && (uint32_t)record[RECORD_BLOCK_ID] != (uint32_t)block_id) ||
	    gdri_os_peek(record[RECORD_PART], part, sizeof(part)) ||
	    !GDRI_RM_IS_CLIENT_HANDLE(part[PART_CLIENT]) || part[PART_OBJECT] == 0)
		return false;
	*name = (struct object_name){ part[PART_CLIENT], part[PART_OBJECT] };
	return true;
}

/* Exact: the descriptor that CUDA makes holds the object itself.  About 0.7 ms. */
static int import_handle(const struct gdri_rm_subject *subject, uint64_t handle, uint32_t *object)
{
	struct gdri_rm_failure failure;
	int fd = -1;
	int result, rc;

	result = subject->cuda->mem_export_to_shareable_handle(&fd, handle,
							       GDRI_CU_HANDLE_TYPE_POSIX_FD, 0);
	if (result)
		return cuda_failed(subject, "cuMemExportToShareableHandle", result);
	rc = gdri_rm_memory_import(subject->client, subject->device, fd, object, &failure);
	gdri_os_close(fd);
	return rc ? gdri_rm_identify_failed(subject, rc, &failure) : 0;
}

static int dup_record(const struct gdri_rm_subject *subject, uint64_t handle, uint64_t size,
		      uint64_t block_id, uint32_t *object)
{
	struct gdri_rm_failure failure;
	struct object_name name;
	int rc;

	if (!read_record(handle, size, block_id, &name))
		return refuse_layout(subject);
	rc = gdri_rm_memory_dup(subject->client, subject->device, name.client, name.object, object,
				&failure);
	return rc ? gdri_rm_identify_failed(subject, rc, &failure) : 0;
}

/* What the record of an exportable probe names must be the very object that CUDA exports. */
static int confirm_by_export(const struct gdri_rm_subject *subject, uint64_t handle,
			     uint64_t size)
{
	struct gdri_rm_failure failure;
	uint32_t named = 0, exported = 0;
	bool same = false;
	int rc;

	rc = import_handle(subject, handle, &exported);
	if (rc)
		return rc;
	rc = dup_record(subject, handle, size, 0, &named);
	if (rc)
		goto out_free;
	rc = gdri_rm_memory_same(subject->client, named, exported, &same, &failure);
	gdri_rm_memory_free(subject->client, subject->device, named);
	if (rc)
		gdri_rm_identify_failed(subject, rc, &failure);
	else if (!same)
		rc = refuse_layout(subject);
out_free:
	gdri_rm_memory_free(subject->client, subject->device, exported);
	return rc;
}

/* That of a private probe must lead to an object of just its unusual size. */
static int confirm_by_size(const struct gdri_rm_subject *subject, uint64_t handle, uint64_t size)
{
	uint32_t named = 0;
	uint64_t object_size = 0;
	int rc;

	rc = dup_record(subject, handle, size, 0, &named);
	if (rc)
		return rc;
	rc = gdri_rm_identify_check(subject, named, size, 0, &object_size);
	gdri_rm_memory_free(subject->client, subject->device, named);
	return rc;
}

/*
 * Creates physical memory, has it judged and gives it back: none of this maps
 * anything, so nothing waits for running kernels.
 */
static int with_probe(const struct gdri_rm_subject *subject, int handle_types, uint64_t size,
		      int (*confirm)(const struct gdri_rm_subject *, uint64_t, uint64_t))
{
	const struct allocation_properties properties = {
		.type = 1,
		.handle_types = handle_types,
		.location_type = 1,
		.location_id = subject->ordinal,
	};
	uint64_t handle = 0;
	int result, rc;

	result = subject->cuda->mem_create(&handle, size, &properties, 0);
	if (result == CUDA_OUT_OF_MEMORY)
		return -ENOMEM;
	if (result)
		return cuda_failed(subject, "cuMemCreate of a probe", result);
	rc = confirm(subject, handle, size);
	subject->cuda->mem_release(handle);
	return rc;
}

/*
 * Once per process.  On a tested driver a GPU without 12 MiB to spare is no
 * reason to refuse, since each pin compares record and attributes anyway.
 */
static int require_layout(const struct gdri_rm_subject *subject)
{
	struct gdri_rm_client *client = subject->client;
	int rc;

	if (atomic_load(&client->record_layout) == GDRI_RM_LAYOUT_CONFIRMED)
		return 0;
	if (atomic_load(&client->record_layout) == GDRI_RM_LAYOUT_REFUTED)
		return refuse_layout(subject);
	rc = with_probe(subject, GDRI_CU_HANDLE_TYPE_POSIX_FD, GDRI_RM_BLOCK_GRANULE,
			confirm_by_export);
	if (rc == 0)
		rc = with_probe(subject, 0, PRIVATE_PROBE_SIZE, confirm_by_size);
	if (rc == -ENOMEM && gdri_rm_identify_tested(subject))
		return 0;
	if (rc == -ENOMEM)
		gdri_error(subject->log, "pin: nvrm: no GPU memory for a probe of %llu bytes, "
			   "which driver %s needs once", (unsigned long long)PRIVATE_PROBE_SIZE,
			   client->version);
	else if (rc == 0)
		atomic_store(&client->record_layout, GDRI_RM_LAYOUT_CONFIRMED);
	else if (rc == -EOPNOTSUPP)
		atomic_store(&client->record_layout, GDRI_RM_LAYOUT_REFUTED);
	return rc;
}

/*
 * CUDA's export of a handle takes a millisecond, its record 20 us.  Once the
 * layout has been confirmed, against an export, the record serves exportable
 * memory too; nothing is logged where it does not, since the export remains.
 */
static bool dup_by_confirmed_record(const struct gdri_rm_subject *subject, uint64_t handle,
				    uint32_t *object)
{
	const struct gdri_log quiet = { .level = GDRI_LOG_OFF };
	struct gdri_rm_subject silent = *subject;

	silent.log = &quiet;
	return require_layout(&silent) == 0 &&
	       atomic_load(&subject->client->record_layout) == GDRI_RM_LAYOUT_CONFIRMED &&
	       dup_record(&silent, handle, subject->block_size, subject->block_id, object) == 0;
}

static int resolve_retained(const struct gdri_rm_subject *subject, uint64_t handle,
			    uint32_t *object)
{
	int rc;

	if (subject->exportable)
		return dup_by_confirmed_record(subject, handle, object) ?
			       0 : import_handle(subject, handle, object);
	rc = require_layout(subject);
	return rc ? rc : dup_record(subject, handle, subject->block_size, subject->block_id,
				    object);
}

int gdri_rm_vmm_resolve(const struct gdri_rm_subject *subject, uint32_t *object)
{
	const struct gdri_cuda *cuda = subject->cuda;
	uint64_t handle = 0;
	int result, rc;

	if (!cuda->mem_retain_allocation_handle || !cuda->mem_release || !cuda->mem_create ||
	    !cuda->mem_export_to_shareable_handle) {
		gdri_error(subject->log, "pin: nvrm: this CUDA driver has no cuMemCreate; "
			   "update it");
		return -EOPNOTSUPP;
	}
	result = cuda->mem_retain_allocation_handle(&handle, (void *)(uintptr_t)subject->address);
	if (result) {
		gdri_error(subject->log, "pin: nvrm: %#llx is memory that this process did not "
			   "allocate (CUDA error %d), say of cuIpcOpenMemHandle; pin it in the "
			   "process that owns it", (unsigned long long)subject->address, result);
		return -EINVAL;
	}
	rc = resolve_retained(subject, handle, object);
	cuda->mem_release(handle);
	return rc;
}
