/* SPDX-License-Identifier: MIT */
/* Copy-engine channels of the resource manager. */
#include "rm/channel.h"

#include <errno.h>
#include <sys/mman.h>

#include "os/sys.h"
#include "rm/abi/channel_r580.h"
#include "rm/call.h"

/*
 * Newest first: a device's list may hold older classes as well.  From the class
 * headers' names; the second copy class of a generation is that of its smaller
 * devices.  Only Hopper has been run.
 */
static const struct gdri_rm_generation generations[] = {
	{ "Blackwell B", 0xca6f, 0xcab5, 0xc761, true },
	{ "Blackwell", 0xc96f, 0xc9b5, 0xc761, true },
	{ "Hopper", 0xc86f, 0xc8b5, 0xc661, true },
	{ "Ampere B, Ada", 0xc56f, 0xc7b5, 0xc561, false },
	{ "Ampere", 0xc56f, 0xc6b5, 0xc561, false },
	{ "Turing", 0xc46f, 0xc5b5, 0xc461, false },
};

static int control(const struct gdri_rm_space *space, uint32_t object, uint32_t command,
		   void *params, size_t size, struct gdri_rm_failure *failure)
{
	return gdri_rm_call_control(space->client->fd, space->client->object, object, command,
				    params, size, failure);
}

static int alloc(const struct gdri_rm_space *space, uint32_t parent, uint32_t *object,
		 uint32_t class_id, void *params, size_t size, struct gdri_rm_failure *failure)
{
	*object = gdri_rm_client_new_handle(space->client);
	return gdri_rm_call_alloc(space->client->fd, space->client->object, parent, object,
				  class_id, params, size, failure);
}

static int release(const struct gdri_rm_space *space, uint32_t parent, uint32_t object)
{
	struct gdri_rm_failure failure;

	return gdri_rm_call_free(space->client->fd, space->client->object, parent, object,
				 &failure);
}

static bool has_class(const struct gdri_rm_class_list *list, uint32_t class_id)
{
	for (uint32_t i = 0; i < list->count && i < GDRI_RM_MAX_CLASSES; i++)
		if (list->class_id[i] == class_id)
			return true;
	return false;
}

int gdri_rm_channel_generation(const struct gdri_rm_space *space,
			       const struct gdri_rm_generation **generation,
			       struct gdri_rm_failure *failure)
{
	struct gdri_rm_class_list list = { .count = 0 };
	int rc = control(space, space->device->object, GDRI_RM_CTRL_GET_CLASS_LIST_V2, &list,
			 sizeof(list), failure);

	if (rc)
		return rc;
	for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++) {
		const struct gdri_rm_generation *candidate = &generations[i];

		if (has_class(&list, candidate->channel) && has_class(&list, candidate->copy) &&
		    has_class(&list, candidate->usermode)) {
			*generation = candidate;
			return 0;
		}
	}
	return gdri_rm_failure_set(failure, "search for a known class of channels", -EOPNOTSUPP);
}

int gdri_rm_channel_engines(const struct gdri_rm_space *space,
			    struct gdri_rm_copy_engine engines[GDRI_RM_MAX_COPY_ENGINES],
			    struct gdri_rm_failure *failure)
{
	struct gdri_rm_engine_list list = { .count = 0 };
	int rc = control(space, space->device->subdevice, GDRI_RM_CTRL_GET_ENGINES_V2, &list,
			 sizeof(list), failure);
	int count = 0;

	if (rc)
		return rc;
	for (uint32_t i = 0; i < list.count && i < GDRI_RM_MAX_ENGINES; i++) {
		const uint32_t number = list.type[i] - GDRI_RM_ENGINE_COPY0;
		struct gdri_rm_pce_mask mask = { .engine_type = list.type[i] };
		struct gdri_rm_failure ignored;

		if (number >= GDRI_RM_MAX_COPY_ENGINES || count == GDRI_RM_MAX_COPY_ENGINES)
			continue;
		if (control(space, space->device->subdevice, GDRI_RM_CTRL_CE_PCE_MASK, &mask,
			    sizeof(mask), &ignored))
			mask.mask = 0;
		engines[count++] = (struct gdri_rm_copy_engine){
			.number = number,
			.physical = mask.mask,
		};
	}
	return count;
}

/* The doorbell's object lies under the subdevice, so the map names that one. */
static int map_doorbell(struct gdri_rm_space *space, struct gdri_rm_doorbell *doorbell,
			struct gdri_rm_failure *failure)
{
	struct gdri_rm_map map = {
		.client = space->client->object,
		.device = space->device->subdevice,
		.memory = doorbell->object,
		.length = GDRI_RM_USERMODE_SIZE,
	};
	int rc;

