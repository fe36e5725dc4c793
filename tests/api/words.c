/* SPDX-License-Identifier: MIT */
/*
 * Copies of one word, which take a way of their own where kernel and glibc have
 * restartable sequences: that they take it, that they do without it, and that
 * none of them stores where the mapping was and something else is by now.
 */
#include "api/helper_case.h"
#include "api/helper_gpu.h"
#include "api/helper_thread.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

/* Of linux/membarrier.h and sys/rseq.h, which old distributions lack. */
#define MEMBARRIER_RSEQ (1 << 7)
#define SIGNATURE 0x53053053
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

#if defined(__SANITIZE_THREAD__)
#define HAS_WAY 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAS_WAY 0
#endif
#endif
#if !defined(HAS_WAY) && defined(__x86_64__)
#define HAS_WAY 1
#endif

#if defined(HAS_WAY) && HAS_WAY
/* struct rseq of this thread; NULL: none is registered. */
static char *rseq_area(void)
{
	char *thread;

	__asm__("mov %%fs:0, %0" : "=r"(thread));
	if (!&__rseq_offset || !&__rseq_size || __rseq_size == 0 ||
	    *(int32_t *)(thread + __rseq_offset + 4) < 0)
		return NULL;
	return thread + __rseq_offset;
}
#else
static char *rseq_area(void)
{
	return NULL;
}
#endif

static bool has_sequences(void)
{
	const long offered = syscall(SYS_membarrier, 0, 0, 0);

	return rseq_area() && offered > 0 && (offered & MEMBARRIER_RSEQ);
}

static void need_sequences(void)
{
	if (!has_sequences())
		SKIP("no restartable sequences here");
}

/*
 * Whether this copy went through a sequence: it leaves its description in the
 * thread's struct rseq, until the kernel next interrupts the thread.
 */
static bool leaves_trace(const struct gpu_mapping *mapping, size_t offset, size_t size)
{
	volatile uint64_t *description = (uint64_t *)(rseq_area() + 8);
	const unsigned char host[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };

	*description = 0;
	CHECK_EQ(gdr_copy_to_mapping(mapping->handle, mapping->va + offset, host, size), 0);
	return *description != 0;
}

static int count_traces(const struct gpu_mapping *mapping, size_t offset, size_t size)
{
	int seen = 0;

	for (int i = 0; i < 100; i++)
		seen += leaves_trace(mapping, offset, size);
	return seen;
}

