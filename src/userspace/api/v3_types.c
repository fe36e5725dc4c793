/* SPDX-License-Identifier: MIT */
/* Compares the types of api/v3.h with those of the public header. */
#include "gdrcopy/gdrapi.h"

#include <stddef.h>

#include "api/v3.h"

_Static_assert((int)GDR_SUCCESS == GDRI_V3_SUCCESS, "result");
_Static_assert((int)GDR_ERR_INVALID_ARG == GDRI_V3_INVALID_ARG, "result");
_Static_assert((int)GDR_ERR_NO_DEVICE == GDRI_V3_NO_DEVICE, "result");
_Static_assert((int)GDR_ERR_OP_NOT_SUPPORTED == GDRI_V3_OP_NOT_SUPPORTED, "result");
_Static_assert((int)GDR_ERR_PERMISSION == GDRI_V3_PERMISSION, "result");
_Static_assert((int)GDR_ERR_NO_MEMORY == GDRI_V3_NO_MEMORY, "result");
_Static_assert((int)GDR_ERR_BUSY == GDRI_V3_BUSY, "result");
_Static_assert((int)GDR_ERR_TIMEOUT == GDRI_V3_TIMEOUT, "result");
_Static_assert((int)GDR_ERR_IO == GDRI_V3_IO, "result");
_Static_assert((int)GDR_ERR_DRIVER_MISMATCH == GDRI_V3_DRIVER_MISMATCH, "result");
_Static_assert((int)GDR_ERR_STALE_HANDLE == GDRI_V3_STALE_HANDLE, "result");
_Static_assert((int)GDR_ERR_STALE_HANDLE + 1 == GDRI_V3_RESULTS, "result");

#define SAME(public_type, own_type, member)                                           \
	_Static_assert(offsetof(public_type, member) == offsetof(own_type, member) && \
		       sizeof(((public_type *)0)->member) == sizeof(((own_type *)0)->member), #member)

_Static_assert(sizeof(gdr_info_t) == sizeof(struct gdri_v3_info), "gdr_info_t");
SAME(gdr_info_t, struct gdri_v3_info, size);
SAME(gdr_info_t, struct gdri_v3_info, addr);
SAME(gdr_info_t, struct gdri_v3_info, length);
SAME(gdr_info_t, struct gdri_v3_info, device_id);
SAME(gdr_info_t, struct gdri_v3_info, flags);
SAME(gdr_info_t, struct gdri_v3_info, mapping_type);
SAME(gdr_info_t, struct gdri_v3_info, has_engine);
SAME(gdr_info_t, struct gdri_v3_info, read_crossover);
SAME(gdr_info_t, struct gdri_v3_info, write_crossover);

_Static_assert(sizeof(gdr_status_t) == sizeof(struct gdri_v3_status), "gdr_status_t");
SAME(gdr_status_t, struct gdri_v3_status, size);
SAME(gdr_status_t, struct gdri_v3_status, mapped);
SAME(gdr_status_t, struct gdri_v3_status, freed);
SAME(gdr_status_t, struct gdri_v3_status, revoked);

_Static_assert(sizeof(gdr_export_desc_t) == sizeof(struct gdri_v3_export), "gdr_export_desc_t");
_Static_assert((int)GDR_EXPORT_VERSION == GDRI_V3_EXPORT_VERSION, "gdr_export_desc_t");
SAME(gdr_export_desc_t, struct gdri_v3_export, size);
SAME(gdr_export_desc_t, struct gdri_v3_export, version);
SAME(gdr_export_desc_t, struct gdri_v3_export, flags);
SAME(gdr_export_desc_t, struct gdri_v3_export, uuid);
SAME(gdr_export_desc_t, struct gdri_v3_export, object_size);
SAME(gdr_export_desc_t, struct gdri_v3_export, offset);
SAME(gdr_export_desc_t, struct gdri_v3_export, length);
