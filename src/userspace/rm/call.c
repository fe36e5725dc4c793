/* SPDX-License-Identifier: MIT */
/* The requests of the resource manager as plain calls. */
#include "rm/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "os/sys.h"

const char *gdri_rm_failure_text(const struct gdri_rm_failure *failure, char *text, size_t size)
{
	if (failure->error)
		snprintf(text, size, "%s: errno %d", failure->step, failure->error);
	else
		snprintf(text, size, "%s: resource manager status %#x", failure->step,
			 failure->status);
	return text;
}

int gdri_rm_failure_set(struct gdri_rm_failure *failure, const char *step, int error)
{
	*failure = (struct gdri_rm_failure){ .step = step, .error = -error };
	return error;
}

static int errno_of_status(uint32_t status)
{
	switch (status) {
	case GDRI_RM_OK:
		return 0;
	case GDRI_RM_NO_MEMORY:
	case GDRI_RM_INSUFFICIENT_RESOURCES:
		return -ENOMEM;
	case GDRI_RM_INSUFFICIENT_PERMISSIONS:
	case GDRI_RM_INVALID_CLIENT:
		return -EACCES;
	case GDRI_RM_NOT_SUPPORTED:
	case GDRI_RM_INVALID_CLASS:
		return -EOPNOTSUPP;
	case GDRI_RM_INSERT_DUPLICATE_NAME:
		return -EEXIST;
	case GDRI_RM_BUSY_RETRY:
	case GDRI_RM_IN_USE:
	case GDRI_RM_STATE_IN_USE:
		return -EBUSY;
	case GDRI_RM_INVALID_ARGUMENT:
	case GDRI_RM_INVALID_LIMIT:
	case GDRI_RM_INVALID_OBJECT_HANDLE:
	case GDRI_RM_INVALID_OBJECT_PARENT:
	case GDRI_RM_OBJECT_NOT_FOUND:
		return -EINVAL;
	case GDRI_RM_GPU_IS_LOST:
		return -ENODEV;
	case GDRI_RM_TIMEOUT:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

/* status points into request and is valid when the system call succeeded. */
static int send_request(int fd, unsigned long number, void *request, const uint32_t *status,
			const char *step, struct gdri_rm_failure *failure)
{
	int rc = gdri_os_ioctl(fd, number, request);

	if (rc < 0)
		return gdri_rm_failure_set(failure, step, rc);
	if (*status != GDRI_RM_OK)
		*failure = (struct gdri_rm_failure){ .step = step, .status = *status };
	return errno_of_status(*status);
}

int gdri_rm_call_version(int fd, char *version, size_t size, struct gdri_rm_failure *failure)
{
	struct gdri_rm_version query = { .command = GDRI_RM_VERSION_QUERY };
	int rc = gdri_os_ioctl(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_CHECK_VERSION, query), &query);

	if (rc < 0)
		return gdri_rm_failure_set(failure, "driver version query", rc);
	query.version[sizeof(query.version) - 1] = '\0';
	if (query.reply != 1 || query.version[0] == '\0')
		return gdri_rm_failure_set(failure, "driver version query", -EPROTO);
	snprintf(version, size, "%s", query.version);
	return 0;
}

int gdri_rm_call_cards(int fd, struct gdri_rm_card cards[GDRI_RM_MAX_GPUS],
		       struct gdri_rm_failure *failure)
{
	typedef struct gdri_rm_card card_table[GDRI_RM_MAX_GPUS];
	int rc;

	memset(cards, 0, sizeof(card_table));
	rc = gdri_os_ioctl(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_CARD_INFO, card_table), cards);
	return rc < 0 ? gdri_rm_failure_set(failure, "list of GPUs", rc) : 0;
}

static const char *name_of_alloc(uint32_t class_id)
{
	switch (class_id) {
	case GDRI_RM_CLASS_ROOT_CLIENT:
		return "allocation of a client";
	case GDRI_RM_CLASS_DEVICE:
		return "allocation of a device";
	case GDRI_RM_CLASS_SUBDEVICE:
		return "allocation of a subdevice";
	case GDRI_RM_CLASS_VASPACE:
	case GDRI_RM_CLASS_MEMORY_VIRTUAL:
		return "allocation of an address space";
	case GDRI_RM_CLASS_MEMORY_LOCAL_USER:
		return "allocation of video memory";
	case GDRI_RM_CLASS_CHANNEL_GROUP:
		return "allocation of a channel group";
	default:
		return "allocation of an object";
	}
}

