/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whether the NVIDIA driver that runs has the interface that the module was
 * built for.  Symbol checksums would show most differences, but not on kernels
 * without them, and never the flavour.
 */
#include "internal.h"

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "compat.h"

/* What changed in the interface over the driver's versions. */
enum persistence {
	NONE,		/* pins have callbacks */
	VARIABLE,	/* a variable tells that the callback may be NULL */
	CALLS		/* calls of their own */
};

struct interface {
	unsigned int table_major;
	enum persistence persistence;
};

struct running_driver {
	char version[32];
	bool known, open;
};

static const struct interface built_for = {
	.table_major = NVIDIA_P2P_PAGE_TABLE_VERSION >> 16,
#if defined(GDRDRV_NV_PERSISTENT_CALLS)
	.persistence = CALLS,
#elif defined(GDRDRV_NV_PERSISTENT_VARIABLE)
	.persistence = VARIABLE,
#else
	.persistence = NONE,
#endif
};

static bool is_at_least(const unsigned int *version, unsigned int branch, unsigned int minor,
			unsigned int patch)
{
	if (version[0] != branch)
		return version[0] > branch;
	if (version[1] != minor)
		return version[1] > minor;
	return version[2] >= patch;
}

/*
 * Read from the releases of NVIDIA/open-gpu-kernel-modules and of the
 * proprietary driver; branch 525 changed between 525.89 and 525.105.17, its
 * early releases 525.47.x have the calls as well.
 */
static bool interface_of(const char *text, struct interface *interface)
{
	unsigned int v[3] = { 0 };

	if (sscanf(text, "%u.%u.%u", &v[0], &v[1], &v[2]) < 2)
		return false;
	interface->table_major = is_at_least(v, 580, 0, 0) ? 2 : 1;
	if (is_at_least(v, 525, 105, 17) || (v[0] == 525 && v[1] == 47 && v[2] >= 22))
		interface->persistence = CALLS;
	else
		interface->persistence = is_at_least(v, 510, 0, 0) ? VARIABLE : NONE;
	return true;
}

/* The beginning of a file of /proc or /sys as a string; false if it cannot be had. */
static bool read_text(const char *path, char *text, size_t size)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	ssize_t length = -EINVAL;
	loff_t pos = 0;

	if (IS_ERR(file))
		return false;
	if (gdrdrv_kernel_can_read(file))
		length = kernel_read(file, text, size - 1, &pos);
	filp_close(file, NULL);
	if (length <= 0)
		return false;
	text[length] = '\0';
	return true;
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ..." */
static bool parse_version_line(const char *line, struct running_driver *driver)
{
	const char *at = line;

	driver->open = strstr(line, "Open Kernel Module");
	while ((at = strstr(at, "  ")) != NULL) {
		at += strspn(at, " ");
		if (sscanf(at, "%31[0123456789.]", driver->version) == 1 && strchr(driver->version, '.'))
			return true;
	}
	return false;
}

/*
 * NVIDIA's file in /proc can be read by the kernel only where its operations
 * have the newer form; what the kernel itself tells about the module always can.
 */
static void ask_running_driver(struct running_driver *driver)
{
	char text[256];

	driver->known = false;
	if (read_text("/proc/driver/nvidia/version", text, sizeof(text))) {
		driver->known = parse_version_line(text, driver);
		if (driver->known)
			return;
	}
	if (!read_text("/sys/module/nvidia/version", text, sizeof(text)))
		return;
	driver->known = sscanf(text, "%31[0123456789.]", driver->version) == 1;
	if (read_text("/sys/module/nvidia/taint", text, sizeof(text)))
		driver->open = !strchr(text, 'P');
	else
		driver->known = false;
}

static int refuse(const struct running_driver *driver, const char *what)
{
	pr_err("the running NVIDIA driver %s (%s) differs from that built for (%s, %s) in its %s: rebuild gdrdrv for it\n",
	       driver->version, driver->open ? "opensource" : "proprietary",
	       GDRDRV_NV_VERSION, GDRDRV_FLAVOUR, what);
	return -ENOEXEC;
}

int gdrdrv_driver_check(bool strict)
{
	struct interface interface;
	struct running_driver driver;

	ask_running_driver(&driver);
	if (!driver.known || !interface_of(driver.version, &interface)) {
		if (!strict)
			return 0;
		pr_err("the running NVIDIA driver's version cannot be found out\n");
		return -ENOEXEC;
	}
	if (driver.open != IS_ENABLED(GDRDRV_OPEN_DRIVER))
		return refuse(&driver, "flavor");
	if (interface.table_major != built_for.table_major)
		return refuse(&driver, "page table layout");
	if (interface.persistence != built_for.persistence)
		return refuse(&driver, "persistent pinning");
	if (strcmp(driver.version, GDRDRV_NV_VERSION) == 0)
		return 0;
	if (strict)
		return refuse(&driver, "version, and strict=1 was given");
	pr_warn("built for NVIDIA driver %s, running is %s\n", GDRDRV_NV_VERSION, driver.version);
	return 0;
}
