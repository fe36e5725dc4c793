/* SPDX-License-Identifier: MIT */
/*
 * Stores inside restartable sequences against a gate that closes: what was
 * refused is not stored, neither then nor later, where something else lies by
 * now; what was answered with 0 is stored, once.  The library's source is built
 * in with gaps that a test can widen, since a sequence is over in a nanosecond.
 */
#define GAP(name)                          \
	"	movl " #name "(%rip), %r11d\n" \
	"8:	decl %r11d\n"              \
	"	js 9f\n"                   \
	"	pause\n"                   \
	"	jmp 8b\n"                  \
	"9:\n"
#define GDRI_RSEQ_BEFORE_START GAP(gap_before_start)
#define GDRI_RSEQ_BEFORE_STORE GAP(gap_before_store)

#include "core/rseq.c"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "core/region.h"
#include "harness.h"

#if GDRI_CORE_RSEQ

#define PAGE ((size_t)4096)
#define GENERATION 7

/* Turns of a pause instruction; named in assembly, so not static. */
extern volatile int gap_before_start, gap_before_store;
volatile int gap_before_start, gap_before_store;

static struct gdri_gate gate, other_gate;
static _Atomic(unsigned char *) window;

static int rounds(int plain)
{
	return getenv("HARNESS_SLOW") ? plain / 10 : plain;
}

static char *rseq_area(void)
{
	return (char *)gdri_gate_thread() + __rseq_offset;
}

static bool has_sequences(void)
{
	const long offered = gdri_os_membarrier(GDRI_OS_MEMBARRIER_QUERY);

	return offered > 0 && (offered & GDRI_OS_MEMBARRIER_RSEQ) && &__rseq_size && __rseq_size &&
	       *(int32_t *)(rseq_area() + 4) >= 0;
}

static void need_sequences(void)
{
	if (!has_sequences())
		SKIP("no restartable sequences here (kernel, glibc or GLIBC_TUNABLES)");
	REQUIRE_EQ(gdri_core_table_create(), 0);
}

static unsigned char *map_page(void *at)
{
	void *page = mmap(at, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	REQUIRE(page != MAP_FAILED);
	return page;
}

/* As the copy call does it; no handle, so the general way answers EINVAL. */
static int store(const uint64_t *value)
{
	unsigned char *at;
	uint64_t key;

	if (!gdri_gate_peek(&gate, GENERATION, &key))
		return EAGAIN;
	at = atomic_load_explicit(&window, memory_order_relaxed);
	return gdri_core_rseq_store64(0, at, value, 8, &gate.key, key);
}

static void nap(long microseconds)
{
	const struct timespec pause = { .tv_nsec = microseconds * 1000 };

	nanosleep(&pause, NULL);
}

/* Sleeping takes longer than a gap. */
static void spin(long microseconds)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 <
	       microseconds);
}

struct writer {
	pthread_t thread;
	_Atomic bool stop;
	_Atomic pid_t tid;
	_Atomic long stored;
	long refused, wrong;
};

static void *keep_storing(void *arg)
{
	const uint64_t value = UINT64_MAX;
	struct writer *writer = arg;

	atomic_store(&writer->tid, (pid_t)syscall(SYS_gettid));
	while (!atomic_load(&writer->stop)) {
		if (store(&value) == 0)
			writer->stored++;
		else
			writer->refused++;
	}
	return NULL;
}

static void start(struct writer *writer, void *(*body)(void *))
{
	memset(writer, 0, sizeof(*writer));
	REQUIRE_EQ(pthread_create(&writer->thread, NULL, body, writer), 0);
	while (!atomic_load(&writer->tid))
		nap(10);
}

static void stop(struct writer *writer)
{
	atomic_store(&writer->stop, true);
	pthread_join(writer->thread, NULL);
}

/*
 * Closes the gate, puts another page where the window was, and looks for what
 * is stored there; reopen: the gate is open again meanwhile, elsewhere.
 */
