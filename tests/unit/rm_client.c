/* SPDX-License-Identifier: MIT */
/* The process's client of the resource manager: references, GPUs, forks, threads. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#include "fake_rm.h"
#include "harness.h"
#include "os/sys.h"
#include "rm/client.h"

#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#define THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define THREAD_SANITIZER 0
#endif

static const struct fake_usage nothing;

static struct gdri_rm_client *acquire(void)
{
	struct gdri_rm_failure failure;
	struct gdri_rm_client *client = NULL;

	REQUIRE_EQ(gdri_rm_client_acquire(&client, &failure), 0);
	return client;
}

static void one_client_for_all(void)
{
	struct gdri_rm_client *first, *second;

	fake_reset(NULL);
	first = acquire();
	second = acquire();
	CHECK(first == second);
	CHECK_EQ(fake_usage().clients, 1);
	CHECK_EQ(fake_usage().descriptors, 1);
	CHECK_EQ(fake_usage().objects, 0);
	CHECK_EQ(gdri_rm_client_release(first), 0);
	CHECK_EQ(fake_usage().clients, 1);
	CHECK_EQ(gdri_rm_client_release(second), 0);
	CHECK(fake_usage_equal(fake_usage(), nothing));
	CHECK(strcmp(acquire()->version, "580.159.04") == 0);
	CHECK_EQ(gdri_rm_client_release(first), 0);
}

static void version_comes_first(void)
{
	struct gdri_rm_failure failure;
	struct gdri_rm_client *client = NULL;

	fake_reset(&(struct fake_machine){ .version = "" });
	CHECK_EQ(gdri_rm_client_acquire(&client, &failure), -EPROTO);
	CHECK(client == NULL);
	CHECK(strcmp(failure.step, "driver version query") == 0);
	CHECK(fake_usage_equal(fake_usage(), nothing));
	/* The page, its madvise, the file, the question, and the close: nothing else was asked. */
	CHECK(fake_calls() <= 5);
}

static void knows_tested_builds(void)
{
	struct gdri_rm_client *client;

	fake_reset(NULL);
	client = acquire();
	CHECK(client->tested);
	CHECK_EQ(gdri_rm_client_release(client), 0);
	fake_reset(&(struct fake_machine){ .version = "580.142" });
	client = acquire();
	CHECK(!client->tested);
	CHECK_EQ(gdri_rm_client_release(client), 0);
}

/* GPU ids, minors and instances are in another order than CUDA's devices here. */
static void finds_gpus_by_pci_address(void)
{
	static const struct {
		uint32_t bus, minor;
	} gpu[] = { { 0xc8, 7 }, { 0x65, 4 }, { 0x1a, 0 } };
	struct gdri_rm_device *device, *again;
	struct gdri_rm_failure failure;
	struct gdri_rm_client *client;

	fake_reset(NULL);
	client = acquire();
	for (int i = 0; i < 3; i++) {
		REQUIRE_EQ(gdri_rm_device_get(client, 1, gpu[i].bus, 0, &device, &failure), 0);
		CHECK_EQ(device->minor, gpu[i].minor);
		CHECK_EQ(gdri_rm_device_get(client, 1, gpu[i].bus, 0, &again, &failure), 0);
		CHECK(device == again);
	}
	CHECK_EQ(fake_usage().objects, 6);	/* a device and a subdevice each */
	CHECK_EQ(fake_usage().descriptors, 4);
	CHECK_EQ(gdri_rm_device_get(client, 0, 0x65, 0, &device, &failure), -ENODEV);
	CHECK_EQ(gdri_rm_device_get(client, 1, 0x66, 0, &device, &failure), -ENODEV);
	CHECK_EQ(gdri_rm_client_release(client), 0);
	CHECK(fake_usage_equal(fake_usage(), nothing));
}

static void foreign_descriptor_is_told_apart(void)
{
	struct gdri_rm_client *client;
	int copy, other;

	fake_reset(NULL);
	client = acquire();
	copy = gdri_os_dup(client->fd);
	other = fake_foreign_descriptor();
	CHECK_EQ(gdri_rm_client_check_fd(client, copy), 0);
	CHECK_EQ(gdri_rm_client_check_fd(client, other), -EACCES);
	CHECK_EQ(gdri_rm_client_check_fd(client, -1), -EACCES);
	CHECK_EQ(gdri_rm_client_check_fd(client, 3), -EACCES);
	gdri_os_close(copy);
	gdri_os_close(other);
	CHECK_EQ(gdri_rm_client_release(client), 0);
}

