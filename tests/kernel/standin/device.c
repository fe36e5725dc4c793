/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* /dev/nvidia-emu: allocation, binding, the GPU's own access, knobs and counts. */
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>

#include "standin.h"

DEFINE_MUTEX(standin_state);
struct nvidia_emu_settings standin_settings = { .page_size_type = NVIDIA_P2P_PAGE_SIZE_64KB };
struct nvidia_emu_stats standin_stats;

/* What an open file owns. */
struct client {
	struct list_head objects;
};

void standin_misuse(const char *what, u64 number)
{
	mutex_lock(&standin_state);
	standin_stats.misuse++;
	mutex_unlock(&standin_state);
	pr_err("nvidia_emu: MISUSE: %s (0x%llx)\n", what, number);
}

static int open_client(struct inode *inode, struct file *file)
{
	struct client *client = kzalloc(sizeof(*client), GFP_KERNEL);

	if (!client)
		return -ENOMEM;
	INIT_LIST_HEAD(&client->objects);
	file->private_data = client;
	return 0;
}

static struct standin_object *find_object(struct client *client, u64 offset)
{
	struct standin_object *object;

	lockdep_assert_held(&standin_state);
	list_for_each_entry(object, &client->objects, link)
		if (offset >= object->offset &&
		    offset - object->offset < (u64)object->count << STANDIN_PAGE_SHIFT)
			return object;
	return NULL;
}

/* Off the client's list, so that only the caller can free it. */
static struct standin_object *detach_object(struct client *client, u64 offset, bool any)
{
	struct standin_object *object;

	mutex_lock(&standin_state);
	if (any)
		object = list_first_entry_or_null(&client->objects, struct standin_object, link);
	else
		object = find_object(client, offset);
	if (object && !any && object->offset != offset)
		object = NULL;
	if (object) {
		list_del_init(&object->link);
		standin_unbind_object(object);
	}
	mutex_unlock(&standin_state);
	return object;
}

static void free_object(struct file *file, struct standin_object *object)
{
	standin_revoke(&(struct standin_match){ .object = object });
	unmap_mapping_range(file->f_mapping, object->offset,
			    (loff_t)object->count << STANDIN_PAGE_SHIFT, 1);
	mutex_lock(&standin_state);
	standin_object_put(object);
	mutex_unlock(&standin_state);
}

static int release_client(struct inode *inode, struct file *file)
{
	struct client *client = file->private_data;
	struct standin_object *object;

	while ((object = detach_object(client, 0, true)) != NULL)
		free_object(file, object);
	kfree(client);
	return 0;
}

static long do_alloc(struct file *file, struct nvidia_emu_alloc *args)
{
	struct client *client = file->private_data;
	struct standin_object *object;

	if (args->device >= standin_bar_count)
		return -ENODEV;
	object = standin_object_create(&standin_bars[args->device], args->size);
	if (IS_ERR(object))
		return PTR_ERR(object);
	mutex_lock(&standin_state);
	list_add(&object->link, &client->objects);
	args->offset = object->offset;
	mutex_unlock(&standin_state);
	return 0;
}

static long do_free(struct file *file, const struct nvidia_emu_free *args)
{
	struct standin_object *object = detach_object(file->private_data, args->offset, false);

	if (!object)
		return -EINVAL;
	free_object(file, object);
	return 0;
}

static long do_bind(struct file *file, const struct nvidia_emu_bind *args)
{
	struct standin_object *object;
	long ret = -EINVAL;

	mutex_lock(&standin_state);
	object = find_object(file->private_data, args->offset);
	if (object)
		ret = standin_bind(file, object, args);
	mutex_unlock(&standin_state);
	return ret;
}

static long do_unbind(struct file *file, const struct nvidia_emu_bind *args)
{
	struct standin_match match = {
		.file = file, .tgid = current->tgid, .va = args->va, .size = args->size
	};
	bool last = false;
	long ret;

	mutex_lock(&standin_state);
	ret = standin_unbind(file, args, &last);
	mutex_unlock(&standin_state);
	if (last)
		standin_revoke(&match);
	return ret;
}

