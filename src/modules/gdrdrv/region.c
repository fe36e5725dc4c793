/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Pinned ranges of a session: made, found by handle, ended. */
#include "internal.h"

#include <linux/slab.h>
#include <linux/string.h>

/*
 * Handles are page offsets in the file.  Libraries keep 32 bits of them, so
 * that a larger one would alias another region.
 */
#define MAX_HANDLE 0xffffffffULL

static void free_region(struct kref *refs)
{
	struct gdrdrv_region *region = container_of(refs, struct gdrdrv_region, refs);
	struct gdrdrv_session *session = region->session;

	/* A token gives access to memory. */
	memzero_explicit(region, sizeof(*region));
	kfree(region);
	gdrdrv_session_put(session);
}

void gdrdrv_region_get(struct gdrdrv_region *region)
{
	kref_get(&region->refs);
}

bool gdrdrv_region_tryget(struct gdrdrv_region *region)
{
	return kref_get_unless_zero(&region->refs);
}

void gdrdrv_region_put(struct gdrdrv_region *region)
{
	kref_put(&region->refs, free_region);
}

/* Rounded out to GPU pages; false where that is empty or leaves 64 bits. */
static bool round_range(const struct gdrdrv_pin_request *request, u64 *va, u64 *size)
{
	u64 end = request->addr + request->size, last;

	if (!request->addr || !request->size || end < request->addr)
		return false;
	last = end + GDRDRV_GPU_PAGE_MASK;
	if (last < end)
		return false;
	*va = request->addr & ~GDRDRV_GPU_PAGE_MASK;
	*size = (last & ~GDRDRV_GPU_PAGE_MASK) - *va;
	/* Page tables count their entries with 32 bits. */
	return *size >> GDRDRV_GPU_PAGE_SHIFT <= U32_MAX;
}

static struct gdrdrv_region *alloc_region(struct gdrdrv_session *session,
					  const struct gdrdrv_pin_request *request)
{
	struct gdrdrv_region *region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);

	if (!region)
		return NULL;
	kref_init(&region->refs);
	gdrdrv_session_get(session);
	region->session = session;
	INIT_HLIST_NODE(&region->registered);
	mutex_init(&region->lock);
	region->p2p_token = request->p2p_token;
	region->va_space = request->va_space;
	region->pin_flags = request->flags;
	region->aligned = !(request->addr & GDRDRV_GPU_PAGE_MASK);
	return region;
}

/* Handles only grow, so that the newest is the rightmost of the tree. */
static void add_to_tree(struct rb_root *root, struct gdrdrv_region *region)
{
	struct rb_node **link = &root->rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		link = &parent->rb_right;
	}
	rb_link_node(&region->node, parent, link);
	rb_insert_color(&region->node, root);
}

/* From here on another thread may end the region. */
static int publish_region(struct gdrdrv_session *session, struct gdrdrv_region *region, u64 *handle)
{
	u64 pages = max_t(u64, 1, region->size >> PAGE_SHIFT);
	int ret = -ENOMEM;

	mutex_lock(&session->lock);
	if (session->next_handle + pages - 1 <= MAX_HANDLE) {
		*handle = region->handle = session->next_handle;
		session->next_handle += pages;
		add_to_tree(&session->regions, region);
		ret = 0;
	}
	mutex_unlock(&session->lock);
	return ret;
}

static void end_region(struct gdrdrv_region *region)
{
	gdrdrv_pages_release(region);
	gdrdrv_pool_give_back(region->session->account, region->charge);
	gdrdrv_region_put(region);
}

int gdrdrv_region_pin(struct gdrdrv_session *session, const struct gdrdrv_pin_request *request,
		      u64 *handle)
{
	struct gdrdrv_region *region;
	u64 va, size, charge;
	int ret;

	if (!round_range(request, &va, &size))
		return -EINVAL;
	charge = (size >> GDRDRV_GPU_PAGE_SHIFT) * GDRDRV_POOL_PAGE_COST + sizeof(*region);
	ret = gdrdrv_pool_charge(session->account, charge);
	if (ret)
		return ret;
	region = alloc_region(session, request);
	if (!region) {
		ret = -ENOMEM;
		goto err_charge;
	}
	region->va = va;
	region->size = size;
	region->charge = charge;
	ret = gdrdrv_pages_get(region);
	if (ret) {
		gdrdrv_region_put(region);
		goto err_charge;
	}
	ret = publish_region(session, region, handle);
	if (ret)
		end_region(region);
	return ret;

err_charge:
	gdrdrv_pool_give_back(session->account, charge);
	return ret;
}

/* session->lock is held. */
static struct gdrdrv_region *look_up(struct gdrdrv_session *session, u64 handle)
{
	struct rb_node *node = session->regions.rb_node;

	while (node) {
		struct gdrdrv_region *region = rb_entry(node, struct gdrdrv_region, node);

		if (handle == region->handle)
			return region;
		node = handle < region->handle ? node->rb_left : node->rb_right;
	}
	return NULL;
}

struct gdrdrv_region *gdrdrv_region_find(struct gdrdrv_session *session, u64 handle)
{
	struct gdrdrv_region *region;

	mutex_lock(&session->lock);
	region = look_up(session, handle);
	if (region)
		gdrdrv_region_get(region);
	mutex_unlock(&session->lock);
	return region;
}

/* Whoever takes the region off the tree ends it. */
int gdrdrv_region_unpin(struct gdrdrv_session *session, u64 handle)
{
	struct gdrdrv_region *region;

	mutex_lock(&session->lock);
	region = look_up(session, handle);
	if (region)
		rb_erase(&region->node, &session->regions);
	mutex_unlock(&session->lock);
	if (!region)
		return -EINVAL;
	end_region(region);
	return 0;
}

/* The file is closed: nobody else looks at the tree. */
void gdrdrv_region_unpin_all(struct gdrdrv_session *session)
{
	struct rb_node *node;

	while ((node = rb_first(&session->regions))) {
		rb_erase(node, &session->regions);
		end_region(rb_entry(node, struct gdrdrv_region, node));
	}
}
