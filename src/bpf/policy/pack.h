/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pack (scx_roost; the aim of the kernel's sched_smt_power_savings and sched_mc_power_savings,
 * 2006 to 2012).
 *
 * Problem: tasks that are placed one to a core, and each where it ran before, wake many cores, each
 * for a moment. None of these sleeps deeply.
 *
 * Method: a wakeup or fork takes the first idle CPU of the node: in the first LLC that has one, a
 * thread beside a busy thread, else the lowest number. So a few tasks keep to a few cores of one
 * cache, and each of them still has a CPU of its own.
 *
 * Limits: the task leaves its caches behind, except those of the LLC. With unequal CPUs this does
 * nothing: the search by capacity decides there. Of the cores, those with the lowest numbers carry
 * the load, whether or not they need the least power.
 */
#ifndef ROOST_PACK_H
#define ROOST_PACK_H

#include "idle_scan.h"

subprog s32 pack_llc(port_task *p trusted, const struct wakeup *w nonnull, u32 llc)
{
	s32 cpu = NO_CPU;

	if (machine_facts()->smt)
		cpu = scan(p, w, llc, 0, SCAN_BESIDE);
	return cpu != NO_CPU ? cpu : scan(p, w, llc, 0, SCAN_CPU);
}

subprog s32 pack_node(port_task *p trusted, const struct wakeup *w nonnull, u32 node)
{
	const volatile struct node_facts *f = node_facts(node);
	u32 i;

	for_below (i, f->nr_llcs, MAX_LLCS) {
		s32 cpu = NO_CPU;

		if (!set_empty(SET_IDLE, f->first_llc + i))
			cpu = pack_llc(p, w, f->first_llc + i);
		if (cpu != NO_CPU)
			return cpu;
	}
	return NO_CPU;
}

static __always_inline s32 pack(port_task *p, const struct task_state *ts, struct wakeup *w)
{
	if (!has(w, FEATURE_pack) || machine_facts()->asym)
		return NO_CPU;
	/* Before hand_over(), which most wakeups of other arms never reach. */
	w->sched_idle = ts->sched_idle;
	return pack_node(p, w, cpu_facts(w->last_cpu)->node);
}

#endif /* ROOST_PACK_H */
