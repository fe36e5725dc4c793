/* SPDX-License-Identifier: MIT */
/*
 * A model of the kernel module behind /dev/gdrdrv for scripted_sys.h, with the
 * rules of the interface facts (sections 8.3 and 8.4): what it accepts depends
 * on its version, and every refusal can be ordered.
 */
#ifndef TESTS_SCRIPTED_GDRDRV_H
#define TESTS_SCRIPTED_GDRDRV_H

#include <stdbool.h>
#include <stdint.h>

#define SCRIPTED_GDRDRV_PINS 64

struct scripted_gdrdrv_pin {
	bool used;
	uint64_t handle, va, size;
	uint32_t asked_type, type;
};

struct scripted_gdrdrv {
	uint32_t version, minimum_api;
	int open_error, version_error, pin_error, request_error, mmap_error;
	uint32_t type;		/* of mappings without a request */
	bool type_is_forced;	/* and of those with one: a module that does not keep its word */
	uint64_t next_handle;
	uint32_t callback_flag;
	int foreign_fd;		/* a descriptor that another process opened: EACCES */
	struct scripted_gdrdrv_pin pins[SCRIPTED_GDRDRV_PINS];
};

/* The module; tests change it at will between calls. */
extern struct scripted_gdrdrv scripted_gdrdrv;

/* Starts scripted_sys.h afresh with module 2.minor, whose mappings are write-combined. */
void scripted_gdrdrv_start(uint32_t minor);

int scripted_gdrdrv_live_pins(void);

#endif
