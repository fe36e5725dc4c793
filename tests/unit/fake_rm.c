/* SPDX-License-Identifier: MIT */
/* The simulated resource manager: clients, objects, memory, windows, and its rules. */
#include "fake_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rm/abi/r580.h"

#define CLIENT_COUNT 64
#define OBJECT_COUNT 20000
#define WINDOW_COUNT 20000
#define MEMORY_COUNT 20000
#define FIRST_DRIVER_OBJECT 0x5c000090

struct client {
	uint32_t handle;
	int file;	/* -1: of the CUDA driver, whose files are not simulated */
	int process;
};

struct object {
	uint32_t client;
	uint32_t handle;
	uint32_t parent;
	uint32_t class_id;
	int gpu;
	int memory;
};

struct window {
	uint64_t linear;
	uint32_t client;
	uint32_t object;
	int memory;
	uint64_t offset;
	uint64_t length;
};

struct memory {
	unsigned references;
	uint64_t size;
	int gpu;
	int memfd;
};

static struct manager {
	struct client client[CLIENT_COUNT];
	struct object object[OBJECT_COUNT];
	struct window window[WINDOW_COUNT];
	struct memory memory[MEMORY_COUNT];
	unsigned objects, windows, memories;	/* high-water marks */
	uint32_t next_client;
	uint64_t next_linear;
} *manager;

/* Neither minors, instances, GPU ids nor buses are in the order of CUDA's ordinals. */
static const struct {
	uint32_t id, minor, instance, bus;
} gpus[FAKE_GPUS] = {
	{ 0x6500, 4, 2, 0x65 }, { 0x1a00, 0, 1, 0x1a }, { 0xc800, 7, 0, 0xc8 },
};

unsigned fake_rm_minor(int gpu)
{
	return gpus[gpu].minor;
}

uint32_t fake_rm_bus(int gpu)
{
	return gpus[gpu].bus;
}

void fake_rm_reset(void)
{
	if (!manager)
		manager = fake_shared(sizeof(*manager));
	for (unsigned i = 0; i < manager->memories; i++)
		if (manager->memory[i].references)
			close(manager->memory[i].memfd);
	memset(manager->client, 0, sizeof(manager->client));
	memset(manager->object, 0, sizeof(*manager->object) * manager->objects);
	memset(manager->window, 0, sizeof(*manager->window) * manager->windows);
	memset(manager->memory, 0, sizeof(*manager->memory) * manager->memories);
	manager->objects = 0;
	manager->windows = 0;
	manager->memories = 0;
	manager->next_client = 0xc1d00010;
	manager->next_linear = 0x100000000000;
}

static struct client *find_client(uint32_t handle)
{
	for (int i = 0; handle && i < CLIENT_COUNT; i++)
		if (manager->client[i].handle == handle)
			return &manager->client[i];
	return NULL;
}

static struct object *find_object(uint32_t client, uint32_t handle)
{
	for (unsigned i = 0; handle && i < manager->objects; i++)
		if (manager->object[i].handle == handle && manager->object[i].client == client)
			return &manager->object[i];
	return NULL;
}

static struct client *new_client(int file, int process)
{
	for (int i = 0; i < CLIENT_COUNT; i++) {
		if (manager->client[i].handle)
			continue;
		manager->client[i] = (struct client){ manager->next_client++, file, process };
		return &manager->client[i];
	}
	abort();
}

static struct object *new_object(struct object object)
{
	unsigned i = 0;

	while (i < manager->objects && manager->object[i].handle)
		i++;
	if (i == OBJECT_COUNT)
		abort();
	if (i == manager->objects)
		manager->objects++;
	manager->object[i] = object;
	if (object.memory >= 0)
		manager->memory[object.memory].references++;
	return &manager->object[i];
}

static void drop_memory(int index)
{
	struct memory *memory = &manager->memory[index];

	if (--memory->references == 0)
		close(memory->memfd);
}

