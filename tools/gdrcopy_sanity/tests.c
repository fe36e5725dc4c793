/* SPDX-License-Identifier: MIT */
/* The table of all tests, in the order in which they run. */
#include "tests.h"

#include <stddef.h>

#define PLAIN MEMORY_CUMEMALLOC
#define VMM MEMORY_VMMALLOC
#define BOTH(name, run, needs) \
	{ name "_cumemalloc", run, PLAIN, needs }, { name "_vmmalloc", run, VMM, needs }

static const struct test classic[] = {
	BOTH("basic", test_basic, 0),
	BOTH("basic_v2", test_basic_v2, 0),
	BOTH("basic_v2_forcepci", test_basic_v2_forcepci, NEED_FORCE_PCIE),
	{ "basic_with_tokens", test_basic_with_tokens, PLAIN, NEED_TOKENS },
	{ "basic_unaligned_mapping", test_basic_unaligned_mapping, PLAIN, 0 },
	{ "basic_small_buffers_mapping", test_basic_small_buffers_mapping, PLAIN, 0 },
	BOTH("basic_child_thread_pins_buffer", test_basic_child_thread_pins_buffer, 0),
	BOTH("data_validation", test_data_validation, 0),
	{ "data_validation_v2_cumemalloc", test_data_validation_v2, PLAIN, 0 },
	{ "data_validation_v2_forcepci_cumemalloc", test_data_validation_v2_forcepci, PLAIN,
	  NEED_FORCE_PCIE },
	{ "data_validation_mix_mappings_cumemalloc", test_data_validation_mix_mappings, PLAIN,
	  NEED_DESCRIPTOR | NEED_COHERENT },
	BOTH("invalidation_access_after_gdr_close", test_invalidation_access_after_gdr_close, 0),
	BOTH("invalidation_access_after_free", test_invalidation_access_after_free, 0),
	BOTH("invalidation_two_mappings", test_invalidation_two_mappings, 0),
	BOTH("invalidation_fork_access_after_free", test_invalidation_fork_access_after_free,
	     NEED_TWO_PROCESSES),
	BOTH("invalidation_fork_after_gdr_map", test_invalidation_fork_after_gdr_map,
	     NEED_DESCRIPTOR),
	BOTH("invalidation_fork_child_gdr_map_parent", test_invalidation_fork_child_gdr_map_parent,
	     NEED_DESCRIPTOR),
	BOTH("invalidation_fork_map_and_free", test_invalidation_fork_map_and_free,
	     NEED_TWO_PROCESSES),
	BOTH("invalidation_unix_sock_shared_fd_gdr_pin_buffer",
	     test_invalidation_unix_sock_shared_fd_gdr_pin_buffer,
	     NEED_TWO_PROCESSES | NEED_DESCRIPTOR),
	BOTH("invalidation_unix_sock_shared_fd_gdr_map",
	     test_invalidation_unix_sock_shared_fd_gdr_map, NEED_TWO_PROCESSES | NEED_DESCRIPTOR),
	{ "invalidation_fork_child_gdr_pin_parent_with_tokens",
	  test_invalidation_fork_child_gdr_pin_parent_with_tokens, PLAIN, NEED_DESCRIPTOR },
	{ "attributes_sanity", test_attributes_sanity, PLAIN, 0 },
	{ NULL, NULL, PLAIN, 0 }
};

static const struct test extended[] = {
	{ "leakage_pin_pages_fork_cumemalloc", test_leakage_pin_pages_fork, PLAIN,
	  NEED_TWO_PROCESSES },
	{ NULL, NULL, PLAIN, 0 }
};

static const struct test plus[] = {
	{ "plus_bad_pins", test_plus_bad_pins, PLAIN, 0 },
	{ "plus_bad_maps", test_plus_bad_maps, PLAIN, 0 },
	{ "plus_bad_queries", test_plus_bad_queries, PLAIN, 0 },
	{ "plus_freed_buffer", test_plus_freed_buffer, PLAIN, 0 },
	{ "plus_stale_handles", test_plus_stale_handles, PLAIN, 0 },
	{ "plus_invented_handles", test_plus_invented_handles, PLAIN, 0 },
	{ "plus_foreign_handles", test_plus_foreign_handles, PLAIN, 0 },
	{ "plus_two_sessions", test_plus_two_sessions, PLAIN, 0 },
	{ "plus_close_releases_all", test_plus_close_releases_all, PLAIN, 0 },
	{ "plus_close_at_exit", test_plus_close_at_exit, PLAIN, 0 },
	{ "plus_context_untouched", test_plus_context_untouched, PLAIN, 0 },
	{ "plus_quiet", test_plus_quiet, PLAIN, 0 },
	{ "plus_info_layouts", test_plus_info_layouts, PLAIN, 0 },
	{ "plus_versions", test_plus_versions, PLAIN, 0 },
	{ "plus_force_pcie", test_plus_force_pcie, PLAIN, 0 },
	{ "plus_map_sizes", test_plus_map_sizes, PLAIN, 0 },
	{ "plus_offsets_disjoint", test_plus_offsets_disjoint, PLAIN, 0 },
	{ "plus_copy_range", test_plus_copy_range, PLAIN, 0 },
	{ "plus_copy_nothing", test_plus_copy_nothing, PLAIN, 0 },
	BOTH("plus_copy_random", test_plus_copy_random, 0),
	{ "plus_copy_not_torn", test_plus_copy_not_torn, PLAIN, 0 },
	BOTH("plus_thread_relay", test_plus_thread_relay, 0),
	{ "plus_thread_slices", test_plus_thread_slices, PLAIN, 0 },
	{ "plus_thread_unmap_race", test_plus_thread_unmap_race, PLAIN, 0 },
	{ "plus_fork_parent_session", test_plus_fork_parent_session, PLAIN, 0 },
	{ "plus_fork_own_session", test_plus_fork_own_session, PLAIN, 0 },
	{ "plus_exec_descriptors", test_plus_exec_descriptors, PLAIN, 0 },
	BOTH("plus_cycles", test_plus_cycles, 0),
	BOTH("plus_few_descriptors", test_plus_few_descriptors, 0),
	{ "plus_memory_managed", test_plus_memory_managed, PLAIN, 0 },
	{ "plus_memory_pool", test_plus_memory_pool, PLAIN, 0 },
	{ "plus_memory_host", test_plus_memory_host, PLAIN, 0 },
	{ "plus_memory_ipc", test_plus_memory_ipc, PLAIN, NEED_TWO_PROCESSES },
	{ "plus_memory_vmm_without_rdma", test_plus_memory_vmm_without_rdma, VMM, 0 },
	{ "plus_memory_vmm_seam", test_plus_memory_vmm_seam, VMM, 0 },
	{ NULL, NULL, PLAIN, 0 }
};

const struct test *const test_sets[SET_COUNT] = {
	[SET_CLASSIC] = classic,
	[SET_EXTENDED] = extended,
	[SET_PLUS] = plus
};
