/* SPDX-License-Identifier: MIT */
/*
 * Back end gdrdrv against a model of the kernel module: every refusal, a
 * failure at each step, a replaced descriptor, threads.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "backend/backend.h"
#include "gdrdrv.h"
#include "harness.h"
#include "scripted_gdrdrv.h"
#include "scripted_log.h"
#include "scripted_sys.h"

#define ADDR 0x7f0000100000
#define SIZE 0x30000

static struct gdri_config config = { .log = { GDRI_LOG_OFF } };
static const struct gdri_backend_ops *const ops = &gdri_backend_gdrdrv;

static struct gdri_backend_session *open_session(void)
{
	struct gdri_backend_session *session = NULL;
	struct gdri_reason why = { "" };
	int fd;

	REQUIRE_EQ(ops->open(&config, &session, &fd, &why), 0);
	return session;
}

static void check_nothing_left(void)
{
	CHECK_EQ(scripted_sys_open_fds(), 0);
	CHECK_EQ(scripted_sys_mappings(), 0);
	CHECK_EQ(scripted_sys_stray_releases(), 0);
}

static void check_open_fails(int error, const char *word)
{
	struct gdri_backend_session *session = NULL;
	struct gdri_reason why = { "" };
	int fd = -7;

	CHECK_EQ(ops->open(&config, &session, &fd, &why), -error);
	CHECK(strstr(why.text, word));
	CHECK(session == NULL);
	CHECK_EQ(fd, -7);
	check_nothing_left();
}

static void open_names_the_reason(void)
{
	static const struct { int error; const char *word; } opens[] = {
		{ ENOENT, "modprobe gdrdrv" }, { EACCES, "permission" }, { EPERM, "container" },
		{ ENXIO, "stale node" }, { ENODEV, "stale node" }, { EMFILE, "ulimit -n" },
		{ EIO, "dmesg" },
	}, versions[] = {
		{ ENOTTY, "another driver's" }, { EINVAL, "another driver's" }, { EIO, "dmesg" },
	};

	for (size_t i = 0; i < sizeof(opens) / sizeof(opens[0]); i++) {
		scripted_gdrdrv_start(6);
		scripted_gdrdrv.open_error = opens[i].error;
		check_open_fails(opens[i].error, opens[i].word);
	}
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		scripted_gdrdrv_start(6);
		scripted_gdrdrv.version_error = versions[i].error;
		check_open_fails(versions[i].error, versions[i].word);
	}
}

static void open_compares_versions(void)
{
	struct gdri_backend_session *session;

	scripted_gdrdrv_start(6);
	scripted_gdrdrv.version = 0x00010003;
	check_open_fails(EPROTONOSUPPORT, "1.3 is too old");
	scripted_gdrdrv_start(7);
	scripted_gdrdrv.minimum_api = 0x00020007;
	check_open_fails(EPROTONOSUPPORT, "update libgdrapi");
	scripted_gdrdrv_start(0);
	scripted_gdrdrv.version = 0x00030001;
	scripted_gdrdrv.minimum_api = 0x00030000;
	check_open_fails(EPROTONOSUPPORT, "update libgdrapi");

	scripted_gdrdrv_start(0);
	scripted_gdrdrv.version = 0x00030001;
	scripted_gdrdrv.minimum_api = 0x00020006;
	session = open_session();
	CHECK_EQ(ops->close(session), 0);
	check_nothing_left();
}

/* Runs one pin that must fail, and compares the line that it logs. */
static void check_pin_fails(struct gdri_backend_session *session, uint32_t flags, int error,
			    const char *word)
{
	struct gdri_pin pin, before;
	int ret;

	memset(&pin, 0x5a, sizeof(pin));
	before = pin;
	config.log.level = GDRI_LOG_ERROR;
	scripted_log_start();
	ret = ops->pin(session, ADDR, SIZE, flags, 0, 0, &pin);
	CHECK(strstr(scripted_log_take(), word));
	config.log.level = GDRI_LOG_OFF;
	CHECK_EQ(ret, -error);
	CHECK(memcmp(&pin, &before, sizeof(pin)) == 0);
	CHECK_EQ(scripted_gdrdrv_live_pins(), 0);
}