/* With everything under it; windows of memory go with the object. */
static void free_object(struct object *object)
{
	const struct object gone = *object;

	object->handle = 0;
	for (unsigned i = 0; i < manager->windows; i++)
		if (manager->window[i].linear && manager->window[i].client == gone.client &&
		    manager->window[i].object == gone.handle)
			manager->window[i].linear = 0;
	for (unsigned i = 0; i < manager->objects; i++)
		if (manager->object[i].handle && manager->object[i].client == gone.client &&
		    manager->object[i].parent == gone.handle)
			free_object(&manager->object[i]);
	if (gone.memory >= 0)
		drop_memory(gone.memory);
}

static void free_client(struct client *client)
{
	for (unsigned i = 0; i < manager->objects; i++)
		if (manager->object[i].handle && manager->object[i].client == client->handle)
			free_object(&manager->object[i]);
	client->handle = 0;
}

void fake_rm_file_closed(int file)
{
	if (fake_file(file)->exported)
		drop_memory(fake_file(file)->memory);
	for (int i = 0; i < CLIENT_COUNT; i++)
		if (manager->client[i].handle && manager->client[i].file == file)
			free_client(&manager->client[i]);
}

void fake_rm_count(struct fake_usage *usage)
{
	for (int i = 0; i < CLIENT_COUNT; i++)
		usage->clients += manager->client[i].handle && manager->client[i].file >= 0;
	for (unsigned i = 0; i < manager->objects; i++) {
		const struct client *client = find_client(manager->object[i].client);

		usage->objects += manager->object[i].handle && client && client->file >= 0;
	}
	for (unsigned i = 0; i < manager->windows; i++)
		usage->windows += manager->window[i].linear != 0;
}

static uint32_t alloc_device(const struct client *client, const struct gdri_rm_alloc *alloc)
{
	const struct gdri_rm_device_params *params = (void *)(uintptr_t)alloc->params;

	if (alloc->params_size != sizeof(*params) || params->client_share != client->handle)
		return GDRI_RM_INVALID_ARGUMENT;
	for (int gpu = 0; gpu < FAKE_GPUS; gpu++) {
		if (gpus[gpu].instance != params->device_instance)
			continue;
		if (!fake_device_is_open(client->file, (int)gpus[gpu].minor))
			return 0x1b;
		new_object((struct object){ client->handle, alloc->object, alloc->parent,
					    alloc->class_id, gpu, -1 });
		return GDRI_RM_OK;
	}
	return GDRI_RM_INVALID_ARGUMENT;
}

static uint32_t alloc_object(const struct client *client, struct gdri_rm_alloc *alloc)
{
	const struct object *parent = find_object(client->handle, alloc->parent);

	if (alloc->object == 0 || find_object(client->handle, alloc->object))
		return GDRI_RM_INSERT_DUPLICATE_NAME;
	switch (alloc->class_id) {
	case GDRI_RM_CLASS_DEVICE:
		return alloc->parent == client->handle ? alloc_device(client, alloc) :
							 GDRI_RM_INVALID_OBJECT_PARENT;
	case GDRI_RM_CLASS_SUBDEVICE:
		if (!parent || parent->class_id != GDRI_RM_CLASS_DEVICE)
			return GDRI_RM_INVALID_OBJECT_PARENT;
		break;
	case GDRI_RM_CLASS_CONF_COMPUTE:
		if (fake_machine.no_conf_compute_class)
			return GDRI_RM_INVALID_CLASS;
		break;
	default:
		return GDRI_RM_INVALID_CLASS;
	}
	new_object((struct object){ client->handle, alloc->object, alloc->parent, alloc->class_id,
				    parent ? parent->gpu : -1, -1 });
	return GDRI_RM_OK;
}

/* A client handle is good only through the file that it was made with. */
static const struct client *client_through(int file, uint32_t handle)
{
	const struct client *client = find_client(handle);

	return client && client->file == file ? client : NULL;
}