static void child_uses_own_client(void *parents)
{
	struct gdri_rm_client *client = parents;
	struct gdri_rm_device *device;
	struct gdri_rm_failure failure;

	CHECK_EQ(gdri_rm_client_release(client), -EACCES);
	CHECK_EQ(gdri_rm_client_acquire(&client, &failure), 0);
	CHECK_EQ(fake_usage().clients, 2);
	CHECK_EQ(gdri_rm_device_get(client, 1, 0x65, 0, &device, &failure), 0);
	CHECK_EQ(gdri_rm_client_release(client), 0);
	CHECK_EQ(fake_usage().clients, 1);
}

static void fork_gives_a_fresh_client(void)
{
	struct gdri_rm_client *client;
	struct gdri_rm_device *device;
	struct gdri_rm_failure failure;
	struct fake_usage before;
	int status;

	fake_reset(NULL);
	client = acquire();
	REQUIRE_EQ(gdri_rm_device_get(client, 1, 0xc8, 0, &device, &failure), 0);
	before = fake_usage();
	status = harness_fork(child_uses_own_client, client);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);

	CHECK(fake_usage_equal(fake_usage(), before));
	CHECK_EQ(gdri_rm_client_check_fd(client, client->fd), 0);
	CHECK_EQ(gdri_rm_client_release(client), 0);
	CHECK(fake_usage_equal(fake_usage(), nothing));
}

static pthread_barrier_t barrier;

static void *hold_the_lock(void *arg)
{
	struct gdri_rm_client *client = arg;

	pthread_mutex_lock(&client->lock);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	pthread_mutex_unlock(&client->lock);
	return NULL;
}

/* The lock lives in the page that fork wipes, so the child finds it free. */
static void fork_while_the_lock_is_held(void)
{
	struct gdri_rm_client *client;
	pthread_t thread;
	int status;

#if THREAD_SANITIZER
	SKIP("the thread sanitizer does not know that fork wipes the page of the lock");
#endif
	fake_reset(NULL);
	client = acquire();
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, hold_the_lock, client);
	pthread_barrier_wait(&barrier);
	status = harness_fork(child_uses_own_client, client);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&barrier);
	CHECK_EQ(gdri_rm_client_release(client), 0);
}

static void *acquire_and_release(void *arg)
{
	struct gdri_rm_failure failure;
	struct gdri_rm_client *client;
	struct gdri_rm_device *device;

	(void)arg;
	for (int i = 0; i < 300; i++) {
		if (!CHECK_EQ(gdri_rm_client_acquire(&client, &failure), 0))
			return NULL;
		CHECK_EQ(gdri_rm_device_get(client, 1, 0x1a, 0, &device, &failure), 0);
		CHECK_EQ(gdri_rm_client_release(client), 0);
	}
	return NULL;
}

static void threads_share_one_client(void)
{
	pthread_t thread[4];

	fake_reset(NULL);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, acquire_and_release, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	CHECK(fake_usage_equal(fake_usage(), nothing));
}

/* Each step of acquire and attach fails once, by the system and by the manager. */
static void failure_at_each_step(void)
{
	struct gdri_rm_failure failure;
	struct gdri_rm_device *device;
	struct gdri_rm_client *client;
	int failed = 0;

	for (unsigned step = 1; step < 64; step++) {
		for (uint32_t status = 0; status <= 0x51; status += 0x51) {
			struct fake_usage before;
			int rc;

			fake_reset(NULL);
			fake_fail_at(step, status);
			if (gdri_rm_client_acquire(&client, &failure)) {
				CHECK(fake_usage_equal(fake_usage(), nothing));
				failed++;
				continue;
			}
			before = fake_usage();
			rc = gdri_rm_device_get(client, 1, 0x65, 0, &device, &failure);
			if (rc) {
				CHECK(fake_usage_equal(fake_usage(), before));
				failed++;
			}
			fake_fail_at(0, 0);
			CHECK_EQ(gdri_rm_device_get(client, 1, 0x65, 0, &device, &failure), 0);
			CHECK_EQ(gdri_rm_client_release(client), 0);
			CHECK(fake_usage_equal(fake_usage(), nothing));
		}
	}
	CHECK(failed >= 20);
}

static const struct harness_case cases[] = {
	{ "version_comes_first", version_comes_first },
	{ "one_client_for_all", one_client_for_all },
	{ "knows_tested_builds", knows_tested_builds },
	{ "finds_gpus_by_pci_address", finds_gpus_by_pci_address },
	{ "foreign_descriptor_is_told_apart", foreign_descriptor_is_told_apart },
	{ "fork_gives_a_fresh_client", fork_gives_a_fresh_client },
	{ "fork_while_the_lock_is_held", fork_while_the_lock_is_held },
	{ "threads_share_one_client", threads_share_one_client },
	{ "failure_at_each_step", failure_at_each_step },
};
HARNESS_MAIN(cases)
