/* SPDX-License-Identifier: MIT */
/* Chooses, once per session, the routines that move bytes. */
#include "copy/engine.h"

#include <string.h>

#include "copy/cpu/cpu.h"
#include "copy/cpu/generic/plain.h"

static bool is_usable(const struct gdri_copy_routine *routine, unsigned features)
{
	return (routine->needs & ~features) == 0;
}

/* Each order ends with a routine that every CPU of its architecture runs. */
static const struct gdri_copy_routine *pick_first(const struct gdri_copy_routine *const *order,
						  unsigned features)
{
	while (!is_usable(*order, features))
		order++;
	return *order;
}

static const struct gdri_copy_routine *find_by_name(const char *name)
{
	const struct gdri_copy_routine *const *routine = gdri_copy_cpu.routines;

	while (*routine && strcmp((*routine)->name, name) != 0)
		routine++;
	return *routine;
}

/* The routine that the user asks for, or NULL when there is none or it cannot run. */
static const struct gdri_copy_routine *find_forced(const char *name, unsigned features,
						   const struct gdri_log *log)
{
	const struct gdri_copy_routine *routine;

	if (!name || name[0] == '\0')
		return NULL;
	routine = find_by_name(name);
	if (!routine) {
		gdri_warn(log, "GDRCOPY_COPY=%s names no copy routine of this build; choosing "
			       "automatically (gdrcopy_info lists the names)", name);
		return NULL;
	}
	if (!is_usable(routine, features)) {
		gdri_warn(log, "GDRCOPY_COPY=%s: this CPU cannot run that routine; choosing "
			       "automatically (gdrcopy_info lists those that it can)", name);
		return NULL;
	}
	return routine;
}

void gdri_copy_engine_select(const char *forced, const struct gdri_log *log,
			     struct gdri_copy_engine *engine)
{
	const struct gdri_copy_routine *routine, *store, *load;
	unsigned features = gdri_copy_cpu.detect();

	routine = find_forced(forced, features, log);
	store = routine && routine->store ? routine :
					    pick_first(gdri_copy_cpu.store_order, features);
	load = routine && routine->load ? routine :
					  pick_first(gdri_copy_cpu.load_order, features);
	*engine = (struct gdri_copy_engine){
		.store_name = store->name,
		.load_name = load->name,
		.to_mapping = {
			[GDR_MAPPING_TYPE_WC] = store->store,
			[GDR_MAPPING_TYPE_CACHING] = gdri_copy_cpu.cached_store,
			[GDR_MAPPING_TYPE_DEVICE] = gdri_copy_plain_store,
		},
		.from_mapping = {
			[GDR_MAPPING_TYPE_WC] = load->load,
			[GDR_MAPPING_TYPE_CACHING] = gdri_copy_cpu.cached_load,
			[GDR_MAPPING_TYPE_DEVICE] = gdri_copy_plain_load,
		},
	};
	gdri_debug(log, "copies: stores by %s, loads by %s", store->name, load->name);
}

const char *gdri_copy_routine_name(unsigned i, bool *usable)
{
	unsigned count = 0;

	while (gdri_copy_cpu.routines[count])
		count++;
	if (i >= count)
		return NULL;
	*usable = is_usable(gdri_copy_cpu.routines[i], gdri_copy_cpu.detect());
	return gdri_copy_cpu.routines[i]->name;
}
