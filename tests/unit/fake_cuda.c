/* SPDX-License-Identifier: MIT */
/* The simulated CUDA driver: contexts, memory of every kind, and its opaque data. */
#include "fake_parts.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTEXTS 4
#define BLOCKS 512
#define BUFFERS 12000
#define RECORDS 512
#define RECORD_WORDS 48
#define PART_WORDS 32

enum result { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3,
	      INVALID_CONTEXT = 201, NOT_SUPPORTED = 801 };
enum kind { FREE, MALLOC, MANAGED, POOL, HOST, FOREIGN, VMM };

struct context {
	int ordinal;
};

/* Physical memory of cuMemCreate; the first member is what its handle points at. */
struct record {
	uint64_t word[RECORD_WORDS];
	uint32_t part[PART_WORDS];
	struct fake_name name;
	uint64_t size;
	uint64_t id;
	bool exportable;
	unsigned references;
};

struct block {
	uint64_t base;
	uint64_t size;
	uint64_t id;
	uint64_t used;		/* by sub-allocations */
	unsigned buffers;
	int gpu;
	struct fake_name name;
	struct record *record;	/* VMM */
};

struct buffer {
	enum kind kind;
	uint64_t start;
	uint64_t size;
	uint64_t id;
	struct block *block;
	struct context *context;
	uint64_t range_start;	/* as CUDA reports it: of the reservation for VMM */
	uint64_t range_size;
};

static struct context contexts[CONTEXTS];
static struct block blocks[BLOCKS];
static struct buffer buffers[BUFFERS];
static struct record *records[RECORDS];
static unsigned block_count, buffer_count, record_count;
static uint64_t next_va, next_block_id, next_buffer_id;
static uint32_t driver_client;
static int process;
static int initialised;
static bool waited;
static int held;		/* handles that the library holds */
static unsigned calls, fail_call, replace_call;
static int fail_result;
static uint64_t replace_address;
static __thread struct context *context_stack[8];
static __thread unsigned context_depth;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fake_cuda_reset(void)
{
	for (unsigned i = 0; i < record_count; i++)
		free(records[i]);
	memset(records, 0, sizeof(records));
	memset(blocks, 0, sizeof(blocks));
	memset(buffers, 0, sizeof(buffers));
	block_count = buffer_count = record_count = 0;
	next_va = 0x7f0000000000;
	next_block_id = 0x32;
	next_buffer_id = 0x38b;
	initialised = 0;
	waited = false;
	held = 0;
	context_depth = 0;
	replace_call = 0;
	fake_fail_cuda_at(0, 0);
	process = getpid();
	driver_client = fake_rm_driver_client(process);
}

void fake_cuda_count(struct fake_usage *usage)
{
	usage->retained = (unsigned)held;
}

void fake_fail_cuda_at(unsigned call, int result)
{
	fail_call = call;
	fail_result = result;
	calls = 0;
}

void fake_replace_at(unsigned call, uint64_t address)
{
	replace_call = call;
	replace_address = address;
	calls = 0;
}

unsigned fake_cuda_calls(void)
{
	return calls;
}

bool fake_waited(void)
{
	return waited;
}

void *fake_current_context(void)
{
	return context_depth ? context_stack[context_depth - 1] : NULL;
}

void fake_set_current_context(void *context)
{
	context_depth = context ? 1 : 0;
	context_stack[0] = context;
}

void fake_cuda_init(int ordinal)
{
	initialised = 1;
	contexts[ordinal].ordinal = ordinal;
	fake_set_current_context(&contexts[ordinal]);
}

void fake_cuda_of_child(int ordinal)
{
	process = getpid();
	driver_client = fake_rm_driver_client(process);
	buffer_count = 0;
	fake_cuda_init(ordinal);
}

/* Both ends included in nothing: a buffer is [start, start + size). */
static struct buffer *find_buffer(uint64_t address)
{
	for (unsigned i = 0; i < buffer_count; i++)
		if (buffers[i].kind != FREE && address - buffers[i].start < buffers[i].size)
			return &buffers[i];
	return NULL;
}

static struct block *new_block(int gpu, uint64_t size, uint64_t object_size, uint32_t client)
{
	struct block *block = &blocks[block_count];

