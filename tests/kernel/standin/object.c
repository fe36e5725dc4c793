/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Physical memory in 64 KiB pages, and the device addresses that processes give it. */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "standin.h"

static LIST_HEAD(bindings);
static u64 next_offset;

/* An odd step visits every page of a BAR, whose page count is a power of two. */
#define SCATTER_STEP 1637

static bool take_scattered(struct standin_bar *bar, struct standin_object *object)
{
	u32 taken = 0, tried;

	for (tried = 0; tried < bar->pages && taken < object->count; tried++) {
		bar->next = (bar->next + SCATTER_STEP) % bar->pages;
		if (bar->used[bar->next])
			continue;
		bar->used[bar->next] = 1;
		object->pages[taken++] = bar->next;
	}
	if (taken == object->count)
		return true;
	while (taken > 0)
		bar->used[object->pages[--taken]] = 0;
	return false;
}

static bool take_contiguous(struct standin_bar *bar, struct standin_object *object)
{
	u32 page, run = 0, i;

	for (page = 0; page < bar->pages; page++) {
		run = bar->used[page] ? 0 : run + 1;
		if (run < object->count)
			continue;
		for (i = 0; i < object->count; i++) {
			object->pages[i] = page + 1 - object->count + i;
			bar->used[object->pages[i]] = 1;
		}
		return true;
	}
	return false;
}

u64 standin_object_physical(const struct standin_object *object, u64 offset)
{
	return object->bar->base +
	       ((u64)object->pages[offset >> STANDIN_PAGE_SHIFT] << STANDIN_PAGE_SHIFT) +
	       (offset & (NVIDIA_EMU_PAGE - 1));
}

/*
 * A new allocation never shows the bytes of another process.  The mapping is
 * short, so that no memory type stays reserved for the page.
 */
static int clear_page_64k(u64 physical)
{
	void __iomem *io = ioremap_wc(physical, NVIDIA_EMU_PAGE);

	if (!io)
		return -EIO;
	memset_io(io, 0, NVIDIA_EMU_PAGE);
	iounmap(io);
	return 0;
}

struct standin_object *standin_object_create(struct standin_bar *bar, u64 size)
{
	u32 count = size >> STANDIN_PAGE_SHIFT, i;
	struct standin_object *object;
	bool taken;
	int ret = 0;

	if (size == 0 || size % NVIDIA_EMU_OBJECT_ALIGN != 0)
		return ERR_PTR(-EINVAL);
	if (size > bar->size)
		return ERR_PTR(-ENOMEM);
	object = kvzalloc(struct_size(object, pages, count), GFP_KERNEL);
	if (!object)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&object->link);
	object->bar = bar;
	object->refs = 1;
	object->count = count;
	mutex_lock(&standin_state);
	taken = standin_settings.scattered ? take_scattered(bar, object) :
					     take_contiguous(bar, object);
	if (taken) {
		object->offset = next_offset;
		next_offset += size;
		standin_stats.objects++;
		standin_stats.used_pages += count;
	}
	mutex_unlock(&standin_state);
	if (!taken) {
		kvfree(object);
		return ERR_PTR(-ENOMEM);
	}
	for (i = 0; i < count && ret == 0; i++)
		ret = clear_page_64k(standin_object_physical(object, (u64)i * NVIDIA_EMU_PAGE));
	if (ret == 0)
		return object;
	mutex_lock(&standin_state);
	standin_object_put(object);
	mutex_unlock(&standin_state);
	return ERR_PTR(ret);
}

void standin_object_put(struct standin_object *object)
{
	u32 i;

	lockdep_assert_held(&standin_state);
	if (--object->refs > 0)
		return;
	for (i = 0; i < object->count; i++)
		object->bar->used[object->pages[i]] = 0;
	standin_stats.objects--;
	standin_stats.used_pages -= object->count;
	kvfree(object);
}

struct standin_binding *standin_binding_find(pid_t tgid, u64 va, u64 size)
{
	struct standin_binding *binding;

	lockdep_assert_held(&standin_state);
	list_for_each_entry(binding, &bindings, link)
		if (binding->tgid == tgid && va >= binding->va &&
		    va - binding->va < binding->size &&
		    size <= binding->size - (va - binding->va))
			return binding;
	return NULL;
}

static struct standin_binding *find_same(struct file *file, const struct nvidia_emu_bind *bind)
{
	struct standin_binding *binding;

	list_for_each_entry(binding, &bindings, link)
		if (binding->file == file && binding->va == bind->va &&
		    binding->size == bind->size &&
		    binding->object->offset + binding->offset == bind->offset)
			return binding;
	return NULL;
}

static bool overlaps(const struct nvidia_emu_bind *bind)
{
	struct standin_binding *binding;

	list_for_each_entry(binding, &bindings, link)
		if (binding->tgid == current->tgid && bind->va < binding->va + binding->size &&
		    binding->va < bind->va + bind->size)
			return true;
	return false;
}

int standin_bind(struct file *file, struct standin_object *object,
		 const struct nvidia_emu_bind *bind)
{
	struct standin_binding *binding = find_same(file, bind);
	u64 inner = bind->offset - object->offset;
	u64 size = (u64)object->count << STANDIN_PAGE_SHIFT;

	lockdep_assert_held(&standin_state);
	if (binding) {
		binding->count++;
		return 0;
	}
	if (((bind->va | bind->size | inner) & (NVIDIA_EMU_PAGE - 1)) || bind->size == 0 ||
	    bind->va + bind->size < bind->va || inner > size || bind->size > size - inner)
		return -EINVAL;
	if (overlaps(bind))
		return -EEXIST;
	binding = kzalloc(sizeof(*binding), GFP_KERNEL);
	if (!binding)
		return -ENOMEM;
	*binding = (struct standin_binding){
		.object = object, .file = file, .tgid = current->tgid, .va = bind->va,
		.size = bind->size, .offset = inner, .count = 1,
	};
	list_add(&binding->link, &bindings);
	standin_stats.bindings++;
	return 0;
}

static void remove_binding(struct standin_binding *binding)
{
	list_del(&binding->link);
	standin_stats.bindings--;
	kfree(binding);
}

int standin_unbind(struct file *file, const struct nvidia_emu_bind *bind, bool *last)
{
	struct standin_binding *binding = find_same(file, bind);

	lockdep_assert_held(&standin_state);
	if (!binding)
		return -EINVAL;
	*last = --binding->count == 0;
	if (*last)
		remove_binding(binding);
	return 0;
}

void standin_unbind_object(struct standin_object *object)
{
	struct standin_binding *binding, *next;

	lockdep_assert_held(&standin_state);
	list_for_each_entry_safe(binding, next, &bindings, link)
		if (binding->object == object)
			remove_binding(binding);
}
