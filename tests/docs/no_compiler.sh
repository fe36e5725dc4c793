#!/bin/bash
# SPDX-License-Identifier: MIT
# What installs a compiler, or needs none, works on a machine without one; the rest says what to do.
set -u
cd "$(dirname "$0")/../.." || exit 2
status=0
for target in version help check-deps demo check clean uninstall check-kernel; do
	grep -q "^$target:" Makefile mk/*.mk || continue
	if make -n CC=/nonexistent/cc "$target" >/dev/null 2>&1; then
		echo "ok no_compiler_$target"
	else
		echo "not ok no_compiler_$target"
		status=1
	fi
done
if make -n CC=/nonexistent/cc lib 2>&1 >/dev/null | grep -q 'is not installed: make check-deps'; then
	echo "ok no_compiler_names_the_fix"
else
	echo "not ok no_compiler_names_the_fix"
	status=1
fi
exit $status
