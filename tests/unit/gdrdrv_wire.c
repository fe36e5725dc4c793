/* SPDX-License-Identifier: MIT */
/*
 * What back end gdrdrv sends to /dev/gdrdrv, byte for byte, and in which
 * order: with modules 2.0, 2.4 and 2.6.  Numbers and layouts are written out
 * as the interface facts (section 8) give them; nothing here comes from the
 * library's own header of them.  Words are those of little-endian machines.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/backend.h"
#include "harness.h"
#include "scripted_sys.h"

#define FD SCRIPTED_FIRST_FD
#define ADDR 0x7f1234560000
#define SIZE 0x20000
#define HANDLE 0x12345678
#define VERSION(minor) (0x0002000000020000 | (minor))	/* minimum API 2.0, module 2.minor */

#define WORDS(...) (const uint64_t[]){ __VA_ARGS__ }
#define COUNT(...) sizeof((const uint64_t[]){ __VA_ARGS__ })
#define ASK(number) .call = { .op = SCRIPTED_IOCTL, .fd = FD, .request = (number) }
#define SENT(...) .in = WORDS(__VA_ARGS__), .in_size = COUNT(__VA_ARGS__)
#define ANSWER(...) .out = WORDS(__VA_ARGS__), .out_size = COUNT(__VA_ARGS__)
#define PAIR(low, high) ((uint64_t)(low) | (uint64_t)(high) << 32)

#define OPEN_STEPS(minor)                                                                    \
	{ .call = { .op = SCRIPTED_OPEN, .path = "/dev/gdrdrv", .flags = O_RDWR } },         \
	{ ASK(0xc008daff), SENT(0), ANSWER(VERSION(minor)) }
#define CLOSE_STEP { .call = { .op = SCRIPTED_CLOSE, .fd = FD } }

/* GET_INFO and GET_INFO_V2 differ in the last word: mapped and wc_mapping, or the type. */
#define INFO_STEP(number, last)                                                             \
	{ ASK(number), SENT(HANDLE, 0, 0, 0, 0, 0),                                         \
	  ANSWER(HANDLE, ADDR, SIZE, PAIR(65536, 2000000), 777, last) }
#define MAP_STEPS(size)                                                                     \
	{ .call = { .op = SCRIPTED_MMAP, .fd = FD, .length = (size),                        \
		    .prot = PROT_READ | PROT_WRITE, .flags = MAP_SHARED,                    \
		    .offset = (off_t)HANDLE * sysconf(_SC_PAGESIZE) } },                    \
	{ .call = { .op = SCRIPTED_DONTFORK, .length = (size) } }
#define UNMAP_STEP(size) { .call = { .op = SCRIPTED_MUNMAP, .length = (size) } }
#define UNPIN_STEP { ASK(0xc008da02), SENT(HANDLE) }
#define START(...)                                                                           \
	const struct scripted_step steps[] = { __VA_ARGS__ };                                \
	scripted_sys_script(steps, sizeof(steps) / sizeof(steps[0]))

static const struct gdri_config config = { .log = { GDRI_LOG_OFF } };
static const struct gdri_backend_ops *const ops = &gdri_backend_gdrdrv;
static struct gdri_reason why;

static struct gdri_backend_session *open_session(void)
{
	struct gdri_backend_session *session = NULL;
	int fd = -1;

	REQUIRE_EQ(ops->open(&config, &session, &fd, &why), 0);
	CHECK_EQ(fd, FD);
	CHECK(session->ops == ops);
	CHECK(session->config == &config);
	return session;
}

static void check_pin(const struct gdri_pin *pin, uint64_t addr, uint64_t length)
{
	CHECK_EQ(pin->driver_handle, HANDLE);
	CHECK_EQ(pin->va, ADDR);
	CHECK_EQ(pin->size, SIZE);
	CHECK_EQ(pin->addr, addr);
	CHECK_EQ(pin->length, length);
	CHECK_EQ(pin->page_size, 65536);
	CHECK_EQ(pin->tsc_khz, 2000000);
	CHECK_EQ(pin->tm_cycles, 777);
}

