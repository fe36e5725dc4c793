# SPDX-License-Identifier: MIT
# After all use of the module: leaked kernel memory, and whether lock checking was on to the end.
if [ -e /sys/kernel/debug/kmemleak ]; then
	# Objects younger than five seconds are not reported.
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	sleep 1
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak >/tmp/leaks
	check leaks/none sh -c '! grep -qE "gdrdrv|nvidia_emu" /tmp/leaks'
	sed 's/^/# /' /tmp/leaks | head -n 60
else
	echo "skip leaks: this kernel has no kmemleak"
fi
if [ -e /proc/lockdep_stats ]; then
	check lockdep/still_on grep -q 'debug_locks: *1' /proc/lockdep_stats
fi
