/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Load and unload of the stand-in, and what /proc says about the driver's version. */
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "standin.h"

#ifdef STANDIN_PROPRIETARY
#define FLAVOUR "NVIDIA UNIX x86_64 Kernel Module"
#define LICENCE "NVIDIA"
#else
#define FLAVOUR "NVIDIA UNIX Open Kernel Module for x86_64"
#define LICENCE "Dual MIT/GPL"
#endif

static struct proc_dir_entry *folder;

static char *driver_version = STANDIN_VERSION;
module_param(driver_version, charp, 0444);
MODULE_PARM_DESC(driver_version, "the version that /proc/driver/nvidia/version tells");

/* The first line has the form that scripts, and clients, read from the real driver. */
static int show_version(struct seq_file *m, void *v)
{
	seq_printf(m, "NVRM version: %s  %s  stand-in\n", FLAVOUR, driver_version);
	seq_puts(m, "GCC version:  none\n");
	return 0;
}

static int __init load(void)
{
	int ret = standin_bars_find();

	if (ret) {
		pr_err("nvidia_emu: no memory device found\n");
		return ret;
	}
	ret = standin_device_init();
	if (ret)
		goto err_bars;
	folder = proc_mkdir("driver/nvidia", NULL);
	if (!folder || !proc_create_single("version", 0444, folder, show_version)) {
		ret = -ENOMEM;
		goto err_proc;
	}
	return 0;

err_proc:
	proc_remove(folder);
	standin_device_exit();
err_bars:
	standin_bars_release();
	return ret;
}

static void __exit unload(void)
{
	proc_remove(folder);
	standin_device_exit();
	standin_p2p_exit();
	standin_bars_release();
}

module_init(load);
module_exit(unload);
MODULE_DESCRIPTION("Stand-in for nvidia.ko over the memory of a PCI device");
MODULE_LICENSE(LICENCE);
MODULE_VERSION(STANDIN_VERSION);
