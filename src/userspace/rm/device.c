/* SPDX-License-Identifier: MIT */
/* Finds GPUs by their PCI address and attaches them to the client. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "os/cuda.h"
#include "os/sys.h"
#include "rm/client.h"

static struct gdri_rm_device *find_device(struct gdri_rm_client *client, uint32_t domain,
					  uint32_t bus, uint32_t slot)
{
	for (unsigned i = 0; i < client->device_count; i++) {
		struct gdri_rm_device *device = &client->device[i];

		if (device->pci_domain == domain && device->pci_bus == bus &&
		    device->pci_slot == slot)
			return device;
	}
	return NULL;
}

int gdri_rm_device_open_file(struct gdri_rm_client *client, const struct gdri_rm_device *device,
			     struct gdri_rm_failure *failure)
{
	char path[32];
	int rc;
	int fd;

	snprintf(path, sizeof(path), "/dev/nvidia%u", device->minor);
	fd = gdri_os_open(path, O_RDWR);
	if (fd < 0)
		return gdri_rm_failure_set(failure, "open of /dev/nvidiaN", fd);
	rc = gdri_rm_call_register(fd, client->fd, failure);
	if (rc) {
		gdri_os_close(fd);
		return rc;
	}
	return fd;
}

static int alloc_device(struct gdri_rm_client *client, struct gdri_rm_device *device,
			struct gdri_rm_failure *failure)
{
	struct gdri_rm_id_info info = { .gpu = device->gpu };
	struct gdri_rm_device_params params = {
		.client_share = client->object,
		.va_mode = GDRI_RM_VA_MODE_MULTIPLE,	/* for spaces of our own: space.h */
	};
	struct gdri_rm_subdevice_params sub = { 0 };
	uint32_t object = gdri_rm_client_new_handle(client);
	uint32_t subdevice = gdri_rm_client_new_handle(client);
	int rc;

	rc = gdri_rm_client_control(client, GDRI_RM_CTRL_GET_ID_INFO_V2, &info, sizeof(info),
				    failure);
	if (rc)
		return rc;
	params.device_instance = info.device_instance;
	rc = gdri_rm_call_alloc(client->fd, client->object, client->object, &object,
				GDRI_RM_CLASS_DEVICE, &params, sizeof(params), failure);
	if (rc)
		return rc;
	sub.subdevice_id = info.subdevice_instance;
	rc = gdri_rm_call_alloc(client->fd, client->object, object, &subdevice,
				GDRI_RM_CLASS_SUBDEVICE, &sub, sizeof(sub), failure);
	if (rc) {
		gdri_rm_call_free(client->fd, client->object, client->object, object,
				  &(struct gdri_rm_failure){ 0 });
		return rc;
	}
	device->object = object;
	device->subdevice = subdevice;
	device->instance = info.device_instance;
	return 0;
}

/* Facts on which nvrm decides whether to serve this GPU. */
static int query_modes(struct gdri_rm_client *client, struct gdri_rm_device *device,
		       struct gdri_rm_failure *failure)
{
	struct gdri_rm_virtualization_mode mode = { 0 };
	struct gdri_rm_gpu_info info = {
		.count = 1,
		.entry = { { .index = GDRI_RM_GPU_INFO_SMC_MODE } },
	};
	int rc;

	rc = gdri_rm_call_control(client->fd, client->object, device->object,
				  GDRI_RM_CTRL_GET_VIRTUALIZATION_MODE, &mode, sizeof(mode),
				  failure);
	if (rc == 0)
		rc = gdri_rm_call_control(client->fd, client->object, device->subdevice,
					  GDRI_RM_CTRL_GPU_GET_INFO_V2, &info, sizeof(info),
					  failure);
	if (rc)
		return rc;
	device->virtualization = mode.mode;
	device->smc_mode = info.entry[0].data;
	return 0;
}

/* Freeing the device frees its children, the subdevice and all memory handles, with it. */
static int free_device(struct gdri_rm_client *client, struct gdri_rm_device *device)
{
	struct gdri_rm_failure failure;

	return gdri_rm_call_free(client->fd, client->object, client->object, device->object,
				 &failure);
}

static int attach_device(struct gdri_rm_client *client, struct gdri_rm_device *device,
			 struct gdri_rm_failure *failure)
{
	int rc;

	/* The driver makes no device object before the device's file is open (status 0x1b). */
	device->fd = gdri_rm_device_open_file(client, device, failure);
	if (device->fd < 0)
		return device->fd;
	rc = alloc_device(client, device, failure);
	if (rc)
		goto err_close;
	rc = query_modes(client, device, failure);
	if (rc)
		goto err_free;
	device->attached = true;
	return 0;
err_free:
	free_device(client, device);
err_close:
	gdri_os_close(device->fd);
	device->fd = -1;
	return rc;
}

int gdri_rm_device_get(struct gdri_rm_client *client, uint32_t domain, uint32_t bus,
		       uint32_t slot, struct gdri_rm_device **device,
		       struct gdri_rm_failure *failure)
{
	struct gdri_rm_device *found = find_device(client, domain, bus, slot);
	int rc = 0;

	if (!found)
		return gdri_rm_failure_set(failure, "search for the GPU by PCI address", -ENODEV);
	pthread_mutex_lock(&client->lock);
	if (!found->attached)
		rc = attach_device(client, found, failure);
	pthread_mutex_unlock(&client->lock);
	if (rc == 0)
		*device = found;
	return rc;
}

int gdri_rm_device_of_ordinal(struct gdri_rm_client *client, const struct gdri_cuda *cuda,
			      int ordinal, struct gdri_rm_device **device,
			      struct gdri_rm_failure *failure)
{
	int handle = 0, domain = 0, bus = 0, slot = 0;
	int result;

	result = cuda->device_get(&handle, ordinal);
	if (result == 0)
		result = cuda->device_get_attribute(&domain, GDRI_CU_DEVICE_PCI_DOMAIN_ID, handle);
	if (result == 0)
		result = cuda->device_get_attribute(&bus, GDRI_CU_DEVICE_PCI_BUS_ID, handle);
	if (result == 0)
		result = cuda->device_get_attribute(&slot, GDRI_CU_DEVICE_PCI_DEVICE_ID, handle);
	if (result)
		return gdri_rm_failure_set(failure, "PCI address of the device, from CUDA",
					   gdri_os_cuda_errno(result));
	return gdri_rm_device_get(client, (uint32_t)domain, (uint32_t)bus, (uint32_t)slot, device,
				  failure);
}

int gdri_rm_device_detach(struct gdri_rm_client *client, struct gdri_rm_device *device)
{
	int rc, close_rc;

	if (!device->attached)
		return 0;
	rc = free_device(client, device);
	close_rc = gdri_os_close(device->fd);
	device->attached = false;
	device->fd = -1;
	return rc ? rc : close_rc;
}