static void pin_refusals(void)
{
	static const struct {
		int module_error;
		uint32_t flags;
		int error;
		const char *word;
	} rows[] = {
		{ EINVAL, 0, EINVAL, "no GPU memory" },
		{ ENOMEM, 0, ENOMEM, "BAR1" },
		{ 524, 0, EOPNOTSUPP, "use_persistent_mapping=0" },
		{ 524, 1, EOPNOTSUPP, "use flags 0" },
		{ EACCES, 0, EACCES, "another process" },
		{ EIO, 0, EIO, "dmesg" },
		{ EBUSY, 0, EBUSY, "dmesg" },
		{ 0, 2, EINVAL, "flag" },
	};
	struct gdri_backend_session *session;

	scripted_gdrdrv_start(6);
	session = open_session();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		scripted_gdrdrv.pin_error = rows[i].module_error;
		check_pin_fails(session, rows[i].flags, rows[i].error, rows[i].word);
	}
	scripted_gdrdrv.pin_error = 0;
	scripted_gdrdrv.next_handle = 0x100000000;
	check_pin_fails(session, 0, ENOMEM, "open a new one");
	CHECK_EQ(ops->close(session), 0);
	check_nothing_left();
}

static void pin_flags_need_a_new_module(void)
{
	struct gdri_backend_session *session;
	unsigned calls;

	scripted_gdrdrv_start(4);
	session = open_session();
	calls = scripted_sys_calls();
	check_pin_fails(session, GDR_PIN_FLAG_FORCE_PCIE, EINVAL, "2.5");
	CHECK_EQ(scripted_sys_calls(), calls);
	CHECK_EQ(ops->close(session), 0);
	check_nothing_left();
}

static void check_map_fails(struct gdri_backend_session *session, struct gdri_pin *pin, int flags,
			    int error, const char *word)
{
	struct gdri_mapping mapping = { .length = 99 };
	int ret;

	config.log.level = GDRI_LOG_ERROR;
	scripted_log_start();
	ret = ops->map(session, pin, SIZE, flags, &mapping);
	CHECK(strstr(scripted_log_take(), word));
	config.log.level = GDRI_LOG_OFF;
	CHECK_EQ(ret, -error);
	CHECK_EQ(mapping.length, 99);
	CHECK_EQ(scripted_sys_mappings(), 0);
	CHECK_EQ(scripted_gdrdrv_live_pins(), 1);
}

static void map_refusals(void)
{
	static const int request_errors[][2] = {
		{ EOPNOTSUPP, EOPNOTSUPP }, { 524, EOPNOTSUPP }, { EBUSY, EBUSY },
		{ EINVAL, EINVAL },
	};
	static const int mmap_errors[] = { EAGAIN, ENOMEM, EINVAL, EACCES };
	struct gdri_backend_session *session;
	struct gdri_mapping mapping;
	struct gdri_pin pin;

	scripted_gdrdrv_start(6);
	session = open_session();
	REQUIRE_EQ(ops->pin(session, ADDR, SIZE, 0, 0, 0, &pin), 0);
	for (int i = 0; i < 4; i++) {
		scripted_gdrdrv.request_error = request_errors[i][0];
		check_map_fails(session, &pin, 2, request_errors[i][1], "map with flags 0");
	}
	scripted_gdrdrv.request_error = 0;
	for (int i = 0; i < 4; i++) {
		scripted_gdrdrv.mmap_error = mmap_errors[i];
		check_map_fails(session, &pin, 0, mmap_errors[i], "mmap");
	}
	scripted_gdrdrv.mmap_error = 0;
	scripted_gdrdrv.type_is_forced = true;
	check_map_fails(session, &pin, 2, EINVAL, "type 1 instead of 2");
	scripted_gdrdrv.type = 4;
	check_map_fails(session, &pin, 0, EIO, "type 4");
	scripted_gdrdrv.type = GDRDRV_MAPPING_TYPE_NONE;
	check_map_fails(session, &pin, 0, EIO, "type 0");
	/* None of this has spoilt the pin. */
	scripted_gdrdrv.type = GDRDRV_MAPPING_TYPE_WC;
	CHECK_EQ(ops->map(session, &pin, SIZE, 1, &mapping), 0);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	CHECK_EQ(ops->close(session), 0);
	check_nothing_left();
}