	if (block_count++ == BLOCKS)
		abort();
	*block = (struct block){ .base = next_va, .size = size, .id = next_block_id++, .gpu = gpu };
	next_va += (object_size + 2 * FAKE_GRANULE) / FAKE_GRANULE * FAKE_GRANULE;
	fake_lock();
	block->name = fake_rm_driver_memory(client, gpu, object_size);
	fake_unlock();
	return block;
}

static struct buffer *new_buffer(enum kind kind, struct block *block, uint64_t start,
				 uint64_t size)
{
	struct buffer *buffer = &buffers[buffer_count];

	if (buffer_count++ == BUFFERS)
		abort();
	*buffer = (struct buffer){
		.kind = kind, .start = start, .size = size, .id = next_buffer_id++,
		.block = block, .context = fake_current_context(), .range_start = start,
		.range_size = size,
	};
	block->buffers++;
	return buffer;
}

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* Small buffers share blocks of 2 MiB; larger ones have a block of their own. */
static struct buffer *alloc_buffer(enum kind kind, uint64_t size)
{
	const int gpu = ((struct context *)fake_current_context())->ordinal;
	struct block *block = NULL;

	if (size <= FAKE_GRANULE / 2) {
		for (unsigned i = 0; i < block_count && !block; i++)
			if (blocks[i].used && blocks[i].gpu == gpu &&
			    blocks[i].size - blocks[i].used >= size)
				block = &blocks[i];
		if (!block)
			block = new_block(gpu, FAKE_GRANULE, FAKE_GRANULE, driver_client);
		block->used += round_up(size, 512);
		return new_buffer(kind, block, block->base + block->used - round_up(size, 512),
				  size);
	}
	block = new_block(gpu, round_up(size, (uint64_t)1 << 20), round_up(size, FAKE_GRANULE),
			  driver_client);
	return new_buffer(kind, block, block->base, size);
}

uint64_t fake_mem_alloc(size_t size)
{
	return alloc_buffer(MALLOC, size)->start;
}

uint64_t fake_mem_managed(size_t size)
{
	return alloc_buffer(MANAGED, size)->start;
}

uint64_t fake_mem_pool(size_t size)
{
	return alloc_buffer(POOL, size)->start;
}

uint64_t fake_mem_host(size_t size)
{
	return alloc_buffer(HOST, size)->start;
}

/* The object belongs to a client of another process. */
uint64_t fake_mem_ipc_opened(size_t size)
{
	struct block *block;
	uint32_t other;

	fake_lock();
	other = fake_rm_driver_client(1);
	fake_unlock();
	block = new_block(0, size, size, other);
	return new_buffer(FOREIGN, block, block->base, size)->start;
}

static void fill_record(struct record *record, uint64_t id)
{
	const struct record *previous = NULL;
	const unsigned shift = fake_machine.record_shift;

	for (unsigned i = 0; i < record_count; i++)
		if (records[i] && records[i] != record)
			previous = records[i];
	record->word[12 + shift] = (uint64_t)(uintptr_t)record->part;
	record->word[20 + shift] = record->size + fake_machine.record_wrong_size * FAKE_GRANULE;
	record->word[28 + shift] = id + fake_machine.record_wrong_id;
	record->id = id;
	record->part[13] = record->name.client;
	record->part[14] = record->name.object;
	if (fake_machine.record_names_neighbour && previous &&
	    !(fake_machine.only_private_records && record->exportable)) {
		record->part[13] = previous->name.client;
		record->part[14] = previous->name.object;
	}
}

static struct record *new_record(int gpu, uint64_t size, bool exportable)
{
	struct record *record = calloc(1, sizeof(*record));

	if (!record || record_count == RECORDS)
		abort();
	records[record_count++] = record;
	record->size = size;
	record->exportable = exportable;
	record->references = 1;
	fake_lock();
	record->name = fake_rm_driver_memory(driver_client, gpu, size);
	fake_unlock();
	fill_record(record, next_block_id++);
	return record;
}

static struct record *find_record(uint64_t handle)
{
	for (unsigned i = 0; i < record_count; i++)
		if (records[i] && (uint64_t)(uintptr_t)records[i] == handle)
			return records[i];
	return NULL;
}

static void drop_record(struct record *record)
{
	if (--record->references)
		return;
	fake_lock();
	fake_rm_driver_free(record->name);
	fake_unlock();
	for (unsigned i = 0; i < record_count; i++)
		if (records[i] == record)
			records[i] = NULL;
	free(record);
}

