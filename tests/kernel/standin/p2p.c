/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The functions that nvidia.ko exports for GPUDirect RDMA, with the rules of the real ones. */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "standin.h"

#ifdef STANDIN_PROPRIETARY
#define EXPORT_P2P(symbol) EXPORT_SYMBOL(symbol)
#else
#define EXPORT_P2P(symbol) EXPORT_SYMBOL_GPL(symbol)
#endif

DECLARE_RWSEM(standin_p2p_calls);
static LIST_HEAD(pins);
static struct task_struct *callback_task;
static atomic_t get_calls = ATOMIC_INIT(0);

static void delay(u32 ms)
{
	if (ms)
		msleep(ms);
}

/* A call out of the callback would wait for itself. */
static bool inside_callback(const char *call)
{
	if (READ_ONCE(callback_task) != current)
		return false;
	standin_misuse(call, 0);
	return true;
}

static bool must_fail(int *error)
{
	u32 every = READ_ONCE(standin_settings.fail_every);

	if (!every || atomic_inc_return(&get_calls) % every)
		return false;
	*error = -(int)READ_ONCE(standin_settings.fail_errno);
	return true;
}

static void free_pin(struct standin_pin *pin)
{
	/* A client that looks at the table now reads what it cannot take for pages. */
	if (pin->pages)
		memset(pin->pages, 0x6b, pin->table.entries * sizeof(*pin->pages));
	memset(pin->table.pages, 0x6b, pin->table.entries * sizeof(*pin->table.pages));
	kvfree(pin->pages);
	kvfree(pin->table.pages);
	memset(pin, 0x6b, sizeof(*pin));
	kfree(pin);
}

static struct standin_pin *alloc_pin(u32 entries)
{
	struct standin_pin *pin = kzalloc(sizeof(*pin), GFP_KERNEL);

	if (!pin)
		return NULL;
	pin->pages = kvcalloc(entries, sizeof(*pin->pages), GFP_KERNEL);
	pin->table.pages = kvcalloc(entries, sizeof(*pin->table.pages), GFP_KERNEL);
	if (pin->pages && pin->table.pages)
		return pin;
	kvfree(pin->pages);
	kvfree(pin->table.pages);
	kfree(pin);
	return NULL;
}

static void fill_pin(struct standin_pin *pin, const struct standin_binding *binding, u64 va,
		     u64 size)
{
	u64 offset = binding->offset + (va - binding->va);
	u32 i;

	pin->va = va;
	pin->size = size;
	pin->tgid = binding->tgid;
	pin->file = binding->file;
	pin->object = binding->object;
	pin->object->refs++;
	pin->table.version = standin_settings.table_version ?: NVIDIA_P2P_PAGE_TABLE_VERSION;
	pin->table.page_size = standin_settings.page_size_type;
	pin->table.entries = size >> STANDIN_PAGE_SHIFT;
	pin->table.gpu_uuid = pin->object->bar->uuid;
#ifdef NVIDIA_P2P_PAGE_TABLE_FLAGS_CPU_CACHEABLE
	pin->table.flags = standin_settings.table_flags;
#endif
	for (i = 0; i < pin->table.entries; i++) {
		pin->pages[i].physical_address = standin_object_physical(
			pin->object, offset + (u64)i * NVIDIA_EMU_PAGE);
		pin->table.pages[i] = &pin->pages[i];
	}
}

/* state is held. */
static void count_pin(const struct standin_pin *pin, int sign)
{
	standin_stats.pins += sign;
	standin_stats.persistent_pins += pin->persistent ? sign : 0;
	standin_stats.pinned_pages += sign * (s64)pin->table.entries;
}

/* state is held: there is room, and the binding is there or -EINVAL. */
static int add_pin(struct standin_pin *pin, u64 va, u64 size)
{
	struct standin_binding *binding = standin_binding_find(current->tgid, va, size);
	u32 limit = standin_settings.bar1_pages;

	if (!binding)
		return -EINVAL;
	if (limit && standin_stats.pinned_pages + (size >> STANDIN_PAGE_SHIFT) > limit)
		return -ENOMEM;
	fill_pin(pin, binding, va, size);
	list_add(&pin->link, &pins);
	count_pin(pin, 1);
	return 0;
}

