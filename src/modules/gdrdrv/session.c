/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Open files: who owns one, and its end. */
#include "internal.h"

#include <linux/cred.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

/* A thread group is its number and its birth; exec changes neither, also in another thread. */
static u64 start_of_current(void)
{
	return current->group_leader->start_time;
}

bool gdrdrv_session_is_owner(const struct gdrdrv_session *session)
{
	return session->owner == current->tgid && session->owner_start == start_of_current();
}

static void free_session(struct kref *refs)
{
	struct gdrdrv_session *session = container_of(refs, struct gdrdrv_session, refs);

	gdrdrv_account_put(session->account);
	kfree(session);
}

void gdrdrv_session_get(struct gdrdrv_session *session)
{
	kref_get(&session->refs);
}

void gdrdrv_session_put(struct gdrdrv_session *session)
{
	kref_put(&session->refs, free_session);
}

/*
 * Every file of one device node shares the inode's address space, and there
 * two files' views of equal offsets could not be told apart.
 */
static void init_mapping(struct address_space *mapping, struct inode *inode)
{
	address_space_init_once(mapping);
	mapping->host = inode;
	mapping->a_ops = inode->i_mapping->a_ops;
}

static int open_session(struct inode *inode, struct file *file)
{
	struct gdrdrv_session *session = kzalloc(sizeof(*session), GFP_KERNEL_ACCOUNT);

	if (!session)
		return -ENOMEM;
	session->account = gdrdrv_account_get(current_euid());
	if (!session->account) {
		kfree(session);
		return -ENOMEM;
	}
	kref_init(&session->refs);
	init_mapping(&session->mapping, inode);
	session->owner = current->tgid;
	session->owner_start = start_of_current();
	mutex_init(&session->lock);
	session->regions = RB_ROOT;
	file->f_mapping = &session->mapping;
	file->private_data = session;
	return 0;
}

/* Views hold the file open, so that there are none left. */
static int release_session(struct inode *inode, struct file *file)
{
	struct gdrdrv_session *session = file->private_data;

	gdrdrv_region_unpin_all(session);
	/* A callback that is still running may keep the session, but not the inode. */
	session->mapping.host = NULL;
	gdrdrv_session_put(session);
	return 0;
}

const struct file_operations gdrdrv_fops = {
	.owner = THIS_MODULE,
	.open = open_session,
	.release = release_session,
	.unlocked_ioctl = gdrdrv_ioctl,
	.mmap = gdrdrv_mmap,
};
