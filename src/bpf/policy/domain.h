/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task may run: on CPUs of its mask, of its own domain of load balance.
 *
 * Problem: an administrator cuts a machine into parts by cpuset partitions. The kernel's balancer and its
 * wakeups stay within a part, also for tasks whose mask allows more, as those of the kernel. An isolated CPU
 * is a part of its own.
 * Method: each run queue points to its root domain (kernel: rq->rd), and has no scheduling domain (rq->sd) if
 * it is isolated. Both are read as they are, so nobody has to be told of a change. Where the machine is in one
 * piece, which a tick looks after, nothing is asked: a task with a full mask costs one comparison as ever.
 * Limits: a change is seen by the next look. Loads are summed by LLC, over parts.
 */
#ifndef ROOST_DOMAIN_H
#define ROOST_DOMAIN_H

#include "port.h"

/* How often a tick looks whether the machine is in one piece, ns. */
#define DOMAINS_NS   100000000ULL

/* So many CPUs are asked at a time, with interrupts off. */
#define DOMAIN_LOOKS 64

/* No task may run on all CPUs: each mask is asked. */
#define NO_MASK	     (~0U)

static __always_inline bool domains_split(void)
{
	return domains()->whole == NO_MASK;
}

subprog bool domains_equal(s32 a, s32 b)
{
	return cpu_domain(a) == cpu_domain(b);
}

/* No task can run there: it is offline. */
static __always_inline bool cpu_away(s32 cpu)
{
	opaque(cpu);
	return domains()->away[(u32)cpu % MAX_CPUS];
}

/* The balancer may move tasks from one to the other. */
static __always_inline bool same_domain(s32 a, s32 b)
{
	return !domains_split() || a == b || domains_equal(a, b);
}

/* @cpu is in the domain of the CPU that @p is on. A task whose mask leaves that CPU out has to go elsewhere. */
static __always_inline bool in_own_domain(port_task *p, s32 cpu)
{
	s32 own = task_cpu(p);

	return own == cpu || cpu_domain(own) == cpu_domain(cpu) || !task_in_mask(p, own);
}

/*
 * The last of the deepest chain of calls, of which kernels before 7.2 take eight: it calls nothing. Not inlined:
 * before 7.0 the verifier searches all of the kernel's BTF at each read of a task's mask, half of the time of a load.
 */
subprog bool mask_allows(port_task *p trusted, s32 cpu)
{
	return task_in_mask(p, cpu) && (!domains_split() || in_own_domain(p, cpu));
}

/* There may be a CPU that the task must not use. */
static __always_inline bool task_restricted(port_task *p)
{
	return task_narrow(p, domains()->whole);
}

/* The task may run on @cpu: it is online, in the mask, in the domain. */
static __always_inline bool task_allowed(port_task *p, s32 cpu)
{
	if (cpu_away(cpu))
		return false;
	if (!task_restricted(p))
		return true;
	return mask_allows(p, cpu);
}

/* ---- is the machine in one piece? ---- */

/* All CPUs have been asked. */
static __always_inline void domains_found(struct domains *d)
{
	d->whole = d->differ ? NO_MASK : machine_facts()->nr_cpu_ids;
	d->next = d->differ = 0;
	d->first = 0;
}

/* The next few CPUs are asked; after the last of the machine it is known. */
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

/* One tick of the machine looks at a time. */
static __always_inline void domains_follow(u64 now)
{
	u64 *at = &domains()->looked_at, last = *at;

	if ((s64)(now - last) >= (s64)DOMAINS_NS && atomic_cas(at, last, now))
		domains_look();
}

#endif /* ROOST_DOMAIN_H */
