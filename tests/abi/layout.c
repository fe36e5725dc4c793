/* SPDX-License-Identifier: MIT */
/* The project's header against the numbers of 2.6; all of it is checked by the compiler. */
#include "gdrapi.h"

#include "harness.h"

#define IS(expression) _Static_assert(expression, #expression)

IS(GDR_API_MAJOR_VERSION == 2);
IS(GDR_API_MINOR_VERSION == 6);
IS(GDR_API_VERSION == 0x00020006);
IS(MINIMUM_GDRDRV_MAJOR_VERSION == 2);
IS(MINIMUM_GDRDRV_MINOR_VERSION == 0);
IS(MINIMUM_GDRDRV_VERSION == 0x00020000);
IS(GPU_PAGE_SHIFT == 16);
IS(GPU_PAGE_SIZE == 65536);
IS(sizeof(GPU_PAGE_SIZE) == 8);
IS(GPU_PAGE_OFFSET == 0xffff);
IS(GPU_PAGE_MASK == 0xffffffffffff0000);
/* A 64-bit mask: an int one would cut addresses only by luck of sign extension. */
IS(sizeof(GPU_PAGE_MASK) == 8);

IS(GDR_PIN_FLAG_DEFAULT == 0 && GDR_PIN_FLAG_FORCE_PCIE == 1);
IS(GDR_MAPPING_TYPE_NONE == 0 && GDR_MAPPING_TYPE_WC == 1);
IS(GDR_MAPPING_TYPE_CACHING == 2 && GDR_MAPPING_TYPE_DEVICE == 3 && GDR_MAPPING_TYPE_MAX == 4);
IS(GDR_MAP_FLAG_DEFAULT == 0 && GDR_MAP_FLAG_REQ_WC_MAPPING == 1);
IS(GDR_MAP_FLAG_REQ_CACHE_MAPPING == 2 && GDR_MAP_FLAG_REQ_DEVICE_MAPPING == 3);
IS(GDR_ATTR_USE_PERSISTENT_MAPPING == 1 && GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE == 2);
IS(GDR_ATTR_USING_DMA_BUF_MMAP == 3 && GDR_ATTR_MAX == 4);
IS(sizeof(gdr_pin_flags_t) == 4 && sizeof(gdr_mapping_type_t) == 4);
IS(sizeof(gdr_map_flags_t) == 4 && sizeof(gdr_attr_t) == 4);

IS(sizeof(gdr_t) == 8);
IS(sizeof(gdr_mh_t) == 8 && _Alignof(gdr_mh_t) == 8);
IS(offsetof(gdr_mh_t, h) == 0 && sizeof(((gdr_mh_t *)0)->h) == 8);

IS(sizeof(gdr_info_v1_t) == 40 && sizeof(gdr_info_v2_t) == 48);
IS(offsetof(gdr_info_v1_t, va) == 0 && offsetof(gdr_info_v2_t, va) == 0);
IS(offsetof(gdr_info_v1_t, mapped_size) == 8 && offsetof(gdr_info_v2_t, mapped_size) == 8);
IS(offsetof(gdr_info_v1_t, page_size) == 16 && offsetof(gdr_info_v2_t, page_size) == 16);
IS(offsetof(gdr_info_v1_t, tm_cycles) == 24 && offsetof(gdr_info_v2_t, tm_cycles) == 24);
IS(offsetof(gdr_info_v1_t, cycles_per_ms) == 32 && offsetof(gdr_info_v2_t, cycles_per_ms) == 32);
IS(offsetof(gdr_info_v2_t, mapping_type) == 40);
IS(_Generic((gdr_info_t *)0, gdr_info_v2_t *: 1, default: 0));

#define HAS_TYPE(function, type) IS(_Generic(&function, type: 1, default: 0))

HAS_TYPE(gdr_open, gdr_t (*)(void));
HAS_TYPE(gdr_close, int (*)(gdr_t));
HAS_TYPE(gdr_pin_buffer, int (*)(gdr_t, unsigned long, size_t, uint64_t, uint32_t, gdr_mh_t *));
HAS_TYPE(gdr_pin_buffer_v2, int (*)(gdr_t, unsigned long, size_t, uint32_t, gdr_mh_t *));
HAS_TYPE(gdr_unpin_buffer, int (*)(gdr_t, gdr_mh_t));
HAS_TYPE(gdr_get_callback_flag, int (*)(gdr_t, gdr_mh_t, int *));
HAS_TYPE(gdr_get_info, int (*)(gdr_t, gdr_mh_t, gdr_info_v2_t *));
HAS_TYPE(gdr_get_info_v2, int (*)(gdr_t, gdr_mh_t, gdr_info_v2_t *));
HAS_TYPE(gdr_map, int (*)(gdr_t, gdr_mh_t, void **, size_t));
HAS_TYPE(gdr_map_v2, int (*)(gdr_t, gdr_mh_t, void **, size_t, int));
HAS_TYPE(gdr_unmap, int (*)(gdr_t, gdr_mh_t, void *, size_t));
HAS_TYPE(gdr_copy_to_mapping, int (*)(gdr_mh_t, void *, const void *, size_t));
HAS_TYPE(gdr_copy_from_mapping, int (*)(gdr_mh_t, void *, const void *, size_t));
HAS_TYPE(gdr_runtime_get_version, void (*)(int *, int *));
HAS_TYPE(gdr_driver_get_version, int (*)(gdr_t, int *, int *));
HAS_TYPE(gdr_get_attribute, int (*)(gdr_t, gdr_attr_t, int *));
HAS_TYPE(gdr_get_mapping_type_string, int (*)(gdr_mapping_type_t, const char **));
#ifndef gdr_get_info
#error "gdr_get_info must be a macro"
#endif

/* Bit-fields have no offset: they are found by their bits. */
static void info_bit_fields(void)
{
	union {
		gdr_info_v1_t v1;
		gdr_info_v2_t v2;
		uint32_t words[12];
	} info = { .words = { 0 } };

	info.v1.mapped = 1;
	CHECK_EQ(info.words[9], 1);
	info.words[9] = 0;
	info.v1.wc_mapping = 1;
	CHECK_EQ(info.words[9], 2);
	info.words[9] = 0;
	info.v2.mapped = 1;
	info.v2.wc_mapping = 1;
	CHECK_EQ(info.words[9], 3);
}

static const struct harness_case cases[] = {
	{ "info_bit_fields", info_bit_fields },
};

HARNESS_MAIN(cases)