/* An old module cannot be asked, so its choice is compared afterwards. */
static void map_request_with_an_old_module(void)
{
	struct gdri_backend_session *session;
	struct gdri_mapping mapping;
	struct gdri_pin pin;

	scripted_gdrdrv_start(0);
	session = open_session();
	REQUIRE_EQ(ops->pin(session, ADDR, SIZE, 0, 0, 0, &pin), 0);
	check_map_fails(session, &pin, GDR_MAP_FLAG_REQ_CACHE_MAPPING, EINVAL, "map with flags 0");
	CHECK_EQ(ops->map(session, &pin, SIZE, GDR_MAP_FLAG_REQ_WC_MAPPING, &mapping), 0);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	CHECK_EQ(ops->close(session), 0);
	check_nothing_left();
}

static int use_pin(struct gdri_backend_session *session, struct gdri_pin *pin)
{
	struct gdri_mapping mapping;
	int ret, flag;

	ret = ops->refresh(session, pin);
	if (ret == 0)
		ret = ops->get_callback_flag(session, pin, &flag);
	if (ret < 0)
		return ret;
	ret = ops->map(session, pin, SIZE, GDR_MAP_FLAG_REQ_WC_MAPPING, &mapping);
	if (ret < 0)
		return ret;
	CHECK_EQ(scripted_sys_inherited(), 0);
	return ops->unmap(session, pin, &mapping);
}

/* Every call of a back end once; the first error, with all else released. */
static int live_once(void)
{
	struct gdri_backend_session *session;
	struct gdri_reason why;
	struct gdri_pin pin;
	int fd, value, ret, unpin_ret, close_ret;
	uint32_t version;

	ret = ops->open(&config, &session, &fd, &why);
	if (ret < 0)
		return ret;
	ret = ops->get_version(session, &version);
	if (ret == 0)
		ret = ops->get_attribute(session, 1, &value);
	if (ret == 0)
		ret = ops->pin(session, ADDR, SIZE, 0, 0, 0, &pin);
	if (ret == 0) {
		ret = use_pin(session, &pin);
		unpin_ret = ops->unpin(session, &pin);
		CHECK_EQ(scripted_gdrdrv_live_pins(), unpin_ret ? 1 : 0);
		ret = ret ? ret : unpin_ret;
	} else {
		CHECK_EQ(scripted_gdrdrv_live_pins(), 0);
	}
	CHECK_EQ(scripted_sys_mappings(), 0);
	close_ret = ops->close(session);
	return ret ? ret : close_ret;
}

static void failure_at_each_step(void)
{
	static const uint32_t minors[] = { 0, 4, 6 };

	for (int m = 0; m < 3; m++) {
		unsigned calls, done = 0;

		scripted_gdrdrv_start(minors[m]);
		scripted_gdrdrv.type = GDRDRV_MAPPING_TYPE_WC;
		CHECK_EQ(live_once(), 0);
		calls = scripted_sys_calls();
		CHECK(calls >= 10);
		for (unsigned nth = 1; nth <= calls; nth++) {
			int ret;

			scripted_gdrdrv_start(minors[m]);
			scripted_sys_fail(nth, EDOM);
			ret = live_once();
			done += ret == 0;
			CHECK(ret == 0 || ret == -EDOM);
			check_nothing_left();
		}
		/* A map goes without the answer whether pages may be taken back. */
		CHECK_EQ(done, minors[m] >= 5 ? 1 : 0);
	}
}

