/* SPDX-License-Identifier: MIT */
/* The handle arena, the pools of objects behind it, and how fork is noticed. */
#include "core/handle.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/pool.h"

#define ARENA_SIZE ((size_t)1 << 30)
#define ARENA_STEP ((size_t)1 << 20)
#define RECORD_SIZE sizeof(struct gdri_record)

_Static_assert(sizeof(struct gdri_record) == 128, "records tile pages");
_Static_assert(offsetof(struct gdri_record, session.fd) == 0, "2.6: struct gdr");
_Static_assert(offsetof(struct gdri_record, session.page_size) == 16, "2.6: struct gdr");
_Static_assert(offsetof(struct gdri_record, session.page_shift) == 32, "2.6: struct gdr");
_Static_assert(offsetof(struct gdri_record, session.driver_version) == 36, "2.6: struct gdr");
_Static_assert(offsetof(struct gdri_record, session.backend) == 40, "2.6: struct gdr");
_Static_assert(offsetof(struct gdri_record, region.mapping_type) == 16, "2.6: gdr_memh_t");
_Static_assert(offsetof(struct gdri_record, region.driver_handle) == 24, "2.6: gdr_memh_t");
_Static_assert(offsetof(struct gdri_record, object) == 104, "2.6: gdr_memh_t");

/*
 * A page that fork empties in the child (MADV_WIPEONFORK, Linux 4.14): one
 * load tells whose table this is, and the lock in it is free for the child.
 */
struct wiped_on_fork {
	_Atomic uint32_t alive;
	pthread_mutex_t lock;
};

struct table {
	struct gdri_table_view view;	/* base, and how much is readable so far; grows in steps */
	size_t size;
	struct wiped_on_fork *wiped;
	pid_t process;		/* compared where fork cannot wipe; else 0 */
	size_t cursor;		/* where the search for a free record starts */
	struct table *parent;	/* of the process that forked this one */
	struct gdri_pool sessions;
	struct gdri_pool regions;
	struct gdri_gate_slots slots;
	struct gdri_intervals mapped;
};

/*
 * Made once and never given back: a thread that is still in here when the
 * process exits must find it.  dlclose does not unload the shared library
 * either (-z nodelete), so opening it again finds the table that it had.
 */
static _Atomic(struct table *) process_table;
__attribute__((used)) _Atomic(const struct gdri_table_view *) gdri_core_view;	/* by assembly too */

static void *map_anonymous(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/*
 * Addresses only: a gigabyte that could be written to would count where the
 * kernel limits what programs may ask for, be filled at once in a program that
 * called mlockall(MCL_FUTURE), and be searched by leak checkers.  RLIMIT_AS may
 * forbid even this; fewer handles serve as well.
 */
static void *reserve_arena(size_t *size)
{
	for (*size = ARENA_SIZE; *size >= ARENA_STEP; *size /= 2) {
		void *base = mmap(NULL, *size, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (base != MAP_FAILED) {
			munlock(base, *size);
			return base;
		}
	}
	return NULL;
}

/* False when the arena ends here. */
static bool open_step(struct table *table)
{
	const size_t opened = atomic_load_explicit(&table->view.opened, memory_order_relaxed);

	if (opened == table->size ||
	    mprotect(table->view.base + opened, ARENA_STEP, PROT_READ | PROT_WRITE) != 0)
		return false;
	atomic_store_explicit(&table->view.opened, opened + ARENA_STEP, memory_order_release);
	return true;
}

static inline size_t opened_size(const struct table *table)
{
	return atomic_load_explicit(&table->view.opened, memory_order_acquire);
}

/* Of a table that nobody has seen. */
static void destroy_table(struct table *table)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (table->wiped)
		munmap(table->wiped, page);
	if (table->view.base)
		munmap(table->view.base, table->size);
	gdri_core_intervals_destroy(&table->mapped);
	munmap(table, sizeof(*table));
}

static struct table *new_table(struct table *parent)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct table *table = map_anonymous(sizeof(*table));

	if (!table)
		return NULL;
	table->parent = parent;
	table->view.base = reserve_arena(&table->size);
	table->wiped = map_anonymous(page);
	if (!table->view.base || !table->wiped || !open_step(table) ||
	    gdri_core_intervals_init(&table->mapped)) {
		destroy_table(table);
		return NULL;
	}
	if (madvise(table->wiped, page, MADV_WIPEONFORK))
		table->process = getpid();
	else
		table->view.alive = &table->wiped->alive;
	table->view.slots = &table->slots;
	gdri_core_gate_slots_init(&table->slots);
	pthread_mutex_init(&table->wiped->lock, NULL);
	atomic_store(&table->wiped->alive, 1);
	return table;
}

static inline bool is_ours(const struct table *table)
{
	return atomic_load_explicit(&table->wiped->alive, memory_order_relaxed) &&
	       (!table->process || table->process == getpid());
}

