# SPDX-License-Identifier: MIT
# The bench alone.
insmod /modules/pte_probe.ko
check standin/load insmod /modules/open-1.2/nvidia_emu.ko
program standin /tests/standin
check standin/version grep -q 'Open Kernel Module for x86_64  550.163.01' /proc/driver/nvidia/version
check standin/unload rmmod nvidia_emu
