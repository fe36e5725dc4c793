/* SPDX-License-Identifier: MIT */
/* Memory objects that one process exports and another imports, by descriptor. */
#include <errno.h>

#include "rm/memory.h"
#include "rm/range.h"

/* What the manager refuses is the caller's descriptor; a failed system call is its own error. */
static int refuse_descriptor(const struct gdri_log *log, int fd, int rc,
			     const struct gdri_rm_failure *failure)
{
	char text[128];

	gdri_error(log, "import: nvrm: descriptor %d: %s; give the one of gdr_export", fd,
		   gdri_rm_failure_text(failure, text, sizeof(text)));
	return failure->error || rc == -ENOMEM ? rc : -EINVAL;
}

static int check_exporter(struct gdri_rm_client *client, int fd, const struct gdri_log *log,
			  const struct gdri_rm_device *device)
{
	struct gdri_rm_failure failure;
	uint32_t instance = 0;
	int rc;

	rc = gdri_rm_memory_exporter(client, fd, &instance, &failure);
	if (rc)
		return refuse_descriptor(log, fd, rc, &failure);
	if (instance == device->instance)
		return 0;
	gdri_error(log, "import: nvrm: descriptor %d is of another GPU (instance %u, not %u)", fd,
		   instance, device->instance);
	return -EINVAL;
}

static int check_object(struct gdri_rm_client *client, int fd, const struct gdri_log *log,
			const struct gdri_rm_range *range)
{
	struct gdri_rm_memory_info info;
	struct gdri_rm_failure failure;
	int rc;

	rc = gdri_rm_memory_info(client, range->object, &info, &failure);
	if (rc)
		return refuse_descriptor(log, fd, rc, &failure);
	if (info.class_id == GDRI_RM_CLASS_MEMORY_LOCAL_USER &&
	    info.address_space == GDRI_RM_ADDRESS_SPACE_VIDMEM &&
	    info.size == range->object_size)
		return 0;
	gdri_error(log, "import: nvrm: descriptor %d is an object of class %#x, space %u, %#llx bytes, "
		   "not video memory of %#llx; give the descriptor that came with the struct", fd,
		   info.class_id, info.address_space, (unsigned long long)info.size,
		   (unsigned long long)range->object_size);
	return -EINVAL;
}

int gdri_rm_range_import(struct gdri_rm_client *client, int fd, const struct gdri_log *log,
			 struct gdri_rm_range *range)
{
	struct gdri_rm_range made = *range;
	struct gdri_rm_failure failure;
	int rc;

	made.client = client;
	rc = check_exporter(client, fd, log, made.device);
	if (rc)
		return rc;
	rc = gdri_rm_memory_import(client, made.device, fd, &made.object, &failure);
	if (rc)
		return refuse_descriptor(log, fd, rc, &failure);
	rc = check_object(client, fd, log, &made);
	if (rc) {
		gdri_rm_memory_free(client, made.device, made.object);
		return rc;
	}
	*range = made;
	return 0;
}

int gdri_rm_range_export(const struct gdri_rm_range *range, const struct gdri_log *log, int *fd)
{
	struct gdri_rm_failure failure;
	char text[128];
	int rc;

	rc = gdri_rm_memory_export(range->client, range->device, range->object, fd, &failure);
	if (rc)
		gdri_error(log, "export: nvrm: %s; check ulimit -n",
			   gdri_rm_failure_text(&failure, text, sizeof(text)));
	return rc;
}