	map.fd = gdri_rm_device_open_file(space->client, space->device, failure);
	if (map.fd < 0)
		return map.fd;
	rc = gdri_rm_call_map(space->client->fd, &map, failure);
	if (rc == 0) {
		rc = gdri_rm_memory_map_file(map.fd, GDRI_RM_USERMODE_SIZE, &doorbell->base,
					     failure);
		if (rc)
			gdri_rm_call_unmap(space->client->fd, space->client->object,
					   space->device->subdevice, doorbell->object, map.linear,
					   &(struct gdri_rm_failure){ 0 });
	}
	gdri_os_close(map.fd);
	doorbell->linear = map.linear;
	return rc;
}

int gdri_rm_doorbell_open(struct gdri_rm_space *space,
			  const struct gdri_rm_generation *generation,
			  struct gdri_rm_doorbell *doorbell, struct gdri_rm_failure *failure)
{
	struct gdri_rm_usermode_params params = { .bar1_mapping = 1 };
	int rc;

	/* Older classes take no parameters: their doorbell lies behind BAR0. */
	rc = alloc(space, space->device->subdevice, &doorbell->object, generation->usermode,
		   generation->doorbell_in_bar1 ? &params : NULL,
		   generation->doorbell_in_bar1 ? sizeof(params) : 0, failure);
	if (rc)
		return rc;
	rc = map_doorbell(space, doorbell, failure);
	if (rc) {
		release(space, space->device->subdevice, doorbell->object);
		return rc;
	}
	doorbell->word = (volatile uint32_t *)((char *)doorbell->base + GDRI_RM_USERMODE_DOORBELL);
	return 0;
}

int gdri_rm_doorbell_close(struct gdri_rm_space *space, struct gdri_rm_doorbell *doorbell)
{
	struct gdri_rm_failure failure;
	int rc = gdri_os_munmap(doorbell->base, GDRI_RM_USERMODE_SIZE);
	int unmap_rc = gdri_rm_call_unmap(space->client->fd, space->client->object,
					  space->device->subdevice, doorbell->object,
					  doorbell->linear, &failure);
	int free_rc = release(space, space->device->subdevice, doorbell->object);

	return rc ? rc : unmap_rc ? unmap_rc : free_rc;
}

static int open_in_group(struct gdri_rm_space *space, const struct gdri_rm_generation *generation,
			 uint32_t engine_type, const struct gdri_rm_channel_memory *memory,
			 struct gdri_rm_channel *channel, struct gdri_rm_failure *failure)
{
	struct gdri_rm_channel_params params = {
		.error = memory->notifier_object,
		.ring_address = memory->ring_address,
		.ring_entries = memory->ring_entries,
		.userd_memory = { memory->userd_object },
		.userd_offset = { memory->userd_offset },
		.engine_type = engine_type,
	};
	struct gdri_rm_copy_params copy = { .version = 1, .engine_type = engine_type };
	struct gdri_rm_schedule schedule = { .enable = 1 };
	struct gdri_rm_submit_token token = { 0 };
	int rc;

	rc = alloc(space, channel->group, &channel->channel, generation->channel, &params,
		   sizeof(params), failure);
	if (rc == 0)
		rc = alloc(space, channel->channel, &channel->copy, generation->copy, &copy,
			   sizeof(copy), failure);
	if (rc == 0)
		rc = control(space, channel->group, GDRI_RM_CTRL_GROUP_SCHEDULE, &schedule,
			     sizeof(schedule), failure);
	if (rc == 0)
		rc = control(space, channel->channel, GDRI_RM_CTRL_WORK_SUBMIT_TOKEN, &token,
			     sizeof(token), failure);
	channel->token = token.token;
	return rc;
}

int gdri_rm_channel_open(struct gdri_rm_space *space, const struct gdri_rm_generation *generation,
			 unsigned engine, const struct gdri_rm_channel_memory *memory,
			 struct gdri_rm_channel *channel, struct gdri_rm_failure *failure)
{
	const uint32_t engine_type = GDRI_RM_ENGINE_COPY0 + engine;
	struct gdri_rm_channel_group_params params = {
		.vaspace = space->vaspace,
		.engine_type = engine_type,
	};
	int rc;

	rc = alloc(space, space->device->object, &channel->group, GDRI_RM_CLASS_CHANNEL_GROUP,
		   &params, sizeof(params), failure);
	if (rc)
		return rc;
	rc = open_in_group(space, generation, engine_type, memory, channel, failure);
	/* The group takes with it what was made under it. */
	if (rc)
		release(space, space->device->object, channel->group);
	return rc;
}

int gdri_rm_channel_close(struct gdri_rm_space *space, struct gdri_rm_channel *channel)
{
	return release(space, space->device->object, channel->group);
}