static int count_stray_stores(bool reopen)
{
	struct writer writer;
	int stray = 0;

	atomic_store(&window, map_page(NULL));
	gdri_gate_open(&gate, GENERATION);
	start(&writer, keep_storing);
	for (int i = 0; i < rounds(1000); i++) {
		unsigned char *old = atomic_load(&window), *new = map_page(NULL);

		/* Catches the thread before its sequence, too, with the gate open. */
		gdri_core_gate_drain(&other_gate, gdri_core_table_slots());
		spin(i % 16 * 5);
		gdri_gate_close(&gate, GENERATION);
		gdri_core_gate_drain(&gate, gdri_core_table_slots());
		map_page(old);
		atomic_store(&window, new);
		if (reopen)
			gdri_gate_open(&gate, GENERATION);
		nap(300);
		stray += *(volatile uint64_t *)old != 0;
		if (!reopen)
			gdri_gate_open(&gate, GENERATION);
		munmap(old, PAGE);
	}
	stop(&writer);
	CHECK(writer.stored > 0);
	gdri_gate_close(&gate, GENERATION);
	munmap(atomic_load(&window), PAGE);
	return stray;
}

/* The thread is between comparison and store nearly all the time, and running. */
static void drain_aborts_running_sequences(void)
{
	need_sequences();
	gap_before_store = 1000;
	CHECK_EQ(count_stray_stores(false), 0);
	gap_before_store = 0;
}

/* The kernel made it forget its sequence just before that began. */
static void interrupted_thread_knows_it(void)
{
	need_sequences();
	gap_before_start = gap_before_store = 2000;
	CHECK_EQ(count_stray_stores(false), 0);
	gap_before_start = gap_before_store = 0;
}

/* The thread has looked, and begins its sequence when all is open again. */
static void each_opening_has_its_key(void)
{
	need_sequences();
	gap_before_start = 4000;
	CHECK_EQ(count_stray_stores(true), 0);
	gap_before_start = 0;
}

static void no_stray_store_without_gaps(void)
{
	need_sequences();
	CHECK_EQ(count_stray_stores(false), 0);
	CHECK_EQ(count_stray_stores(true), 0);
}

/* Interrupted at every place; what the answer says must be what the word holds. */
static void *store_and_compare(void *arg)
{
	volatile uint64_t *word = (uint64_t *)atomic_load(&window);
	struct writer *writer = arg;
	uint64_t held = 0;

	atomic_store(&writer->tid, (pid_t)syscall(SYS_gettid));
	for (uint64_t value = 1; !atomic_load(&writer->stop); value++) {
		if (store(&value) == 0) {
			held = value;
			writer->stored++;
		} else {
			writer->refused++;
		}
		writer->wrong += *word != held;
	}
	return NULL;
}

/* The handler stores too, so that sequences meet each other. */
static void on_signal(int number)
{
	const uint64_t value = UINT64_MAX;
	uint64_t key;

	(void)number;
	if (gdri_gate_peek(&gate, GENERATION, &key))
		gdri_core_rseq_store64(0, atomic_load(&window) + 64, &value, 8, &gate.key, key);
}

static void disturb(void (*disturbance)(const struct writer *writer, int round))
{
	struct sigaction action = { .sa_handler = on_signal }, old;
	struct writer writer;

	sigaction(SIGUSR1, &action, &old);
	atomic_store(&window, map_page(NULL));
	gdri_gate_open(&gate, GENERATION);
	start(&writer, store_and_compare);
	for (int i = 0; i < rounds(20000); i++)
		disturbance(&writer, i);
	stop(&writer);
	CHECK(writer.stored > 0);
	CHECK(writer.refused > 0);
	CHECK_EQ(writer.wrong, 0);
	gdri_gate_close(&gate, GENERATION);
	munmap(atomic_load(&window), PAGE);
	sigaction(SIGUSR1, &old, NULL);
}

static void send_signal(const struct writer *writer, int round)
{
	pthread_kill(writer->thread, SIGUSR1);
	if (round % 16 == 0)
		nap(50);
}