static void map_record(uint64_t base, struct record *record, uint64_t range_start,
		       uint64_t range_size)
{
	struct block *block = &blocks[block_count++];
	struct buffer *buffer;

	*block = (struct block){
		.base = base, .size = record->size, .id = record->id,
		.name = record->name, .record = record,
	};
	buffer = new_buffer(VMM, block, base, record->size);
	buffer->context = NULL;
	buffer->range_start = range_start;
	buffer->range_size = range_size;
}

uint64_t fake_mem_vmm(size_t size, bool exportable)
{
	const int gpu = ((struct context *)fake_current_context())->ordinal;
	const uint64_t base = next_va;

	next_va += size + FAKE_GRANULE;
	map_record(base, new_record(gpu, size, exportable), base, size);
	blocks[block_count - 1].gpu = gpu;
	return base;
}

uint64_t fake_mem_vmm_pair(size_t size1, size_t size2)
{
	const uint64_t base = next_va;

	next_va += size1 + size2 + 2 * FAKE_GRANULE;
	map_record(base, new_record(0, size1, false), base, size1 + size2 + FAKE_GRANULE);
	map_record(base + size1, new_record(0, size2, false), base, size1 + size2 + FAKE_GRANULE);
	return base;
}

void fake_mem_free(uint64_t address)
{
	struct buffer *buffer = find_buffer(address);
	struct block *block = buffer->block;

	buffer->kind = FREE;
	if (--block->buffers)
		return;
	block->used = 0;
	if (block->record) {
		drop_record(block->record);
		return;
	}
	fake_lock();
	fake_rm_driver_free(block->name);
	fake_unlock();
}

void *fake_bytes(uint64_t address)
{
	const struct block *block = find_buffer(address)->block;
	int memory;

	fake_lock();
	memory = fake_rm_memory_of(block->name);
	fake_unlock();
	return (char *)fake_rm_bytes(memory) + (address - block->base);
}

