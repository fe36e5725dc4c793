/* SPDX-License-Identifier: MIT */
/* The process's one client of the resource manager, and the GPUs behind it. */
#ifndef GDRI_RM_CLIENT_H
#define GDRI_RM_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rm/call.h"

/* A GPU that the driver knows; object and subdevice once it is attached. */
struct gdri_rm_device {
	uint32_t gpu;
	uint32_t minor;
	uint32_t pci_domain;
	uint8_t pci_bus;
	uint8_t pci_slot;
	bool attached;
	int fd;			/* /dev/nvidiaN, open while attached */
	uint32_t object;
	uint32_t subdevice;
	uint32_t instance;		/* the manager's number for it */
	uint32_t virtualization;	/* GDRI_RM_VIRTUALIZATION_* */
	uint32_t smc_mode;		/* GDRI_RM_SMC_MODE_* */
};

/*
 * Lives in a page that fork wipes (MADV_WIPEONFORK), so a child finds a
 * client without users and with a free lock, makes its own, and never speaks
 * on its parent's.  Everything but the atomics belongs to the lock; fd and
 * object are constant while there are users.
 */
struct gdri_rm_client {
	pthread_mutex_t lock;
	unsigned users;
	int fd;			/* /dev/nvidiactl */
	uint32_t object;
	char version[64];	/* of the kernel driver, as "580.159.04" */
	bool tested;		/* the build is in the table of tested ones */
	bool conf_compute;	/* some confidential-computing mode is on */
	unsigned device_count;
	struct gdri_rm_device device[GDRI_RM_MAX_GPUS];
	_Atomic uint32_t next_handle;
	/* What was found out about the CUDA driver in this process: identify.h. */
	_Atomic int ipc_layout;
	_Atomic int record_layout;
};

/*
 * Takes a reference; the first one opens /dev/nvidiactl, asks for the driver's
 * version before anything else, and makes a client.  No device is opened:
 * that may start a GPU.  Costs about 0.1 ms.
 */
int gdri_rm_client_acquire(struct gdri_rm_client **client, struct gdri_rm_failure *failure);

/* The last one frees every object; the first error, after going on. */
int gdri_rm_client_release(struct gdri_rm_client *client);

/* A handle that no object of the client has (GDRI_RM_INSERT_DUPLICATE_NAME otherwise). */
uint32_t gdri_rm_client_new_handle(struct gdri_rm_client *client);

/* A control on the client itself. */
int gdri_rm_client_control(struct gdri_rm_client *client, uint32_t command, void *params,
			   size_t size, struct gdri_rm_failure *failure);

/*
 * 0 when fd is a descriptor of this client's own open file; -EACCES when it is
 * another one, say another process's, which the manager tells apart.
 */
int gdri_rm_client_check_fd(struct gdri_rm_client *client, int fd);

/*
 * Finds a GPU by its PCI address and attaches it if need be: about 1 ms the
 * first time.  -ENODEV: the driver has no such GPU.
 */
int gdri_rm_device_get(struct gdri_rm_client *client, uint32_t domain, uint32_t bus,
		       uint32_t slot, struct gdri_rm_device **device,
		       struct gdri_rm_failure *failure);

/* Likewise, by CUDA's ordinal. */
struct gdri_cuda;
int gdri_rm_device_of_ordinal(struct gdri_rm_client *client, const struct gdri_cuda *cuda,
			      int ordinal, struct gdri_rm_device **device,
			      struct gdri_rm_failure *failure);

/* Opens /dev/nvidiaN and ties it to the client: a descriptor, or a negative errno. */
int gdri_rm_device_open_file(struct gdri_rm_client *client, const struct gdri_rm_device *device,
			     struct gdri_rm_failure *failure);

/* Frees what attaching made; the lock is held. */
int gdri_rm_device_detach(struct gdri_rm_client *client, struct gdri_rm_device *device);

#endif