static int check_range(u64 va, u64 size)
{
	int ret = -EINVAL;

	if (((va | size) & (NVIDIA_EMU_PAGE - 1)) || size == 0 || va + size < va)
		return ret;
	mutex_lock(&standin_state);
	if (standin_binding_find(current->tgid, va, size))
		ret = 0;
	mutex_unlock(&standin_state);
	return ret;
}

static int get_pages(u64 va, u64 size, void (*callback)(void *data), void *data,
		     struct nvidia_p2p_page_table **table)
{
	struct standin_pin *pin;
	int ret;

	might_sleep();
	mutex_lock(&standin_state);
	standin_stats.gets++;
	mutex_unlock(&standin_state);
	delay(READ_ONCE(standin_settings.get_delay_ms));
	if (must_fail(&ret))
		return ret;
	ret = check_range(va, size);
	if (ret)
		return ret;
	pin = alloc_pin(size >> STANDIN_PAGE_SHIFT);
	if (!pin)
		return -ENOMEM;
	pin->persistent = !callback;
	pin->callback = callback;
	pin->data = data;
	mutex_lock(&standin_state);
	ret = add_pin(pin, va, size);
	mutex_unlock(&standin_state);
	if (ret)
		free_pin(pin);
	else
		*table = &pin->table;
	return ret;
}

static struct standin_pin *remove_pin(const struct nvidia_p2p_page_table *table, u64 va,
				      bool persistent)
{
	struct standin_pin *pin, *found = NULL;

	mutex_lock(&standin_state);
	standin_stats.puts++;
	list_for_each_entry(pin, &pins, link)
		if (&pin->table == table) {
			found = pin;
			break;
		}
	if (found && (found->persistent != persistent || found->va != va)) {
		mutex_unlock(&standin_state);
		standin_misuse("put of the other kind or another address", va);
		return ERR_PTR(-EINVAL);
	}
	if (found) {
		list_del(&found->link);
		count_pin(found, -1);
		standin_object_put(found->object);
	} else {
		standin_stats.late_puts += !persistent;
	}
	mutex_unlock(&standin_state);
	return found;
}

int nvidia_p2p_get_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
			 uint64_t length, struct nvidia_p2p_page_table **page_table,
			 void (*free_callback)(void *data), void *data)
{
	int ret;

	if (!free_callback || !data)
		return -EINVAL;
	if (inside_callback("get_pages in a callback"))
		return -EDEADLK;
	down_read(&standin_p2p_calls);
	ret = get_pages(virtual_address, length, free_callback, data, page_table);
	up_read(&standin_p2p_calls);
	if (ret == 0 && READ_ONCE(standin_settings.revoke_in_get))
		standin_revoke(&(struct standin_match){
			.tgid = current->tgid, .va = virtual_address, .size = length });
	return ret;
}
EXPORT_P2P(nvidia_p2p_get_pages);

/* A pin that a callback has ended is not found, which the real driver takes for success. */
int nvidia_p2p_put_pages(uint64_t p2p_token, uint32_t va_space, uint64_t virtual_address,
			 struct nvidia_p2p_page_table *page_table)
{
	struct standin_pin *pin;

	if (inside_callback("put_pages in a callback"))
		return -EDEADLK;
	down_read(&standin_p2p_calls);
	delay(READ_ONCE(standin_settings.put_delay_ms));
	pin = remove_pin(page_table, virtual_address, false);
	up_read(&standin_p2p_calls);
	if (IS_ERR(pin))
		return PTR_ERR(pin);
	if (pin)
		free_pin(pin);
	return 0;
}
EXPORT_P2P(nvidia_p2p_put_pages);

/* The driver frees tables itself: at put, or after the callback. */
int nvidia_p2p_free_page_table(struct nvidia_p2p_page_table *page_table)
{
	return 0;
}
EXPORT_P2P(nvidia_p2p_free_page_table);

