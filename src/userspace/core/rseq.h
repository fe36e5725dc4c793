/* SPDX-License-Identifier: MIT */
/* Stores of one word that a gate lets through without being told of them. */
#ifndef GDRI_CORE_RSEQ_H
#define GDRI_CORE_RSEQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ThreadSanitizer sees nothing of assembly; its builds take the other way. */
#if defined(__x86_64__) && defined(__LP64__) && !defined(__SANITIZE_THREAD__)
#define GDRI_CORE_RSEQ 1
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef GDRI_CORE_RSEQ
#define GDRI_CORE_RSEQ 0
#endif
#endif
#else
#define GDRI_CORE_RSEQ 0
#endif

/*
 * A restartable sequence is a stretch of code of which the kernel knows: a
 * thread that is preempted, moved to another CPU or sent a signal inside it, or
 * told by membarrier(2), goes on at the sequence's abort address instead.  Ours
 * compares a gate's key with the one that the caller saw, and stores the word.
 *
 * Who closes the gate changes the key and then has every running sequence of
 * the process aborted.  A thread whose store was executed before that is
 * through; one whose store was not will never execute it, since the way back
 * to the store leads past the comparison, which now fails.  Nobody is waited
 * for, so a thread that left a copy by siglongjmp holds nobody up either.
 *
 * A store that faults is the exception: a fault that is on its way into the
 * kernel is no sequence any more, and would find the mapping gone.  So words are
 * stored this way only where a mapping's pages are all in the page table
 * (is_populated of struct gdri_mapping; tests/regress/word_faults_beside_unmap.c).
 *
 * The store is the last instruction of the sequence, so an abort finds it not
 * executed, and what ran before it only loaded: the word is stored once or not
 * at all.  After an abort the general way is taken rather than the sequence
 * again, so that a debugger's single steps, each of which aborts, come to an end.
 */
struct gdri_rseq_word {
	/* struct rseq_cs of linux/rseq.h: what the kernel reads. */
	uint32_t version;
	uint32_t flags;
	uint64_t start;
	uint64_t length;	/* from start to behind the store */
	uint64_t abort;
	/* Of struct rseq from the thread pointer; 0: sequences are not to be had. */
	_Atomic int64_t area;
} __attribute__((aligned(64)));

/*
 * One for each size of word, by its binary logarithm.  A thread's struct rseq
 * points at the last one that it used until the kernel next looks, so this
 * memory stays what it is as long as the process lives.
 */
struct gdri_rseq {
	struct gdri_rseq_word word[4];
};

/* offered: the kernel's answer to GDRI_OS_MEMBARRIER_QUERY. */
void gdri_core_rseq_init(struct gdri_rseq *rseq, long offered);

/*
 * Aborts the sequences of all threads.  False when the kernel refuses, contrary
 * to its offer: no sequence begins any more, and those that began before are to
 * be given time.
 */
bool gdri_core_rseq_abort_all(struct gdri_rseq *rseq);

#if GDRI_CORE_RSEQ
/*
 * Stores the word at host to device if *key_at still is key, fences as
 * gdri_fence_stores_posted() does, and answers 0.  Otherwise, and for a thread that
 * cannot have a sequence, a jump to gdri_core_region_copy_announced() with the first
 * four arguments.  size is that of the word; it stands where that function has it.
 *
 * A thread's struct rseq is written only when it does not point at this sequence
 * already: in a row of writes nothing is stored but the words.
 */
typedef int gdri_rseq_store_fn(uint64_t handle, void *device, const void *host, size_t size,
			       const _Atomic uint64_t *key_at, uint64_t key);
gdri_rseq_store_fn gdri_core_rseq_store8, gdri_core_rseq_store16, gdri_core_rseq_store32,
		   gdri_core_rseq_store64;
#endif

#endif
