/* SPDX-License-Identifier: MIT */
/* Large reads straight into pageable memory, which is pinned window by window. */
#include "copy/dma/window.h"

#include <errno.h>

#define WINDOWS 2u

struct window {
	struct gdri_dma_view view;
	uint32_t ticket;
};

/* Windows head to tail - 1 are with the engine. */
struct progress {
	struct gdri_dma_device *device;
	struct gdri_dma_target *target;
	uint64_t address;
	uint8_t *host;
	size_t size;
	size_t started;
	bool refused;		/* by the driver: no more windows */
	unsigned head, tail;
	struct window window[WINDOWS];
};

static struct window *window_at(struct progress *progress, unsigned n)
{
	return &progress->window[n % WINDOWS];
}

static void unpin(struct progress *progress, struct window *window)
{
	struct gdri_dma_space *space = progress->device->space;
	const int rc = space->port->ops->unmap(space, &window->view);

	if (rc)
		gdri_debug(space->port->log, "DMA: unpinning of host memory: error %d", -rc);
}

static int start_window(struct progress *progress)
{
	const size_t most = progress->device->dma->options.pin_window;
	const size_t left = progress->size - progress->started;
	const size_t length = left < most ? left : most;
	struct window *window = window_at(progress, progress->tail);
	struct gdri_dma_space *space = progress->device->space;
	struct gdri_dma_launch launch;
	int rc;

	rc = space->port->ops->map_host(space, progress->host + progress->started, length,
					&window->view);
	if (rc) {
		progress->refused = true;
		return 0;
	}
	launch = (struct gdri_dma_launch){
		.src = progress->address + progress->started,
		.dst = window->view.address,
		.size = length,
	};
	rc = gdri_dma_run(progress->device, GDRI_DMA_WAY_FROM, progress->target, &launch, 1, 0,
			  &window->ticket);
	if (rc == 0) {
		progress->started += length;
		progress->tail++;
	} else if (rc != -EOWNERDEAD) {
		unpin(progress, window);
	}
	return rc;
}

static int finish_window(struct progress *progress, size_t *done)
{
	struct window *window = window_at(progress, progress->head);
	const int rc = gdri_dma_wait(progress->device, GDRI_DMA_WAY_FROM, progress->target,
				     window->ticket);

	if (rc)
		return rc;
	*done += window->view.length;
	unpin(progress, window);
	progress->head++;
	return 0;
}

static bool can_start(const struct progress *progress)
{
	return !progress->refused && progress->started < progress->size &&
	       progress->tail - progress->head < WINDOWS;
}

int gdri_dma_read_windows(struct gdri_dma_target *target, uint64_t address, uint8_t *host,
			  size_t size, size_t *done)
{
	struct progress progress = {
		.device = target->device,
		.target = target,
		.address = address,
		.host = host,
		.size = size,
	};
	int rc = 0;

	*done = 0;
	while (rc == 0 && (can_start(&progress) || progress.head != progress.tail))
		rc = can_start(&progress) ? start_window(&progress) :
					    finish_window(&progress, done);
	/* What a lost channel may still write to stays pinned for ever. */
	for (; rc && rc != -EOWNERDEAD && progress.head != progress.tail; progress.head++)
		unpin(&progress, window_at(&progress, progress.head));
	return rc;
}
