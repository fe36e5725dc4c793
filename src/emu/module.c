/* SPDX-License-Identifier: MIT */
/* Modules, functions and launches of the kernels that the emulator knows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels.h"
#include "memory.h"
#include "stream.h"

struct CUfunc_st {
	const struct emu_kernel *kernel;
	CUmodule module;
};

struct CUmod_st {
	struct CUmod_st *next;
	CUcontext ctx;
	unsigned count;
	struct CUfunc_st functions[];
};

static CUmodule modules;

uint64_t emu_kernel_hash(const char *ptx, size_t length)
{
	uint64_t hash = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)ptx[i]) * 0x100000001b3ull;
	return hash;
}

static unsigned count_kernels(uint64_t hash)
{
	unsigned count = 0;

	for (unsigned i = 0; emu_kernel_table[i]; i++)
		if (emu_kernel_table[i]->ptx_hash == hash)
			count++;
	return count;
}

static CUmodule create_module(CUcontext ctx, uint64_t hash, unsigned count)
{
	CUmodule module = calloc(1, sizeof(*module) + count * sizeof(module->functions[0]));

	if (!module)
		return NULL;
	module->ctx = ctx;
	for (unsigned i = 0; emu_kernel_table[i]; i++)
		if (emu_kernel_table[i]->ptx_hash == hash)
			module->functions[module->count++] = (struct CUfunc_st){
				.kernel = emu_kernel_table[i], .module = module
			};
	return module;
}

/* PTX is text; binary images begin with ELF's or the fat binary's magic number. */
static CUresult load(CUmodule *out, const void *image, uint64_t *hash)
{
	const unsigned char *text = image;
	CUmodule module;
	unsigned count;
	CUcontext ctx;
	CUresult ret = emu_context_current(&ctx);

	if (ret != CUDA_SUCCESS)
		return ret;
	if (!out || !image)
		return CUDA_ERROR_INVALID_VALUE;
	if (text[0] == '\0' || text[0] == 0x7f || text[0] >= 0x80 || text[0] == 'P')
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	*hash = emu_kernel_hash(image, strlen(image));
	count = count_kernels(*hash);
	if (count == 0)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	module = create_module(ctx, *hash, count);
	if (!module)
		return CUDA_ERROR_OUT_OF_MEMORY;
	emu_lock();
	module->next = modules;
	modules = module;
	emu_unlock();
	*out = module;
	return CUDA_SUCCESS;
}

EMU_API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	uint64_t hash;

	EMU_ENTER();
	return load(module, image, &hash);
}

/* Tells the hash of an unknown text where the program asked for the log. */
static void write_log(unsigned count, const CUjit_option *options, void **values, uint64_t hash)
{
	char *buffer = NULL;
	size_t size = 0;

	for (unsigned i = 0; i < count; i++) {
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			buffer = values[i];
		if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			size = (size_t)(uintptr_t)values[i];
	}
	if (buffer && size > 0)
		snprintf(buffer, size, "the emulated GPU does not know this PTX (hash 0x%016llx)",
			 (unsigned long long)hash);
}

EMU_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count,
				    CUjit_option *options, void **values)
{
	uint64_t hash = 0;
	CUresult ret;

	EMU_ENTER();
	if (count > 0 && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	ret = load(module, image, &hash);
	if (ret == CUDA_ERROR_NO_BINARY_FOR_GPU)
		write_log(count, options, values, hash);
	return ret;
}

/* With the lock held. */
static CUmodule *find_module(CUmodule module)
{
	CUmodule *link = &modules;

	while (*link && *link != module)
		link = &(*link)->next;
	return link;
}

EMU_API CUresult cuModuleUnload(CUmodule module)
{
	CUmodule *link;
	CUmodule found;

	EMU_ENTER();
	emu_lock();
	link = find_module(module);
	found = *link;
	if (found)
		*link = found->next;
	emu_unlock();
	free(found);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EMU_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	CUresult ret = CUDA_ERROR_NOT_FOUND;
	CUmodule found;

	EMU_ENTER();
	if (!function || !name)
		return CUDA_ERROR_INVALID_VALUE;
	emu_lock();
	found = *find_module(module);
	if (!found)
		ret = CUDA_ERROR_INVALID_HANDLE;
	for (unsigned i = 0; found && i < found->count; i++) {
		if (strcmp(found->functions[i].kernel->name, name) == 0) {
			*function = &found->functions[i];
			ret = CUDA_SUCCESS;
		}
	}
	emu_unlock();
	return ret;
}

/* The kernel behind a handle, NULL when no loaded module has it. */
static const struct emu_kernel *find_kernel(CUfunction function)
{
	const struct emu_kernel *kernel = NULL;

	emu_lock();
	for (CUmodule module = modules; module; module = module->next)
		for (unsigned i = 0; i < module->count; i++)
			if (&module->functions[i] == function)
				kernel = function->kernel;
	emu_unlock();
	return kernel;
}

EMU_API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
				    CUfunction function)
{
	EMU_ENTER();
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!find_kernel(function))
		return CUDA_ERROR_INVALID_HANDLE;
	switch (attribute) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
	case CU_FUNC_ATTRIBUTE_NUM_REGS:
		*value = 0;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

