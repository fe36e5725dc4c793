/* SPDX-License-Identifier: MIT */
/* Operations for back ends that have nothing of their own to say. */
#include "backend/backend.h"

int gdri_backend_no_callback_flag(struct gdri_backend_session *session, struct gdri_pin *pin,
				  int *flag)
{
	(void)session;
	(void)pin;
	*flag = 0;
	return 0;
}

int gdri_backend_no_refresh(struct gdri_backend_session *session, struct gdri_pin *pin)
{
	(void)session;
	(void)pin;
	return 0;
}

/* Consumers ask for the module's version and compare it (consumers.md, R8). */
int gdri_backend_version_2_6(struct gdri_backend_session *session, uint32_t *version)
{
	(void)session;
	*version = GDR_API_VERSION;
	return 0;
}
