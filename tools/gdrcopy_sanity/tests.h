/* SPDX-License-Identifier: MIT */
/* The table of all tests. */
#ifndef SANITY_TESTS_H
#define SANITY_TESTS_H

#include "buffers.h"

/* Conditions without which a test is waived. */
enum need {
	NEED_TWO_PROCESSES = 1 << 0,	/* GPU in default compute mode */
	NEED_DESCRIPTOR = 1 << 1,	/* not the dma-buf back end */
	NEED_FORCE_PCIE = 1 << 2,	/* a GPU that has a choice */
	NEED_COHERENT = 1 << 3,		/* a GPU with a coherent CPU link */
	NEED_TOKENS = 1 << 4		/* mappings that do not outlive the memory */
};

enum set {
	SET_CLASSIC,	/* the tests of GDRCopy 2.6 */
	SET_EXTENDED,	/* its extended test */
	SET_PLUS,	/* what this project asserts beyond them */
	SET_COUNT
};

struct test {
	const char *name;
	void (*run)(enum memory memory);
	enum memory memory;
	unsigned needs;
};

/* Each table ends with a test without name. */
extern const struct test *const test_sets[SET_COUNT];

void test_basic(enum memory memory);
void test_basic_v2(enum memory memory);
void test_basic_v2_forcepci(enum memory memory);
void test_basic_with_tokens(enum memory memory);
void test_basic_unaligned_mapping(enum memory memory);
void test_basic_small_buffers_mapping(enum memory memory);
void test_basic_child_thread_pins_buffer(enum memory memory);
void test_data_validation(enum memory memory);
void test_data_validation_v2(enum memory memory);
void test_data_validation_v2_forcepci(enum memory memory);
void test_data_validation_mix_mappings(enum memory memory);
void test_invalidation_access_after_gdr_close(enum memory memory);
void test_invalidation_access_after_free(enum memory memory);
void test_invalidation_two_mappings(enum memory memory);
void test_invalidation_fork_access_after_free(enum memory memory);
void test_invalidation_fork_after_gdr_map(enum memory memory);
void test_invalidation_fork_child_gdr_map_parent(enum memory memory);
void test_invalidation_fork_map_and_free(enum memory memory);
void test_invalidation_unix_sock_shared_fd_gdr_pin_buffer(enum memory memory);
void test_invalidation_unix_sock_shared_fd_gdr_map(enum memory memory);
void test_invalidation_fork_child_gdr_pin_parent_with_tokens(enum memory memory);
void test_attributes_sanity(enum memory memory);
void test_leakage_pin_pages_fork(enum memory memory);

void test_plus_bad_pins(enum memory memory);
void test_plus_bad_maps(enum memory memory);
void test_plus_bad_queries(enum memory memory);
void test_plus_freed_buffer(enum memory memory);
void test_plus_stale_handles(enum memory memory);
void test_plus_invented_handles(enum memory memory);
void test_plus_foreign_handles(enum memory memory);
void test_plus_two_sessions(enum memory memory);
void test_plus_close_releases_all(enum memory memory);
void test_plus_close_at_exit(enum memory memory);
void test_plus_context_untouched(enum memory memory);
void test_plus_quiet(enum memory memory);
void test_plus_info_layouts(enum memory memory);
void test_plus_versions(enum memory memory);
void test_plus_force_pcie(enum memory memory);
void test_plus_map_sizes(enum memory memory);
void test_plus_offsets_disjoint(enum memory memory);
void test_plus_copy_range(enum memory memory);
void test_plus_copy_nothing(enum memory memory);
void test_plus_copy_random(enum memory memory);
void test_plus_copy_not_torn(enum memory memory);
void test_plus_thread_relay(enum memory memory);
void test_plus_thread_slices(enum memory memory);
void test_plus_thread_unmap_race(enum memory memory);
void test_plus_fork_parent_session(enum memory memory);
void test_plus_fork_own_session(enum memory memory);
void test_plus_exec_descriptors(enum memory memory);
void test_plus_cycles(enum memory memory);
void test_plus_few_descriptors(enum memory memory);
void test_plus_memory_managed(enum memory memory);
void test_plus_memory_pool(enum memory memory);
void test_plus_memory_host(enum memory memory);
void test_plus_memory_ipc(enum memory memory);
void test_plus_memory_vmm_without_rdma(enum memory memory);
void test_plus_memory_vmm_seam(enum memory memory);

#endif