static uint32_t do_alloc(int file, struct gdri_rm_alloc *alloc)
{
	const struct client *client;

	if (alloc->class_id == GDRI_RM_CLASS_ROOT_CLIENT) {
		alloc->object = new_client(file, getpid())->handle;
		return GDRI_RM_OK;
	}
	client = client_through(file, alloc->client);
	return client ? alloc_object(client, alloc) : GDRI_RM_INVALID_CLIENT;
}

static uint32_t do_free(int file, const struct gdri_rm_free *request)
{
	struct object *object;

	if (!client_through(file, request->client))
		return GDRI_RM_INVALID_CLIENT;
	if (request->object == request->client) {
		free_client(find_client(request->client));
		return GDRI_RM_OK;
	}
	object = find_object(request->client, request->object);
	if (!object)
		return GDRI_RM_OBJECT_NOT_FOUND;
	free_object(object);
	return GDRI_RM_OK;
}

/* The manager lets one process duplicate its own objects, and no others. */
static uint32_t do_dup(int file, const struct gdri_rm_dup *dup)
{
	const struct client *client = client_through(file, dup->client);
	const struct client *source_client = find_client(dup->source_client);
	const struct object *source = find_object(dup->source_client, dup->source_object);
	const struct object *parent = find_object(dup->client, dup->parent);

	if (!client)
		return GDRI_RM_INVALID_CLIENT;
	if (!source_client || !source)
		return GDRI_RM_OBJECT_NOT_FOUND;
	if (source_client->process != client->process)
		return GDRI_RM_INSUFFICIENT_PERMISSIONS;
	if (source->memory < 0)
		return GDRI_RM_INVALID_ARGUMENT;
	if (!parent || parent->class_id != GDRI_RM_CLASS_DEVICE || parent->gpu != source->gpu)
		return GDRI_RM_INVALID_OBJECT_PARENT;
	if (find_object(dup->client, dup->object))
		return GDRI_RM_INSERT_DUPLICATE_NAME;
	new_object((struct object){ dup->client, dup->object, dup->parent, source->class_id,
				    source->gpu, source->memory });
	return GDRI_RM_OK;
}

static uint32_t do_map(int file, struct gdri_rm_map *map)
{
	const struct object *object = find_object(map->client, map->memory);
	const struct object *device = find_object(map->client, map->device);
	struct fake_file *target = fake_file(fake_file_of(map->fd));
	const uint32_t caching = fake_machine.map_caching ? fake_machine.map_caching :
							    GDRI_RM_CACHING_WRITE_COMBINED;
	unsigned i = 0;

	if (!client_through(file, map->client))
		return GDRI_RM_INVALID_CLIENT;
	if (!object || object->memory < 0 || !device || device->class_id != GDRI_RM_CLASS_DEVICE)
		return GDRI_RM_OBJECT_NOT_FOUND;
	if (map->length == 0 || map->offset > manager->memory[object->memory].size ||
	    map->length > manager->memory[object->memory].size - map->offset)
		return GDRI_RM_INVALID_LIMIT;
	if (!target || target->kind != FAKE_FILE_DEVICE || target->control != file ||
	    (unsigned)target->minor != gpus[object->gpu].minor)
		return GDRI_RM_INVALID_ARGUMENT;
	if (target->mapped_once)
		return GDRI_RM_STATE_IN_USE;
	while (i < manager->windows && manager->window[i].linear)
		i++;
	if (i == WINDOW_COUNT)
		abort();
	if (i == manager->windows)
		manager->windows++;
	manager->next_linear += map->length;
	manager->window[i] = (struct window){ manager->next_linear, map->client, map->memory,
					      object->memory, map->offset, map->length };
	target->mapped_once = true;
	target->window = (int)i;
	map->linear = manager->window[i].linear;
	map->flags = caching << 23 | 1 << 16;
	return GDRI_RM_OK;
}

