# SPDX-License-Identifier: MIT
# The kernel module, and what loads it at boot.  src/modules/gdrdrv/Makefile has the
# settings: KVER, KDIR or KERNELDIR, NVIDIA_SRC_DIR or NV_DRIVER_PATH, MODULE_SUBDIR, DEPMOD.
libexecdir ?= /usr/libexec
UDEVRULESDIR ?= /usr/lib/udev/rules.d
MODPROBEDIR ?= /usr/lib/modprobe.d
MODULESLOADDIR ?= /usr/lib/modules-load.d
SYSTEMDUNITDIR ?= /usr/lib/systemd/system
MAKE_PARAMS ?=
BOOT := $(ROOT)/packages/common
DRIVER_MAKE = $(MAKE) --no-print-directory -C $(ROOT)/src/modules/gdrdrv $(MAKE_PARAMS)
MAN4 := $(notdir $(wildcard $(ROOT)/docs/man/*.4))

driver:
	$(Q)$(DRIVER_MAKE) build

driver_clean:
	$(Q)$(DRIVER_MAKE) clean

drv_install: driver boot_install
	$(Q)$(DRIVER_MAKE) DESTDIR='$(DESTDIR)' install

# All but the module itself: packages let DKMS build that.
boot_install:
	$(Q)$(INSTALL) -d $(DESTDIR)$(libexecdir)/gdrcopy $(DESTDIR)$(UDEVRULESDIR) \
		$(DESTDIR)$(MODPROBEDIR) $(DESTDIR)$(MODULESLOADDIR) $(DESTDIR)$(SYSTEMDUNITDIR) \
		$(DESTMAN)/man4
	$(Q)$(INSTALL) -m 755 $(BOOT)/gdrdrv $(DESTDIR)$(libexecdir)/gdrcopy/gdrcopy
	$(Q)$(INSTALL) -m 644 $(BOOT)/60-gdrdrv.rules $(DESTDIR)$(UDEVRULESDIR)
	$(Q)$(INSTALL) -m 644 $(BOOT)/gdrdrv.modprobe.conf $(DESTDIR)$(MODPROBEDIR)/gdrdrv.conf
	$(Q)$(INSTALL) -m 644 $(BOOT)/gdrdrv.modules-load.conf $(DESTDIR)$(MODULESLOADDIR)/gdrdrv.conf
	$(Q)sed 's|@libexecdir@|$(libexecdir)|' $(BOOT)/gdrdrv.service \
		>$(DESTDIR)$(SYSTEMDUNITDIR)/gdrdrv.service
	$(Q)chmod 644 $(DESTDIR)$(SYSTEMDUNITDIR)/gdrdrv.service
	$(Q)for page in $(MAN4); do $(INSTALL) -m 644 $(ROOT)/docs/man/$$page $(DESTMAN)/man4; done

boot_uninstall:
	$(Q)rm -f $(DESTDIR)$(libexecdir)/gdrcopy/gdrcopy $(DESTDIR)$(UDEVRULESDIR)/60-gdrdrv.rules \
		$(DESTDIR)$(MODPROBEDIR)/gdrdrv.conf $(DESTDIR)$(MODULESLOADDIR)/gdrdrv.conf \
		$(DESTDIR)$(SYSTEMDUNITDIR)/gdrdrv.service $(addprefix $(DESTMAN)/man4/,$(MAN4))

.PHONY: driver driver_clean drv_install boot_install boot_uninstall
