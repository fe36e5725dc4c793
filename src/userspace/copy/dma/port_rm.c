/* SPDX-License-Identifier: MIT */
/* Drives copy-engine channels of NVIDIA's resource manager. */
#include "copy/dma/port_rm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "os/sys.h"
#include "rm/channel.h"

/*
 * Everything that the device reads lies in one block of video memory, which
 * both sides see: a host engine fetches from there in a fraction of the
 * microsecond that a fetch from host memory takes.  One slot a queue, then
 * scratch memory.
 */
#define BLOCK_SIZE ((size_t)2 << 20)
#define SLOT_SIZE ((size_t)128 << 10)
#define SLOTS 8u
#define RING_OFFSET 0u
#define RING_ENTRIES 512u
#define USERD_OFFSET 4096u
#define PUSH_OFFSET ((size_t)64 << 10)
#define PUSH_WORDS 16384u
#define SCRATCH_OFFSET (SLOTS * SLOT_SIZE)

/* A page of host memory for each queue: notifiers have to stand at its beginning. */
#define SEMAPHORE_OFFSET 2048u

_Static_assert(RING_ENTRIES * sizeof(uint64_t) <= USERD_OFFSET, "ring before USERD");
_Static_assert(PUSH_OFFSET + PUSH_WORDS * sizeof(uint32_t) <= SLOT_SIZE, "push buffer in its slot");

struct rm_space {
	struct gdri_dma_space base;
	struct gdri_rm_space rm;
	const struct gdri_rm_generation *generation;
	struct gdri_rm_doorbell doorbell;
	uint32_t block;			/* object */
	struct gdri_rm_window window;	/* of all of it, for the CPU */
	uint64_t address;		/* and for the device */
	size_t scratch_used;
	pthread_mutex_t lock;		/* slots */
	unsigned slots;			/* taken, one bit each */
	bool lost;			/* a channel was not confirmed to be gone */
};

struct rm_queue {
	struct gdri_rm_channel channel;
	unsigned slot;
	void *page;
	size_t page_size;
	uint32_t object;		/* the page's */
	uint64_t address;
};

static struct gdri_dma_port_rm *port_of(struct gdri_dma_port *port)
{
	return (struct gdri_dma_port_rm *)port;
}

static struct rm_space *space_of(struct gdri_dma_space *space)
{
	return (struct rm_space *)space;
}

/* Whoever asks has another road, so a refusal is a line for debugging. */
static int report(const struct gdri_dma_port *port, const char *what, int rc,
		  const struct gdri_rm_failure *failure)
{
	char text[128];

	if (rc < 0)
		gdri_debug(port->log, "copy engines: %s: %s", what,
			   gdri_rm_failure_text(failure, text, sizeof(text)));
	return rc;
}

static int check_device(const struct gdri_dma_port_rm *port, const struct gdri_rm_device *device)
{
	const char *mode = port->client->conf_compute ? "confidential-computing" :
			   device->virtualization == GDRI_RM_VIRTUALIZATION_VGX_GUEST ? "vGPU" :
			   device->smc_mode == GDRI_RM_SMC_MODE_ENABLED ? "MIG" : NULL;

	if (!mode || port->forced)
		return 0;
	gdri_debug(port->base.log, "copy engines: the GPU runs in %s mode, where channels were not "
		   "tried; GDRCOPY_BACKEND=nvrm tries it all the same", mode);
	return -EOPNOTSUPP;
}

static int map_block(struct rm_space *space, struct gdri_rm_failure *failure)
{
	struct gdri_rm_space *rm = &space->rm;
	int rc;

	rc = gdri_rm_space_alloc(rm, BLOCK_SIZE, &space->block, failure);
	if (rc)
		return rc;
	rc = gdri_rm_space_map(rm, space->block, 0, BLOCK_SIZE, false, &space->address, failure);
	if (rc)
		goto err_free;
	rc = gdri_rm_memory_map(rm->client, rm->device, space->block, 0, BLOCK_SIZE,
				&space->window, failure);
	if (rc)
		goto err_unmap;
	return 0;
err_unmap:
	gdri_rm_space_unmap(rm, space->block, space->address);
err_free:
	gdri_rm_memory_free(rm->client, rm->device, space->block);
	return rc;
}