static uint32_t do_unmap(int file, const struct gdri_rm_unmap *unmap)
{
	if (!client_through(file, unmap->client))
		return GDRI_RM_INVALID_CLIENT;
	for (unsigned i = 0; i < manager->windows; i++) {
		struct window *window = &manager->window[i];

		if (window->linear && window->linear == unmap->linear &&
		    window->client == unmap->client && window->object == unmap->memory) {
			window->linear = 0;
			return GDRI_RM_OK;
		}
	}
	return GDRI_RM_OBJECT_NOT_FOUND;
}

int fake_rm_window_memory(int index, size_t length, int *memfd, uint64_t *offset)
{
	const struct window *window = &manager->window[index];

	if (!window->linear || length > window->length)
		return -EINVAL;
	*memfd = manager->memory[window->memory].memfd;
	*offset = window->offset;
	return 0;
}

#define INVALID_PARAMETER 0x3b

/* Into a control file that nothing was exported to. */
static uint32_t control_export(const struct client *client, const struct gdri_rm_export *export)
{
	struct fake_file *file = fake_file(fake_file_of(export->fd));
	const struct object *object = find_object(client->handle, export->object.object);
	const struct object *device = find_object(client->handle, export->object.device);

	if (!file || file->kind != FAKE_FILE_CONTROL || export->object.type != 1 || export->flags)
		return INVALID_PARAMETER;
	if (!object || object->memory < 0 || !device || device->class_id != GDRI_RM_CLASS_DEVICE)
		return GDRI_RM_OBJECT_NOT_FOUND;
	if (file->exported)
		return GDRI_RM_STATE_IN_USE;
	file->exported = true;
	file->memory = object->memory;
	file->instance = gpus[device->gpu].instance;
	manager->memory[object->memory].references++;
	return GDRI_RM_OK;
}

static const struct fake_file *exported_file(int fd)
{
	const struct fake_file *file = fake_file(fake_file_of(fd));

	return file && (file->kind == FAKE_FILE_EXPORT || file->exported) ? file : NULL;
}

static uint32_t control_export_info(struct gdri_rm_export_info *info)
{
	const struct fake_file *file = exported_file(info->fd);

	if (!file)
		return INVALID_PARAMETER;
	info->max_objects = 1;
	info->device_instance = file->exported ? file->instance :
						 gpus[manager->memory[file->memory].gpu].instance;
	return GDRI_RM_OK;
}

/* Under any device, as the real one. */
static uint32_t control_import(const struct client *client, const struct gdri_rm_import *import)
{
	const struct fake_file *file = exported_file(import->fd);
	const struct object *parent = find_object(client->handle, import->object.parent);
	const uint32_t class_id = fake_machine.import_class ? fake_machine.import_class :
							      GDRI_RM_CLASS_MEMORY_LOCAL_USER;

	if (!file || import->object.type != 1)
		return INVALID_PARAMETER;
	if (!parent)
		return GDRI_RM_INVALID_OBJECT_PARENT;
	new_object((struct object){ client->handle, import->object.object, import->object.parent,
				    class_id, parent->gpu, file->memory });
	return GDRI_RM_OK;
}

static uint32_t control_client(const struct client *client, uint32_t command, void *params)
{
	struct gdri_rm_handle_info *handle = params;
	struct gdri_rm_duplicates *pair = params;
	struct gdri_rm_id_info *id = params;
	const struct object *one, *two;

	switch (command) {
	case GDRI_RM_CTRL_GET_HANDLE_INFO:
		one = find_object(client->handle, handle->object);
		if (!one && handle->object != client->handle)
			return GDRI_RM_OBJECT_NOT_FOUND;
		handle->result = one ? one->class_id : GDRI_RM_CLASS_ROOT_CLIENT;
		return GDRI_RM_OK;
	case GDRI_RM_CTRL_OBJECTS_ARE_DUPLICATES:
		one = find_object(client->handle, pair->object1);
		two = find_object(client->handle, pair->object2);
		if (!one || !two || one->memory < 0 || two->memory < 0)
			return GDRI_RM_OBJECT_NOT_FOUND;
		pair->duplicates = one->memory == two->memory;
		return GDRI_RM_OK;
	case GDRI_RM_CTRL_GET_ID_INFO_V2:
		for (int gpu = 0; gpu < FAKE_GPUS; gpu++)
			if (gpus[gpu].id == id->gpu) {
				id->device_instance = gpus[gpu].instance;
				return GDRI_RM_OK;
			}
		return GDRI_RM_INVALID_ARGUMENT;
	case GDRI_RM_CTRL_EXPORT_TO_FD:
		return control_export(client, params);
	case GDRI_RM_CTRL_GET_EXPORT_INFO:
		return control_export_info(params);
	case GDRI_RM_CTRL_IMPORT_FROM_FD:
		return control_import(client, params);
	default:
		return GDRI_RM_NOT_SUPPORTED;
	}
}

