/* SPDX-License-Identifier: MIT */
/* The attributes_sanity test of GDRCopy 2.6. */
#include "machine.h"
#include "tests.h"

void test_attributes_sanity(enum memory memory)
{
	gdr_t g = open_session();
	int value;

	(void)memory;
	for (int attribute = GDR_ATTR_USE_PERSISTENT_MAPPING;
	     attribute <= GDR_ATTR_SUPPORT_PIN_FLAG_FORCE_PCIE; attribute++) {
		value = -1;
		REQUIRE_OK(gdr_get_attribute(g, (gdr_attr_t)attribute, &value));
		DEBUG("attribute %d is %d", attribute, value);
		REQUIRE(value == 0 || value == 1);
	}
	REQUIRE_OK(gdr_close(g));
}
