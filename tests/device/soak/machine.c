/* SPDX-License-Identifier: MIT */
/* Opens a GPU for the engine without a session: the resource manager's, or an emulated one. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "copy/dma/port_emu.h"
#include "copy/dma/port_rm.h"
#include "gdrcopy_emu.h"
#include "rm/memory.h"
#include "rm/range.h"
#include "soak/soak.h"

/* What memory_open has to undo: of one of the two ports. */
struct hold {
	struct gdri_rm_range rm;
	struct gdri_rm_window window;
	struct gdrcopy_emu_range emu;
};

static struct gdri_dma_port_rm rm_port;
static struct gdri_dma_port_emu emu_port;

static void must_rm(const char *what, int rc, const struct gdri_rm_failure *failure)
{
	char text[128];

	if (rc == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, gdri_rm_failure_text(failure, text, sizeof(text)));
	exit(1);
}

void *machine_find(const struct machine *machine, const char *symbol)
{
	void *found = dlsym(machine->cuda.library, symbol);

	if (!found)
		must(symbol, -1);
	return found;
}

static void open_emulated(struct machine *machine)
{
	gdrcopy_emu_entry_fn get;

	*(void **)&get = machine_find(machine, GDRCOPY_EMU_ENTRY);
	must("ABI of the emulated driver", get()->abi != GDRCOPY_EMU_ABI);
	gdri_dma_port_emu_init(&emu_port, get(), &machine->log);
	machine->port = &emu_port.base;
}

static void open_real(struct machine *machine)
{
	struct gdri_rm_failure failure;
	struct gdri_rm_client *client;

	if (dlsym(machine->cuda.library, GDRCOPY_EMU_ENTRY)) {
		fprintf(stderr, "libcuda is the emulated driver: say --port emu\n");
		exit(1);
	}
	must_rm("resource manager", gdri_rm_client_acquire(&client, &failure), &failure);
	gdri_dma_port_rm_init(&rm_port, client, false, &machine->log);
	machine->port = &rm_port.base;
}

void machine_open(struct machine *machine, bool emulated)
{
	struct gdri_cuda *cuda = &machine->cuda;
	int device;

	machine->log.level = GDRI_LOG_WARN;
	must("libcuda", gdri_os_cuda_load(cuda));
	must("cuInit", cuda->init(0));
	must("cuDeviceGet", cuda->device_get(&device, 0));
	must("cuDevicePrimaryCtxRetain", cuda->primary_ctx_retain(&machine->context, device));
	must("cuCtxSetCurrent", cuda->ctx_set_current(machine->context));
	gdri_copy_engine_select(NULL, &machine->log, &machine->routines);
	if (emulated)
		open_emulated(machine);
	else
		open_real(machine);
}

static void hold_emulated(struct memory *memory, struct hold *hold)
{
	struct gdrcopy_emu_range *range = &hold->emu;
	off_t at;

	must("pin", emu_port.entry->hold(memory->ptr, memory->size, range));
	at = (off_t)(range->file_offset + (memory->ptr - range->object_va));
	memory->window = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, range->fd,
			      at);
	must("window", memory->window == MAP_FAILED);
	memory->described = (struct gdri_dma_memory){
		.device = (unsigned)range->device,
		.object = range,
		.offset = memory->ptr - range->object_va,
		.length = memory->size,
	};
}

static gdr_mapping_type_t type_of(const struct gdri_rm_window *window)
{
	switch (window->caching) {
	case GDRI_RM_CACHING_WRITE_COMBINED:
		return GDR_MAPPING_TYPE_WC;
	case GDRI_RM_CACHING_CACHED:
	case GDRI_RM_CACHING_WRITE_BACK:
		return GDR_MAPPING_TYPE_CACHING;
	default:
		return GDR_MAPPING_TYPE_DEVICE;
	}
}

static gdr_mapping_type_t hold_real(struct machine *machine, struct memory *memory,
				    struct hold *hold)
{
	struct gdri_rm_range *range = &hold->rm;
	struct gdri_rm_failure failure;

	must("pin", gdri_rm_range_acquire(rm_port.client, &machine->cuda, memory->ptr,
					  memory->size, &machine->log, range));
	must_rm("window", gdri_rm_memory_map(range->client, range->device, range->object,
					     range->offset, memory->size, &hold->window, &failure),
		&failure);
	memory->window = hold->window.base;
	memory->described = gdri_dma_port_rm_memory(range, range->offset, memory->size);
	return type_of(&hold->window);
}

void memory_open(struct machine *machine, size_t size, struct memory *memory)
{
	gdr_mapping_type_t type = GDR_MAPPING_TYPE_WC;
	struct hold *hold = calloc(1, sizeof(*hold));

	must("memory", !hold);
	/* Whole blocks of CUDA's, so that the window starts on a page. */
	size = (size + MIB(2) - 1) & ~(MIB(2) - 1);
	memory->size = size;
	memory->priv = hold;
	must("cuMemAlloc", machine->cuda.mem_alloc(&memory->ptr, size));
	if (machine->port == &emu_port.base)
		hold_emulated(memory, hold);
	else
		type = hold_real(machine, memory, hold);
	memory->described.va = memory->ptr;
	memory->store = machine->routines.to_mapping[type];
	memory->load = machine->routines.from_mapping[type];
}

void memory_close(struct machine *machine, struct memory *memory)
{
	struct hold *hold = memory->priv;

	if (machine->port == &emu_port.base) {
		munmap(memory->window, memory->size);
		emu_port.entry->release(hold->emu.memory);
	} else {
		must("unmap of the window",
		     gdri_rm_memory_unmap(hold->rm.client, hold->rm.device, hold->rm.object,
					  &hold->window));
		must("unpin", gdri_rm_range_release(&hold->rm));
	}
	must("cuMemFree", machine->cuda.mem_free(memory->ptr));
	free(hold);
}

unsigned machine_list_engines(struct machine *machine, struct gdri_dma_engine *engines)
{
	const struct gdri_dma_port_ops *ops = machine->port->ops;
	struct gdri_dma_space *space;
	struct memory memory;
	int count;

	/* The port's number of the device is known from memory of it. */
	memory_open(machine, MIB(2), &memory);
	must("space", ops->open_space(machine->port, memory.described.device, &space));
	count = ops->list_engines(space, engines);
	must("list of engines", count <= 0);
	must("space", ops->close_space(space));
	memory_close(machine, &memory);
	return (unsigned)count;
}
