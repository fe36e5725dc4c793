# SPDX-License-Identifier: MIT
# The version lives in the public header; scripts of packagers read it there too.
HEADER := $(ROOT)/include/gdrapi.h
LIB_MAJOR_VER ?= $(shell awk '$$2 == "GDR_API_MAJOR_VERSION" { print $$3 }' $(HEADER))
LIB_MINOR_VER ?= $(shell awk '$$2 == "GDR_API_MINOR_VERSION" { print $$3 }' $(HEADER))
LIB_VER := $(LIB_MAJOR_VER).$(LIB_MINOR_VER)
