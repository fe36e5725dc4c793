/* SPDX-License-Identifier: MIT */
/* From a CUDA address to the memory object behind it: facts first, then proof, else refusal. */
#include "rm/identify.h"

#include <errno.h>
#include <string.h>

#define PAGE ((uint64_t)65536)		/* GPU page, the unit of a pin */
#define TESTED_CUDA 13000		/* the CUDA version of the tested driver builds */
#define SUBALLOCATION ((uint64_t)512)	/* cuMemAlloc places buffers at multiples of it */

static const char *cuda_error_name(const struct gdri_cuda *cuda, int result)
{
	const char *name = NULL;

	if (cuda->get_error_name && cuda->get_error_name(result, &name) == 0 && name)
		return name;
	return "unknown CUDA error";
}

bool gdri_rm_identify_tested(const struct gdri_rm_subject *subject)
{
	int version = 0;

	return subject->client->tested && subject->cuda->driver_get_version(&version) == 0 &&
	       version == TESTED_CUDA;
}

/* Attributes are 1 to 8 bytes wide; all hosts are little-endian. */
static int get_attribute(const struct gdri_rm_subject *subject, int attribute, uint64_t *value)
{
	*value = 0;
	return subject->cuda->pointer_get_attribute(value, attribute, subject->address);
}

int gdri_rm_subject_describe(struct gdri_rm_subject *subject, uint64_t address)
{
	uint64_t ordinal = 0, context = 0, ipc = 0, types = 0;
	const struct {
		int attribute;
		uint64_t *value;
	} wanted[] = {
		{ GDRI_CU_POINTER_DEVICE_ORDINAL, &ordinal },
		{ GDRI_CU_POINTER_CONTEXT, &context },
		{ GDRI_CU_POINTER_RANGE_START_ADDR, &subject->start },
		{ GDRI_CU_POINTER_RANGE_SIZE, &subject->size },
		{ GDRI_CU_POINTER_MAPPING_BASE_ADDR, &subject->block_base },
		{ GDRI_CU_POINTER_MAPPING_SIZE, &subject->block_size },
		{ GDRI_CU_POINTER_MEMORY_BLOCK_ID, &subject->block_id },
		{ GDRI_CU_POINTER_BUFFER_ID, &subject->buffer_id },
		{ GDRI_CU_POINTER_IS_LEGACY_IPC_CAPABLE, &ipc },
		{ GDRI_CU_POINTER_ALLOWED_HANDLE_TYPES, &types },
	};

	subject->address = address;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		int result = get_attribute(subject, wanted[i].attribute, wanted[i].value);

		if (result)
			return result;
	}
	subject->ordinal = (int)ordinal;
	subject->context = (void *)(uintptr_t)context;
	subject->ipc_capable = ipc != 0;
	subject->exportable = (types & GDRI_CU_HANDLE_TYPE_POSIX_FD) != 0;
	return 0;
}

int gdri_rm_identify_failed(const struct gdri_rm_subject *subject, int rc,
			    const struct gdri_rm_failure *failure)
{
	char text[128];

	gdri_error(subject->log, "pin: nvrm: %#llx: %s (driver %s); load the gdrdrv module if "
		   "this stays", (unsigned long long)subject->address,
		   gdri_rm_failure_text(failure, text, sizeof(text)), subject->client->version);
	return rc;
}

/*
 * Callers round to GPU pages, so the first byte of a range may be a gap
 * before the buffer that is meant: look for an address that CUDA knows, at
 * both ends and wherever a buffer can start in the first and the last page.
 */
static int find_known_address(struct gdri_rm_subject *subject, uint64_t addr, uint64_t length,
			      uint64_t *type)
{
	const uint64_t last = addr + length - 1;
	const uint64_t page_end = addr / PAGE * PAGE + PAGE - 1;
	const uint64_t first_end = last < page_end ? last : page_end;
	uint64_t at;
	int result;

	subject->address = addr;
	result = get_attribute(subject, GDRI_CU_POINTER_MEMORY_TYPE, type);
	for (at = (addr / SUBALLOCATION + 1) * SUBALLOCATION; result == 1 && at <= first_end;
	     at += SUBALLOCATION) {
		subject->address = at;
		result = get_attribute(subject, GDRI_CU_POINTER_MEMORY_TYPE, type);
	}
	for (at = last; result == 1 && at > first_end && at / PAGE == last / PAGE;
	     at -= SUBALLOCATION) {
		subject->address = at;
		result = get_attribute(subject, GDRI_CU_POINTER_MEMORY_TYPE, type);
	}
	if (result)
		subject->address = addr;
	return result;
}

static int refuse(const struct gdri_rm_subject *subject, const char *what, const char *remedy)
{
	gdri_error(subject->log, "pin: nvrm: %#llx is %s; %s",
		   (unsigned long long)subject->address, what, remedy);
	return -EINVAL;
}

/* Kinds of memory that the resource manager cannot reach from here, named one by one. */
static int refuse_kind(const struct gdri_rm_subject *subject, uint64_t type)
{
	uint64_t managed, pool;

	if (type != GDRI_CU_MEMORY_TYPE_DEVICE)
		return refuse(subject, "host memory", "pin device memory");
	if (get_attribute(subject, GDRI_CU_POINTER_IS_MANAGED, &managed) == 0 && (managed & 1))
		return refuse(subject, "managed memory", "allocate it with cudaMalloc");
	if (get_attribute(subject, GDRI_CU_POINTER_MEMPOOL_HANDLE, &pool) == 0 && pool)
		return refuse(subject, "memory of a stream-ordered pool",
			      "allocate it with cudaMalloc, or use the gdrdrv module or driver "
			      "13.3's dma-bufs");
	return 0;
}

