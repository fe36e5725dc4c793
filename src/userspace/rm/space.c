/* SPDX-License-Identifier: MIT */
/* Device address spaces: FERMI_VASPACE_A and what is mapped into it. */
#include "rm/space.h"

#include "rm/abi/channel_r580.h"
#include "rm/call.h"

static int free_object(const struct gdri_rm_space *space, uint32_t object)
{
	return gdri_rm_memory_free(space->client, space->device, object);
}

static int alloc_object(const struct gdri_rm_space *space, uint32_t *object, uint32_t class_id,
			void *params, size_t size, struct gdri_rm_failure *failure)
{
	*object = gdri_rm_client_new_handle(space->client);
	return gdri_rm_call_alloc(space->client->fd, space->client->object, space->device->object,
				  object, class_id, params, size, failure);
}

int gdri_rm_space_open(struct gdri_rm_client *client, struct gdri_rm_device *device,
		       struct gdri_rm_space *space, struct gdri_rm_failure *failure)
{
	struct gdri_rm_vaspace_params vaspace = { 0 };
	struct gdri_rm_virtual_params virtual_memory = { 0 };
	int rc;

	*space = (struct gdri_rm_space){ .client = client, .device = device };
	rc = alloc_object(space, &space->vaspace, GDRI_RM_CLASS_VASPACE, &vaspace,
			  sizeof(vaspace), failure);
	if (rc)
		return rc;
	virtual_memory.vaspace = space->vaspace;
	rc = alloc_object(space, &space->virtual_memory, GDRI_RM_CLASS_MEMORY_VIRTUAL,
			  &virtual_memory, sizeof(virtual_memory), failure);
	if (rc)
		free_object(space, space->vaspace);
	return rc;
}

int gdri_rm_space_close(struct gdri_rm_space *space)
{
	int rc = free_object(space, space->virtual_memory);
	int vaspace_rc = free_object(space, space->vaspace);

	return rc ? rc : vaspace_rc;
}

int gdri_rm_space_map(struct gdri_rm_space *space, uint32_t object, uint64_t offset,
		      uint64_t length, bool host, uint64_t *address,
		      struct gdri_rm_failure *failure)
{
	struct gdri_rm_map_dma map = {
		.client = space->client->object,
		.device = space->device->object,
		.dma = space->virtual_memory,
		.memory = object,
		.offset = offset,
		.length = length,
		.flags = host ? GDRI_RM_MAP_DMA_SNOOP : 0,
	};
	int rc = gdri_rm_call_map_dma(space->client->fd, &map, failure);

	if (rc == 0)
		*address = map.address;
	return rc;
}

int gdri_rm_space_unmap(struct gdri_rm_space *space, uint32_t object, uint64_t address)
{
	struct gdri_rm_unmap_dma unmap = {
		.client = space->client->object,
		.device = space->device->object,
		.dma = space->virtual_memory,
		.memory = object,
		.address = address,
	};
	struct gdri_rm_failure failure;

	return gdri_rm_call_unmap_dma(space->client->fd, &unmap, &failure);
}

/* The request goes through the device's file, to which the driver ties the pages. */
int gdri_rm_space_pin_host(struct gdri_rm_space *space, void *base, size_t length,
			   uint32_t *object, struct gdri_rm_failure *failure)
{
	struct gdri_rm_alloc_memory request = {
		.client = space->client->object,
		.parent = space->device->object,
		.object = gdri_rm_client_new_handle(space->client),
		.class_id = GDRI_RM_CLASS_MEMORY_OS_DESCRIPTOR,
		.flags = GDRI_RM_ALLOC_MEMORY_FLAGS,
		.memory = (uintptr_t)base,
		.limit = length - 1,
		.fd = -1,
	};
	int rc = gdri_rm_call_alloc_memory(space->device->fd, &request, failure);

	if (rc == 0)
		*object = request.object;
	return rc;
}

int gdri_rm_space_alloc(struct gdri_rm_space *space, uint64_t length, uint32_t *object,
			struct gdri_rm_failure *failure)
{
	struct gdri_rm_memory_params params = {
		.owner = space->client->object,
		.attr = GDRI_RM_MEMORY_CONTIGUOUS,
		.size = length,
	};

	return alloc_object(space, object, GDRI_RM_CLASS_MEMORY_LOCAL_USER, &params,
			    sizeof(params), failure);
}
