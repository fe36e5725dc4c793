/* SPDX-License-Identifier: MIT */
/*
 * A stand-in for os/sys.c: no call reaches the kernel.  It is linked before
 * the library, so that the linker leaves the real file out.
 *
 * Two ways to use it.  A script lists the calls that must come, in order, with
 * their arguments and answers; it proves what goes over the wire.  A device is
 * a function that answers whatever comes; with it any call can be made to
 * fail, and what is left open or mapped afterwards is counted.
 *
 * Descriptors are numbers of its own, mappings are anonymous memory.  Calls
 * that give something back (close, munmap) do so even when they are made to
 * fail, as the kernel does for close.
 */
#ifndef TESTS_SCRIPTED_SYS_H
#define TESTS_SCRIPTED_SYS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define SCRIPTED_FIRST_FD 1000
#define SCRIPTED_FD_LIMIT 64	/* open at once; one more gives EMFILE */

enum scripted_op {
	SCRIPTED_OPEN,
	SCRIPTED_CLOSE,
	SCRIPTED_DUP,
	SCRIPTED_IOCTL,
	SCRIPTED_MMAP,
	SCRIPTED_MUNMAP,
	SCRIPTED_MOVE,
	SCRIPTED_DONTFORK,
	SCRIPTED_WIPEONFORK,
	SCRIPTED_PEEK,
	SCRIPTED_READ_TEXT
};

/* One call as the library made it; what the operation has no use for is zero. */
struct scripted_call {
	enum scripted_op op;
	const char *path;	/* open, read_text */
	int fd;			/* close, dup, ioctl, mmap */
	unsigned long request;	/* ioctl */
	void *arg;		/* ioctl; where peek and read_text write to */
	void *addr;		/* munmap, move, dontfork, wipeonfork, peek */
	size_t length;		/* all that have no fd, and mmap */
	int prot;		/* mmap */
	int flags;		/* open, mmap */
	off_t offset;		/* mmap */
};

/* Answers a call: 0 or a negative errno.  Comes under a lock, so it needs none. */
typedef int (*scripted_answer)(void *device, const struct scripted_call *call);

/* Starts afresh with a device; open, dup and mmap are carried out when it answers 0. */
void scripted_sys_device(scripted_answer answer, void *device);

/*
 * One expected call.  An ioctl's argument must begin with in, and out is
 * written over it; fields that op has no use for, addr and arg are not compared.
 */
struct scripted_step {
	struct scripted_call call;
	const void *in;
	size_t in_size;
	const void *out;
	size_t out_size;
	int result;
};

/* Starts afresh with a script.  A call out of line is printed and answers -EPROTO. */
void scripted_sys_script(const struct scripted_step *steps, size_t count);

/* Whether every step was met and nothing else was called. */
bool scripted_sys_script_done(void);

/* Makes the nth call from now on (1: the next) fail; 0 takes that back. */
void scripted_sys_fail(unsigned nth, int error);

/* Calls since the start. */
unsigned scripted_sys_calls(void);

/* A descriptor that came from elsewhere, for example from the CUDA driver. */
int scripted_sys_new_fd(void);

/* What is held at present: numbers of descriptors, mappings. */
int scripted_sys_open_fds(void);
int scripted_sys_mappings(void);

/* Mappings that a child would inherit. */
int scripted_sys_inherited(void);

/* Closes of descriptors, and unmaps of mappings, that were not there. */
int scripted_sys_stray_releases(void);

#endif
