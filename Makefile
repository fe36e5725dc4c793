# SPDX-License-Identifier: MIT
# gdrcopy: make; make demo; make check; make install prefix=/usr
ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST))))
include $(ROOT)/mk/version.mk
include $(ROOT)/mk/arch.mk
include $(ROOT)/mk/flags.mk

# Results of one variant.  The plain build leaves the library where packagers
# look for it; sanitizer builds (make VARIANT=asan) have folders of their own.
VARIANT ?= plain
ifeq ($(VARIANT),plain)
TOP := $(ROOT)/build
LIBOUT := $(ROOT)/src/userspace
else
TOP := $(ROOT)/build/$(VARIANT)
LIBOUT := $(TOP)/lib
endif
VARIANT_CFLAGS_plain :=
VARIANT_CFLAGS_asan := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# gcc says that ThreadSanitizer does not see fences; nothing here relies on it seeing them.
VARIANT_CFLAGS_tsan := -fsanitize=thread $(if $(findstring clang,$(CC)),,-Wno-tsan)
export COMMONCFLAGS += $(VARIANT_CFLAGS_$(VARIANT))

# When they are used: see mk/arch.mk.
OBJ = $(TOP)/obj/$(ARCH)
SUB = BUILD=$(OBJ) LIBOUT=$(LIBOUT) EMUOUT=$(TOP)/emu

all: config lib exes

version:
	@echo $(LIB_VER)

config:
	@echo GDRAPI_ARCH=$(GDRAPI_ARCH)

lib:
	$(Q)$(MAKE) --no-print-directory -C src/userspace $(SUB) OUT=$(LIBOUT) $(PC_VARIABLES)

emu:
	$(Q)$(MAKE) --no-print-directory -C src/emu $(SUB) OUT=$(TOP)/emu

exes: lib emu
	$(Q)$(MAKE) --no-print-directory -C tools $(SUB) OUT=$(TOP)/bin

tests: lib emu exes
	$(Q)$(MAKE) --no-print-directory -C tests $(SUB) OUT=$(TOP)/tests

# Installs what the build and the tests need, where it may (Debian, Ubuntu).
check-deps:
	$(Q)scripts/install-deps.sh

demo:
	$(Q)scripts/demo.sh

check:
	$(Q)tests/run.sh

# The kernel module alone, in kernels under QEMU; part of check.
check-kernel:
	$(Q)tests/kernel/run.sh

# The module against every kernel and NVIDIA driver that Debian has.
check-kernel-builds:
	$(Q)tests/kernel/builds.sh

# Debug kernels are built where they are not there yet, 10 minutes each.
check-kernel-full:
	$(Q)tests/kernel/full.sh

include $(ROOT)/mk/install.mk
include $(ROOT)/mk/driver.mk

clean: driver_clean
	$(Q)$(MAKE) --no-print-directory -C src/userspace ARCH=none clean
	$(Q)rm -rf $(ROOT)/build

.PHONY: all version config lib emu exes tests check-deps demo check check-kernel \
	check-kernel-builds check-kernel-full clean
