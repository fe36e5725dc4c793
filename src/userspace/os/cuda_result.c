/* SPDX-License-Identifier: MIT */
/* Translates the results of the CUDA driver into errno values. */
#include "os/cuda.h"

#include <errno.h>

/*
 * CUresult values (cuda.h of CUDA 13.0).  Callers of the 2.6 interface expect
 * an errno for each: EINVAL means "your address or context", ENODEV "CUDA
 * cannot be used in this process", the rest as named.  Whatever is not listed
 * is a failure of the driver or the GPU itself, hence EIO.
 */
int gdri_os_cuda_errno(int result)
{
	switch (result) {
	case 0:		/* SUCCESS */
		return 0;
	case 1:		/* INVALID_VALUE: most often, not an address of CUDA */
	case 101:	/* INVALID_DEVICE */
	case 201:	/* INVALID_CONTEXT: none is current */
	case 400:	/* INVALID_HANDLE */
	case 709:	/* CONTEXT_IS_DESTROYED */
		return -EINVAL;
	case 2:		/* OUT_OF_MEMORY */
		return -ENOMEM;
	case 3:		/* NOT_INITIALIZED: no cuInit, or a forked child */
	case 4:		/* DEINITIALIZED: the process is exiting */
	case 34:	/* STUB_LIBRARY: the toolkit's link-time libcuda */
	case 35:	/* INSUFFICIENT_DRIVER */
	case 100:	/* NO_DEVICE */
	case 803:	/* SYSTEM_DRIVER_MISMATCH */
		return -ENODEV;
	case 46:	/* DEVICE_UNAVAILABLE: exclusive mode and taken */
		return -EBUSY;
	case 800:	/* NOT_PERMITTED */
		return -EPERM;
	case 801:	/* NOT_SUPPORTED */
		return -EOPNOTSUPP;
	default:
		return -EIO;
	}
}