static uint32_t control_surface(const struct object *object, struct gdri_rm_surface_info *surface)
{
	struct gdri_rm_info_entry *entry = (void *)(uintptr_t)surface->list;
	const uint64_t size = manager->memory[object->memory].size;

	for (uint32_t i = 0; i < surface->count; i++)
		entry[i].data = entry[i].index == GDRI_RM_SURFACE_SIZE_LO ? (uint32_t)size :
				entry[i].index == GDRI_RM_SURFACE_SIZE_HI ? (uint32_t)(size >> 32) :
				GDRI_RM_ADDRESS_SPACE_VIDMEM;
	return GDRI_RM_OK;
}

static uint32_t do_control(int file, const struct gdri_rm_control *control)
{
	const struct client *client = client_through(file, control->client);
	const struct object *object = find_object(control->client, control->object);
	void *params = (void *)(uintptr_t)control->params;

	if (!client)
		return GDRI_RM_INVALID_CLIENT;
	if (control->object == client->handle)
		return control_client(client, control->command, params);
	if (!object)
		return GDRI_RM_OBJECT_NOT_FOUND;
	if (object->memory >= 0 && control->command == GDRI_RM_CTRL_GET_SURFACE_INFO)
		return control_surface(object, params);
	if (object->class_id == GDRI_RM_CLASS_DEVICE &&
	    control->command == GDRI_RM_CTRL_GET_VIRTUALIZATION_MODE) {
		((struct gdri_rm_virtualization_mode *)params)->mode = fake_machine.virtualization;
		return GDRI_RM_OK;
	}
	if (object->class_id == GDRI_RM_CLASS_SUBDEVICE &&
	    control->command == GDRI_RM_CTRL_GPU_GET_INFO_V2) {
		((struct gdri_rm_gpu_info *)params)->entry[0].data =
			fake_machine.smc_mode ? fake_machine.smc_mode : 2;
		return GDRI_RM_OK;
	}
	if (object->class_id == GDRI_RM_CLASS_CONF_COMPUTE &&
	    control->command == GDRI_RM_CTRL_CONF_COMPUTE_CAPABILITIES) {
		((struct gdri_rm_conf_compute *)params)->feature =
			fake_machine.conf_compute ? 2 : 0;
		return GDRI_RM_OK;
	}
	return GDRI_RM_NOT_SUPPORTED;
}

static int list_cards(struct gdri_rm_card *cards)
{
	for (int gpu = 0; gpu < FAKE_GPUS; gpu++)
		cards[gpu] = (struct gdri_rm_card){
			.valid = 1, .pci_domain = 1, .pci_bus = (uint8_t)gpus[gpu].bus,
			.gpu = gpus[gpu].id, .minor = gpus[gpu].minor,
		};
	return 0;
}

static int answer_version(struct gdri_rm_version *query)
{
	const char *version = fake_machine.version ? fake_machine.version : "580.159.04";

	if (query->command != GDRI_RM_VERSION_QUERY)
		return -EINVAL;
	query->reply = 1;
	strncpy(query->version, version, sizeof(query->version) - 1);
	return 0;
}

static int register_file(struct fake_file *file, const struct gdri_rm_register *request)
{
	const int control = fake_file_of(request->control_fd);

	if (file->kind != FAKE_FILE_DEVICE || control < 0 ||
	    fake_file(control)->kind != FAKE_FILE_CONTROL)
		return -EINVAL;
	file->control = control;
	return 0;
}