/*
 * 2.6's sanity program puts another process's descriptor behind gdr_t: pin and
 * map must fail then, and close must end what open began.
 */
static void replaced_descriptor(void)
{
	struct gdri_backend_session *session;
	struct gdri_pin pin, other;
	struct gdri_mapping mapping;
	uint32_t version;
	int shown, own;

	scripted_gdrdrv_start(6);
	session = open_session();
	own = *session->fd;
	session->fd = &shown;
	shown = own;
	REQUIRE_EQ(ops->pin(session, ADDR, SIZE, 0, 0, 0, &pin), 0);
	scripted_gdrdrv.foreign_fd = scripted_sys_new_fd();
	for (int round = 0; round < 3; round++) {
		static const int errors[] = { EBADF, EBADF, EACCES };

		shown = round == 0 ? -1 : round == 1 ? 123456789 : scripted_gdrdrv.foreign_fd;
		CHECK_EQ(ops->pin(session, ADDR, SIZE, 0, 0, 0, &other), -errors[round]);
		CHECK_EQ(ops->map(session, &pin, SIZE, 0, &mapping), -errors[round]);
		CHECK_EQ(ops->map(session, &pin, SIZE, 1, &mapping), -errors[round]);
		CHECK_EQ(ops->refresh(session, &pin), -errors[round]);
		CHECK_EQ(ops->get_version(session, &version), -errors[round]);
	}
	shown = own;
	CHECK_EQ(ops->map(session, &pin, SIZE, 0, &mapping), 0);
	CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
	CHECK_EQ(ops->unpin(session, &pin), 0);
	shown = scripted_gdrdrv.foreign_fd;
	CHECK_EQ(ops->close(session), 0);
	/* The stranger's descriptor is the only one that is left. */
	CHECK_EQ(scripted_sys_open_fds(), 1);
	CHECK_EQ(scripted_sys_stray_releases(), 0);
}

static void *pin_and_map_often(void *arg)
{
	struct gdri_backend_session *session = arg;
	struct gdri_mapping mapping;
	struct gdri_pin pin;

	for (int i = 0; i < 500; i++) {
		if (!CHECK_EQ(ops->pin(session, ADDR + i * 65536ull, SIZE, 0, 0, 0, &pin), 0))
			break;
		CHECK_EQ(ops->map(session, &pin, SIZE, 0, &mapping), 0);
		memset(mapping.base, i, SIZE);
		CHECK_EQ(ops->unmap(session, &pin, &mapping), 0);
		CHECK_EQ(ops->unpin(session, &pin), 0);
	}
	return NULL;
}

static void threads_share_a_session(void)
{
	struct gdri_backend_session *session;
	pthread_t threads[4];

	scripted_gdrdrv_start(6);
	session = open_session();
	for (int i = 0; i < 4; i++)
		REQUIRE_EQ(pthread_create(&threads[i], NULL, pin_and_map_often, session), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(scripted_gdrdrv_live_pins(), 0);
	CHECK_EQ(ops->close(session), 0);
	check_nothing_left();
}

static const struct harness_case cases[] = {
	{ "gdrdrv_open_names_the_reason", open_names_the_reason },
	{ "gdrdrv_open_compares_versions", open_compares_versions },
	{ "gdrdrv_pin_refusals", pin_refusals },
	{ "gdrdrv_pin_flags_need_a_new_module", pin_flags_need_a_new_module },
	{ "gdrdrv_map_refusals", map_refusals },
	{ "gdrdrv_map_request_with_an_old_module", map_request_with_an_old_module },
	{ "gdrdrv_failure_at_each_step", failure_at_each_step },
	{ "gdrdrv_replaced_descriptor", replaced_descriptor },
	{ "gdrdrv_threads_share_a_session", threads_share_a_session },
};

HARNESS_MAIN(cases)