int gdri_rm_call_alloc(int fd, uint32_t client, uint32_t parent, uint32_t *object,
		       uint32_t class_id, void *params, size_t size,
		       struct gdri_rm_failure *failure)
{
	struct gdri_rm_alloc alloc = {
		.client = client,
		.parent = parent,
		.object = *object,
		.class_id = class_id,
		.params = (uintptr_t)params,
		.params_size = (uint32_t)size,
	};
	int rc = send_request(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_ALLOC, alloc), &alloc, &alloc.status,
			      name_of_alloc(class_id), failure);

	if (rc == 0)
		*object = alloc.object;
	return rc;
}

int gdri_rm_call_free(int fd, uint32_t client, uint32_t parent, uint32_t object,
		      struct gdri_rm_failure *failure)
{
	struct gdri_rm_free request = { .client = client, .parent = parent, .object = object };

	return send_request(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_FREE, request), &request,
			    &request.status, "release of an object", failure);
}

int gdri_rm_call_control(int fd, uint32_t client, uint32_t object, uint32_t command,
			 void *params, size_t size, struct gdri_rm_failure *failure)
{
	struct gdri_rm_control control = {
		.client = client,
		.object = object,
		.command = command,
		.params = (uintptr_t)params,
		.params_size = (uint32_t)size,
	};

	return send_request(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_CONTROL, control), &control,
			    &control.status, "control", failure);
}

int gdri_rm_call_dup(int fd, uint32_t client, uint32_t parent, uint32_t object,
		     uint32_t source_client, uint32_t source_object,
		     struct gdri_rm_failure *failure)
{
	struct gdri_rm_dup dup = {
		.client = client,
		.parent = parent,
		.object = object,
		.source_client = source_client,
		.source_object = source_object,
	};

	return send_request(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_DUP_OBJECT, dup), &dup, &dup.status,
			    "duplication of the memory object", failure);
}

int gdri_rm_call_map(int fd, struct gdri_rm_map *map, struct gdri_rm_failure *failure)
{
	return send_request(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_MAP_MEMORY, *map), map, &map->status,
			    "map of the memory object", failure);
}

int gdri_rm_call_unmap(int fd, uint32_t client, uint32_t device, uint32_t memory,
		       uint64_t linear, struct gdri_rm_failure *failure)
{
	struct gdri_rm_unmap unmap = {
		.client = client,
		.device = device,
		.memory = memory,
		.linear = linear,
	};

	return send_request(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_UNMAP_MEMORY, unmap), &unmap,
			    &unmap.status, "unmap of the memory object", failure);
}

int gdri_rm_call_map_dma(int fd, struct gdri_rm_map_dma *map, struct gdri_rm_failure *failure)
{
	return send_request(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_MAP_MEMORY_DMA, *map), map, &map->status,
			    "map of memory for the device", failure);
}

int gdri_rm_call_unmap_dma(int fd, struct gdri_rm_unmap_dma *unmap,
			   struct gdri_rm_failure *failure)
{
	return send_request(fd, GDRI_RM_IOCTL(GDRI_RM_ESC_UNMAP_MEMORY_DMA, *unmap), unmap,
			    &unmap->status, "unmap of memory for the device", failure);
}

int gdri_rm_call_alloc_memory(int device_fd, struct gdri_rm_alloc_memory *request,
			      struct gdri_rm_failure *failure)
{
	return send_request(device_fd, GDRI_RM_IOCTL(GDRI_RM_ESC_ALLOC_MEMORY, *request), request,
			    &request->status, "pinning of host memory", failure);
}

int gdri_rm_call_register(int device_fd, int fd, struct gdri_rm_failure *failure)
{
	struct gdri_rm_register request = { .control_fd = fd };
	int rc = gdri_os_ioctl(device_fd, GDRI_RM_IOCTL(GDRI_RM_ESC_REGISTER_FD, request),
			       &request);

	return rc < 0 ? gdri_rm_failure_set(failure, "registration of the device file", rc) : 0;
}
