# SPDX-License-Identifier: MIT
# Compiler flags that every part shares.  CFLAGS, CPPFLAGS and LDFLAGS are the
# user's: added behind ours, never replaced.
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	    -Wwrite-strings -Wvla
WERROR ?= -Werror
CFLAGS ?= -O2 -g
COMMONCFLAGS ?=
# Builds in different folders give equal bytes.
OWN_CFLAGS := -std=gnu11 $(WARNINGS) $(WERROR) -fno-strict-aliasing \
	      -ffile-prefix-map=$(abspath $(ROOT))=. $(COMMONCFLAGS)
OWN_CPPFLAGS := -D_GNU_SOURCE= -I$(ROOT)/include -I$(ROOT)/src/userspace
ifneq ($(filter s,$(MAKEFLAGS)),)
V ?= 0
endif
V ?= 0
ifeq ($(V),0)
Q := @
say = @printf '  %-7s %s\n' '$(1)' '$(patsubst $(abspath $(ROOT))/%,%,$(abspath $(2)))'
else
Q :=
say = @:
endif