#ifdef NVIDIA_P2P_CAP_GET_PAGES_PERSISTENT_API
static int check_flags(u32 flags)
{
#ifdef NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING
	if (flags == NVIDIA_P2P_FLAGS_FORCE_BAR1_MAPPING)
		return READ_ONCE(standin_settings.coherent) ? 0 : -ENOTSUPP;
#endif
	return flags ? -EINVAL : 0;
}

int nvidia_p2p_get_pages_persistent(uint64_t virtual_address, uint64_t length,
				    struct nvidia_p2p_page_table **page_table, uint32_t flags)
{
	int ret = check_flags(flags);

	if (ret)
		return ret;
	if (inside_callback("get_pages_persistent in a callback"))
		return -EDEADLK;
	down_read(&standin_p2p_calls);
	ret = get_pages(virtual_address, length, NULL, NULL, page_table);
	up_read(&standin_p2p_calls);
	return ret;
}
EXPORT_P2P(nvidia_p2p_get_pages_persistent);

int nvidia_p2p_put_pages_persistent(uint64_t virtual_address,
				    struct nvidia_p2p_page_table *page_table, uint32_t flags)
{
	struct standin_pin *pin;

	if (inside_callback("put_pages_persistent in a callback"))
		return -EDEADLK;
	down_read(&standin_p2p_calls);
	delay(READ_ONCE(standin_settings.put_delay_ms));
	pin = remove_pin(page_table, virtual_address, true);
	up_read(&standin_p2p_calls);
	if (IS_ERR(pin))
		return PTR_ERR(pin);
	if (!pin) {
		standin_misuse("persistent put of an unknown table", virtual_address);
		return -EINVAL;
	}
	free_pin(pin);
	return 0;
}
EXPORT_P2P(nvidia_p2p_put_pages_persistent);
#endif

static bool matches(const struct standin_pin *pin, const struct standin_match *match)
{
	return !pin->persistent && (!match->object || pin->object == match->object) &&
	       (!match->file || pin->file == match->file) &&
	       (!match->tgid || pin->tgid == match->tgid) &&
	       (!match->size || (match->va < pin->va + pin->size &&
				 pin->va < match->va + match->size));
}

/* Takes the pin off the list, so that a put which comes later finds nothing. */
static struct standin_pin *take_matching(const struct standin_match *match)
{
	struct standin_pin *pin, *found = NULL;

	mutex_lock(&standin_state);
	list_for_each_entry(pin, &pins, link)
		if (matches(pin, match)) {
			found = pin;
			break;
		}
	if (found) {
		list_del(&found->link);
		count_pin(found, -1);
		standin_stats.callbacks++;
	}
	mutex_unlock(&standin_state);
	return found;
}

unsigned int standin_revoke(const struct standin_match *match)
{
	struct standin_pin *pin;
	unsigned int fired = 0;

	down_write(&standin_p2p_calls);
	while ((pin = take_matching(match)) != NULL) {
		delay(READ_ONCE(standin_settings.callback_delay_ms));
		WRITE_ONCE(callback_task, current);
		pin->callback(pin->data);
		WRITE_ONCE(callback_task, NULL);
		mutex_lock(&standin_state);
		standin_object_put(pin->object);
		mutex_unlock(&standin_state);
		free_pin(pin);
		fired++;
	}
	up_write(&standin_p2p_calls);
	return fired;
}

/* Nobody uses the exports any more, so what is still pinned was leaked. */
void standin_p2p_exit(void)
{
	struct standin_pin *pin, *next;

	mutex_lock(&standin_state);
	list_for_each_entry_safe(pin, next, &pins, link) {
		pr_err("nvidia_emu: LEAK: pin of 0x%llx, %llu bytes\n", pin->va, pin->size);
		list_del(&pin->link);
		standin_object_put(pin->object);
		free_pin(pin);
	}
	mutex_unlock(&standin_state);
}
