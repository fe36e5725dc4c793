/* SPDX-License-Identifier: MIT */
/* The restartable sequences, and how those of other threads are aborted. */
#include "core/rseq.h"

#include <link.h>
#include <stddef.h>

#include "copy/cpu/fence.h"
#include "core/handle.h"
#include "os/membarrier.h"

#if GDRI_CORE_RSEQ

/*
 * What glibc registers with the kernel for each thread (2.35 and later; absent
 * otherwise).  The size is 0 where it does not, GLIBC_TUNABLES=glibc.pthread.rseq=0
 * for one.
 */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* Tests widen the gaps before the sequence and before its store. */
#ifndef GDRI_RSEQ_BEFORE_START
#define GDRI_RSEQ_BEFORE_START ""
#endif
#ifndef GDRI_RSEQ_BEFORE_STORE
#define GDRI_RSEQ_BEFORE_STORE ""
#endif

/*
 * Arguments: rdi handle, rsi device, rdx host, rcx size, r8 key_at, r9 key.  rcx
 * becomes the address of the struct gdri_rseq_word.  struct rseq lies at
 * %fs:(%rax): cpu_id at 4, negative in a thread that is not registered; rseq_cs at 8.
 *
 * The kernel clears rseq_cs when it interrupts a thread outside its sequence,
 * so that it still points here can only be believed inside: the second
 * comparison.  The abort address carries glibc's signature in front, dressed
 * as an instruction that traps.
 */
#define DEFINE_STORE(bits, bytes, word, load, store)                                              \
	__asm__(".pushsection .text\n"                                                      \
		"	.p2align 6\n"                                                       \
		"	.globl gdri_core_rseq_store" #bits "\n"                             \
		"	.hidden gdri_core_rseq_store" #bits "\n"                            \
		"	.type gdri_core_rseq_store" #bits ", @function\n"                   \
		"gdri_core_rseq_store" #bits ":\n"                                          \
		"	.cfi_startproc\n"                                                   \
		"	movq gdri_core_view(%rip), %rcx\n"                                  \
		"	movq 24(%rcx), %rcx\n"                                              \
		"	addq $" #word ", %rcx\n"                                            \
		"	movq 32(%rcx), %rax\n"                                              \
		"	testq %rax, %rax\n"                                                 \
		"	je 3f\n"                                                            \
		"	cmpl $0, %fs:4(%rax)\n"                                             \
		"	jl 3f\n"                                                            \
		"	" load "\n"                                                         \
		"	cmpq %rcx, %fs:8(%rax)\n"                                           \
		"	je 1f\n"                                                            \
		"	movq %rcx, %fs:8(%rax)\n"                                           \
		"1:\n"                                                                      \
		GDRI_RSEQ_BEFORE_START                                                      \
		"	.globl gdri_core_rseq_start" #bits "\n"                             \
		"	.hidden gdri_core_rseq_start" #bits "\n"                            \
		"gdri_core_rseq_start" #bits ":\n"                                          \
		"	cmpq %rcx, %fs:8(%rax)\n"                                           \
		"	jne 3f\n"                                                           \
		"	cmpq %r9, (%r8)\n"                                                  \
		"	jne 3f\n"                                                           \
		GDRI_RSEQ_BEFORE_STORE                                                      \
		"	" store "\n"                                                        \
		"	.globl gdri_core_rseq_end" #bits "\n"                               \
		"	.hidden gdri_core_rseq_end" #bits "\n"                              \
		"gdri_core_rseq_end" #bits ":\n"                                            \
		"	" GDRI_FENCE_STORES_POSTED "\n"                                     \
		"	xorl %eax, %eax\n"                                                  \
		"	ret\n"                                                              \
		"	.byte 0x0f, 0xb9, 0x3d\n"                                           \
		"	.long 0x53053053\n"                                                 \
		"	.globl gdri_core_rseq_abort" #bits "\n"                             \
		"	.hidden gdri_core_rseq_abort" #bits "\n"                            \
		"gdri_core_rseq_abort" #bits ":\n"                                          \
		"3:	movl $" #bytes ", %ecx\n"                                           \
		"	jmp gdri_core_region_copy_announced\n"                              \
		"	.cfi_endproc\n"                                                     \
		"	.size gdri_core_rseq_store" #bits ", . - gdri_core_rseq_store" #bits "\n" \
		".popsection\n");                                                           \
	extern const char gdri_core_rseq_start##bits[] __attribute__((visibility("hidden"))); \
	extern const char gdri_core_rseq_end##bits[] __attribute__((visibility("hidden"))); \
	extern const char gdri_core_rseq_abort##bits[] __attribute__((visibility("hidden")))

