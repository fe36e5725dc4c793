# SPDX-License-Identifier: MIT
# The emulated CUDA driver with its memory in the BAR.
export LD_LIBRARY_PATH=/lib/gdr
insmod /modules/open-2.0/nvidia_emu.ko
program provider env GDRCOPY_EMU=provider=bar /bin/cuda_provider
check provider/unload rmmod nvidia_emu