static void move_thread(const struct writer *writer, int round)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(round % 2, &set);
	sched_setaffinity(writer->tid, sizeof(set), &set);
}

static void abort_others(const struct writer *writer, int round)
{
	(void)writer;
	(void)round;
	gdri_core_gate_drain(&gate, gdri_core_table_slots());
}

static void stored_once_under_signals(void)
{
	need_sequences();
	gap_before_store = 10;
	disturb(send_signal);
	gap_before_store = 0;
}

static void stored_once_while_moving(void)
{
	cpu_set_t set;

	need_sequences();
	sched_getaffinity(0, sizeof(set), &set);
	if (!CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
		SKIP("the program may not use CPUs 0 and 1");
	gap_before_store = 10;
	disturb(move_thread);
	gap_before_store = 0;
}

static void stored_once_under_membarrier(void)
{
	need_sequences();
	gap_before_store = 10;
	disturb(abort_others);
	gap_before_store = 0;
}

/* The rule that "stored once" rests on: behind the store the sequence is over. */
static void check_shape(const struct gdri_rseq_word *word, const char *code, size_t length)
{
	const char *end = (const char *)(uintptr_t)(word->start + word->length);
	const char *abort = (const char *)(uintptr_t)word->abort;

	CHECK(memcmp(end - length, code, length) == 0);
	CHECK(memcmp(end, "\x0f\xae\xf8", 3) == 0);	/* sfence */
	CHECK(abort > end);
	CHECK(memcmp(abort - 4, "\x53\x30\x05\x53", 4) == 0);
	CHECK_EQ(word->version, 0);
	CHECK_EQ(word->flags, 0);
}

static void store_ends_the_sequence(void)
{
	struct gdri_rseq rseq;

	gdri_core_rseq_init(&rseq, 0);
	check_shape(&rseq.word[0], "\x44\x88\x16", 3);
	check_shape(&rseq.word[1], "\x66\x44\x89\x16", 4);
	check_shape(&rseq.word[2], "\x44\x89\x16", 3);
	check_shape(&rseq.word[3], "\x4c\x89\x16", 3);
}

/* Each size stores its bytes and no others. */
static void sizes(void)
{
	static gdri_rseq_store_fn *const functions[] = {
		gdri_core_rseq_store8, gdri_core_rseq_store16, gdri_core_rseq_store32,
		gdri_core_rseq_store64
	};
	const unsigned char host[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	unsigned char expected[32] = { 0 };
	unsigned char *page;
	uint64_t key;

	need_sequences();
	page = map_page(NULL);
	gdri_gate_open(&gate, GENERATION);
	REQUIRE(gdri_gate_peek(&gate, GENERATION, &key));
	for (size_t i = 0; i < 4; i++) {
		const size_t size = (size_t)1 << i;
		int rc = EINVAL;

		memcpy(expected + 8 * i, host + 1, size);
		for (int tries = 0; tries < 100 && rc != 0; tries++)
			rc = functions[i](0, page + 8 * i, host + 1, size, &gate.key, key);
		CHECK_EQ(rc, 0);
	}
	CHECK(memcmp(page, expected, sizeof(expected)) == 0);
	gdri_gate_close(&gate, GENERATION);
	CHECK_EQ(functions[3](0, page, host, 8, &gate.key, key), EINVAL);
	CHECK(memcmp(page, expected, sizeof(expected)) == 0);
	munmap(page, PAGE);
}

static bool is_off(const struct gdri_rseq *rseq)
{
	bool off = true;

	for (int i = 0; i < 4; i++)
		off &= rseq->word[i].area == 0;
	return off;
}

static void kernels_that_lack_a_part(void)
{
	const long all = GDRI_OS_MEMBARRIER_FENCE | GDRI_OS_MEMBARRIER_FENCE_REGISTER |
			 GDRI_OS_MEMBARRIER_RSEQ | GDRI_OS_MEMBARRIER_RSEQ_REGISTER;
	struct gdri_rseq rseq;

	gdri_core_rseq_init(&rseq, -1);
	CHECK(is_off(&rseq));
	gdri_core_rseq_init(&rseq, 0);
	CHECK(is_off(&rseq));
	gdri_core_rseq_init(&rseq, all & ~GDRI_OS_MEMBARRIER_RSEQ);
	CHECK(is_off(&rseq));
	gdri_core_rseq_init(&rseq, all & ~GDRI_OS_MEMBARRIER_FENCE);
	CHECK(is_off(&rseq));
	CHECK(gdri_core_rseq_abort_all(&rseq));
	gdri_core_rseq_init(&rseq, all);
	CHECK(is_off(&rseq) == !(&__rseq_size && __rseq_size));
}

/* From here on membarrier is refused, contrary to what QUERY said. */
static void forbid_membarrier(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
		_exit(77);
}

static void refuse_and_drain(void *arg)
{
	struct gdri_gate_slots *slots = gdri_core_table_slots();
	const uint64_t value = 1;

	(void)arg;
	CHECK(!is_off(&slots->rseq));
	forbid_membarrier();
	gdri_gate_open(&gate, GENERATION);
	gdri_gate_close(&gate, GENERATION);
	gdri_core_gate_drain(&gate, slots);
	CHECK(is_off(&slots->rseq));
	CHECK(slots->fence_copies);
	gdri_gate_open(&gate, GENERATION);
	CHECK_EQ(store(&value), EINVAL);
}

static void kernel_that_takes_its_word_back(void)
{
	int status;

	need_sequences();
	atomic_store(&window, map_page(NULL));
	status = harness_fork(refuse_and_drain, NULL);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP("this kernel takes no seccomp filter");
	CHECK_EQ(status, 0);
	munmap(atomic_load(&window), PAGE);
}

static void *store_unregistered(void *arg)
{
	const uint64_t value = 1;
	int *rc = arg;

	/* Kernels differ in the size that was registered: glibc's is 32. */
	if (syscall(SYS_rseq, rseq_area(), 32, 1, 0x53053053) != 0)
		*rc = -errno;
	else
		*rc = store(&value);
	return NULL;
}

static void thread_without_registration(void)
{
	pthread_t thread;
	int rc = 0;

	need_sequences();
	atomic_store(&window, map_page(NULL));
	gdri_gate_open(&gate, GENERATION);
	REQUIRE_EQ(pthread_create(&thread, NULL, store_unregistered, &rc), 0);
	pthread_join(thread, NULL);
	gdri_gate_close(&gate, GENERATION);
	if (rc < 0)
		SKIP("this thread's registration cannot be taken back (%d)", rc);
	CHECK_EQ(rc, EINVAL);
	CHECK_EQ(*(uint64_t *)atomic_load(&window), 0);
	munmap(atomic_load(&window), PAGE);
}

static const struct harness_case cases[] = {
	{ "store_ends_the_sequence", store_ends_the_sequence },
	{ "sizes", sizes },
	{ "drain_aborts_running_sequences", drain_aborts_running_sequences },
	{ "interrupted_thread_knows_it", interrupted_thread_knows_it },
	{ "each_opening_has_its_key", each_opening_has_its_key },
	{ "no_stray_store_without_gaps", no_stray_store_without_gaps },
	{ "stored_once_under_signals", stored_once_under_signals },
	{ "stored_once_while_moving", stored_once_while_moving },
	{ "stored_once_under_membarrier", stored_once_under_membarrier },
	{ "kernels_that_lack_a_part", kernels_that_lack_a_part },
	{ "kernel_that_takes_its_word_back", kernel_that_takes_its_word_back },
	{ "thread_without_registration", thread_without_registration },
};

#else

static void not_in_this_build(void)
{
	SKIP("this build or machine has no restartable sequences");
}

static const struct harness_case cases[] = {
	{ "not_in_this_build", not_in_this_build },
};

#endif

HARNESS_MAIN(cases)