DEFINE_STORE(8, 1, 64, "movzbl (%rdx), %r10d", "movb %r10b, (%rsi)");
DEFINE_STORE(16, 2, 128, "movzwl (%rdx), %r10d", "movw %r10w, (%rsi)");
DEFINE_STORE(32, 4, 192, "movl (%rdx), %r10d", "movl %r10d, (%rsi)");
DEFINE_STORE(64, 8, 256, "movq (%rdx), %r10", "movq %r10, (%rsi)");

_Static_assert(offsetof(struct gdri_table_view, slots) == 24, "as the sequences load it");
_Static_assert(offsetof(struct gdri_gate_slots, rseq) == 64, "as the sequences load it");
_Static_assert(sizeof(struct gdri_rseq_word) == 64, "as the sequences load it");
_Static_assert(offsetof(struct gdri_rseq_word, area) == 32, "as the sequences load it");
_Static_assert(offsetof(struct gdri_rseq_word, start) == 8, "struct rseq_cs");
_Static_assert(offsetof(struct gdri_rseq_word, length) == 16, "struct rseq_cs");
_Static_assert(offsetof(struct gdri_rseq_word, abort) == 24, "struct rseq_cs");

/*
 * The kernel reads a sequence's description, and the word in front of its abort
 * address, when it next interrupts a thread that ran the sequence, perhaps much
 * later.  So the code has to stay: that of the shared library does (-z nodelete),
 * as does a program; an object that dlopen brought in with the static library
 * in it may go.
 */
static int check_object(struct dl_phdr_info *object, size_t size, void *stays)
{
	const uintptr_t code = (uintptr_t)gdri_core_rseq_start8 - object->dlpi_addr;
	const ElfW(Dyn) *entry = NULL;
	bool is_ours = false;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &object->dlpi_phdr[i];

		if (header->p_type == PT_LOAD)
			is_ours |= code - header->p_vaddr < header->p_memsz;
		if (header->p_type == PT_DYNAMIC)
			entry = (const void *)(object->dlpi_addr + header->p_vaddr);
	}
	if (!is_ours)
		return 0;
	*(bool *)stays = object->dlpi_name[0] == '\0';
	for (; entry && entry->d_tag != DT_NULL; entry++)
		if (entry->d_tag == DT_FLAGS_1 && entry->d_un.d_val & DF_1_NODELETE)
			*(bool *)stays = true;
	return 1;
}

static bool code_stays(void)
{
	bool stays = false;

	dl_iterate_phdr(check_object, &stays);
	return stays;
}

static void fill_word(struct gdri_rseq_word *word, const char *start, const char *end,
		      const char *abort, int64_t area)
{
	word->version = 0;
	word->flags = 0;
	word->start = (uintptr_t)start;
	word->length = (uint64_t)(end - start);
	word->abort = (uintptr_t)abort;
	atomic_store_explicit(&word->area, area, memory_order_relaxed);
}

void gdri_core_rseq_init(struct gdri_rseq *rseq, long offered)
{
	const long needed = GDRI_OS_MEMBARRIER_FENCE | GDRI_OS_MEMBARRIER_RSEQ;
	const bool usable = offered > 0 && (offered & needed) == needed && &__rseq_offset &&
			    &__rseq_size && __rseq_size != 0 && code_stays();
	const int64_t area = usable ? __rseq_offset : 0;

	fill_word(&rseq->word[0], gdri_core_rseq_start8, gdri_core_rseq_end8,
		  gdri_core_rseq_abort8, area);
	fill_word(&rseq->word[1], gdri_core_rseq_start16, gdri_core_rseq_end16,
		  gdri_core_rseq_abort16, area);
	fill_word(&rseq->word[2], gdri_core_rseq_start32, gdri_core_rseq_end32,
		  gdri_core_rseq_abort32, area);
	fill_word(&rseq->word[3], gdri_core_rseq_start64, gdri_core_rseq_end64,
		  gdri_core_rseq_abort64, area);
}

static bool is_in_use(const struct gdri_rseq *rseq)
{
	return atomic_load_explicit(&rseq->word[0].area, memory_order_relaxed) != 0;
}

/* Registers when it finds that nobody did: that takes the kernel milliseconds, once. */
bool gdri_core_rseq_abort_all(struct gdri_rseq *rseq)
{
	if (!is_in_use(rseq) || gdri_os_membarrier(GDRI_OS_MEMBARRIER_RSEQ) == 0)
		return true;
	if (gdri_os_membarrier(GDRI_OS_MEMBARRIER_RSEQ_REGISTER) == 0 &&
	    gdri_os_membarrier(GDRI_OS_MEMBARRIER_RSEQ) == 0)
		return true;
	for (int i = 0; i < 4; i++)
		atomic_store(&rseq->word[i].area, 0);
	return false;
}

#else

void gdri_core_rseq_init(struct gdri_rseq *rseq, long offered)
{
	(void)rseq;
	(void)offered;
}

bool gdri_core_rseq_abort_all(struct gdri_rseq *rseq)
{
	(void)rseq;
	return true;
}

#endif
