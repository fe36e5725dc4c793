/* SPDX-License-Identifier: MIT */
/* Opens and closes the process's client of the resource manager. */
#include "rm/client.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "os/sys.h"

/*
 * Driver builds on which everything was exercised on hardware.  On others every
 * step is still checked, and what is known of the CUDA driver's opaque data is
 * confirmed on probe allocations first (ipc.c, vmm.c).
 */
static const char *const tested_builds[] = { "580.159.04" };

/* Ours start here, far from the range that the manager gives out by itself (0xcaf00000). */
#define FIRST_HANDLE 0x5a000001u

static _Atomic(struct gdri_rm_client *) process_client;

static size_t client_size(void)
{
	const size_t page = gdri_os_page_size();

	return (sizeof(struct gdri_rm_client) + page - 1) / page * page;
}

/*
 * The page is made once and stays while the library is loaded, since another
 * thread may be about to take its lock.  Without MADV_WIPEONFORK (Linux before
 * 4.14) a child could not be told apart, so there is no client then.
 */
static struct gdri_rm_client *client_page(struct gdri_rm_failure *failure)
{
	struct gdri_rm_client *page = atomic_load(&process_client);
	struct gdri_rm_client *other = NULL;
	void *memory;
	int rc;

	if (page)
		return page;
	rc = gdri_os_mmap(client_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			  0, &memory);
	if (rc) {
		gdri_rm_failure_set(failure, "memory for a client", rc);
		return NULL;
	}
	rc = gdri_os_wipeonfork(memory, client_size());
	if (rc) {
		gdri_os_munmap(memory, client_size());
		gdri_rm_failure_set(failure, "madvise(MADV_WIPEONFORK)", rc);
		return NULL;
	}
	if (atomic_compare_exchange_strong(&process_client, &other, memory))
		return memory;
	gdri_os_munmap(memory, client_size());
	return other;
}

static bool is_tested(const char *version)
{
	for (size_t i = 0; i < sizeof(tested_builds) / sizeof(tested_builds[0]); i++)
		if (strcmp(version, tested_builds[i]) == 0)
			return true;
	return false;
}

static int list_devices(struct gdri_rm_client *client, struct gdri_rm_failure *failure)
{
	struct gdri_rm_card cards[GDRI_RM_MAX_GPUS];
	int rc;

	rc = gdri_rm_call_cards(client->fd, cards, failure);
	if (rc)
		return rc;
	client->device_count = 0;
	for (unsigned i = 0; i < GDRI_RM_MAX_GPUS; i++) {
		if (!cards[i].valid)
			continue;
		client->device[client->device_count++] = (struct gdri_rm_device){
			.gpu = cards[i].gpu,
			.minor = cards[i].minor,
			.pci_domain = cards[i].pci_domain,
			.pci_bus = cards[i].pci_bus,
			.pci_slot = cards[i].pci_slot,
			.fd = -1,
		};
	}
	return client->device_count ? 0 : gdri_rm_failure_set(failure, "list of GPUs", -ENODEV);
}

/* Drivers without the class, or GPUs without the feature, have it off. */
static int query_conf_compute(struct gdri_rm_client *client, struct gdri_rm_failure *failure)
{
	struct gdri_rm_conf_compute_params params = { .client = client->object };
	struct gdri_rm_conf_compute state = { 0 };
	uint32_t object = gdri_rm_client_new_handle(client);
	int rc;

	client->conf_compute = false;
	rc = gdri_rm_call_alloc(client->fd, client->object, client->object, &object,
				GDRI_RM_CLASS_CONF_COMPUTE, &params, sizeof(params), failure);
	if (rc)
		return rc == -EOPNOTSUPP ? 0 : rc;
	rc = gdri_rm_call_control(client->fd, client->object, object,
				  GDRI_RM_CTRL_CONF_COMPUTE_CAPABILITIES, &state, sizeof(state),
				  failure);
	if (rc == 0)
		client->conf_compute = state.feature != 0;
	gdri_rm_call_free(client->fd, client->object, client->object, object,
			  &(struct gdri_rm_failure){ 0 });
	return rc == -EOPNOTSUPP ? 0 : rc;
}

