/* SPDX-License-Identifier: MIT */
/* Back end dmabuf: has the CUDA driver export a range of GPU memory. */
#include "backend/dmabuf/session.h"

#include <errno.h>

#include "os/sys.h"

/* CUDA results with a meaning of their own here. */
#define CU_INVALID_VALUE 1
#define CU_NOT_INITIALIZED 3

/* Addresses [start, end). */
struct range {
	uint64_t start;
	uint64_t end;
};

struct gpu {
	int device;
	bool coherent;
};

static struct range round_range(struct range range, uint64_t unit)
{
	return (struct range){
		.start = range.start & ~(unit - 1),
		.end = (range.end + unit - 1) & ~(unit - 1),
	};
}

static int log_failure(const struct dmabuf_session *session, const char *call, uint64_t addr,
		       int result)
{
	gdri_error(&session->base.config->log, "dmabuf: %s at 0x%llx: %s (%d)", call,
		   (unsigned long long)addr, gdri_dmabuf_cuda_result_name(&session->cuda, result),
		   result);
	return gdri_os_cuda_errno(result);
}

/*
 * The driver is only asked to export what it can: it has crashed on memory of
 * managed pools (openucx/ucx#8623).  A property that it does not know of this
 * pointer stays at zero.
 */
static int check_kind(const struct dmabuf_session *session, uint64_t addr)
{
	const struct gdri_log *log = &session->base.config->log;
	const struct gdri_cuda *cuda = &session->cuda;
	uint32_t type = 0, managed = 0;
	uint64_t pool = 0;
	int result = cuda->pointer_get_attribute(&type, GDRI_CU_POINTER_MEMORY_TYPE, addr);

	if (result == CU_INVALID_VALUE || result == CU_NOT_INITIALIZED ||
	    (result == GDRI_CU_SUCCESS && type != GDRI_CU_MEMORY_TYPE_DEVICE)) {
		gdri_error(log, "dmabuf: 0x%llx is no GPU memory of this process%s",
			   (unsigned long long)addr, result == CU_NOT_INITIALIZED ?
			   ", which has not initialised CUDA" : ": pass what cudaMalloc gave");
		return -EINVAL;
	}
	if (result != GDRI_CU_SUCCESS)
		return log_failure(session, "cuPointerGetAttribute", addr, result);
	cuda->pointer_get_attribute(&managed, GDRI_CU_POINTER_IS_MANAGED, addr);
	cuda->pointer_get_attribute(&pool, GDRI_CU_POINTER_MEMPOOL_HANDLE, addr);
	if (managed || pool) {
		gdri_error(log, "dmabuf: 0x%llx is %s memory, which cannot be pinned: use "
			   "cudaMalloc or cuMemCreate", (unsigned long long)addr,
			   managed ? "managed" : "stream-ordered pool");
		return -EINVAL;
	}
	return 0;
}

static int find_gpu(const struct dmabuf_session *session, uint64_t addr, uint32_t flags,
		    struct gpu *gpu)
{
	const struct gdri_log *log = &session->base.config->log;
	const struct gdri_cuda *cuda = &session->cuda;
	struct gpu found = { 0 };
	int ordinal = -1, supported = 0;
	int result = cuda->pointer_get_attribute(&ordinal, GDRI_CU_POINTER_DEVICE_ORDINAL, addr);

	if (result != GDRI_CU_SUCCESS)
		return log_failure(session, "cuPointerGetAttribute", addr, result);
	result = cuda->device_get(&found.device, ordinal);
	if (result != GDRI_CU_SUCCESS)
		return log_failure(session, "cuDeviceGet for the memory", addr, result);
	cuda->device_get_attribute(&supported, GDRI_CU_DEVICE_DMA_BUF_SUPPORTED, found.device);
	if (!supported) {
		gdri_error(log, "dmabuf: GPU %d exports no dma-bufs: it needs a GPU with GPUDirect "
			   "RDMA and the open flavour of the NVIDIA kernel modules", ordinal);
		return -EOPNOTSUPP;
	}
	found.coherent = gdri_dmabuf_device_is_coherent(cuda, found.device);
	if (flags & GDR_PIN_FLAG_FORCE_PCIE && !found.coherent) {
		gdri_error(log, "dmabuf: GPU %d has no coherent CPU link that "
			   "GDR_PIN_FLAG_FORCE_PCIE could avoid: use flags 0", ordinal);
		return -EOPNOTSUPP;
	}
	*gpu = found;
	return 0;
}

/*
 * The export wants some current context.  A thread without one borrows the
 * device's primary context, and has none again afterwards.
 */
