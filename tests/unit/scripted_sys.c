/* SPDX-License-Identifier: MIT */
/* Answers the library's system calls from a script or a device model. */
#include "scripted_sys.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/sys.h"

#define MAX_MAPPINGS 16384

struct mapping {
	void *addr;
	size_t length;
	bool dontfork;
};

static struct {
	pthread_mutex_t lock;
	scripted_answer answer;
	void *device;
	const struct scripted_step *steps;
	size_t step_count, steps_met;
	bool out_of_line;
	unsigned calls, fail_at;
	int fail_error, stray_releases;
	bool fds[SCRIPTED_FD_LIMIT];
	struct mapping mappings[MAX_MAPPINGS];
	int mapping_count;
} script = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void start_afresh(void)
{
	for (int i = 0; i < script.mapping_count; i++)
		munmap(script.mappings[i].addr, script.mappings[i].length);
	memset((char *)&script + sizeof(script.lock), 0, sizeof(script) - sizeof(script.lock));
}

void scripted_sys_device(scripted_answer answer, void *device)
{
	pthread_mutex_lock(&script.lock);
	start_afresh();
	script.answer = answer;
	script.device = device;
	pthread_mutex_unlock(&script.lock);
}

void scripted_sys_script(const struct scripted_step *steps, size_t count)
{
	pthread_mutex_lock(&script.lock);
	start_afresh();
	script.steps = steps;
	script.step_count = count;
	pthread_mutex_unlock(&script.lock);
}

bool scripted_sys_script_done(void)
{
	return script.steps_met == script.step_count && !script.out_of_line;
}

void scripted_sys_fail(unsigned nth, int error)
{
	pthread_mutex_lock(&script.lock);
	script.fail_at = nth ? script.calls + nth : 0;
	script.fail_error = error;
	pthread_mutex_unlock(&script.lock);
}

unsigned scripted_sys_calls(void)
{
	return script.calls;
}

static bool same_call(const struct scripted_call *call, const struct scripted_call *want)
{
	if (call->op != want->op || call->fd != want->fd || call->request != want->request ||
	    call->length != want->length || call->prot != want->prot ||
	    call->flags != want->flags || call->offset != want->offset)
		return false;
	return want->path ? call->path && strcmp(call->path, want->path) == 0 : !call->path;
}

static int answer_by_script(const struct scripted_call *call)
{
	const struct scripted_step *step = &script.steps[script.steps_met];

	if (script.steps_met == script.step_count || !same_call(call, &step->call) ||
	    (step->in_size && memcmp(call->arg, step->in, step->in_size) != 0)) {
		fprintf(stderr, "step %zu: unexpected call: op %d fd %d request 0x%lx length %zu "
			"offset 0x%llx\n", script.steps_met, (int)call->op, call->fd,
			call->request, call->length, (unsigned long long)call->offset);
		script.out_of_line = true;
		return -EPROTO;
	}
	if (step->out_size)
		memcpy(call->arg, step->out, step->out_size);
	script.steps_met++;
	return step->result;
}

static int answer_call(const struct scripted_call *call)
{
	script.calls++;
	if (script.fail_at != 0 && script.calls == script.fail_at)
		return -script.fail_error;
	return script.answer ? script.answer(script.device, call) : answer_by_script(call);
}

static int new_fd(void)
{
	for (int i = 0; i < SCRIPTED_FD_LIMIT; i++) {
		if (!script.fds[i]) {
			script.fds[i] = true;
			return SCRIPTED_FIRST_FD + i;
		}
	}
	return -EMFILE;
}

int scripted_sys_new_fd(void)
{
	int fd;

	pthread_mutex_lock(&script.lock);
	fd = new_fd();
	pthread_mutex_unlock(&script.lock);
	return fd;
}

static bool fd_is_open(int fd)
{
	return fd >= SCRIPTED_FIRST_FD && fd < SCRIPTED_FIRST_FD + SCRIPTED_FD_LIMIT &&
	       script.fds[fd - SCRIPTED_FIRST_FD];
}

static struct mapping *find_mapping(const void *addr, size_t length)
{
	for (int i = script.mapping_count - 1; i >= 0; i--)
		if (script.mappings[i].addr == addr && script.mappings[i].length == length)
			return &script.mappings[i];
	return NULL;
}

int gdri_os_open(const char *path, int flags)
{
	struct scripted_call call = { .op = SCRIPTED_OPEN, .path = path, .flags = flags };
	int ret;

	pthread_mutex_lock(&script.lock);
	ret = answer_call(&call);
	if (ret == 0)
		ret = new_fd();
	pthread_mutex_unlock(&script.lock);
	return ret;
}

int gdri_os_close(int fd)
{
	struct scripted_call call = { .op = SCRIPTED_CLOSE, .fd = fd };
	int ret;

	pthread_mutex_lock(&script.lock);
	ret = answer_call(&call);
	if (fd_is_open(fd))
		script.fds[fd - SCRIPTED_FIRST_FD] = false;
	else
		script.stray_releases++;
	pthread_mutex_unlock(&script.lock);
	return ret;
}

int gdri_os_dup(int fd)
{
	struct scripted_call call = { .op = SCRIPTED_DUP, .fd = fd };
	int ret;

	pthread_mutex_lock(&script.lock);
	ret = fd_is_open(fd) ? answer_call(&call) : -EBADF;
	if (ret == 0)
		ret = new_fd();
	pthread_mutex_unlock(&script.lock);
	return ret;
}

