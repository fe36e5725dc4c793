/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The files in /proc/driver/gdrdrv. */
#include "internal.h"

#include <linux/proc_fs.h>
#include <linux/seq_file.h>

static struct proc_dir_entry *folder;

/* These five lines are parsed by scripts; new facts go into files of their own. */
static int show_params(struct seq_file *m, void *v)
{
	seq_puts(m, "Version: " GDRDRV_VERSION_STRING "\n");
	seq_puts(m, "Built for NVIDIA driver flavor: " GDRDRV_FLAVOUR "\n");
	seq_printf(m, "Use persistent mapping: %s\n", gdrdrv_persistent ? "yes" : "no");
	seq_printf(m, "dbg_enabled: %d\n", gdrdrv_dbg_enabled);
	seq_printf(m, "info_enabled: %d\n", gdrdrv_info_enabled);
	return 0;
}

static int show_refcount(struct seq_file *m, void *v)
{
	seq_printf(m, "%u\n", gdrdrv_pages_pins());
	return 0;
}

static int show_pool(struct seq_file *m, void *v)
{
	struct gdrdrv_pool_use use = gdrdrv_pool_read();

	seq_printf(m, "used: %llu\n", use.used);
	seq_printf(m, "limit: %llu\n", use.limit);
	seq_printf(m, "limit of one user: %llu\n", use.user_limit);
	seq_printf(m, "root, not limited: %llu\n", use.exempt);
	return 0;
}

int gdrdrv_procfs_init(void)
{
	folder = proc_mkdir("driver/gdrdrv", NULL);
	if (!folder)
		return -ENOMEM;
	if (!proc_create_single("params", 0444, folder, show_params) ||
	    !proc_create_single("pool", 0444, folder, show_pool))
		goto err_folder;
	if (gdrdrv_dbg_enabled &&
	    !proc_create_single("nv_get_pages_refcount", 0440, folder, show_refcount))
		goto err_folder;
	return 0;

err_folder:
	proc_remove(folder);
	return -ENOMEM;
}

void gdrdrv_procfs_exit(void)
{
	proc_remove(folder);
}
