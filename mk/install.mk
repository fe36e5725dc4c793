# SPDX-License-Identifier: MIT
# One list of installed files drives install and uninstall.
prefix ?= /usr/local
exec_prefix ?= $(prefix)
libdir ?= $(exec_prefix)/lib
bindir ?= $(exec_prefix)/bin
includedir ?= $(prefix)/include
datarootdir ?= $(prefix)/share
mandir ?= $(datarootdir)/man
DESTDIR ?=
override DESTDIR := $(if $(DESTDIR),$(abspath $(DESTDIR)))
DESTLIB ?= $(DESTDIR)$(libdir)
DESTINC ?= $(DESTDIR)$(includedir)
DESTBIN ?= $(DESTDIR)$(bindir)
DESTMAN := $(DESTDIR)$(mandir)
INSTALL ?= install
PC_VARIABLES = prefix=$(prefix) exec_prefix=$(exec_prefix) libdir=$(libdir) includedir=$(includedir)

SONAME := libgdrapi.so.$(LIB_MAJOR_VER)
TOOL_NAMES := copybw copylat apiperf sanity pplat info
TOOL_LINKS := copybw copylat apiperf sanity
GUIDE_TOOLS := gdr_bench
HEADERS := gdrapi.h gdrconfig.h
HEADERS_V3 := gdrapi.h
CMAKE_FILES := gdrapi-config.cmake gdrapi-config-version.cmake
DESTCMAKE = $(DESTLIB)/cmake/gdrapi
MAN3 := $(notdir $(wildcard $(ROOT)/docs/man/*.3))
MAN1 := $(notdir $(wildcard $(ROOT)/docs/man/*.1))
MAN7 := $(notdir $(wildcard $(ROOT)/docs/man/*.7))

install: lib_install exes_install

lib_install: lib
	$(Q)$(INSTALL) -d $(DESTLIB)/pkgconfig $(DESTCMAKE) $(DESTINC)/gdrcopy $(DESTMAN)/man3 $(DESTMAN)/man7
	$(Q)$(INSTALL) -m 755 $(LIBOUT)/libgdrapi.so.$(LIB_VER) $(DESTLIB)
	$(Q)ln -sf libgdrapi.so.$(LIB_VER) $(DESTLIB)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(DESTLIB)/libgdrapi.so
	$(Q)$(INSTALL) -m 644 $(LIBOUT)/libgdrapi.a $(DESTLIB)
	$(Q)$(INSTALL) -m 644 $(LIBOUT)/gdrcopy.pc $(LIBOUT)/gdrapi.pc $(DESTLIB)/pkgconfig
	$(Q)$(INSTALL) -m 664 $(HEADERS:%=$(ROOT)/include/%) $(DESTINC)
	$(Q)$(INSTALL) -m 644 $(HEADERS_V3:%=$(ROOT)/include/gdrcopy/%) $(DESTINC)/gdrcopy
	$(Q)for file in $(CMAKE_FILES); do \
		sed -e 's|@VERSION@|$(LIB_VER)|' -e 's|@MAJOR@|$(LIB_MAJOR_VER)|' \
			-e "s|@INCLUDE_FROM_HERE@|$$(realpath -ms --relative-to=$(DESTCMAKE) $(DESTINC))|" \
			$(ROOT)/mk/$$file.in > $(DESTCMAKE)/$$file && \
		chmod 644 $(DESTCMAKE)/$$file || exit 1; done
	$(Q)for page in $(MAN3); do $(INSTALL) -m 644 $(ROOT)/docs/man/$$page $(DESTMAN)/man3; done
	$(Q)for page in $(MAN7); do $(INSTALL) -m 644 $(ROOT)/docs/man/$$page $(DESTMAN)/man7; done

exes_install: exes
	$(Q)$(INSTALL) -d $(DESTBIN) $(DESTMAN)/man1
	$(Q)$(INSTALL) -m 755 $(TOOL_NAMES:%=$(TOP)/bin/gdrcopy_%) $(GUIDE_TOOLS:%=$(TOP)/bin/%) $(DESTBIN)
	$(Q)for link in $(TOOL_LINKS); do ln -sf gdrcopy_$$link $(DESTBIN)/$$link; done
	$(Q)for page in $(MAN1); do $(INSTALL) -m 644 $(ROOT)/docs/man/$$page $(DESTMAN)/man1; done

INSTALLED := $(addprefix $(DESTLIB)/,libgdrapi.so.$(LIB_VER) $(SONAME) libgdrapi.so libgdrapi.a \
		pkgconfig/gdrcopy.pc pkgconfig/gdrapi.pc) $(addprefix $(DESTCMAKE)/,$(CMAKE_FILES)) \
	$(addprefix $(DESTINC)/,$(HEADERS) $(HEADERS_V3:%=gdrcopy/%)) \
	$(addprefix $(DESTBIN)/,$(TOOL_NAMES:%=gdrcopy_%) $(TOOL_LINKS) $(GUIDE_TOOLS)) \
	$(addprefix $(DESTMAN)/man3/,$(MAN3)) $(addprefix $(DESTMAN)/man1/,$(MAN1)) \
	$(addprefix $(DESTMAN)/man7/,$(MAN7))

uninstall:
	$(Q)rm -f $(INSTALLED)
	$(Q)rmdir $(DESTCMAKE) $(DESTINC)/gdrcopy 2>/dev/null || true

.PHONY: install lib_install exes_install uninstall
