# SPDX-License-Identifier: MIT
# The target's processor family, asked from the compiler; nothing built is run.
TARGET := $(shell $(CC) -dumpmachine)
ifneq ($(filter x86_64-%,$(TARGET)),)
ARCH := x86
else ifneq ($(filter aarch64-%,$(TARGET)),)
ARCH := arm64
else ifneq ($(filter powerpc64le-% ppc64le-%,$(TARGET)),)
ARCH := power
else
$(error gdrcopy supports x86-64, arm64 and ppc64le; CC=$(CC) builds for '$(TARGET)')
endif
GDRAPI_ARCH := $(shell echo $(ARCH) | tr a-z A-Z)