/* Requests of another size than the driver's are refused, as there. */
#define EXPECT(type) do { if (_IOC_SIZE(request) != sizeof(type)) return -EINVAL; } while (0)
#define ANSWER(type, call)                                                    \
	do {                                                                  \
		type *typed = arg;                                            \
		EXPECT(type);                                                 \
		typed->status = injected_status ? injected_status : (call); \
		return 0;                                                     \
	} while (0)

int fake_rm_ioctl(int file, unsigned long request, void *arg, uint32_t injected_status)
{
	const unsigned number = _IOC_NR(request);

	if (_IOC_TYPE(request) != 'F')
		return -ENOTTY;
	if (number == GDRI_RM_ESC_REGISTER_FD)
		return injected_status ? -EINVAL : register_file(fake_file(file), arg);
	if (fake_file(file)->kind != FAKE_FILE_CONTROL)
		return -EINVAL;
	switch (number) {
	case GDRI_RM_ESC_CHECK_VERSION:
		EXPECT(struct gdri_rm_version);
		return injected_status ? -EINVAL : answer_version(arg);
	case GDRI_RM_ESC_CARD_INFO:
		return injected_status ? -EINVAL : list_cards(arg);
	case GDRI_RM_ESC_ALLOC:
		ANSWER(struct gdri_rm_alloc, do_alloc(file, typed));
	case GDRI_RM_ESC_FREE:
		ANSWER(struct gdri_rm_free, do_free(file, typed));
	case GDRI_RM_ESC_CONTROL:
		ANSWER(struct gdri_rm_control, do_control(file, typed));
	case GDRI_RM_ESC_DUP_OBJECT:
		ANSWER(struct gdri_rm_dup, do_dup(file, typed));
	case GDRI_RM_ESC_MAP_MEMORY:
		ANSWER(struct gdri_rm_map, do_map(file, typed));
	case GDRI_RM_ESC_UNMAP_MEMORY:
		ANSWER(struct gdri_rm_unmap, do_unmap(file, typed));
	default:
		return -EINVAL;
	}
}

uint32_t fake_rm_driver_client(int process)
{
	return new_client(-1, process)->handle;
}

struct fake_name fake_rm_driver_memory(uint32_t client, int gpu, uint64_t size)
{
	struct fake_name name = { client, FIRST_DRIVER_OBJECT };
	unsigned i = 0;

	/* The real driver gives freed handles out again, too. */
	while (find_object(client, name.object))
		name.object++;
	while (i < manager->memories && manager->memory[i].references)
		i++;
	if (i == MEMORY_COUNT)
		abort();
	if (i == manager->memories)
		manager->memories++;
	manager->memory[i] = (struct memory){ 0, size, gpu, memfd_create("fake-gpu", MFD_CLOEXEC) };
	if (ftruncate(manager->memory[i].memfd, (off_t)size))
		abort();
	new_object((struct object){ client, name.object, client, GDRI_RM_CLASS_MEMORY_LOCAL_USER,
				    gpu, (int)i });
	return name;
}

void fake_rm_driver_free(struct fake_name name)
{
	free_object(find_object(name.client, name.object));
}

int fake_rm_memory_of(struct fake_name name)
{
	return find_object(name.client, name.object)->memory;
}

uint64_t fake_rm_used(void)
{
	uint64_t used = 0;

	for (unsigned i = 0; i < manager->memories; i++)
		if (manager->memory[i].references)
			used += manager->memory[i].size;
	return used;
}

/* Mapped anew for each question and left mapped: tests look at few places. */
void *fake_rm_bytes(int index)
{
	const struct memory *memory = &manager->memory[index];
	void *base = mmap(NULL, memory->size, PROT_READ | PROT_WRITE, MAP_SHARED, memory->memfd, 0);

	if (base == MAP_FAILED)
		abort();
	return base;
}