static int unmap_block(struct rm_space *space)
{
	struct gdri_rm_space *rm = &space->rm;
	int rc = gdri_rm_memory_unmap(rm->client, rm->device, space->block, &space->window);
	int unmap_rc = gdri_rm_space_unmap(rm, space->block, space->address);
	int free_rc = gdri_rm_memory_free(rm->client, rm->device, space->block);

	return rc ? rc : unmap_rc ? unmap_rc : free_rc;
}

static int fill_space(struct rm_space *space, struct gdri_rm_failure *failure)
{
	int rc = gdri_rm_channel_generation(&space->rm, &space->generation, failure);

	if (rc)
		return rc;
	rc = gdri_rm_doorbell_open(&space->rm, space->generation, &space->doorbell, failure);
	if (rc)
		return rc;
	rc = map_block(space, failure);
	if (rc)
		gdri_rm_doorbell_close(&space->rm, &space->doorbell);
	return rc;
}

static int open_space(struct gdri_dma_port *base, unsigned number, struct gdri_dma_space **opened)
{
	struct gdri_dma_port_rm *port = port_of(base);
	struct gdri_rm_device *device = &port->client->device[number];
	struct gdri_rm_failure failure;
	struct rm_space *space;
	int rc;

	rc = check_device(port, device);
	if (rc)
		return rc;
	space = calloc(1, sizeof(*space));
	if (!space)
		return -ENOMEM;
	space->base.port = base;
	rc = gdri_rm_space_open(port->client, device, &space->rm, &failure);
	if (rc)
		goto err_free;
	rc = fill_space(space, &failure);
	if (rc)
		goto err_close;
	pthread_mutex_init(&space->lock, NULL);
	gdri_debug(base->log, "copy engines: a space on /dev/nvidia%u, channels of %s",
		   device->minor, space->generation->name);
	*opened = &space->base;
	return 0;
err_close:
	gdri_rm_space_close(&space->rm);
err_free:
	free(space);
	return report(base, "opening a space", rc, &failure);
}

/* After a lost channel the block stays for ever: the device may still read it. */
static int close_space(struct gdri_dma_space *base)
{
	struct rm_space *space = space_of(base);
	int rc, bell_rc, space_rc;

	if (space->lost)
		return -EOWNERDEAD;
	rc = unmap_block(space);
	bell_rc = gdri_rm_doorbell_close(&space->rm, &space->doorbell);
	space_rc = gdri_rm_space_close(&space->rm);
	pthread_mutex_destroy(&space->lock);
	free(space);
	return rc ? rc : bell_rc ? bell_rc : space_rc;
}

static int list_engines(struct gdri_dma_space *base, struct gdri_dma_engine *engines)
{
	struct gdri_rm_copy_engine found[GDRI_RM_MAX_COPY_ENGINES];
	struct gdri_rm_failure failure;
	int count = gdri_rm_channel_engines(&space_of(base)->rm, found, &failure);

	if (count < 0)
		return report(base->port, "list of engines", count, &failure);
	for (int i = 0; i < count; i++) {
		engines[i] = (struct gdri_dma_engine){
			.number = found[i].number,
			.width = (unsigned)__builtin_popcount(found[i].physical),
		};
		for (int k = 0; k < count; k++)
			if (k != i && (found[k].physical & found[i].physical))
				engines[i].shared = true;
	}
	return count;
}

static int take_slot(struct rm_space *space, unsigned *slot)
{
	int rc = -EBUSY;

	pthread_mutex_lock(&space->lock);
	for (unsigned i = 0; i < SLOTS && rc; i++) {
		if (space->slots & 1u << i)
			continue;
		space->slots |= 1u << i;
		*slot = i;
		rc = 0;
	}
	pthread_mutex_unlock(&space->lock);
	return rc;
}

static void give_slot_back(struct rm_space *space, unsigned slot)
{
	pthread_mutex_lock(&space->lock);
	space->slots &= ~(1u << slot);
	pthread_mutex_unlock(&space->lock);
}

static int make_page(struct rm_space *space, struct rm_queue *queue,
		     struct gdri_rm_failure *failure)
{
	int rc;

