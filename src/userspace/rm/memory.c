/* SPDX-License-Identifier: MIT */
/* Duplicates, imports, describes, maps and frees memory objects. */
#include "rm/memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include "os/sys.h"

int gdri_rm_memory_dup(struct gdri_rm_client *client, struct gdri_rm_device *device,
		       uint32_t source_client, uint32_t source_object, uint32_t *object,
		       struct gdri_rm_failure *failure)
{
	uint32_t handle = gdri_rm_client_new_handle(client);
	int rc;

	rc = gdri_rm_call_dup(client->fd, client->object, device->object, handle, source_client,
			      source_object, failure);
	if (rc == 0)
		*object = handle;
	return rc;
}

int gdri_rm_memory_import(struct gdri_rm_client *client, struct gdri_rm_device *device, int fd,
			  uint32_t *object, struct gdri_rm_failure *failure)
{
	struct gdri_rm_import import = {
		.fd = fd,
		.object = {
			.type = GDRI_RM_EXPORT_TYPE_RM,
			.device = device->object,
			.parent = device->object,
			.object = gdri_rm_client_new_handle(client),
		},
	};
	int rc;

	rc = gdri_rm_client_control(client, GDRI_RM_CTRL_IMPORT_FROM_FD, &import, sizeof(import),
				    failure);
	if (rc == 0)
		*object = import.object.object;
	return rc;
}

int gdri_rm_memory_export(struct gdri_rm_client *client, struct gdri_rm_device *device,
			  uint32_t object, int *fd, struct gdri_rm_failure *failure)
{
	struct gdri_rm_export export = {
		.object = {
			.type = GDRI_RM_EXPORT_TYPE_RM,
			.device = device->object,
			.parent = device->object,
			.object = object,
		},
	};
	int rc;

	export.fd = gdri_os_open("/dev/nvidiactl", O_RDWR);
	if (export.fd < 0)
		return gdri_rm_failure_set(failure, "open of /dev/nvidiactl", export.fd);
	rc = gdri_rm_client_control(client, GDRI_RM_CTRL_EXPORT_TO_FD, &export, sizeof(export),
				    failure);
	if (rc == 0)
		*fd = export.fd;
	else
		gdri_os_close(export.fd);
	return rc;
}

int gdri_rm_memory_exporter(struct gdri_rm_client *client, int fd, uint32_t *instance,
			    struct gdri_rm_failure *failure)
{
	struct gdri_rm_export_info info = { .fd = fd };
	int rc;

	rc = gdri_rm_client_control(client, GDRI_RM_CTRL_GET_EXPORT_INFO, &info, sizeof(info),
				    failure);
	if (rc == 0)
		*instance = info.device_instance;
	return rc;
}

int gdri_rm_memory_free(struct gdri_rm_client *client, struct gdri_rm_device *device,
			uint32_t object)
{
	struct gdri_rm_failure failure;

	return gdri_rm_call_free(client->fd, client->object, device->object, object, &failure);
}

int gdri_rm_memory_info(struct gdri_rm_client *client, uint32_t object,
			struct gdri_rm_memory_info *info, struct gdri_rm_failure *failure)
{
	struct gdri_rm_info_entry entry[] = {
		{ .index = GDRI_RM_SURFACE_SIZE_LO },
		{ .index = GDRI_RM_SURFACE_SIZE_HI },
		{ .index = GDRI_RM_SURFACE_ADDRESS_SPACE },
	};
	struct gdri_rm_surface_info surface = {
		.count = sizeof(entry) / sizeof(entry[0]),
		.list = (uintptr_t)entry,
	};
	struct gdri_rm_handle_info handle = {
		.object = object,
		.index = GDRI_RM_HANDLE_INFO_CLASS,
	};
	int rc;

	rc = gdri_rm_client_control(client, GDRI_RM_CTRL_GET_HANDLE_INFO, &handle,
				    sizeof(handle), failure);
	if (rc == 0)
		rc = gdri_rm_call_control(client->fd, client->object, object,
					  GDRI_RM_CTRL_GET_SURFACE_INFO, &surface,
					  sizeof(surface), failure);
	if (rc == 0)
		*info = (struct gdri_rm_memory_info){
			.size = (uint64_t)entry[1].data << 32 | entry[0].data,
			.class_id = (uint32_t)handle.result,
			.address_space = entry[2].data,
		};
	return rc;
}

int gdri_rm_memory_same(struct gdri_rm_client *client, uint32_t object1, uint32_t object2,
			bool *same, struct gdri_rm_failure *failure)
{
	struct gdri_rm_duplicates query = { .object1 = object1, .object2 = object2 };
	int rc;

	rc = gdri_rm_client_control(client, GDRI_RM_CTRL_OBJECTS_ARE_DUPLICATES, &query,
				    sizeof(query), failure);
	if (rc == 0)
		*same = query.duplicates == 1;
	return rc;
}

int gdri_rm_memory_map_file(int fd, size_t length, void **base, struct gdri_rm_failure *failure)
{
	int rc;

	rc = gdri_os_mmap(length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, base);
	if (rc)
		return gdri_rm_failure_set(failure, "mmap of /dev/nvidiaN", rc);
	rc = gdri_os_dontfork(*base, length);
	if (rc) {
		gdri_os_munmap(*base, length);
		return gdri_rm_failure_set(failure, "madvise(MADV_DONTFORK)", rc);
	}
	return 0;
}

/*
 * The map request ties the window to the descriptor, which serves one window
 * alone; once mmap has taken it up, the descriptor is no longer needed
 * (2,000 windows with closed descriptors were used and unmapped).
 */
int gdri_rm_memory_map(struct gdri_rm_client *client, struct gdri_rm_device *device,
		       uint32_t object, uint64_t offset, size_t length,
		       struct gdri_rm_window *window, struct gdri_rm_failure *failure)
{
	struct gdri_rm_map map = {
		.client = client->object,
		.device = device->object,
		.memory = object,
		.offset = offset,
		.length = length,
	};
	void *base = NULL;
	int fd, rc;

	fd = gdri_rm_device_open_file(client, device, failure);
	if (fd < 0)
		return fd;
	map.fd = fd;
	rc = gdri_rm_call_map(client->fd, &map, failure);
	if (rc)
		goto out_close;
	rc = gdri_rm_memory_map_file(fd, length, &base, failure);
	if (rc) {
		gdri_rm_call_unmap(client->fd, client->object, device->object, object,
				   map.linear, &(struct gdri_rm_failure){ 0 });
		goto out_close;
	}
	*window = (struct gdri_rm_window){
		.base = base,
		.length = length,
		.linear = map.linear,
		.caching = GDRI_RM_MAP_CACHING(map.flags),
	};
out_close:
	gdri_os_close(fd);
	return rc;
}

int gdri_rm_memory_unmap(struct gdri_rm_client *client, struct gdri_rm_device *device,
			 uint32_t object, struct gdri_rm_window *window)
{
	struct gdri_rm_failure failure;
	int unmap_rc = gdri_os_munmap(window->base, window->length);
	int rc = gdri_rm_call_unmap(client->fd, client->object, device->object, object,
				    window->linear, &failure);

	return unmap_rc ? unmap_rc : rc;
}
