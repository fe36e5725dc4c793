/* SPDX-License-Identifier: MIT */
/*
 * Judges every access of the copy routines to a mapping by faults, so that it
 * reaches instructions that no tracer knows (AVX-512, MOVDIR64B).
 *
 * The range that stands in for a mapping is inaccessible.  An access faults;
 * the handler notes its address and reads its size off the instruction, lets
 * it through under the trap flag, and closes the range again.  For stores the
 * bytes that changed must be just those.
 */
#include "harness.h"

#if defined(__x86_64__)

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "helper_judge.h"

#define PAGE ((uintptr_t)4096)
#define TRAP_FLAG 0x100
#define FAULT_IS_STORE 0x2	/* of the page fault's error code */
#define BACKGROUND 0		/* what the range holds before each store */
#define HOST_BYTE 0x5a		/* what is stored */

/* One program, one thread: what the handlers work on. */
static struct {
	struct judge judge;
	char *closed;		/* the range as the routines see it */
	char *open;		/* the same memory, always accessible */
	uintptr_t address;	/* of the access that is under way */
	size_t size;
	bool store;
	unsigned long unknown;	/* instructions that access_size() does not know */
	unsigned long disagreed;	/* stores that changed other bytes than it says */
} scene;

/* REX.W makes 8 bytes of what is 4, a prefix 0x66 makes it 2. */
static size_t word_size(const unsigned char *code)
{
	size_t size = 4;

	if (*code == 0x66) {
		size = 2;
		code++;
	}
	if ((*code & 0xf0) == 0x40) {
		if (*code & 8)
			size = 8;
		code++;
	}
	if (code[0] == 0x88 || code[0] == 0x8a || code[0] == 0xc6)
		return 1;
	if (code[0] == 0x89 || code[0] == 0x8b || code[0] == 0xc7)
		return size;
	if (code[0] == 0x0f && (code[1] | 0x08) == 0xbe)
		return 1;	/* movzx, movsx from a byte */
	if (code[0] == 0x0f && (code[1] | 0x08) == 0xbf)
		return 2;
	return 0;
}

/*
 * Bytes that the mov at code moves to or from memory, 0 for an unknown one:
 * EVEX and VEX tell the vector's length, SSE moves 16 by itself.
 */
static size_t access_size(const unsigned char *code)
{
	const unsigned char *opcode = code;

	if (code[0] == 0x62)
		return (size_t)16 << (code[3] >> 5 & 3);
	if (code[0] == 0xc4)
		return code[2] & 4 ? 32 : 16;
	if (code[0] == 0xc5)
		return code[1] & 4 ? 32 : 16;
	if (*opcode == 0x66 || *opcode == 0xf3)
		opcode++;
	if ((*opcode & 0xf0) == 0x40)
		opcode++;
	if (opcode[0] == 0x0f && opcode[1] == 0x38 && opcode[2] == 0xf8)
		return 64;	/* movdir64b */
	if (opcode[0] == 0x0f && opcode[1] == 0x38 && opcode[2] == 0x2a)
		return 16;	/* movntdqa */
	if (opcode[0] == 0x0f && strchr("\x11\x28\x29\x10\x6f\x7f\xe7", opcode[1]))
		return 16;	/* movups, movaps, movdqa, movdqu, movntdq */
	return word_size(code);
}

/* The pages of the access that is under way. */
static void protect_pages(int protection)
{
	uintptr_t first = scene.address / PAGE * PAGE;
	uintptr_t last = (scene.address + (scene.size ? scene.size - 1 : 0)) / PAGE * PAGE;

	mprotect((void *)first, last - first + PAGE, protection);
}

/* An access in the range begins: let it through, and come back after it. */
static void on_fault(int number, siginfo_t *info, void *context)
{
	ucontext_t *state = context;
	greg_t *registers = state->uc_mcontext.gregs;

	scene.address = (uintptr_t)info->si_addr;
	if (scene.address - (uintptr_t)scene.closed >= scene.judge.length) {
		signal(number, SIG_DFL);	/* a real crash: let it happen */
		return;
	}
	scene.store = registers[REG_ERR] & FAULT_IS_STORE;
	scene.size = access_size((const unsigned char *)registers[REG_RIP]);
	if (scene.size == 0)
		scene.unknown++;
	protect_pages(PROT_READ | PROT_WRITE);
	registers[REG_EFL] |= TRAP_FLAG;
}

/* What was stored must be the access and nothing around it; then it is wiped out. */
static void check_stored(void)
{
	size_t offset = scene.address - (uintptr_t)scene.closed;
	char *at = scene.open + offset;

	for (size_t i = 0; i < scene.size; i++)
		if (at[i] != HOST_BYTE)
			scene.disagreed++;
	if (at[-1] != BACKGROUND || at[scene.size] != BACKGROUND)
		scene.disagreed++;
	memset(at - 64, BACKGROUND, 192);
}

/* The access is done. */
static void on_step(int number, siginfo_t *info, void *context)
{
	ucontext_t *state = context;

	(void)number;
	(void)info;
	state->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	protect_pages(PROT_NONE);
	judge_access(&scene.judge, scene.store, scene.address, scene.size ? scene.size : 1);
	if (scene.store && scene.judge.store)
		check_stored();
}