	queue->page_size = gdri_os_page_size();
	rc = gdri_os_mmap(queue->page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0, &queue->page);
	if (rc)
		return gdri_rm_failure_set(failure, "mmap of a page", rc);
	rc = gdri_os_dontfork(queue->page, queue->page_size);
	if (rc) {
		gdri_rm_failure_set(failure, "madvise(MADV_DONTFORK)", rc);
		goto err_unmap;
	}
	memset(queue->page, 0, queue->page_size);
	rc = gdri_rm_space_pin_host(&space->rm, queue->page, queue->page_size, &queue->object,
				    failure);
	if (rc)
		goto err_unmap;
	rc = gdri_rm_space_map(&space->rm, queue->object, 0, queue->page_size, true,
			       &queue->address, failure);
	if (rc == 0)
		return 0;
	gdri_rm_memory_free(space->rm.client, space->rm.device, queue->object);
err_unmap:
	gdri_os_munmap(queue->page, queue->page_size);
	return rc;
}

static int destroy_page(struct rm_space *space, struct rm_queue *queue)
{
	int rc = gdri_rm_space_unmap(&space->rm, queue->object, queue->address);
	int free_rc = gdri_rm_memory_free(space->rm.client, space->rm.device, queue->object);
	int unmap_rc = gdri_os_munmap(queue->page, queue->page_size);

	return rc ? rc : free_rc ? free_rc : unmap_rc;
}

static void describe_queue(struct rm_space *space, struct rm_queue *made,
			   const struct gdri_dma_engine *engine, struct gdri_dma_queue *queue)
{
	const size_t offset = made->slot * SLOT_SIZE;
	char *slot = (char *)space->window.base + offset;
	const struct gdri_rm_notification *notification = made->page;

	*queue = (struct gdri_dma_queue){
		.space = &space->base,
		.ring = (volatile uint64_t *)(slot + RING_OFFSET),
		.ring_entries = RING_ENTRIES,
		.push = (volatile uint32_t *)(slot + PUSH_OFFSET),
		.push_address = space->address + offset + PUSH_OFFSET,
		.push_words = PUSH_WORDS,
		.put = (volatile uint32_t *)(slot + USERD_OFFSET + GDRI_RM_USERD_GP_PUT),
		.get = (volatile uint32_t *)(slot + USERD_OFFSET + GDRI_RM_USERD_GP_GET),
		.doorbell = space->doorbell.word,
		.token = made->channel.token,
		.doorbell_apart = !space->generation->doorbell_in_bar1,
		.copy_class = space->generation->copy,
		.semaphore = (volatile uint32_t *)((char *)made->page + SEMAPHORE_OFFSET),
		.semaphore_address = made->address + SEMAPHORE_OFFSET,
		.notifier = (volatile const uint16_t *)&notification->info32,
		.engine = *engine,
		.priv = made,
	};
}

/* A new channel begins with an empty ring, whatever the slot held before. */
static void clear_slot(struct rm_space *space, unsigned slot)
{
	volatile uint64_t *words = (volatile uint64_t *)((char *)space->window.base +
							 slot * SLOT_SIZE);

	for (size_t i = 0; i < (USERD_OFFSET + GDRI_RM_USERD_SIZE) / sizeof(*words); i++)
		words[i] = 0;
	/* Posted writes; a read brings them home before the driver sets up the channel. */
	(void)words[0];
}

static int open_queue(struct gdri_dma_space *base, const struct gdri_dma_engine *engine,
		      struct gdri_dma_queue *queue)
{
	struct rm_space *space = space_of(base);
	struct rm_queue *made = calloc(1, sizeof(*made));
	struct gdri_rm_channel_memory memory = {
		.ring_entries = RING_ENTRIES,
		.userd_object = space->block,
	};
	struct gdri_rm_failure failure;
	int rc;

	if (!made)
		return -ENOMEM;
	rc = take_slot(space, &made->slot);
	if (rc) {
		gdri_rm_failure_set(&failure, "search for a free slot", rc);
		goto err_free;
	}
	clear_slot(space, made->slot);
	rc = make_page(space, made, &failure);
	if (rc)
		goto err_slot;
	memory.ring_address = space->address + made->slot * SLOT_SIZE + RING_OFFSET;
	memory.userd_offset = made->slot * SLOT_SIZE + USERD_OFFSET;
	memory.notifier_object = made->object;
	rc = gdri_rm_channel_open(&space->rm, space->generation, engine->number, &memory,
				  &made->channel, &failure);
	if (rc)
		goto err_page;
	describe_queue(space, made, engine, queue);
	return 0;
err_page:
	destroy_page(space, made);
err_slot:
	give_slot_back(space, made->slot);
err_free:
	free(made);
	return report(base->port, "opening a channel", rc, &failure);
}