static void end_session(struct gdri_backend_session *session)
{
	CHECK_EQ(ops->close(session), 0);
	CHECK(scripted_sys_script_done());
	CHECK_EQ(scripted_sys_open_fds(), 0);
	CHECK_EQ(scripted_sys_mappings(), 0);
}

static void life_with_module_2_6(void)
{
	START(OPEN_STEPS(6),
	      { ASK(0xc020da07), SENT(ADDR, SIZE, 1, 0), ANSWER(ADDR, SIZE, 1, HANDLE) },
	      INFO_STEP(0xc008da05, 0),
	      { ASK(0xc008da08), SENT(HANDLE, 1) },
	      MAP_STEPS(0x10000),
	      INFO_STEP(0xc008da05, 1),
	      { ASK(0xc008da06), SENT(PAIR(1, 0)), ANSWER(PAIR(1, 1)) },
	      INFO_STEP(0xc008da05, 1),
	      { ASK(0xc008da03), SENT(HANDLE, 0), ANSWER(HANDLE, 1) },
	      UNMAP_STEP(0x10000),
	      MAP_STEPS(0x20000),
	      INFO_STEP(0xc008da05, 2),
	      UNMAP_STEP(0x20000),
	      MAP_STEPS(0x20000),
	      INFO_STEP(0xc008da05, 1),
	      { ASK(0xc008da06), SENT(PAIR(1, 0)), ANSWER(PAIR(1, 0)) },
	      UNMAP_STEP(0x20000),
	      UNPIN_STEP, CLOSE_STEP);
	struct gdri_backend_session *session = open_session();
	struct gdri_mapping mapping;
	struct gdri_pin pin;
	int flag = -1;

	REQUIRE_EQ(ops->pin(session, ADDR, SIZE, GDR_PIN_FLAG_FORCE_PCIE, 11, 22, &pin), 0);
	check_pin(&pin, ADDR, SIZE);
	REQUIRE_EQ(ops->map(session, &pin, 0x10000, GDR_MAP_FLAG_REQ_WC_MAPPING, &mapping), 0);
	CHECK_EQ(mapping.type, GDR_MAPPING_TYPE_WC);
	CHECK_EQ(mapping.length, 0x10000);
	CHECK(mapping.is_populated);
	CHECK_EQ(scripted_sys_inherited(), 0);
	*(volatile char *)mapping.base = 1;
	CHECK_EQ(ops->refresh(session, &pin), 0);
	CHECK_EQ(ops->get_callback_flag(session, &pin, &flag), 0);
	CHECK_EQ(flag, 1);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	REQUIRE_EQ(ops->map(session, &pin, 0x20000, GDR_MAP_FLAG_DEFAULT, &mapping), 0);
	CHECK_EQ(mapping.type, GDR_MAPPING_TYPE_CACHING);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	/* The module says that its pins may be taken back. */
	REQUIRE_EQ(ops->map(session, &pin, 0x20000, GDR_MAP_FLAG_DEFAULT, &mapping), 0);
	CHECK(!mapping.is_populated);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	end_session(session);
}

static void life_with_module_2_4(void)
{
	START(OPEN_STEPS(4),
	      { ASK(0xc028da01), SENT(ADDR + 8, SIZE - 8, 11, 22, 0),
		ANSWER(ADDR + 8, SIZE - 8, 11, 22, HANDLE) },
	      INFO_STEP(0xc008da05, 0),
	      MAP_STEPS(0x20000),
	      INFO_STEP(0xc008da05, 3),
	      UNMAP_STEP(0x20000),
	      UNPIN_STEP, CLOSE_STEP);
	struct gdri_backend_session *session = open_session();
	struct gdri_mapping mapping;
	struct gdri_pin pin;

	REQUIRE_EQ(ops->pin(session, ADDR + 8, SIZE - 8, 0, 11, 22, &pin), 0);
	check_pin(&pin, ADDR + 8, SIZE - 8);
	/* No request can be made of this module, but the type turns out right. */
	REQUIRE_EQ(ops->map(session, &pin, 0x20000, GDR_MAP_FLAG_REQ_DEVICE_MAPPING, &mapping), 0);
	CHECK_EQ(mapping.type, GDR_MAPPING_TYPE_DEVICE);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	end_session(session);
}