int gdri_core_table_create(void)
{
	struct table *old = atomic_load(&process_table);
	struct table *table;

	if (old && is_ours(old))
		return 0;
	table = new_table(old);
	if (!table)
		return -ENOMEM;
	if (!atomic_compare_exchange_strong(&process_table, &old, table)) {
		destroy_table(table);	/* another thread was faster */
		table = old;
	}
	atomic_store(&gdri_core_view, &table->view);
	return 0;
}

void gdri_core_table_lock(void)
{
	pthread_mutex_lock(&atomic_load(&process_table)->wiped->lock);
}

void gdri_core_table_unlock(void)
{
	pthread_mutex_unlock(&atomic_load(&process_table)->wiped->lock);
}

struct gdri_gate_slots *gdri_core_table_slots(void)
{
	return &atomic_load_explicit(&process_table, memory_order_relaxed)->slots;
}

struct gdri_intervals *gdri_core_table_mapped(void)
{
	return &atomic_load_explicit(&process_table, memory_order_relaxed)->mapped;
}

static inline uint32_t kind_of(const struct gdri_record *record)
{
	return atomic_load_explicit(&record->kind, memory_order_relaxed);
}

struct gdri_record *gdri_core_record_alloc(void)
{
	struct table *table = atomic_load(&process_table);
	const size_t count = table->size / RECORD_SIZE;

	for (size_t tries = 0; tries < count; tries++) {
		struct gdri_record *record;

		if (table->cursor * RECORD_SIZE == opened_size(table) && !open_step(table))
			table->cursor = 0;
		record = (void *)(table->view.base + table->cursor++ * RECORD_SIZE);
		if (kind_of(record) == GDRI_RECORD_FREE) {
			/* Keeps the page from being given back before it is published. */
			atomic_store_explicit(&record->kind, GDRI_RECORD_RESERVED,
					      memory_order_relaxed);
			memset(record->layout_2_6, 0, sizeof(record->layout_2_6));
			return record;
		}
	}
	return NULL;
}

void gdri_core_record_publish(struct gdri_record *record, enum gdri_record_kind kind,
			      void *object, uint32_t generation)
{
	record->generation = generation;
	atomic_store_explicit(&record->kind, (uint32_t)kind, memory_order_relaxed);
	atomic_store_explicit(&record->object, object, memory_order_release);
}

/* Gives the page of a freed record back once nothing on it lives or is about to. */
static void release_page(struct table *table, struct gdri_record *record)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t offset = (size_t)((unsigned char *)record - table->view.base) & ~(page - 1);
	struct gdri_record *first = (void *)(table->view.base + offset);

	if (table->cursor * RECORD_SIZE >= offset && table->cursor * RECORD_SIZE < offset + page)
		return;
	for (size_t i = 0; i < page / RECORD_SIZE; i++)
		if (kind_of(&first[i]) != GDRI_RECORD_FREE)
			return;
	madvise(first, page, MADV_DONTNEED);
}

void gdri_core_record_free(struct gdri_record *record)
{
	struct table *table = atomic_load(&process_table);

	atomic_store_explicit(&record->object, NULL, memory_order_release);
	atomic_store_explicit(&record->kind, GDRI_RECORD_FREE, memory_order_relaxed);
	release_page(table, record);
}

static void *alloc_object(struct gdri_pool *pool, size_t size)
{
	pool->object_size = (size + GDRI_CACHE_LINE - 1) & ~(size_t)(GDRI_CACHE_LINE - 1);
	return gdri_core_pool_get(pool);
}

void *gdri_core_session_alloc(size_t size)
{
	return alloc_object(&atomic_load(&process_table)->sessions, size);
}

void *gdri_core_region_alloc(size_t size)
{
	return alloc_object(&atomic_load(&process_table)->regions, size);
}

void gdri_core_session_free(void *object)
{
	gdri_core_pool_put(&atomic_load(&process_table)->sessions, object);
}

void gdri_core_region_free(void *object)
{
	gdri_core_pool_put(&atomic_load(&process_table)->regions, object);
}

static inline struct gdri_record *find_record(const struct table *table, uint64_t value)
{
	const uint64_t offset = value - (uint64_t)(uintptr_t)table->view.base;

	if (offset >= opened_size(table) || offset % RECORD_SIZE != 0)
		return NULL;
	return (struct gdri_record *)(table->view.base + offset);
}

/* Whether an ancestor of this process had such a handle. */
static bool is_inherited(uint64_t value)
{
	struct table *table = atomic_load(&process_table);

	for (; table; table = table->parent)
		if (!is_ours(table) && find_record(table, value))
			return true;
	return false;
}

static __attribute__((cold, noinline)) int refuse(uint64_t value)
{
	return is_inherited(value) ? -EACCES : -EINVAL;
}

int gdri_core_handle_lookup(uint64_t value, enum gdri_record_kind kind,
			    struct gdri_record **record, void **object)
{
	struct table *table = atomic_load_explicit(&process_table, memory_order_acquire);

	if (!table || !is_ours(table))
		return refuse(value);
	*record = find_record(table, value);
	if (!*record)
		return refuse(value);
	*object = atomic_load_explicit(&(*record)->object, memory_order_acquire);
	if (!*object || kind_of(*record) != (uint32_t)kind)
		return -EINVAL;
	return 0;
}