static int close_queue(struct gdri_dma_queue *queue)
{
	struct rm_space *space = space_of(queue->space);
	struct rm_queue *made = queue->priv;
	int rc = gdri_rm_channel_close(&space->rm, &made->channel);

	if (rc) {
		space->lost = true;
		return rc;
	}
	rc = destroy_page(space, made);
	give_slot_back(space, made->slot);
	free(made);
	if (rc)
		gdri_debug(queue->space->port->log, "copy engines: release of a channel's page: %d",
			   rc);
	return 0;
}

static int map_memory(struct gdri_dma_space *base, const struct gdri_dma_memory *memory,
		      struct gdri_dma_view *view)
{
	const struct gdri_rm_range *range = memory->object;
	struct rm_space *space = space_of(base);
	struct gdri_rm_failure failure;
	uint64_t address;
	int rc;

	if (range->device != space->rm.device) {
		gdri_debug(base->port->log, "copy engines: memory of another device is not reached");
		return -EOPNOTSUPP;
	}
	rc = gdri_rm_space_map(&space->rm, range->object, memory->offset, memory->length, false,
			       &address, &failure);
	if (rc)
		return report(base->port, "map of device memory", rc, &failure);
	*view = (struct gdri_dma_view){
		.address = address,
		.length = memory->length,
		.priv = { range->object, 0 },
	};
	return 0;
}

static int map_host(struct gdri_dma_space *base, void *memory, size_t length,
		    struct gdri_dma_view *view)
{
	struct rm_space *space = space_of(base);
	struct gdri_rm_failure failure;
	uint64_t address;
	uint32_t object;
	int rc;

	rc = gdri_rm_space_pin_host(&space->rm, memory, length, &object, &failure);
	if (rc)
		return report(base->port, "pinning of host memory", rc, &failure);
	rc = gdri_rm_space_map(&space->rm, object, 0, length, true, &address, &failure);
	if (rc) {
		gdri_rm_memory_free(space->rm.client, space->rm.device, object);
		return report(base->port, "map of host memory", rc, &failure);
	}
	*view = (struct gdri_dma_view){
		.address = address,
		.length = length,
		.priv = { object, 1 },
	};
	return 0;
}

/* Only the objects of host memory are ours. */
static int unmap(struct gdri_dma_space *base, struct gdri_dma_view *view)
{
	struct rm_space *space = space_of(base);
	const uint32_t object = (uint32_t)view->priv[0];
	int rc = gdri_rm_space_unmap(&space->rm, object, view->address);
	int free_rc = 0;

	if (view->priv[1])
		free_rc = gdri_rm_memory_free(space->rm.client, space->rm.device, object);
	return rc ? rc : free_rc;
}

static int scratch(struct gdri_dma_space *base, size_t length, void **memory, uint64_t *address)
{
	struct rm_space *space = space_of(base);
	const size_t page = gdri_os_page_size();
	const size_t offset = SCRATCH_OFFSET + space->scratch_used;

	length = (length + page - 1) & ~(page - 1);
	if (length > BLOCK_SIZE - offset)
		return -ENOMEM;
	space->scratch_used += length;
	*memory = (char *)space->window.base + offset;
	*address = space->address + offset;
	return 0;
}

static const struct gdri_dma_port_ops rm_ops = {
	.name = "resource manager",
	.open_space = open_space,
	.close_space = close_space,
	.list_engines = list_engines,
	.open_queue = open_queue,
	.close_queue = close_queue,
	.map_memory = map_memory,
	.map_host = map_host,
	.unmap = unmap,
	.scratch = scratch,
};

void gdri_dma_port_rm_init(struct gdri_dma_port_rm *port, struct gdri_rm_client *client,
			   bool forced, const struct gdri_log *log)
{
	*port = (struct gdri_dma_port_rm){
		.base = { .ops = &rm_ops, .log = log },
		.client = client,
		.forced = forced,
	};
}

struct gdri_dma_memory gdri_dma_port_rm_memory(const struct gdri_rm_range *range,
					       uint64_t offset, uint64_t length)
{
	return (struct gdri_dma_memory){
		.device = (unsigned)(range->device - range->client->device),
		.object = range,
		.offset = offset,
		.length = length,
	};
}