/*
 * The version comes first: asking is harmless on any driver, whereas the rest
 * assumes layouts.  Closing the file frees the client and all that is left
 * in it.
 */
static int open_client(struct gdri_rm_client *client, struct gdri_rm_failure *failure)
{
	uint32_t object = 0;
	int rc;

	client->fd = gdri_os_open("/dev/nvidiactl", O_RDWR);
	if (client->fd < 0)
		return gdri_rm_failure_set(failure, "open of /dev/nvidiactl", client->fd);
	rc = gdri_rm_call_version(client->fd, client->version, sizeof(client->version), failure);
	if (rc == 0)
		rc = gdri_rm_call_alloc(client->fd, 0, 0, &object, GDRI_RM_CLASS_ROOT_CLIENT,
					NULL, 0, failure);
	if (rc)
		goto err_close;
	client->object = object;
	client->tested = is_tested(client->version);
	atomic_store(&client->next_handle, FIRST_HANDLE);
	rc = list_devices(client, failure);
	if (rc == 0)
		rc = query_conf_compute(client, failure);
	if (rc == 0)
		return 0;
err_close:
	gdri_os_close(client->fd);
	return rc;
}

static int close_client(struct gdri_rm_client *client)
{
	struct gdri_rm_failure failure;
	int first_rc = 0;
	int rc;

	for (unsigned i = 0; i < client->device_count; i++) {
		rc = gdri_rm_device_detach(client, &client->device[i]);
		if (first_rc == 0)
			first_rc = rc;
	}
	rc = gdri_rm_call_free(client->fd, client->object, 0, client->object, &failure);
	if (first_rc == 0)
		first_rc = rc;
	rc = gdri_os_close(client->fd);
	return first_rc ? first_rc : rc;
}

int gdri_rm_client_acquire(struct gdri_rm_client **client, struct gdri_rm_failure *failure)
{
	struct gdri_rm_client *page = client_page(failure);
	int rc = 0;

	if (!page)
		return -failure->error;
	/* A zeroed mutex is an initialised one, in a child too. */
	pthread_mutex_lock(&page->lock);
	if (page->users == 0)
		rc = open_client(page, failure);
	if (rc == 0) {
		page->users++;
		*client = page;
	}
	pthread_mutex_unlock(&page->lock);
	return rc;
}

int gdri_rm_client_release(struct gdri_rm_client *client)
{
	int rc = 0;

	pthread_mutex_lock(&client->lock);
	/* No users: this is a child, and the reference was its parent's. */
	if (client->users == 0)
		rc = -EACCES;
	else if (--client->users == 0)
		rc = close_client(client);
	pthread_mutex_unlock(&client->lock);
	return rc;
}

uint32_t gdri_rm_client_new_handle(struct gdri_rm_client *client)
{
	return atomic_fetch_add_explicit(&client->next_handle, 1, memory_order_relaxed);
}

int gdri_rm_client_control(struct gdri_rm_client *client, uint32_t command, void *params,
			   size_t size, struct gdri_rm_failure *failure)
{
	return gdri_rm_call_control(client->fd, client->object, client->object, command, params,
				    size, failure);
}

int gdri_rm_client_check_fd(struct gdri_rm_client *client, int fd)
{
	struct gdri_rm_handle_info info = {
		.object = client->object,
		.index = GDRI_RM_HANDLE_INFO_CLASS,
	};
	struct gdri_rm_failure failure;

	return gdri_rm_call_control(fd, client->object, client->object,
				    GDRI_RM_CTRL_GET_HANDLE_INFO, &info, sizeof(info),
				    &failure) ? -EACCES : 0;
}
