/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel calls back later: two timers per CPU, one per queue of parked tasks, and the work
 * of a task that returns to user mode. What they do is policy (policy/slice_timer.h,
 * policy/delay_queue.h, policy/parking.h).
 */
#ifndef ROOST_TIMERS_BPF_H
#define ROOST_TIMERS_BPF_H

#include "policy/delay_queue.h"
#include "policy/parking.h"

static int slice_timer_fired(void *map, u32 *key, struct slice_timer *t)
{
	slice_timer_fires(*key);
	return 0;
}

static int delay_timer_fired(void *map, u32 *key, struct delay_timer *t)
{
	delay_timer_fires(*key);
	return 0;
}

static int park_timer_fired(void *map, u32 *key, struct park_timer *t)
{
	park_timer_fires(*key);
	return 0;
}

/* In the task's own context. */
static int task_returned(struct bpf_map *map, void *key, void *value)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_state *ts = task_state_if(p);

	if (ts)
		task_returns(p, ts);
	return 0;
}

static __always_inline s32 park_timer_init(u32 queue)
{
	struct park_timer *t = bpf_map_lookup_elem(&park_timers, &queue);
	s32 err;

	if (!t)
		return -ENOENT;
	err = bpf_timer_init(&t->timer, &park_timers, CLOCK_MONOTONIC);
	return err ?: bpf_timer_set_callback(&t->timer, park_timer_fired);
}

static __always_inline s32 slice_timer_init(u32 cpu)
{
	struct slice_timer *t = bpf_map_lookup_elem(&slice_timers, &cpu);
	s32 err;

	if (!t)
		return -ENOENT;
	err = bpf_timer_init(&t->timer, &slice_timers, CLOCK_MONOTONIC);
	return err ?: bpf_timer_set_callback(&t->timer, slice_timer_fired);
}

static __always_inline s32 delay_timer_init(u32 cpu)
{
	struct delay_timer *t = bpf_map_lookup_elem(&delay_timers, &cpu);
	s32 err;

	if (!t)
		return -ENOENT;
	err = bpf_timer_init(&t->timer, &delay_timers, CLOCK_MONOTONIC);
	return err ?: bpf_timer_set_callback(&t->timer, delay_timer_fired);
}

/*
 * Set up all timers once, at the first ops.init_task, and not in ops.init, which may sleep. The
 * verifier treats a timer's callback as part of the program that sets it. In a sleepable program it
 * may not read a task's CPU mask, and the kernel does not let it move tasks.
 */
static __always_inline s32 timers_init(void)
{
	s32 cpu, err;

	if (!tun.timers || timers_set)
		return 0;
	timers_set = 1;
	bpf_for (cpu, 0, machine.nr_cpu_ids) {
		if (!cpu_facts(cpu)->online)
			continue;
		err = slice_timer_init(cpu) ?: delay_timer_init(cpu);
		if (err)
			return err;
	}
	if (!tun.limits)
		return 0;
	bpf_for (cpu, 0, PARK_QUEUES) {
		err = park_timer_init(cpu);
		if (err)
			return err;
	}
	return 0;
}

#endif /* ROOST_TIMERS_BPF_H */
