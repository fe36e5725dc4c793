/* SPDX-License-Identifier: MIT */
/* A child has none of the engine's memory, and the parent's copies go on. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copy/dma/device.h"
#include "dma/helper_dma.h"
#include "os/sys.h"

#define SIZE ((size_t)128 << 10)

struct scene {
	struct dma_rig rig;
	struct dma_memory memory;
	uint8_t *host;
};

static void look(void *at)
{
	char byte;

	_exit(gdri_os_peek((uintptr_t)at, &byte, 1) == 0 ? 0 : 7);
}

static bool is_missing_in_child(const void *at)
{
	const int status = harness_fork(look, (void *)at);

	CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 7));
	return WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

static void copy_both_ways(struct scene *scene, uint32_t seed)
{
	uint8_t *host = scene->host, *check = host + SIZE;

	dma_fill(host, SIZE, seed);
	CHECK_EQ(gdri_dma_to_device(scene->memory.target, 0, host, SIZE), 0);
	CHECK_EQ(gdri_dma_from_device(scene->memory.target, 0, check, SIZE), 0);
	CHECK(memcmp(host, check, SIZE) == 0);
}

static void use_session(void *arg)
{
	struct scene *scene = arg;
	const struct gdri_dma_memory described = dma_describe(&scene->memory);
	struct gdri_dma_target *target;
	uint8_t *pages = dma_pages(4096);

	CHECK_EQ(gdri_dma_register(scene->rig.dma, pages, 4096), -EACCES);
	CHECK_EQ(gdri_dma_unregister(scene->rig.dma, scene->host), -EACCES);
	CHECK_EQ(gdri_dma_attach(scene->rig.dma, &described, &target), -EACCES);
	gdri_dma_detach(scene->memory.target);
	CHECK_EQ(gdri_dma_destroy(scene->rig.dma), -EACCES);
}

static void scene_body(void)
{
	const struct gdri_dma_options options = dma_options();
	struct scene scene;
	const struct gdri_dma_device *device;

	dma_open(&scene.rig, &options);
	dma_attach(&scene.rig, 0, SIZE, &scene.memory);
	scene.host = dma_pages(2 * SIZE);
	copy_both_ways(&scene, 1);
	REQUIRE_EQ(gdri_dma_register(scene.rig.dma, scene.host, SIZE), 0);

	CHECK_EQ(harness_fork(use_session, &scene), 0);
	CHECK(is_missing_in_child(scene.host));
	CHECK(is_missing_in_child(scene.host + SIZE - 1));
	CHECK(!is_missing_in_child(scene.host + SIZE));
	device = scene.memory.target->device;
	CHECK(is_missing_in_child(device->bounce.base));
	CHECK(is_missing_in_child(device->bounce.base + device->dma->options.bounce_bytes - 1));
	copy_both_ways(&scene, 2);

	CHECK_EQ(gdri_dma_unregister(scene.rig.dma, scene.host), 0);
	CHECK(!is_missing_in_child(scene.host));
	copy_both_ways(&scene, 3);
	dma_free(&scene.rig, &scene.memory);
	dma_close(&scene.rig);
}

static void child(void)
{
	dma_run_with("", scene_body);
}

static const struct harness_case cases[] = {
	{ "child", child },
};

HARNESS_MAIN(cases)