static void words_use_sequences(void)
{
	struct gpu_mapping mapping;

	need_sequences();
	mapping = gpu_map_new(gpu_open(), MIB);
	for (size_t size = 1; size <= 8; size *= 2)
		CHECK(count_traces(&mapping, 64, size) > 50);
	CHECK_EQ(count_traces(&mapping, 65, 4), 0);
	CHECK_EQ(count_traces(&mapping, 64, 3), 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* Their fences would have to be others. */
static void other_types_do_not(void)
{
	struct gpu_mapping mapping;

	need_sequences();
	mapping = gpu_map_new(gpu_open(), MIB);
	CHECK_EQ(count_traces(&mapping, 64, 4), 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static void child_of_fork(void *arg)
{
	const struct gpu_mapping *parents = arg;
	const uint64_t value = 1;
	struct gpu_mapping mapping;

	CHECK_EQ(gdr_copy_to_mapping(parents->handle, parents->va, &value, 8), EACCES);
	mapping = gpu_map_new(gpu_open(), MIB);
	CHECK(count_traces(&mapping, 0, 8) > 50);
	CHECK_EQ(gdr_copy_to_mapping(parents->handle, parents->va, &value, 8), EACCES);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* CUDA works in the child alone, so the parent's handle has to be a bare session's. */
static void child_has_sequences_too(void)
{
	struct gpu_mapping none = { .g = gpu_open() };

	need_sequences();
	none.handle.h = (unsigned long)(uintptr_t)none.g;
	CHECK_EQ(harness_fork(child_of_fork, &none), 0);
	CHECK_EQ(gdr_close(none.g), 0);
}

/*
 * Threads that write words to wherever the mapping is said to be, while it goes,
 * other memory takes its addresses, and it comes back elsewhere.
 */
struct target {
	_Atomic(unsigned long) handle;
	_Atomic(unsigned char *) va;
};

struct writer {
	struct team *team;
	struct target *target;
	size_t offset;
	bool keeps;	/* on writing where the mapping was at first */
	long done, refused, wrong;
};

static void *write_words(void *arg)
{
	struct writer *writer = arg;
	unsigned char *va = atomic_load(&writer->target->va);
	const uint64_t value = UINT64_MAX;

	for (unsigned i = 0; !atomic_load_explicit(&writer->team->stop, memory_order_relaxed); i++) {
		const gdr_mh_t handle = { atomic_load(&writer->target->handle) };
		const size_t size = (size_t)1 << i % 4;
		int rc;

		if (!writer->keeps || i % 64 == 0)
			va = atomic_load(&writer->target->va);
		rc = gdr_copy_to_mapping(handle, va + writer->offset, &value, size);
		writer->done += rc == 0;
		writer->refused += rc == EINVAL;
		writer->wrong += rc != 0 && rc != EINVAL;
	}
	return NULL;
}

static int take_by_unmap(struct gpu_mapping *mapping)
{
	return gdr_unmap(mapping->g, mapping->handle, mapping->va, mapping->buffer.size);
}

static void give_by_map(struct gpu_mapping *mapping)
{
	mapping->va = gpu_map(mapping->g, mapping->handle, mapping->buffer.size);
}

static int take_by_unpin(struct gpu_mapping *mapping)
{
	return gdr_unpin_buffer(mapping->g, mapping->handle);
}

static void give_by_pin(struct gpu_mapping *mapping)
{
	mapping->handle = gpu_pin(mapping->g, mapping->buffer.ptr, mapping->buffer.size);
	give_by_map(mapping);
}

static int take_by_close(struct gpu_mapping *mapping)
{
	return gdr_close(mapping->g);
}

static void give_by_open(struct gpu_mapping *mapping)
{
	mapping->g = gpu_open();
	give_by_pin(mapping);
}

/* Something else of the program's, at the addresses that just came free. */
static unsigned char *lay_canary(unsigned char *at)
{
	unsigned char *canary = mmap(at, GPU_PAGE_SIZE, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	return canary == MAP_FAILED ? NULL : canary;
}

static int count_hits(const unsigned char *canary)
{
	int hits = 0;

	for (size_t i = 0; i < GPU_PAGE_SIZE; i += 8)
		hits += *(const volatile uint64_t *)(canary + i) != 0;
	return hits;
}

static void race(int (*take)(struct gpu_mapping *mapping),
		 void (*give)(struct gpu_mapping *mapping))
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), GPU_PAGE_SIZE);
	struct target target = { mapping.handle.h, mapping.va };
	struct writer writers[3];
	int hits = 0, laid = 0;
	struct team team;

	for (int i = 0; i < 3; i++)
		writers[i] = (struct writer){ &team, &target, (size_t)i * 4096, i > 0, 0, 0, 0 };
	team_start(&team, 3, write_words, writers, sizeof(writers[0]));
	for (int i = 0; i < api_rounds(3000); i++) {
		unsigned char *canary, *old = mapping.va;

		CHECK_EQ(take(&mapping), 0);
		canary = lay_canary(old);
		laid += canary != NULL;
		give(&mapping);
		atomic_store(&target.handle, mapping.handle.h);
		atomic_store(&target.va, mapping.va);
		thread_nap(i % 4 * 30);
		if (canary) {
			hits += count_hits(canary);
			munmap(canary, GPU_PAGE_SIZE);
		}
	}
	thread_nap(20000);
	team_join(&team);
	CHECK(laid > 0);
	CHECK_EQ(hits, 0);
	for (int i = 0; i < 3; i++) {
		CHECK(writers[i].done > 0);
		CHECK_EQ(writers[i].wrong, 0);
	}
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

static void words_against_unmap(void)
{
	race(take_by_unmap, give_by_map);
}

static void words_against_unpin(void)
{
	race(take_by_unpin, give_by_pin);
}

static void words_against_close(void)
{
	race(take_by_close, give_by_open);
}

/* Interrupted all the time, by handlers that copy words themselves, and moved about. */
static const struct gpu_mapping *storm_mapping;
static _Atomic int storm_failures;

static void copy_in_handler(int number)
{
	const uint32_t value = 5;

	(void)number;
	if (gdr_copy_to_mapping(storm_mapping->handle, storm_mapping->va + 128, &value, 4) != 0)
		storm_failures++;
}

struct victim {
	struct team *team;
	_Atomic pid_t tid;
	long done, wrong;
};

static void *write_and_compare(void *arg)
{
	volatile uint64_t *word = (uint64_t *)storm_mapping->va;
	struct victim *victim = arg;

	atomic_store(&victim->tid, (pid_t)syscall(SYS_gettid));
	for (uint64_t value = 1; !atomic_load(&victim->team->stop); value++) {
		victim->wrong += gdr_copy_to_mapping(storm_mapping->handle, storm_mapping->va,
						     &value, 8) != 0;
		victim->wrong += *word != value;
		victim->done++;
	}
	return NULL;
}

static void words_in_a_storm(void)
{
	struct sigaction action = { .sa_handler = copy_in_handler };
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	struct victim victim = { .tid = 0 };
	cpu_set_t all, one;
	struct team team;

	storm_mapping = &mapping;
	victim.team = &team;
	sigaction(SIGUSR1, &action, NULL);
	sched_getaffinity(0, sizeof(all), &all);
	team_start(&team, 1, write_and_compare, &victim, 0);
	while (!atomic_load(&victim.tid))
		thread_nap(10);
	for (int i = 0; i < api_rounds(20000); i++) {
		pthread_kill(team.thread[0], SIGUSR1);
		CPU_ZERO(&one);
		CPU_SET(i % 2, &one);
		if (sched_setaffinity(victim.tid, sizeof(one), &one) != 0)
			sched_setaffinity(victim.tid, sizeof(all), &all);
		if (i % 16 == 0)
			thread_nap(50);
	}
	team_join(&team);
	CHECK(victim.done > 0);
	CHECK_EQ(victim.wrong, 0);
	CHECK_EQ(storm_failures, 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* A thread that leaves its copies by siglongjmp, again and again, holds up nobody. */
static sigjmp_buf way_out;
static _Atomic int jumps;

static void jump_out(int number)
{
	(void)number;
	siglongjmp(way_out, 1);
}

static void *copy_until_thrown_out(void *arg)
{
	struct team *team = arg;
	const uint64_t value = 1;

	while (!atomic_load(&team->stop)) {
		if (sigsetjmp(way_out, 1) == 0)
			while (!atomic_load_explicit(&team->stop, memory_order_relaxed))
				gdr_copy_to_mapping(storm_mapping->handle, storm_mapping->va,
						    &value, 8);
		jumps++;
	}
	return NULL;
}

static void thrown_out_of_copies(void)
{
	struct sigaction action = { .sa_handler = jump_out };
	struct gpu_mapping mapping;
	struct team team;

	need_sequences();
	if (api_is_sanitized())
		SKIP("jumps confuse the sanitizer");
	mapping = gpu_map_new(gpu_open(), MIB);
	storm_mapping = &mapping;
	alarm(60);
	sigaction(SIGUSR1, &action, NULL);
	/* The jumps need a place to go to. */
	if (sigsetjmp(way_out, 1) == 0)
		team_start(&team, 1, copy_until_thrown_out, &team, 0);
	thread_nap(10000);
	for (int i = 0; i < 2000; i++) {
		const int before = jumps;

		pthread_kill(team.thread[0], SIGUSR1);
		for (int wait = 0; wait < 1000 && jumps == before; wait++)
			thread_nap(20);
		if (i % 20 != 0)
			continue;
		CHECK_EQ(take_by_unmap(&mapping), 0);
		give_by_map(&mapping);
		/* Who found it unmapped takes the general way, which does hold up others. */
		thread_nap(200);
	}
	team_join(&team);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* Everything that the way rests on, taken away one by one. */
static void check_life_without(void)
{
	struct gpu_mapping mapping = gpu_map_new(gpu_open(), MIB);
	const uint64_t value = 0x0102030405060708;
	uint64_t seen = 0;

	if (rseq_area())
		CHECK_EQ(count_traces(&mapping, 0, 8), 0);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va, &value, 8), 0);
	gpu_read(&seen, mapping.buffer.ptr, 8);
	CHECK_EQ(seen, value);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_copy_to_mapping(mapping.handle, mapping.va, &value, 8), EINVAL);
	CHECK_EQ(gdr_close(mapping.g), 0);
}

/* In the process that forbidden_by_tunable starts, and where there are none anyway. */
static void life_without(void)
{
	if (has_sequences())
		SKIP("run by forbidden_by_tunable");
	check_life_without();
	words_against_unmap();
}

static void forbidden_by_tunable(void)
{
	int status = 0;
	pid_t child;

	need_sequences();
	fflush(NULL);
	child = fork();
	if (child == 0) {
		setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execl("/proc/self/exe", "words", "life_without", (char *)NULL);
		_exit(98);
	}
	REQUIRE_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void *unregister(void *arg)
{
	int *rc = arg;

	*rc = syscall(SYS_rseq, rseq_area(), 32, 1, SIGNATURE) == 0 ? 0 : errno;
	if (*rc == 0)
		check_life_without();
	return NULL;
}

static void thread_without_registration(void)
{
	int rc = 0;

	need_sequences();
	gpu_start();
	thread_run(unregister, &rc);
	if (rc != 0)
		SKIP("a thread's registration cannot be taken back (%d)", rc);
}

/* Answers QUERY as a kernel before 5.10 does, the rest by the real one's refusal. */
static void answer_as_old_kernel(int number, siginfo_t *info, void *context)
{
	ucontext_t *interrupted = context;

	(void)number;
	(void)info;
#if defined(__x86_64__)
	interrupted->uc_mcontext.gregs[REG_RAX] =
		interrupted->uc_mcontext.gregs[REG_RDI] == 0 ? 0x7f : -ENOSYS;
#else
	(void)interrupted;
#endif
}

static void filter_membarrier(uint32_t action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		SKIP("no seccomp filters here");
}

static void kernel_before_5_10(void)
{
	struct sigaction action = { .sa_sigaction = answer_as_old_kernel,
				    .sa_flags = SA_SIGINFO };

	need_sequences();
	sigaction(SIGSYS, &action, NULL);
	filter_membarrier(SECCOMP_RET_TRAP);
	check_life_without();
}

static void kernel_without_membarrier(void)
{
	need_sequences();
	filter_membarrier(SECCOMP_RET_ERRNO | ENOSYS);
	check_life_without();
	words_against_unmap();
}

/* The library has looked already, and copies take the way. */
static void membarrier_forbidden_later(void)
{
	struct gpu_mapping mapping;

	need_sequences();
	mapping = gpu_map_new(gpu_open(), MIB);
	CHECK(count_traces(&mapping, 0, 8) > 50);
	filter_membarrier(SECCOMP_RET_ERRNO | EPERM);
	CHECK_EQ(take_by_unmap(&mapping), 0);
	give_by_map(&mapping);
	CHECK_EQ(count_traces(&mapping, 0, 8), 0);
	gpu_unmap(mapping);
	CHECK_EQ(gdr_close(mapping.g), 0);
	words_against_unmap();
}

#define NO_DMA "GDRCOPY_DMA=0"

static const struct api_case cases[] = {
	{ "words_use_sequences", words_use_sequences, NULL },
	{ "other_types_do_not", other_types_do_not, "GDRCOPY_EMU=wc=0" },
	{ "other_types_do_not_cached", other_types_do_not, "GDRCOPY_EMU=coherent" },
	{ "child_has_sequences_too", child_has_sequences_too, NULL },
	{ "words_against_unmap", words_against_unmap, NO_DMA },
	{ "words_against_unpin", words_against_unpin, NO_DMA },
	{ "words_against_close", words_against_close, NO_DMA },
	{ "words_in_a_storm", words_in_a_storm, NULL },
	{ "thrown_out_of_copies", thrown_out_of_copies, NO_DMA },
	{ "life_without", life_without, NO_DMA },
	{ "forbidden_by_tunable", forbidden_by_tunable, NO_DMA },
	{ "thread_without_registration", thread_without_registration, NULL },
	{ "kernel_before_5_10", kernel_before_5_10, NULL },
	{ "kernel_without_membarrier", kernel_without_membarrier, NO_DMA },
	{ "membarrier_forbidden_later", membarrier_forbidden_later, NO_DMA },
};

API_MAIN(cases)
