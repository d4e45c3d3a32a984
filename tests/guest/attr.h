/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task asks of the scheduler: class, nice level, real-time priority and slice. Include it
 * after defining _GNU_SOURCE.
 */
#ifndef ATTR_H
#define ATTR_H

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct attr { /* struct sched_attr of sched_setattr(2), version 0 */
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

struct wish {
	int nice, fifo, idle, batch;
	long slice_us;
};

/*
 * Sets it for the calling task. Returns what failed, or NULL. If the kernel drops the slice, errno
 * is ERANGE.
 */
static inline const char *set_attr(const struct wish *w)
{
	struct attr a = { .size = sizeof(a),
			  .policy = w->fifo    ? SCHED_FIFO
				    : w->idle  ? SCHED_IDLE
				    : w->batch ? SCHED_BATCH
					       : SCHED_OTHER,
			  .nice = w->nice,
			  .priority = w->fifo,
			  .runtime = w->slice_us * 1000 };

	if (!w->nice && !w->fifo && !w->idle && !w->batch && !w->slice_us)
		return NULL;
	if (syscall(SYS_sched_setattr, 0, &a, 0))
		return "sched_setattr";
	memset(&a, 0, sizeof(a));
	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0))
		return "sched_getattr";
	if (w->slice_us && a.runtime != (uint64_t)w->slice_us * 1000) {
		errno = ERANGE;
		return "the kernel did not keep sched_runtime";
	}
	return NULL;
}

#endif /* ATTR_H */
