/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [util_fits] A busy CPU is good enough if the task fits into what it has left.
 *
 * Problem: a wakeup that finds its CPU busy for a moment looks for an idle one, and the task migrates, though both tasks
 * together would not fill the CPU.
 * Method: the target, the previous and the recently used CPU also do when the estimates of their runnable tasks and that of
 * the task together are no more than the CPU's capacity. The estimates are util_est's.
 * Limits: not for a fork, a per-CPU kthread's wakee, the sibling, nor in the search. The task waits behind the running one,
 * while another CPU may be idle.
 */
#ifndef ROOST_UTIL_FITS_H
#define ROOST_UTIL_FITS_H

#include "select_idle.h"

/* What @cpu has for tasks of ours; never 0, as in the kernel's scale_rt_capacity(). */
static __always_inline u64 cpu_room(const struct wakeup *w, s32 cpu)
{
	u64 capacity = cpu_capacity_now(cpu), taken = w->fits_rt ? cpu_rt_util(cpu) : 0;

	return capacity > taken ? capacity - taken : 1;
}

/* Without a margin to the brim; with one, as fits_capacity() does, less than that. */
static __always_inline bool util_fits(const struct wakeup *w, s32 cpu)
{
	u64 demand = (cpu_state(cpu)->util_est + w->util) * w->fits_scale;

	return demand + (w->fits_scale != CAPACITY_SCALE) <= cpu_room(w, cpu) * CAPACITY_SCALE;
}

/* Whether @cpu, which the task may use, will do though it is not free. Asked with the feature only: a call costs. */
subprog bool fits_beside(const struct wakeup *w nonnull, s32 cpu)
{
	if (marked_free(w, cpu) && !claimed(w, cpu))
		return false;
	if (util_fits(w, cpu))
		return asym_fits(w, cpu);
	count_for(w->arm, STAT_fits_reject);
	return false;
}

#endif /* ROOST_UTIL_FITS_H */
