/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The port for cbmc, on four CPUs, as far as placement uses it. A table is four objects, not an
 * array: cbmc handles a choice between four objects at far less cost than an index. Values that
 * only weigh one CPU against another are any number, so that cbmc need not divide. Counters affect
 * no decision and are left out.
 */
#ifndef ROOST_PORT_CBMC_H
#define ROOST_PORT_CBMC_H

#include <stdbool.h>
#include <stddef.h>

enum { CPUS = 4 };

#ifndef __always_inline
#define __always_inline inline
#endif
#define subprog static
#define trusted
#define nonnull
#define opaque(x)
#define may_loop  true
#define from_zero 0

#define assume(c) __CPROVER_assume(c)

/* cbmc takes any value for the result of a function named nondet_*(). */
u32 nondet_u32(void);
u64 nondet_u64(void);

typedef struct port_task {
	u64 allowed;
	bool restricted;
} port_task;

/* The kernel's view of one CPU. */
struct cpu_view {
	bool idle;
	u32 nr_running;
	u32 rt_util;
	u16 capacity;
	u32 low; /* the threshold of its frequency */
	u64 freq;
};

/* Four objects of a type. */
#define TABLE(type, name) static type name##_0, name##_1, name##_2, name##_3
#define ROW(name, i)                                                                               \
	((i) == 0 ? &name##_0 : (i) == 1 ? &name##_1 : (i) == 2 ? &name##_2 : &name##_3)

TABLE(struct cpu_facts, the_cpu);
TABLE(struct llc_facts, the_llc);
TABLE(struct node_facts, the_node);
TABLE(struct cpu_state, the_state);
TABLE(struct llc_state, the_llc_state);
TABLE(struct cpu_view, the_view);
static struct machine_facts the_machine;
static struct tunables the_tunables;
static struct policy_image the_image;
static struct llc_sets the_llc_sets;
static struct domains the_domains; /* the machine is one domain */
static u16 the_llc_cpu[CPUS];
static u32 the_stale_ms;

static u32 in_range(u32 i, u32 end)
{
	__CPROVER_assert(i < end, "an index is within its table");
	assume(i < end);
	return i;
}

static const struct machine_facts *machine_facts(void)
{
	return &the_machine;
}

static const struct cpu_facts *cpu_facts(s32 cpu)
{
	in_range(cpu, the_machine.nr_cpu_ids);
	return ROW(the_cpu, cpu);
}

static const struct llc_facts *llc_facts(u32 llc)
{
	in_range(llc, the_machine.nr_llcs);
	return ROW(the_llc, llc);
}

static const struct node_facts *node_facts(u32 node)
{
	in_range(node, the_machine.nr_nodes);
	return ROW(the_node, node);
}

static s32 llc_cpu(u32 i)
{
	return the_llc_cpu[in_range(i, the_machine.nr_online)];
}

static const struct tunables *tunables(void)
{
	return &the_tunables;
}

static const struct policy_image *image_now(void)
{
	return &the_image;
}

static struct cpu_state *cpu_state(s32 cpu)
{
	in_range(cpu, the_machine.nr_cpu_ids);
	return ROW(the_state, cpu);
}

static struct llc_state *llc_state(u32 llc)
{
	in_range(llc, the_machine.nr_llcs);
	return ROW(the_llc_state, llc);
}

static struct llc_sets *llc_sets(void)
{
	return &the_llc_sets;
}

static struct domains *domains(void)
{
	return &the_domains;
}

static struct cpu_view *view(s32 cpu)
{
	in_range(cpu, the_machine.nr_cpu_ids);
	return ROW(the_view, cpu);
}

static u32 cpu_capacity_now(s32 cpu)
{
	return view(cpu)->capacity;
}

static struct freq_rule freq_rule(u32 arm, s32 cpu)
{
	in_range(arm, MAX_ARMS);
	return (struct freq_rule){ .low = view(cpu)->low, .stale_ms = the_stale_ms };
}

static u64 cpu_freq_read(s32 cpu)
{
	return view(cpu)->freq;
}

static u64 llc_scan_bound(u32 llc)
{
	in_range(llc, the_machine.nr_llcs);
	return nondet_u64();
}

static bool cpu_idle(s32 cpu)
{
	return view(cpu)->idle;
}

static u32 cpu_nr_running(s32 cpu)
{
	return view(cpu)->nr_running;
}

static u64 cpu_rt_util(s32 cpu)
{
	return view(cpu)->rt_util;
}

static u64 cpu_domain(s32 cpu)
{
	in_range(cpu, the_machine.nr_cpu_ids);
	return 1;
}

static bool task_narrow(port_task *p, u32 whole)
{
	return p->restricted;
}

static bool task_in_mask(port_task *p, s32 cpu)
{
	return p->allowed >> cpu & 1;
}

static s32 task_cpu(port_task *p)
{
	return nondet_u32() % the_machine.nr_cpu_ids;
}

static u64 clock_ns(void)
{
	return nondet_u64();
}

static u64 atomic_or(u64 *p, u64 bits)
{
	u64 old = *p;

	*p |= bits;
	return old;
}

static u64 atomic_and(u64 *p, u64 bits)
{
	u64 old = *p;

	*p &= bits;
	return old;
}

static void atomic_add(u64 *p, u64 v)
{
	*p += v;
}

static u64 atomic_swap(u64 *p, u64 v)
{
	u64 old = *p;

	*p = v;
	return old;
}

static bool atomic_cas(u64 *p, u64 old, u64 v)
{
	if (*p != old)
		return false;
	*p = v;
	return true;
}

static void count_for(u32 arm, enum roost_stat s)
{
	in_range(arm, MAX_ARMS);
	in_range(s, ROOST_NR_STATS);
}

static void count_wakeup(const struct wakeup *w, enum roost_stat s)
{
	count_for(w->arm, s);
}

#endif /* ROOST_PORT_CBMC_H */
