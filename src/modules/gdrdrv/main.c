/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Load and unload: parameters, devices, messages. */
#include "internal.h"

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>

int gdrdrv_dbg_enabled;
module_param_named(dbg_enabled, gdrdrv_dbg_enabled, int, 0000);
MODULE_PARM_DESC(dbg_enabled, "debug messages, and the file nv_get_pages_refcount (0)");

int gdrdrv_info_enabled;
module_param_named(info_enabled, gdrdrv_info_enabled, int, 0000);
MODULE_PARM_DESC(info_enabled, "information messages (0)");

static int use_persistent_mapping = 1;
module_param(use_persistent_mapping, int, 0000);
MODULE_PARM_DESC(use_persistent_mapping,
		 "pins keep the memory until they end, where the NVIDIA driver can do that (1)");

static bool strict;
module_param(strict, bool, 0000);
MODULE_PARM_DESC(strict, "refuse any NVIDIA driver version but the one built for (0)");

bool gdrdrv_persistent;
static int major;

/* The node in /dev.  Class calls of our own would be GPL-only. */
static struct miscdevice node = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gdrdrv",
	.fops = &gdrdrv_fops,
	.mode = 0660,
};

/* Scripts of GDRCopy take the major number from /proc/devices and make the node themselves. */
static int __init register_devices(void)
{
	int ret;

	major = __register_chrdev(0, 0, 1, "gdrdrv", &gdrdrv_fops);
	if (major < 0)
		return major;
	ret = misc_register(&node);
	if (ret)
		__unregister_chrdev(major, 0, 1, "gdrdrv");
	return ret;
}

static void unregister_devices(void)
{
	misc_deregister(&node);
	__unregister_chrdev(major, 0, 1, "gdrdrv");
}

static void __init tell_state(void)
{
	pr_info("device registered with major number %d\n", major);
	pr_info("dbg traces %s, info traces %s\n", gdrdrv_dbg_enabled ? "enabled" : "disabled",
		gdrdrv_info_enabled ? "enabled" : "disabled");
	if (gdrdrv_persistent)
		pr_info("Persistent mapping will be used\n");
}

static int __init load_gdrdrv(void)
{
	int ret;

	pr_info("loading gdrdrv version " GDRDRV_VERSION_STRING " built for " GDRDRV_FLAVOUR
		" NVIDIA driver\n");
	ret = gdrdrv_driver_check(strict);
	if (ret)
		return ret;
	gdrdrv_persistent = use_persistent_mapping && gdrdrv_pages_can_persist();
	gdrdrv_pgprot_init();
	ret = gdrdrv_procfs_init();
	if (ret)
		return ret;
	ret = register_devices();
	if (ret) {
		gdrdrv_procfs_exit();
		return ret;
	}
	tell_state();
	return 0;
}

/* Open files hold the module, so that nothing is pinned any more. */
static void __exit unload_gdrdrv(void)
{
	pr_info("unregistering major number %d\n", major);
	unregister_devices();
	gdrdrv_procfs_exit();
	gdrdrv_pages_settle();
	WARN_ON(gdrdrv_pages_pins());
}

module_init(load_gdrdrv);
module_exit(unload_gdrdrv);

MODULE_AUTHOR("gdrcopy developers");
MODULE_DESCRIPTION("CPU mappings of GPU memory, for the " GDRDRV_FLAVOUR " NVIDIA driver");
MODULE_LICENSE("Dual MIT/GPL");
MODULE_VERSION(GDRDRV_VERSION_STRING);
