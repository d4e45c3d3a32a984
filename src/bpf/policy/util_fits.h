/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * [util_fits] A busy CPU is good enough if the task fits into its remaining capacity.
 *
 * Problem: a wakeup that finds its CPU busy for a moment searches for an idle one. So the task
 * migrates, though both tasks together would not fill the CPU.
 *
 * Method: a busy target, previous or recently used CPU will do if the task fits. The estimates of
 * the CPU's runnable tasks and of the task must not add up to more than its capacity. The estimates
 * are those of util_est.h.
 *
 * Limits: only rungs 1, 2 and 4 of the ladder use it, and no fork. The task waits behind the
 * running one, while another CPU may be idle.
 */
#ifndef ROOST_UTIL_FITS_H
#define ROOST_UTIL_FITS_H

#include "select_idle.h"

/* @cpu's capacity for our tasks; never 0, as in the kernel's scale_rt_capacity(). */
static __always_inline u64 cpu_room(const struct wakeup *w, s32 cpu)
{
	u64 capacity = cpu_capacity_now(cpu), taken = w->fits_rt ? cpu_rt_util(cpu) : 0;

	return capacity > taken ? capacity - taken : 1;
}

/*
 * The sum may equal the capacity if there is no margin. With a margin it must be less, as in
 * fits_capacity().
 */
static __always_inline bool util_fits(const struct wakeup *w, s32 cpu)
{
	u64 demand = (cpu_state(cpu)->util_est + w->util) * w->fits_scale;

	return demand + (w->fits_scale != CAPACITY_SCALE) <= cpu_room(w, cpu) * CAPACITY_SCALE;
}

/*
 * @cpu, which the task may use, is not free but has room for it. Call it only with the feature on,
 * because a subprogram call costs time.
 */
subprog bool fits_beside(const struct wakeup *w nonnull, s32 cpu)
{
	if (marked_free(w, cpu) && !claimed(w, cpu))
		return false;
	if (util_fits(w, cpu))
		return asym_fits(w, cpu);
	count_wakeup(w, STAT_fits_reject);
	return false;
}

#endif /* ROOST_UTIL_FITS_H */