static void set_scene(bool store, size_t widest, size_t max_size, size_t max_power)
{
	int memory;

	memset(&scene, 0, sizeof(scene));
	judge_plan(&scene.judge, max_size, max_power);
	scene.judge.store = store;
	scene.judge.widest = widest;
	memory = memfd_create("mapping", MFD_CLOEXEC);
	REQUIRE(memory >= 0);
	REQUIRE_EQ(ftruncate(memory, (off_t)scene.judge.length), 0);
	scene.closed = mmap(NULL, scene.judge.length, PROT_NONE, MAP_SHARED, memory, 0);
	scene.open = mmap(NULL, scene.judge.length, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	REQUIRE(scene.closed != MAP_FAILED && scene.open != MAP_FAILED);
	close(memory);
	scene.judge.base = (uintptr_t)scene.closed;
}

static void clear_scene(void)
{
	munmap(scene.closed, scene.judge.length);
	munmap(scene.open, scene.judge.length);
	judge_free(&scene.judge);
}

/* Runs all copies of the plan under the handlers. */
static void run_scene(gdri_copy_fn copy)
{
	struct sigaction on_segv = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
	struct sigaction on_trap = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	struct sigaction old_segv, old_trap;
	size_t host_size = judge_host_size(&scene.judge);
	char *host = malloc(host_size);

	REQUIRE(host != NULL);
	memset(host, HOST_BYTE, host_size);
	sigaction(SIGSEGV, &on_segv, &old_segv);
	sigaction(SIGTRAP, &on_trap, &old_trap);
	judge_run(&scene.judge, copy, scene.closed, host);
	sigaction(SIGSEGV, &old_segv, NULL);
	sigaction(SIGTRAP, &old_trap, NULL);
	free(host);
}

static void require_signals(void)
{
	const char *preload = getenv("LD_PRELOAD");

	if (preload && strstr(preload, "vgpreload"))
		SKIP("valgrind does not single-step");
#if defined(__SANITIZE_THREAD__)
	SKIP("the thread sanitizer delays signals");
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
	SKIP("the thread sanitizer delays signals");
#endif
#endif
}

/* trace.c covers all sizes where it can; each access costs two signals here. */
#define SIZES_IN_BRIEF 80
#define SIZES_IN_FULL 300

static void check_routine(const char *routine, size_t widest, size_t max_size)
{
	require_signals();
	for (int store = 0; store < 2; store++) {
		gdri_copy_fn copy = judge_find_routine(routine, store);

		if (!copy)
			SKIP("this CPU cannot run it");
		set_scene(store, widest, max_size, 8 << 10);
		run_scene(copy);
		CHECK_EQ(judge_finish(&scene.judge, routine), 0);
		CHECK_EQ(scene.unknown, 0);
		CHECK_EQ(scene.disagreed, 0);
		clear_scene();
	}
}

static void device_type(void)
{
	check_routine("device", 8, SIZES_IN_BRIEF);
}

static void caching_type(void)
{
	check_routine("caching", 64, SIZES_IN_BRIEF);
}

/* A judge that catches nothing proves nothing. */
static void planted_routines_are_caught(void)
{
	require_signals();
	for (unsigned i = 0; i < judge_planted_count; i++) {
		for (int store = 0; store < 2; store++) {
			set_scene(store, 8, 16, 0);
			run_scene(judge_planted[i].copy);
			CHECK(judge_finish(&scene.judge, judge_planted[i].name) > 0);
			CHECK(scene.judge.faults[judge_planted[i].fault] > 0);
			CHECK_EQ(scene.unknown, 0);
			clear_scene();
		}
	}
}

#define ROUTINE(name, max_size)                               \
	static void routine_##name(void)                      \
	{                                                     \
		check_routine(#name, 64, max_size);           \
	}
#define ROUTINE_CASE(name) { #name, routine_##name }

ROUTINE(plain, SIZES_IN_BRIEF)
ROUTINE(sse2, SIZES_IN_BRIEF)
ROUTINE(sse41, SIZES_IN_BRIEF)
ROUTINE(avx, SIZES_IN_BRIEF)
ROUTINE(avx2, SIZES_IN_BRIEF)
ROUTINE(avx512, SIZES_IN_FULL)
ROUTINE(movdir64b, SIZES_IN_FULL)

static const struct harness_case cases[] = {
	ROUTINE_CASE(plain),
	ROUTINE_CASE(sse2),
	ROUTINE_CASE(sse41),
	ROUTINE_CASE(avx),
	ROUTINE_CASE(avx2),
	ROUTINE_CASE(avx512),
	ROUTINE_CASE(movdir64b),
	{ "device_type", device_type },
	{ "caching_type", caching_type },
	{ "planted_routines_are_caught", planted_routines_are_caught },
};

#else

static void every_access(void)
{
	SKIP("it reads x86-64 instructions");
}

static const struct harness_case cases[] = {
	{ "every_access", every_access },
};

#endif

HARNESS_MAIN(cases)