EMU_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
	EMU_ENTER();
	(void)attribute;
	(void)value;
	return find_kernel(function) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_HANDLE;
}

EMU_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
							     int block_size, size_t shared)
{
	EMU_ENTER();
	if (!blocks || block_size <= 0 || block_size > 1024 || shared > 49152)
		return CUDA_ERROR_INVALID_VALUE;
	if (!find_kernel(function))
		return CUDA_ERROR_INVALID_HANDLE;
	*blocks = 2048 / block_size < 32 ? 2048 / block_size : 32;
	return CUDA_SUCCESS;
}

struct launch_op {
	struct emu_op op;
	struct emu_launch launch;
	const struct emu_kernel *kernel;
	CUcontext ctx;
};

void *emu_kernel_pointer(struct emu_launch *launch, uint64_t address, size_t size)
{
	struct emu_span span = { 0 };
	struct emu_block **held;
	void *pointer = NULL;

	held = realloc(launch->held, (launch->held_count + 1) * sizeof(*held));
	if (!held)
		return NULL;
	launch->held = held;
	emu_lock();
	if (emu_span_get(address, size, true, &span) == CUDA_SUCCESS && !span.pageable &&
	    span.size == size)
		pointer = span.cpu;
	if (pointer && span.block)
		held[launch->held_count++] = span.block;
	else if (span.block)
		emu_block_put(span.block);
	emu_unlock();
	return pointer;
}

static void run_launch(struct emu_op *op)
{
	struct launch_op *launch = (struct launch_op *)op;
	CUresult ret;

	if (__atomic_load_n(&launch->ctx->failure, __ATOMIC_ACQUIRE) != CUDA_SUCCESS)
		return;
	ret = launch->kernel->run(&launch->launch);
	if (ret != CUDA_SUCCESS)
		__atomic_store_n(&launch->ctx->failure, ret, __ATOMIC_RELEASE);
}

static void destroy_launch(struct emu_op *op)
{
	struct launch_op *launch = (struct launch_op *)op;

	emu_lock();
	for (size_t i = 0; i < launch->launch.held_count; i++)
		emu_block_put(launch->launch.held[i]);
	emu_unlock();
	free(launch->launch.held);
	free(launch);
}

static void take_params(struct emu_launch *launch, const struct emu_kernel *kernel, void **params)
{
	for (unsigned i = 0; i < kernel->arg_count; i++)
		memcpy(&launch->args[i], params[i], kernel->arg_sizes[i]);
}

/* The other form: one buffer with the arguments at their natural alignment. */
static CUresult take_buffer(struct emu_launch *launch, const struct emu_kernel *kernel,
			    void **extra)
{
	const char *buffer = NULL;
	size_t size = 0, at = 0;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (unsigned i = 0; i < kernel->arg_count; i++) {
		at = (size_t)emu_round_up(at, kernel->arg_sizes[i]);
		if (!buffer || at + kernel->arg_sizes[i] > size)
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(&launch->args[i], buffer + at, kernel->arg_sizes[i]);
		at += kernel->arg_sizes[i];
	}
	return CUDA_SUCCESS;
}

static CUresult check_shape(const struct emu_launch *launch)
{
	uint64_t threads = 1;

	for (int i = 0; i < 3; i++) {
		if (launch->grid[i] == 0 || launch->block[i] == 0)
			return CUDA_ERROR_INVALID_VALUE;
		threads *= launch->block[i];
	}
	if (threads > 1024 || launch->shared > 49152)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	return CUDA_SUCCESS;
}

static CUresult start(CUfunction function, const struct emu_launch *shape, CUstream stream,
		      void **params, void **extra)
{
	struct launch_op *op;
	CUresult ret = CUDA_SUCCESS;

	op = calloc(1, sizeof(*op));
	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = run_launch;
	op->op.destroy = destroy_launch;
	op->op.in_thread = true;
	op->launch = *shape;
	op->kernel = find_kernel(function);
	op->ctx = stream->ctx;
	if (!op->kernel)
		ret = CUDA_ERROR_INVALID_HANDLE;
	else if (op->kernel->arg_count > 0 && !params == !extra)
		ret = CUDA_ERROR_INVALID_VALUE;
	else if (extra)
		ret = take_buffer(&op->launch, op->kernel, extra);
	else if (params)
		take_params(&op->launch, op->kernel, params);
	if (ret != CUDA_SUCCESS) {
		free(op);
		return ret;
	}
	op->launch.arg_count = op->kernel->arg_count;
	return emu_stream_submit(stream, &op->op, NULL);
}

EMU_API CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
				unsigned grid_z, unsigned block_x, unsigned block_y,
				unsigned block_z, unsigned shared, CUstream handle,
				void **params, void **extra)
{
	struct emu_launch shape = {
		.grid = { grid_x, grid_y, grid_z },
		.block = { block_x, block_y, block_z },
		.shared = shared,
	};
	CUstream stream;
	CUresult ret;

	EMU_ENTER();
	ret = check_shape(&shape);
	if (ret != CUDA_SUCCESS)
		return ret;
	ret = emu_stream_get(handle, &stream);
	if (ret != CUDA_SUCCESS)
		return ret;
	ret = start(function, &shape, stream, params, extra);
	emu_stream_put(stream);
	return ret;
}