int gdri_os_ioctl(int fd, unsigned long request, void *arg)
{
	struct scripted_call call = {
		.op = SCRIPTED_IOCTL, .fd = fd, .request = request, .arg = arg
	};
	int ret;

	pthread_mutex_lock(&script.lock);
	ret = fd_is_open(fd) ? answer_call(&call) : -EBADF;
	pthread_mutex_unlock(&script.lock);
	return ret;
}

/* Mappings without a file keep their flags. */
static int map_anonymous(const struct scripted_call *call, void **out)
{
	int flags = call->flags & MAP_ANONYMOUS ? call->flags : MAP_SHARED | MAP_ANONYMOUS;
	void *addr = mmap(NULL, call->length, call->prot, flags, -1, 0);

	if (addr == MAP_FAILED || script.mapping_count == MAX_MAPPINGS)
		return -ENOMEM;
	script.mappings[script.mapping_count++] = (struct mapping){
		.addr = addr, .length = call->length
	};
	*out = addr;
	return 0;
}

int gdri_os_mmap(size_t length, int prot, int flags, int fd, off_t offset, void **out)
{
	struct scripted_call call = {
		.op = SCRIPTED_MMAP, .length = length, .prot = prot, .flags = flags,
		.fd = fd, .offset = offset
	};
	bool has_file = !(flags & MAP_ANONYMOUS);
	int ret;

	pthread_mutex_lock(&script.lock);
	ret = has_file && !fd_is_open(fd) ? -EBADF : answer_call(&call);
	if (ret == 0)
		ret = map_anonymous(&call, out);
	pthread_mutex_unlock(&script.lock);
	return ret;
}

int gdri_os_munmap(void *addr, size_t length)
{
	struct scripted_call call = { .op = SCRIPTED_MUNMAP, .addr = addr, .length = length };
	struct mapping *mapping;
	int ret;

	pthread_mutex_lock(&script.lock);
	ret = answer_call(&call);
	mapping = find_mapping(addr, length);
	if (mapping) {
		munmap(addr, length);
		*mapping = script.mappings[--script.mapping_count];
	} else {
		script.stray_releases++;
	}
	pthread_mutex_unlock(&script.lock);
	return ret;
}

int gdri_os_move(void *addr, size_t length, void **out)
{
	struct scripted_call call = { .op = SCRIPTED_MOVE, .addr = addr, .length = length };
	struct mapping *mapping;
	void *target;
	int ret;

	pthread_mutex_lock(&script.lock);
	mapping = find_mapping(addr, length);
	ret = mapping ? answer_call(&call) : -EFAULT;
	if (ret == 0) {
		target = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mapping->addr = mremap(addr, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
				       target);
		*out = mapping->addr;
	}
	pthread_mutex_unlock(&script.lock);
	return ret;
}

int gdri_os_dontfork(void *addr, size_t length)
{
	struct scripted_call call = { .op = SCRIPTED_DONTFORK, .addr = addr, .length = length };
	struct mapping *mapping;
	int ret;

	pthread_mutex_lock(&script.lock);
	mapping = find_mapping(addr, length);
	ret = mapping ? answer_call(&call) : -ENOMEM;
	if (ret == 0)
		mapping->dontfork = true;
	pthread_mutex_unlock(&script.lock);
	return ret;
}

/* The memory may be the caller's own; it stays as it is. */
int gdri_os_wipeonfork(void *addr, size_t length)
{
	struct scripted_call call = { .op = SCRIPTED_WIPEONFORK, .addr = addr, .length = length };
	int ret;

	pthread_mutex_lock(&script.lock);
	ret = answer_call(&call);
	pthread_mutex_unlock(&script.lock);
	return ret;
}

int gdri_os_populate(void *addr, size_t length)
{
	(void)addr;
	(void)length;
	return -EINVAL;
}

int gdri_os_peek(uint64_t addr, void *out, size_t length)
{
	struct scripted_call call = {
		.op = SCRIPTED_PEEK, .addr = (void *)(uintptr_t)addr, .arg = out, .length = length
	};
	int ret;

	pthread_mutex_lock(&script.lock);
	ret = answer_call(&call);
	pthread_mutex_unlock(&script.lock);
	return ret;
}

int gdri_os_read_text(const char *path, char *out, size_t size)
{
	struct scripted_call call = {
		.op = SCRIPTED_READ_TEXT, .path = path, .arg = out, .length = size
	};
	int ret;

	pthread_mutex_lock(&script.lock);
	ret = answer_call(&call);
	pthread_mutex_unlock(&script.lock);
	return ret;
}

size_t gdri_os_page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int scripted_sys_open_fds(void)
{
	int count = 0;

	for (int i = 0; i < SCRIPTED_FD_LIMIT; i++)
		count += script.fds[i];
	return count;
}

int scripted_sys_mappings(void)
{
	return script.mapping_count;
}

int scripted_sys_inherited(void)
{
	int count = 0;

	for (int i = 0; i < script.mapping_count; i++)
		count += !script.mappings[i].dontfork;
	return count;
}

int scripted_sys_stray_releases(void)
{
	return script.stray_releases;
}