#ifdef __aarch64__
#define OLD_TYPE_NOT_WC GDR_MAPPING_TYPE_DEVICE
#else
#define OLD_TYPE_NOT_WC GDR_MAPPING_TYPE_CACHING
#endif

static void life_with_module_2_0(void)
{
	START(OPEN_STEPS(0),
	      { ASK(0xc028da01), SENT(ADDR, SIZE, 0, 0, 0), ANSWER(ADDR, SIZE, 0, 0, HANDLE) },
	      INFO_STEP(0xc008da04, PAIR(0, 0)),
	      MAP_STEPS(0x20000),
	      INFO_STEP(0xc008da04, PAIR(1, 1)),
	      UNMAP_STEP(0x20000),
	      MAP_STEPS(0x20000),
	      INFO_STEP(0xc008da04, PAIR(1, 0)),
	      UNMAP_STEP(0x20000),
	      UNPIN_STEP, CLOSE_STEP);
	struct gdri_backend_session *session = open_session();
	struct gdri_mapping mapping;
	struct gdri_pin pin;

	REQUIRE_EQ(ops->pin(session, ADDR, SIZE, 0, 0, 0, &pin), 0);
	check_pin(&pin, ADDR, SIZE);
	REQUIRE_EQ(ops->map(session, &pin, 0x20000, GDR_MAP_FLAG_DEFAULT, &mapping), 0);
	CHECK_EQ(mapping.type, GDR_MAPPING_TYPE_WC);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	REQUIRE_EQ(ops->map(session, &pin, 0x20000, GDR_MAP_FLAG_DEFAULT, &mapping), 0);
	CHECK_EQ(mapping.type, OLD_TYPE_NOT_WC);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	end_session(session);
}

static void version_and_attributes(void)
{
	START(OPEN_STEPS(5),
	      { ASK(0xc008daff), SENT(0), ANSWER(VERSION(5)) },
	      { ASK(0xc008da06), SENT(PAIR(1, 0)), ANSWER(PAIR(1, 1)) },
	      { ASK(0xc008da06), SENT(PAIR(2, 0)), ANSWER(PAIR(2, 0)) },
	      { ASK(0xc008da06), SENT(PAIR(2, 0)), .result = -EINVAL },
	      CLOSE_STEP);
	struct gdri_backend_session *session = open_session();
	uint32_t version = 0;
	int value = -1;

	CHECK_EQ(ops->get_version(session, &version), 0);
	CHECK_EQ(version, 0x00020005);
	CHECK_EQ(ops->get_attribute(session, 1, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(ops->get_attribute(session, 2, &value), 0);
	CHECK_EQ(value, 0);
	value = 9;
	CHECK_EQ(ops->get_attribute(session, 2, &value), -EINVAL);
	CHECK_EQ(value, 9);
	CHECK_EQ(ops->get_attribute(session, 3, &value), 0);
	CHECK_EQ(value, 0);
	end_session(session);
}

/* Before 2.5 there is nothing to ask. */
static void attributes_of_old_module(void)
{
	START(OPEN_STEPS(4), CLOSE_STEP);
	struct gdri_backend_session *session = open_session();

	for (int attr = 1; attr <= 3; attr++) {
		int value = 9;

		CHECK_EQ(ops->get_attribute(session, attr, &value), 0);
		CHECK_EQ(value, 0);
	}
	end_session(session);
}

static const struct harness_case cases[] = {
	{ "gdrdrv_wire_module_2_6", life_with_module_2_6 },
	{ "gdrdrv_wire_module_2_4", life_with_module_2_4 },
	{ "gdrdrv_wire_module_2_0", life_with_module_2_0 },
	{ "gdrdrv_wire_version_and_attributes", version_and_attributes },
	{ "gdrdrv_wire_attributes_of_old_module", attributes_of_old_module },
};

HARNESS_MAIN(cases)
