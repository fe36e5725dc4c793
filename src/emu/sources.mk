# SPDX-License-Identifier: MIT
# The sources of the three stand-in libraries, relative to this folder.
#
# Built with -fPIC -fvisibility=hidden -I. -Iinclude, linked with -pthread -ldl.
# libcudart and libnvidia-ml link libcuda.so.1 and find it with an rpath of
# $ORIGIN.

EMU_CUDA_SRCS := \
	alloc.c block.c channel_decode.c channel_engine.c channel_queue.c channel_space.c \
	config.c context.c copy.c device.c dmabuf.c door.c \
	entry_points.c error.c event.c host.c identity.c init.c ipc.c memory.c \
	module.c pointer.c pool.c provider_bar.c provider_memfd.c ranges.c share.c space.c stream.c \
	vmm.c vmm_share.c kernels/pplat.c kernels/selftest.c kernels/table.c

EMU_CUDART_SRCS := \
	runtime/copy.c runtime/device.c runtime/error.c runtime/memory.c runtime/stream.c

EMU_NVML_SRCS := nvml/nvml.c config.c identity.c
