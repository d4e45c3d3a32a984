/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What port.bpf.h reads of the kernel, from maps that the test fills. Placement does not read
 * queues, so these are left out.
 */
#ifndef ROOST_PORT_TEST_BPF_H
#define ROOST_PORT_TEST_BPF_H

typedef struct port_task {
	u64 allowed[CPU_WORDS]; /* one bit per CPU number */
	u32 restricted;		/* the mask excludes some online CPU */
} port_task;

/* A task of the test lives in a map. */
#define trusted __arg_nonnull

struct cpu_view {
	u32 idle;	/* kernel: available_idle_cpu() */
	u32 nr_running; /* kernel: rq->nr_running */
	u32 rt_util;
	u32 domain; /* unused */
};

struct cpu_view cpu_views[MAX_CPUS] = {};

static __always_inline bool cpu_idle(s32 cpu)
{
	return cpu_views[masked(cpu, MAX_CPUS)].idle;
}

static __always_inline u32 cpu_nr_running(s32 cpu)
{
	return cpu_views[masked(cpu, MAX_CPUS)].nr_running;
}

static __always_inline u64 cpu_rt_util(s32 cpu)
{
	return cpu_views[masked(cpu, MAX_CPUS)].rt_util;
}

/* The machine is not split. */
static __always_inline u64 cpu_domain(s32 cpu)
{
	return 0;
}

static __always_inline s32 task_cpu(port_task *p)
{
	return 0;
}

static __always_inline bool task_narrow(port_task *p, u32 whole)
{
	return p->restricted;
}

static __always_inline bool task_in_mask(port_task *p, s32 cpu)
{
	u32 word = (u32)cpu / WORD_BITS;

	return p->allowed[masked(word, CPU_WORDS)] >> ((u32)cpu % WORD_BITS) & 1;
}

#endif /* ROOST_PORT_TEST_BPF_H */