static int describe_subject(struct gdri_rm_subject *subject, uint64_t addr, uint64_t length)
{
	uint64_t type = 0;
	int result, rc;

	result = find_known_address(subject, addr, length, &type);
	if (result == 0) {
		rc = refuse_kind(subject, type);
		if (rc)
			return rc;
		result = gdri_rm_subject_describe(subject, subject->address);
	}
	if (result == 0)
		return 0;
	gdri_error(subject->log, "pin: nvrm: CUDA does not describe %#llx (%d %s); give an "
		   "address of live device memory of this process, from CUDA 12 on",
		   (unsigned long long)addr, result, cuda_error_name(subject->cuda, result));
	return gdri_os_cuda_errno(result);
}

/* Page-wise rounding by the caller is fine; reaching into the next allocation is not. */
static int check_range(const struct gdri_rm_subject *subject, uint64_t addr, uint64_t length)
{
	const bool vmm = !subject->ipc_capable;
	const uint64_t start = vmm ? subject->block_base : subject->start;
	const uint64_t end = start + (vmm ? subject->block_size : subject->size);
	const uint64_t block_end = subject->block_base + subject->block_size;

	if (subject->block_base % PAGE == 0 && addr >= start / PAGE * PAGE &&
	    addr >= subject->block_base && addr + length <= block_end &&
	    addr + length <= (end + PAGE - 1) / PAGE * PAGE)
		return 0;
	gdri_error(subject->log, "pin: nvrm: %#llx + %#llx is not inside one allocation (%#llx to "
		   "%#llx); pin each allocation by itself", (unsigned long long)addr,
		   (unsigned long long)length, (unsigned long long)start,
		   (unsigned long long)end);
	return -EINVAL;
}

static int find_device(struct gdri_rm_subject *subject)
{
	struct gdri_rm_failure failure;
	int rc;

	rc = gdri_rm_device_of_ordinal(subject->client, subject->cuda, subject->ordinal,
				       &subject->device, &failure);
	return rc ? gdri_rm_identify_failed(subject, rc, &failure) : 0;
}

int gdri_rm_identify_check(const struct gdri_rm_subject *subject, uint32_t object,
			   uint64_t block_size, uint64_t slack, uint64_t *size)
{
	struct gdri_rm_memory_info info;
	struct gdri_rm_failure failure;
	int rc;

	rc = gdri_rm_memory_info(subject->client, object, &info, &failure);
	if (rc)
		return gdri_rm_identify_failed(subject, rc, &failure);
	if (info.class_id == GDRI_RM_CLASS_MEMORY_LOCAL_USER &&
	    info.address_space == GDRI_RM_ADDRESS_SPACE_VIDMEM && info.size >= block_size &&
	    info.size - block_size <= slack) {
		*size = info.size;
		return 0;
	}
	gdri_error(subject->log, "pin: nvrm: %#llx: object of class %#x, space %u, %#llx bytes "
		   "does not fit a block of %#llx (driver %s); load the gdrdrv module",
		   (unsigned long long)subject->address, info.class_id, info.address_space,
		   (unsigned long long)info.size, (unsigned long long)block_size,
		   subject->client->version);
	return -EOPNOTSUPP;
}

/* Ids are never reused: the same ones before and after mean that nothing was freed meanwhile. */
static int check_unchanged(const struct gdri_rm_subject *subject)
{
	struct gdri_rm_subject now = *subject;

	if (gdri_rm_subject_describe(&now, subject->address) == 0 &&
	    now.buffer_id == subject->buffer_id && now.block_id == subject->block_id)
		return 0;
	return refuse(subject, "no longer the same buffer",
		      "do not free memory while it is being pinned");
}

int gdri_rm_range_acquire(struct gdri_rm_client *client, const struct gdri_cuda *cuda,
			  uint64_t addr, uint64_t length, const struct gdri_log *log,
			  struct gdri_rm_range *range)
{
	struct gdri_rm_subject subject = { .client = client, .cuda = cuda, .log = log };
	uint64_t object_size = 0, slack;
	uint32_t object = 0;
	int rc;

	rc = describe_subject(&subject, addr, length);
	if (rc == 0)
		rc = check_range(&subject, addr, length);
	if (rc == 0)
		rc = find_device(&subject);
	if (rc == 0)
		rc = subject.ipc_capable ? gdri_rm_ipc_resolve(&subject, &object) :
					   gdri_rm_vmm_resolve(&subject, &object);
	if (rc)
		return rc;
	/* The object of a cudaMalloc block is whole granules; that of VMM memory is exact. */
	slack = subject.ipc_capable ? GDRI_RM_BLOCK_GRANULE - 1 : 0;
	rc = gdri_rm_identify_check(&subject, object, subject.block_size, slack, &object_size);
	if (rc == 0)
		rc = check_unchanged(&subject);
	if (rc) {
		gdri_rm_memory_free(client, subject.device, object);
		return rc;
	}
	*range = (struct gdri_rm_range){
		.client = client,
		.device = subject.device,
		.object = object,
		.object_size = object_size,
		.offset = addr - subject.block_base,
		.length = length,
	};
	return 0;
}

int gdri_rm_range_release(struct gdri_rm_range *range)
{
	return gdri_rm_memory_free(range->client, range->device, range->object);
}
