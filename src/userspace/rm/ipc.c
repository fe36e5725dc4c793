/* SPDX-License-Identifier: MIT */
/* The memory object of cudaMalloc memory, named by CUDA's own IPC handle. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rm/identify.h"

/*
 * cuIpcGetMemHandle's 64 bytes as 32-bit words, the same for driver 580.159.04
 * with CUDA 13.0 in every case tried.  All but the last two words repeat what
 * CUDA's attributes say, and are compared with that for every pin: a layout
 * with words in other places does not pass.
 */
enum {
	WORD_CONTEXT = 0,	/* 2 words */
	WORD_PROCESS = 2,
	WORD_SIZE = 4,		/* 2 words: of the allocation */
	WORD_PAGES = 6,		/* of the block, 4 KiB each */
	WORD_OFFSET = 7,	/* of the allocation in the block */
	WORD_BLOCK_ID = 10,
	WORD_CLIENT = 12,
	WORD_OBJECT = 13,
	WORD_COUNT = 16
};

/* No buffer of a program is likely to have just this size: three granules. */
#define PROBE_SIZE (3 * GDRI_RM_BLOCK_GRANULE)

static uint64_t word_pair(const uint32_t *word)
{
	return (uint64_t)word[1] << 32 | word[0];
}

static bool words_fit(const struct gdri_rm_subject *subject, const uint32_t word[WORD_COUNT])
{
	const uint64_t offset = subject->start - subject->block_base;

	return word_pair(&word[WORD_CONTEXT]) == (uintptr_t)subject->context &&
	       word[WORD_PROCESS] == (uint32_t)getpid() &&
	       word_pair(&word[WORD_SIZE]) == subject->size &&
	       (uint64_t)word[WORD_PAGES] * 4096 >= offset + subject->size &&
	       (uint64_t)word[WORD_PAGES] * 4096 <= subject->block_size &&
	       word[WORD_OFFSET] == (uint32_t)offset &&
	       word[WORD_BLOCK_ID] == (uint32_t)subject->block_id &&
	       GDRI_RM_IS_CLIENT_HANDLE(word[WORD_CLIENT]) && word[WORD_OBJECT] != 0;
}

static int refuse_layout(const struct gdri_rm_subject *subject)
{
	gdri_error(subject->log, "pin: nvrm: the CUDA driver's IPC handle is laid out in an "
		   "unknown way (driver %s); use driver 580.159.04, VMM memory that is exportable, "
		   "or the gdrdrv module", subject->client->version);
	return -EOPNOTSUPP;
}

/* Duplicates what the handle names.  A context is current. */
static int resolve_handle(const struct gdri_rm_subject *subject, uint32_t *object)
{
	struct gdri_cu_ipc_handle handle;
	struct gdri_rm_failure failure;
	uint32_t word[WORD_COUNT];
	int result, rc;

	result = subject->cuda->ipc_get_mem_handle(&handle, subject->address);
	if (result) {
		gdri_error(subject->log, "pin: nvrm: cuIpcGetMemHandle of %#llx: CUDA error %d",
			   (unsigned long long)subject->address, result);
		return gdri_os_cuda_errno(result);
	}
	memcpy(word, handle.bytes, sizeof(word));
	if (!words_fit(subject, word))
		return refuse_layout(subject);
	rc = gdri_rm_memory_dup(subject->client, subject->device, word[WORD_CLIENT],
				word[WORD_OBJECT], object, &failure);
	return rc ? gdri_rm_identify_failed(subject, rc, &failure) : 0;
}

/*
 * On a driver that was not tested: an allocation of our own, of a size
 * that no other object has, must lead to an object of exactly that size.  It
 * is kept, since cuMemFree would wait for the kernels that are running.
 */
static int confirm_layout(const struct gdri_rm_subject *subject)
{
	struct gdri_rm_subject probe = *subject;
	gdri_cu_ptr memory = 0;
	uint32_t object = 0;
	uint64_t size = 0;
	int result, rc;

	result = subject->cuda->mem_alloc(&memory, PROBE_SIZE);
	if (result) {
		gdri_error(subject->log, "pin: nvrm: no memory for a probe of %llu bytes (CUDA "
			   "error %d), which driver %s needs", (unsigned long long)PROBE_SIZE,
			   result, subject->client->version);
		return gdri_os_cuda_errno(result);
	}
	if (gdri_rm_subject_describe(&probe, memory))
		return refuse_layout(subject);
	rc = resolve_handle(&probe, &object);
	if (rc)
		return rc;
	rc = gdri_rm_identify_check(&probe, object, PROBE_SIZE, 0, &size);
	gdri_rm_memory_free(subject->client, subject->device, object);
	return rc;
}

static int require_layout(const struct gdri_rm_subject *subject)
{
	struct gdri_rm_client *client = subject->client;
	int rc;

	if (atomic_load(&client->ipc_layout) == GDRI_RM_LAYOUT_CONFIRMED ||
	    gdri_rm_identify_tested(subject))
		return 0;
	if (atomic_load(&client->ipc_layout) == GDRI_RM_LAYOUT_REFUTED)
		return refuse_layout(subject);
	rc = confirm_layout(subject);
	if (rc == 0)
		atomic_store(&client->ipc_layout, GDRI_RM_LAYOUT_CONFIRMED);
	else if (rc == -EOPNOTSUPP)
		atomic_store(&client->ipc_layout, GDRI_RM_LAYOUT_REFUTED);
	return rc;
}

/* cuIpcGetMemHandle wants a context, and the caller's thread may have none, or another. */
int gdri_rm_ipc_resolve(const struct gdri_rm_subject *subject, uint32_t *object)
{
	const struct gdri_cuda *cuda = subject->cuda;
	void *current = NULL;
	bool pushed;
	int result, rc;

	result = cuda->ctx_get_current(&current);
	pushed = result == 0 && current != subject->context;
	if (pushed)
		result = cuda->ctx_push_current(subject->context);
	if (result) {
		gdri_error(subject->log, "pin: nvrm: CUDA error %d on entering the context of "
			   "%#llx", result, (unsigned long long)subject->address);
		return gdri_os_cuda_errno(result);
	}
	rc = require_layout(subject);
	if (rc == 0)
		rc = resolve_handle(subject, object);
	if (pushed)
		cuda->ctx_pop_current(&current);
	return rc;
}
