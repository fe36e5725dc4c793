/* SPDX-License-Identifier: MIT */
/* Host memory that the program registered with a session of version 3. */
#include <errno.h>
#include <stdlib.h>

#include "core/buffer_parts.h"
#include "os/sys.h"

/*
 * States, changed under the session's lock: reserved -> ready -> gone.  A
 * reserved range keeps others off its pages while the engine pins them; only a
 * ready one can be unregistered.
 */
struct gdri_host_range {
	struct gdri_host_range *next;
	uintptr_t base;		/* whole pages */
	uintptr_t end;
	void *name;		/* as the program gave it */
	bool ready;
	bool by_engine;
};

static const struct gdri_log *log_of(const struct gdri_context *context)
{
	return &context->config.log;
}

/* The range in whole pages; false when it is none. */
static bool page_range(const void *ptr, size_t size, uintptr_t *base, uintptr_t *end)
{
	const uintptr_t page = gdri_os_page_size();
	uintptr_t last;

	if (!ptr || size == 0 || __builtin_add_overflow((uintptr_t)ptr, size, &last) ||
	    last > UINTPTR_MAX - page)
		return false;
	*base = (uintptr_t)ptr & ~(page - 1);
	*end = (last + page - 1) & ~(page - 1);
	return true;
}

/* The rest of the list's functions are called with the lock held. */
static bool overlaps(const struct gdri_buffer_session *session, uintptr_t base, uintptr_t end)
{
	for (const struct gdri_host_range *range = session->ranges; range; range = range->next)
		if (base < range->end && range->base < end)
			return true;
	return false;
}

static struct gdri_host_range *find_ready(const struct gdri_buffer_session *session,
					  const void *name)
{
	struct gdri_host_range *range = session->ranges;

	while (range && (range->name != name || !range->ready))
		range = range->next;
	return range;
}

static void unlink_range(struct gdri_buffer_session *session, const struct gdri_host_range *range)
{
	struct gdri_host_range **link = &session->ranges;

	while (*link != range)
		link = &(*link)->next;
	*link = range->next;
}

/* A session without engines keeps the range all the same: the answers are the same everywhere. */
static int give_to_engine(struct gdri_context *context, void *ptr, size_t size, bool *by_engine)
{
	int rc = gdri_core_dma_register(context, ptr, size);

	*by_engine = rc == 0;
	if (rc == 0 || rc == -EOPNOTSUPP)
		return 0;
	gdri_error(log_of(context), "host_register: %zu bytes at %p: error %d; check ulimit -l, and "
		   "that the memory is mapped and writable", size, ptr, -rc);
	return rc == -EEXIST ? -EINVAL : rc;
}

static int reserve(struct gdri_context *context, void *ptr, size_t size,
		   struct gdri_host_range **reserved)
{
	struct gdri_buffer_session *session = context->buffers;
	struct gdri_host_range *range = calloc(1, sizeof(*range));
	bool fits;

	if (!range)
		return -ENOMEM;
	range->name = ptr;
	pthread_mutex_lock(&context->lock);
	fits = page_range(ptr, size, &range->base, &range->end) &&
	       !overlaps(session, range->base, range->end);
	if (fits) {
		range->next = session->ranges;
		session->ranges = range;
	}
	pthread_mutex_unlock(&context->lock);
	if (!fits) {
		gdri_error(log_of(context), "host_register: %zu bytes at %p are not a range, or share a "
			   "page with one that is registered", size, ptr);
		free(range);
		return -EINVAL;
	}
	*reserved = range;
	return 0;
}

int gdri_core_buffer_register(struct gdri_context *context, void *ptr, size_t size)
{
	struct gdri_buffer_session *session = gdri_core_buffer_session(context);
	struct gdri_host_range *range;
	bool by_engine;
	int rc;

	if (!session)
		return -ENOMEM;
	rc = reserve(context, ptr, size, &range);
	if (rc)
		return rc;
	rc = give_to_engine(context, ptr, size, &by_engine);
	pthread_mutex_lock(&context->lock);
	range->by_engine = by_engine;
	range->ready = rc == 0;
	if (rc)
		unlink_range(session, range);
	pthread_mutex_unlock(&context->lock);
	if (rc)
		free(range);
	return rc;
}

int gdri_core_buffer_unregister(struct gdri_context *context, void *ptr)
{
	struct gdri_buffer_session *session = gdri_core_buffer_session(context);
	struct gdri_host_range *range;
	int rc = 0;

	if (!session)
		return -ENOMEM;
	pthread_mutex_lock(&context->lock);
	range = find_ready(session, ptr);
	if (range)
		unlink_range(session, range);
	pthread_mutex_unlock(&context->lock);
	if (!range) {
		gdri_error(log_of(context), "host_unregister: %p is not registered; give the address "
			   "that was registered", ptr);
		return -EINVAL;
	}
	if (range->by_engine)
		rc = gdri_core_dma_unregister(context, ptr);
	free(range);
	return rc;
}

void gdri_core_buffer_close(struct gdri_context *context)
{
	struct gdri_buffer_session *session = context->buffers;

	if (!session)
		return;
	while (session->ranges) {
		gdri_info(log_of(context), "close: unregisters %p", session->ranges->name);
		gdri_core_buffer_unregister(context, session->ranges->name);
	}
	gdri_os_cuda_unload(&session->cuda);
	free(session);
	context->buffers = NULL;
}