static void do_revoke(struct nvidia_emu_revoke *args)
{
	struct standin_match match = { .va = args->va, .size = args->size };

	if (args->size)
		match.tgid = current->tgid;
	args->fired = standin_revoke(&match);
}

static long set_settings(const struct nvidia_emu_settings *args)
{
	long ret;

	mutex_lock(&standin_state);
	ret = standin_bars_reserve_wc(args->reserve_wc);
	if (ret == 0)
		standin_settings = *args;
	mutex_unlock(&standin_state);
	return ret;
}

static long do_where(struct file *file, struct nvidia_emu_where *args)
{
	struct standin_object *object;

	mutex_lock(&standin_state);
	object = find_object(file->private_data, args->offset);
	if (object)
		args->physical = standin_object_physical(object, args->offset - object->offset);
	mutex_unlock(&standin_state);
	return object ? 0 : -EINVAL;
}

union arguments {
	struct nvidia_emu_alloc alloc;
	struct nvidia_emu_free free;
	struct nvidia_emu_bind bind;
	struct nvidia_emu_revoke revoke;
	struct nvidia_emu_settings settings;
	struct nvidia_emu_stats stats;
	struct nvidia_emu_where where;
};

static long dispatch(struct file *file, unsigned int command, union arguments *args)
{
	switch (command) {
	case NVIDIA_EMU_ALLOC:
		return do_alloc(file, &args->alloc);
	case NVIDIA_EMU_FREE:
		return do_free(file, &args->free);
	case NVIDIA_EMU_BIND:
		return do_bind(file, &args->bind);
	case NVIDIA_EMU_UNBIND:
		return do_unbind(file, &args->bind);
	case NVIDIA_EMU_REVOKE:
		do_revoke(&args->revoke);
		return 0;
	case NVIDIA_EMU_GET_SETTINGS:
		mutex_lock(&standin_state);
		args->settings = standin_settings;
		mutex_unlock(&standin_state);
		return 0;
	case NVIDIA_EMU_SET_SETTINGS:
		return set_settings(&args->settings);
	case NVIDIA_EMU_GET_STATS:
		mutex_lock(&standin_state);
		args->stats = standin_stats;
		mutex_unlock(&standin_state);
		return 0;
	case NVIDIA_EMU_WHERE:
		return do_where(file, &args->where);
	}
	return -ENOTTY;
}

static long control(struct file *file, unsigned int command, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	size_t size = _IOC_SIZE(command);
	union arguments args;
	long ret;

	if (_IOC_TYPE(command) != 'E' || size > sizeof(args))
		return -ENOTTY;
	memset(&args, 0, sizeof(args));
	if ((_IOC_DIR(command) & _IOC_WRITE) && copy_from_user(&args, user, size))
		return -EFAULT;
	ret = dispatch(file, command, &args);
	if (ret == 0 && (_IOC_DIR(command) & _IOC_READ) && copy_to_user(user, &args, size))
		return -EFAULT;
	return ret;
}

/*
 * Pages are entered one by one, which reserves no memory type: a reservation
 * made here would hide that a client forgot its own.
 */
static vm_fault_t fault(struct vm_fault *vmf)
{
	struct client *client = vmf->vma->vm_file->private_data;
	u64 offset = (u64)vmf->pgoff << PAGE_SHIFT;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	struct standin_object *object;

	mutex_lock(&standin_state);
	object = find_object(client, offset);
	if (object)
		ret = vmf_insert_pfn(vmf->vma, vmf->address,
				     standin_object_physical(object, offset - object->offset) >>
				     PAGE_SHIFT);
	mutex_unlock(&standin_state);
	return ret;
}

static const struct vm_operations_struct vm_operations = { .fault = fault };

static int map(struct file *file, struct vm_area_struct *vma)
{
	unsigned long flags = VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	vm_flags_init(vma, vma->vm_flags | flags);
#else
	vma->vm_flags |= flags;
#endif
	vma->vm_ops = &vm_operations;
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = open_client,
	.release = release_client,
	.unlocked_ioctl = control,
	.mmap = map,
};

static struct miscdevice device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "nvidia-emu",
	.mode = 0666,
	.fops = &operations,
};

int standin_device_init(void)
{
	return misc_register(&device);
}

void standin_device_exit(void)
{
	misc_deregister(&device);
}
