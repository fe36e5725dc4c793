/* SPDX-License-Identifier: MIT */
/* Finds the versions of the library, the driver and the module. */
#include "versions.h"

#include <stdio.h>
#include <string.h>

#include "cuda_driver.h"
#include "gdrapi.h"
#include "json.h"
#include "report.h"

/* The version of a loaded kernel module. */
static void read_module(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");

	snprintf(out, size, "not loaded");
	if (!file)
		return;
	if (!fgets(out, (int)size, file))
		snprintf(out, size, "unknown");
	out[strcspn(out, "\n")] = '\0';
	fclose(file);
}

void versions_read(struct versions *versions)
{
	int major = 0, minor = 0, number = 0;

	gdr_runtime_get_version(&major, &minor);
	snprintf(versions->library, sizeof(versions->library), "%d.%d", major, minor);
	snprintf(versions->cuda, sizeof(versions->cuda), "none");
	if (!cuda_driver_find() && CU_TRY(cuDriverGetVersion, &number) == CUDA_SUCCESS)
		snprintf(versions->cuda, sizeof(versions->cuda), "%d.%d", number / 1000,
			 number % 1000 / 10);
	read_module("/sys/module/nvidia/version", versions->nvidia, sizeof(versions->nvidia));
	read_module("/sys/module/gdrdrv/version", versions->gdrdrv, sizeof(versions->gdrdrv));
}

void versions_print(const char *tool)
{
	struct versions versions;

	versions_read(&versions);
	printf("%s %d.%d\nlibgdrapi %s\nCUDA driver %s\nNVIDIA module %s\ngdrdrv module %s\n",
	       tool, GDR_API_MAJOR_VERSION, GDR_API_MINOR_VERSION, versions.library,
	       versions.cuda, versions.nvidia, versions.gdrdrv);
}

void versions_report(void)
{
	struct versions versions;

	versions_read(&versions);
	say("versions: libgdrapi %s; CUDA driver %s; NVIDIA module %s; gdrdrv module %s\n",
	    versions.library, versions.cuda, versions.nvidia, versions.gdrdrv);
	json_open_object("versions");
	json_string("libgdrapi", versions.library);
	json_string("cuda_driver", versions.cuda);
	json_string("nvidia_module", versions.nvidia);
	json_string("gdrdrv_module", versions.gdrdrv);
	json_close();
}
