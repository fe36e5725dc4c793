# SPDX-License-Identifier: MIT
# The target's processor family, asked from the compiler; nothing built is run.
TARGET := $(shell $(CC) -dumpmachine 2>/dev/null)
ifneq ($(filter x86_64-%,$(TARGET)),)
ARCH := x86
else ifneq ($(filter aarch64-%,$(TARGET)),)
ARCH := arm64
else ifneq ($(filter powerpc64le-% ppc64le-%,$(TARGET)),)
ARCH := power
else
# Only for what is compiled: make check-deps, which installs compilers, has to work without one.
ARCH = $(error gdrcopy supports x86-64, arm64 and ppc64le; $(if $(TARGET),CC=$(CC) builds for '$(TARGET)',CC=$(CC) is not installed: make check-deps))
endif
GDRAPI_ARCH = $(shell echo $(ARCH) | tr a-z A-Z)
