/* SPDX-License-Identifier: MIT */
/* What the files of back end gdrdrv share: its session and how it asks the module. */
#ifndef GDRI_BACKEND_GDRDRV_SESSION_H
#define GDRI_BACKEND_GDRDRV_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "../../../modules/gdrdrv/gdrdrv.h"
#include "backend/backend.h"

/* What the loaded module can do; decided once, at open, by its version. */
struct gdrdrv_features {
	bool info_v2;		/* GET_INFO_V2: names every mapping type */
	bool attributes;	/* GET_ATTR */
	bool pin_v2;		/* PIN_BUFFER_V2: pin flags, no tokens */
	bool mapping_request;	/* REQ_MAPPING_TYPE */
};

struct gdrdrv_session {
	struct gdri_backend_session base;
	int own_fd;		/* as opened; base.fd may come to show another one */
	unsigned page_shift;	/* of the host */
	struct gdrdrv_features has;
};

static inline struct gdrdrv_session *gdrdrv_session_of(struct gdri_backend_session *session)
{
	return (struct gdrdrv_session *)session;
}

/*
 * One ioctl on the session's present descriptor.  The kernel's own ENOTSUPP,
 * which strerror does not know, becomes EOPNOTSUPP.
 */
int gdri_gdrdrv_module_ask(struct gdri_backend_session *session, unsigned long request, void *arg);

/* The present state of a handle, in the newer layout whatever the module speaks. */
int gdri_gdrdrv_module_info(struct gdri_backend_session *session, uint32_t handle,
			    struct gdrdrv_get_info_v2 *info);

int gdri_gdrdrv_region_pin(struct gdri_backend_session *session, uint64_t addr, size_t size,
			   uint32_t flags, uint64_t p2p_token, uint32_t va_space,
			   struct gdri_pin *pin);
int gdri_gdrdrv_region_unpin(struct gdri_backend_session *session, struct gdri_pin *pin);
int gdri_gdrdrv_region_refresh(struct gdri_backend_session *session, struct gdri_pin *pin);
int gdri_gdrdrv_region_callback_flag(struct gdri_backend_session *session, struct gdri_pin *pin,
				     int *flag);
int gdri_gdrdrv_region_map(struct gdri_backend_session *session, struct gdri_pin *pin, size_t size,
			   int flags, struct gdri_mapping *mapping);
int gdri_gdrdrv_region_unmap(struct gdri_backend_session *session, struct gdri_pin *pin,
			     struct gdri_mapping *mapping);

#endif