static int borrow_context(const struct dmabuf_session *session, int device, bool *borrowed)
{
	const struct gdri_cuda *cuda = &session->cuda;
	void *context = NULL;
	int result;

	*borrowed = false;
	result = cuda->ctx_get_current(&context);
	if (result != GDRI_CU_SUCCESS)
		return result;
	if (context)
		return GDRI_CU_SUCCESS;
	result = cuda->primary_ctx_retain(&context, device);
	if (result != GDRI_CU_SUCCESS)
		return result;
	result = cuda->ctx_push_current(context);
	if (result != GDRI_CU_SUCCESS) {
		cuda->primary_ctx_release(device);
		return result;
	}
	*borrowed = true;
	return GDRI_CU_SUCCESS;
}

static void return_context(const struct dmabuf_session *session, int device, bool borrowed)
{
	void *context;

	if (!borrowed)
		return;
	session->cuda.ctx_pop_current(&context);
	session->cuda.primary_ctx_release(device);
}

static int find_allocation(const struct dmabuf_session *session, uint64_t addr, size_t size,
			   struct range *allocation)
{
	gdri_cu_ptr base;
	size_t length;
	int result = session->cuda.mem_get_address_range(&base, &length, addr);

	if (result != GDRI_CU_SUCCESS)
		return log_failure(session, "cuMemGetAddressRange", addr, result);
	*allocation = (struct range){ .start = base, .end = base + length };
	/* Callers round their sizes up to GPU pages, so that much is granted at the end. */
	if (addr + size > round_range(*allocation, GDRI_GPU_PAGE_SIZE).end) {
		gdri_error(&session->base.config->log, "dmabuf: %zu bytes at 0x%llx leave their "
			   "allocation, which ends at 0x%llx", size, (unsigned long long)addr,
			   (unsigned long long)allocation->end);
		return -EINVAL;
	}
	return 0;
}

static int export_range(const struct dmabuf_session *session, struct range range, uint32_t flags,
			int *fd)
{
	return session->cuda.mem_get_handle_for_address_range(
		fd, range.start, range.end - range.start, GDRI_CU_RANGE_HANDLE_DMA_BUF_FD,
		flags & GDR_PIN_FLAG_FORCE_PCIE ? GDRI_CU_RANGE_FLAG_PCIE : 0);
}

/*
 * Whole GPU pages are asked for first, the shape that every back end gives.
 * Where they reach beyond the allocation the driver may decline; then the part
 * inside it, in host pages, has to do, and a longer map fails.
 */
static int export_pages(const struct dmabuf_session *session, uint64_t addr, size_t size,
			uint32_t flags, struct dmabuf_export *result)
{
	struct range pages = round_range((struct range){ addr, addr + size }, GDRI_GPU_PAGE_SIZE);
	struct range inside;
	int ret, answer;

	ret = find_allocation(session, addr, size, &inside);
	if (ret < 0)
		return ret;
	inside = round_range(inside, gdri_os_page_size());
	answer = export_range(session, pages, flags, &result->fd);
	if (answer == CU_INVALID_VALUE && (pages.start < inside.start || pages.end > inside.end)) {
		pages.start = pages.start < inside.start ? inside.start : pages.start;
		pages.end = pages.end > inside.end ? inside.end : pages.end;
		answer = export_range(session, pages, flags, &result->fd);
	}
	if (answer != GDRI_CU_SUCCESS)
		return log_failure(session, "cuMemGetHandleForAddressRange (VMM memory wants "
				   "gpuDirectRDMACapable)", addr, answer);
	result->length = pages.end - pages.start;
	return 0;
}

int gdri_dmabuf_range_export(struct dmabuf_session *session, uint64_t addr, size_t size,
			     uint32_t flags, struct dmabuf_export *result)
{
	struct dmabuf_export exported = { .fd = -1 };
	struct gpu gpu = { 0 };
	bool borrowed;
	int answer, ret;

	ret = check_kind(session, addr);
	if (ret < 0)
		return ret;
	ret = find_gpu(session, addr, flags, &gpu);
	if (ret < 0)
		return ret;
	answer = borrow_context(session, gpu.device, &borrowed);
	if (answer != GDRI_CU_SUCCESS)
		return log_failure(session, "borrowing the primary context", addr, answer);
	ret = export_pages(session, addr, size, flags, &exported);
	return_context(session, gpu.device, borrowed);
	if (ret < 0)
		return ret;
	exported.cached = gpu.coherent && !(flags & GDR_PIN_FLAG_FORCE_PCIE);
	*result = exported;
	return 0;
}
