/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task may run: on the CPUs of its mask that are in its own domain of load balance.
 *
 * Problem: an administrator splits a machine into cpuset partitions. The kernel's balancer and
 * wakeups stay within a partition, also for tasks whose mask allows more, such as kthreads. An
 * isolated CPU is a partition of its own.
 *
 * Method: each run queue points to its root domain (kernel: rq->rd), and an isolated CPU has no
 * scheduling domain (rq->sd). Both are read directly, so changes need no notification. A tick
 * checks whether the machine is split. If it is not, domains are not read: a task with a full mask
 * costs one comparison.
 *
 * Limits: a change is seen by the next check. The load of an LLC is summed over partitions.
 */
#ifndef ROOST_DOMAIN_H
#define ROOST_DOMAIN_H

#include "port.h"

/* How often a tick checks whether the machine is split, ns. */
#define DOMAINS_NS   100000000ULL

/* CPUs checked at a time, with interrupts off. */
#define DOMAIN_LOOKS 64

/* The machine is split: no task may run on all CPUs, so each mask is checked. */
#define NO_MASK	     (~0U)

static __always_inline bool domains_split(void)
{
	return domains()->whole == NO_MASK;
}

subprog bool domains_equal(s32 a, s32 b)
{
	return cpu_domain(a) == cpu_domain(b);
}

/* @cpu is offline. */
static __always_inline bool cpu_away(s32 cpu)
{
	return domains()->away[masked(cpu, MAX_CPUS)];
}

/* The kernel's balancer may move tasks between the two. */
static __always_inline bool same_domain(s32 a, s32 b)
{
	return !domains_split() || a == b || domains_equal(a, b);
}

/*
 * @cpu is in the domain of @p's current CPU. If @p's mask excludes that CPU, @p may use any domain.
 */
static __always_inline bool in_own_domain(port_task *p, s32 cpu)
{
	s32 own = task_cpu(p);

	return own == cpu || cpu_domain(own) == cpu_domain(cpu) || !task_in_mask(p, own);
}

/*
 * The deepest call chains end here, and kernels before 7.2 allow eight frames. So this calls no
 * subprogram. Not inlined: before 7.0 the verifier searches all of the kernel's BTF at
 * each read of a task's mask, which is half of the load time.
 */
subprog bool mask_allows(port_task *p trusted, s32 cpu)
{
	return task_in_mask(p, cpu) && (!domains_split() || in_own_domain(p, cpu));
}

/* The task's mask or domain may exclude some CPU. */
static __always_inline bool task_restricted(port_task *p)
{
	return task_narrow(p, domains()->whole);
}

/* The task may run on @cpu: the CPU is online, in its mask, and in its domain. */
static __always_inline bool task_allowed(port_task *p, s32 cpu)
{
	if (cpu_away(cpu))
		return false;
	if (!task_restricted(p))
		return true;
	return mask_allows(p, cpu);
}

/* ---- is the machine split? ---- */

/* All CPUs have been checked. */
static __always_inline void domains_found(struct domains *d)
{
	d->whole = d->differ ? NO_MASK : machine_facts()->nr_cpu_ids;
	d->next = d->differ = 0;
	d->first = 0;
}

/* Check the next few CPUs. After the last one, the result is known. */
subprog u32 domains_look(void)
{
	struct domains *d = domains();
	u32 i, cpu = d->next;

	for_below (i, DOMAIN_LOOKS, DOMAIN_LOOKS) {
		if (cpu >= machine_facts()->nr_cpu_ids)
			break;
		if (!cpu_away(cpu)) {
			u64 domain = cpu_domain(cpu);

			if (!d->first)
				d->first = domain;
			d->differ |= d->first != domain;
		}
		cpu++;
	}
	d->next = cpu;
	if (cpu >= machine_facts()->nr_cpu_ids)
		domains_found(d);
	return 0;
}

/* One tick of the machine at a time checks. */
static __always_inline void domains_follow(u64 now)
{
	u64 *at = &domains()->looked_at, last = *at;

	if ((s64)(now - last) >= (s64)DOMAINS_NS && atomic_cas(at, last, now))
		domains_look();
}

#endif /* ROOST_DOMAIN_H */