int fake_cuda_peek(uint64_t addr, void *out, size_t length)
{
	int rc = -EFAULT;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < record_count; i++) {
		const uint64_t base = (uint64_t)(uintptr_t)records[i];

		if (!records[i] || addr < base || addr + length > base + sizeof(*records[i]))
			continue;
		memcpy(out, (void *)(uintptr_t)addr, length);
		rc = 0;
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

/* Another thread of the program frees a buffer and gets the same address again. */
static void replace_buffer(void)
{
	struct buffer old = *find_buffer(replace_address);
	const uint64_t va = next_va;
	struct block *block;

	next_va = old.block->base;
	fake_mem_free(replace_address);
	block = new_block(old.block->gpu, old.block->size, round_up(old.block->size, FAKE_GRANULE),
			  driver_client);
	next_va = va;
	new_buffer(old.kind, block, old.start, old.size)->context = old.context;
}

void fake_cuda_recycle(uint64_t address)
{
	const uint64_t size = find_buffer(address)->size;

	pthread_mutex_lock(&lock);
	fake_mem_free(address);
	memcpy(fake_bytes(fake_mem_alloc(size)), "stranger", 8);
	pthread_mutex_unlock(&lock);
}

/* Every call starts here: 0, or the result that was asked for. */
static int enter(void)
{
	unsigned call;

	if (process != getpid())
		return NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	call = ++calls;
	if (call == replace_call)
		replace_buffer();
	pthread_mutex_unlock(&lock);
	if (call == fail_call)
		return fail_result;
	return initialised ? SUCCESS : NOT_INITIALIZED;
}

static int pointer_get_attribute(void *value, int attribute, gdri_cu_ptr address)
{
	const struct buffer *buffer = find_buffer(address);
	const int result = enter();
	uint64_t answer = 0;
	size_t width = 8;

	if (result)
		return result;
	if (!buffer)
		return INVALID_VALUE;
	switch (attribute) {
	case GDRI_CU_POINTER_CONTEXT:
		answer = (uint64_t)(uintptr_t)buffer->context;
		break;
	case GDRI_CU_POINTER_MEMORY_TYPE:
		answer = buffer->kind == HOST ? 1 : GDRI_CU_MEMORY_TYPE_DEVICE;
		width = 4;
		break;
	case GDRI_CU_POINTER_BUFFER_ID:
		answer = buffer->id;
		break;
	case GDRI_CU_POINTER_IS_MANAGED:
		answer = buffer->kind == MANAGED;
		width = 1;
		break;
	case GDRI_CU_POINTER_DEVICE_ORDINAL:
		answer = (uint64_t)buffer->block->gpu;
		width = 4;
		break;
	case GDRI_CU_POINTER_IS_LEGACY_IPC_CAPABLE:
		answer = buffer->kind == MALLOC;
		width = 1;
		break;
	case GDRI_CU_POINTER_RANGE_START_ADDR:
		answer = buffer->range_start;
		break;
	case GDRI_CU_POINTER_RANGE_SIZE:
		answer = buffer->range_size;
		break;
	case GDRI_CU_POINTER_ALLOWED_HANDLE_TYPES:
		answer = buffer->kind == VMM && buffer->block->record->exportable;
		break;
	case GDRI_CU_POINTER_MEMPOOL_HANDLE:
		answer = buffer->kind == POOL ? 0x1000 : 0;
		break;
	case GDRI_CU_POINTER_MAPPING_SIZE:
	case GDRI_CU_POINTER_MAPPING_BASE_ADDR:
	case GDRI_CU_POINTER_MEMORY_BLOCK_ID:
		if (fake_machine.no_block_attributes)
			return INVALID_VALUE;
		answer = attribute == GDRI_CU_POINTER_MAPPING_SIZE ? buffer->block->size :
			 attribute == GDRI_CU_POINTER_MAPPING_BASE_ADDR ? buffer->block->base :
									  buffer->block->id;
		break;
	default:
		return INVALID_VALUE;
	}
	memcpy(value, &answer, width);
	return SUCCESS;
}

/* The block that was made before this one. */
static const struct block *neighbour_of(const struct block *block)
{
	return block > blocks && (block - 1)->name.client ? block - 1 : block;
}

static int ipc_get_mem_handle(struct gdri_cu_ipc_handle *handle, gdri_cu_ptr address)
{
	const struct buffer *buffer = find_buffer(address);
	const int result = enter();
	const struct block *named;
	uint32_t word[32] = { 0 };

	if (result)
		return result;
	if (!fake_current_context())
		return INVALID_CONTEXT;
	if (!buffer || buffer->kind != MALLOC || fake_current_context() != buffer->context)
		return INVALID_VALUE;
	named = fake_machine.blob_names_neighbour ? neighbour_of(buffer->block) : buffer->block;
	memcpy(&word[0], &buffer->context, 8);
	word[2] = (uint32_t)getpid();
	memcpy(&word[4], &buffer->size, 8);
	word[6] = (uint32_t)(buffer->block->size / 4096);
	word[7] = (uint32_t)(buffer->start - buffer->block->base);
	word[8] = 6;
	word[9] = 0xff00;
	word[10] = (uint32_t)buffer->block->id + fake_machine.blob_wrong_id;
	word[12] = named->name.client;
	word[13] = named->name.object;
	memmove(&word[fake_machine.blob_shift], word, 64);
	memset(word, 0, fake_machine.blob_shift * sizeof(word[0]));
	memcpy(handle->bytes, word, 64);
	return SUCCESS;
}

static bool out_of_memory(uint64_t size)
{
	bool out;

	fake_lock();
	out = fake_machine.memory_limit && fake_rm_used() + size > fake_machine.memory_limit;
	fake_unlock();
	return out;
}

static int mem_alloc(gdri_cu_ptr *address, size_t size)
{
	const int result = enter();

	if (result)
		return result;
	if (!fake_current_context())
		return INVALID_CONTEXT;
	if (out_of_memory(size))
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	*address = fake_mem_alloc(size);
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

/* Calls that wait for running kernels. */
static int mem_free(gdri_cu_ptr address)
{
	waited = true;
	fake_mem_free(address);
	return SUCCESS;
}

static int memcpy_dtoh(void *out, gdri_cu_ptr address, size_t size)
{
	waited = true;
	memcpy(out, fake_bytes(address), size);
	return SUCCESS;
}

static int memset_d8(gdri_cu_ptr address, unsigned char value, size_t size)
{
	waited = true;
	memset(fake_bytes(address), value, size);
	return SUCCESS;
}

static int mem_create(uint64_t *handle, size_t size, const void *properties,
		      unsigned long long flags)
{
	const int *property = properties;
	const int result = enter();

	if (result)
		return result;
	if (flags || property[0] != 1 || property[2] != 1 || size % FAKE_GRANULE)
		return INVALID_VALUE;
	if (out_of_memory(size))
		return OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	*handle = (uint64_t)(uintptr_t)new_record(property[3], size, property[1] == 1);
	held++;
	pthread_mutex_unlock(&lock);
	return SUCCESS;
}

static int mem_retain(uint64_t *handle, void *address)
{
	const struct buffer *buffer = find_buffer((uint64_t)(uintptr_t)address);
	const int result = enter();

	if (result)
		return result;
	if (!buffer || buffer->kind != VMM)
		return INVALID_VALUE;
	pthread_mutex_lock(&lock);
	buffer->block->record->references++;
	held++;
	pthread_mutex_unlock(&lock);
	*handle = (uint64_t)(uintptr_t)buffer->block->record;
	return SUCCESS;
}

static int mem_release(uint64_t handle)
{
	struct record *record;

	pthread_mutex_lock(&lock);
	record = find_record(handle);
	if (record) {
		held--;
		drop_record(record);
	}
	pthread_mutex_unlock(&lock);
	return record ? SUCCESS : INVALID_VALUE;
}

static int mem_export(void *shareable, uint64_t handle, int type, unsigned long long flags)
{
	const int result = enter();
	const struct record *record;
	int fd, file;

	if (result)
		return result;
	pthread_mutex_lock(&lock);
	record = find_record(handle);
	pthread_mutex_unlock(&lock);
	if (!record || type != GDRI_CU_HANDLE_TYPE_POSIX_FD || flags)
		return INVALID_VALUE;
	if (!record->exportable)
		return NOT_SUPPORTED;
	fake_lock();
	file = fake_file_open(FAKE_FILE_EXPORT, -1);
	fake_file(file)->memory = fake_rm_memory_of(record->name);
	fd = fake_descriptor_new(file);
	fake_unlock();
	if (fd < 0)
		return OUT_OF_MEMORY;
	memcpy(shareable, &fd, sizeof(fd));
	return SUCCESS;
}

static int driver_get_version(int *version)
{
	*version = fake_machine.cuda_version ? fake_machine.cuda_version : 13000;
	return SUCCESS;
}

static int device_get(int *device, int ordinal)
{
	*device = ordinal;
	return enter();
}

static int device_get_attribute(int *value, int attribute, int device)
{
	const int result = enter();

	if (result)
		return result;
	*value = attribute == GDRI_CU_DEVICE_PCI_DOMAIN_ID ? 1 :
		 attribute == GDRI_CU_DEVICE_PCI_BUS_ID ? (int)fake_rm_bus(device) : 0;
	return SUCCESS;
}

static int ctx_get_current(void **context)
{
	const int result = enter();

	if (result == 0)
		*context = fake_current_context();
	return result;
}

static int ctx_push_current(void *context)
{
	const int result = enter();

	if (result == 0)
		context_stack[context_depth++] = context;
	return result;
}

static int ctx_pop_current(void **context)
{
	*context = context_stack[--context_depth];
	return SUCCESS;
}

static int get_error_name(int result, const char **name)
{
	*name = result == INVALID_VALUE ? "CUDA_ERROR_INVALID_VALUE" : "CUDA_ERROR";
	return SUCCESS;
}

static const struct gdri_cuda driver = {
	.driver_get_version = driver_get_version,
	.pointer_get_attribute = pointer_get_attribute,
	.ipc_get_mem_handle = ipc_get_mem_handle,
	.mem_alloc = mem_alloc,
	.mem_free = mem_free,
	.memcpy_dtoh = memcpy_dtoh,
	.memset_d8 = memset_d8,
	.mem_create = mem_create,
	.mem_retain_allocation_handle = mem_retain,
	.mem_release = mem_release,
	.mem_export_to_shareable_handle = mem_export,
	.device_get = device_get,
	.device_get_attribute = device_get_attribute,
	.ctx_get_current = ctx_get_current,
	.ctx_push_current = ctx_push_current,
	.ctx_pop_current = ctx_pop_current,
	.get_error_name = get_error_name,
};

const struct gdri_cuda *fake_cuda(void)
{
	return &driver;
}

int gdri_os_cuda_load(struct gdri_cuda *cuda)
{
	if (fake_machine.no_libcuda)
		return -ENOENT;
	*cuda = driver;
	return 0;
}

void gdri_os_cuda_unload(struct gdri_cuda *cuda)
{
	memset(cuda, 0, sizeof(*cuda));
}
