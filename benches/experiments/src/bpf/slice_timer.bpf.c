// SPDX-License-Identifier: GPL-2.0-only
/*
 * Experiment 1: what ends a slice on time, and what does it cost?
 *
 * One FIFO queue per CPU, equal slices, no wakeup preemption. The runs differ only in `variant`.
 * A timer's callback never touches a task: it kicks the CPU, and the kernel ends the slice.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";
UEI_DEFINE(uei);

#define CLOCK_MONOTONIC 1
#define MAX_CPUS	1024
#define MIN_WAIT_NS	20000 /* a timer shorter than this costs more than it brings */

enum variant {
	TICK,	    /* the kernel's tick alone */
	ON_RUNNING, /* each task that starts to run in front of a queue arms its CPU's timer */
	/* The first waiting task arms the CPU's timer; its callback re-arms while any waits. */
	ON_ENQUEUE,
	PERIODIC, /* one timer for the machine, periodic while any task waits */
};

const volatile u32 variant = TICK;
const volatile u64 slice_ns = 1000000;
const volatile u32 nr_cpus = 1;

struct slice_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, MAX_CPUS);
	__type(key, u32);
	__type(value, struct slice_timer);
} timers SEC(".maps");

/* One cache line per CPU, written from the CPUs that enqueue on it. */
struct cpu_state {
	u64 started; /* when the running task's slice began */
	u32 armed;   /* the timer will fire, so it need not be armed again */
} __attribute__((aligned(64)));

static struct cpu_state cpus[MAX_CPUS];
u64 nr_arms, nr_fires, nr_kicks; /* summed without atomics: near enough for a report */

static struct cpu_state *cpu_state(s32 cpu)
{
	return MEMBER_VPTR(cpus, [cpu]);
}

static void arm(u32 key, u64 wait)
{
	struct slice_timer *t = bpf_map_lookup_elem(&timers, &key);

	if (t && !bpf_timer_start(&t->timer, wait, 0))
		nr_arms++;
}

/* Arms the timer unless it is armed already. */
static void arm_once(u32 key, u64 wait)
{
	struct cpu_state *cs = cpu_state(key);

	if (cs && !cs->armed && !__sync_val_compare_and_swap(&cs->armed, 0, 1))
		arm(key, wait);
}

/*
 * Ends the slice of the CPU's task if it is over. Returns the time
 * until the slice that runs then ends, ns.
 */
static u64 end_slice(s32 cpu, struct cpu_state *cs)
{
	u64 ran = scx_bpf_now() - cs->started;

	if (ran + MIN_WAIT_NS < slice_ns)
		return slice_ns - ran;
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	nr_kicks++;
	return slice_ns;
}

static int cpu_timer_fn(void *map, int *key, struct bpf_timer *timer)
{
	s32 cpu = *key;
	struct cpu_state *cs = cpu_state(cpu);
	u64 wait;

	nr_fires++;
	if (!cs)
		return 0;
	if (!scx_bpf_dsq_nr_queued(cpu)) {
		cs->armed = 0;
		return 0;
	}
	wait = end_slice(cpu, cs);
	if (variant == ON_ENQUEUE)
		bpf_timer_start(timer, wait, 0);
	else
		cs->armed = 0;
	return 0;
}

static int machine_timer_fn(void *map, int *key, struct bpf_timer *timer)
{
	struct cpu_state *cs;
	bool waiting = false;
	s32 cpu;

	nr_fires++;
	bpf_for (cpu, 0, nr_cpus) {
		cs = cpu_state(cpu);
		if (!cs || !scx_bpf_dsq_nr_queued(cpu))
			continue;
		waiting = true;
		end_slice(cpu, cs);
	}
	cs = cpu_state(0);
	if (waiting)
		bpf_timer_start(timer, slice_ns, 0);
	else if (cs)
		cs->armed = 0;
	return 0;
}

/* A task is about to wait behind the one that runs on `cpu`, or behind the one that follows it. */
static void somebody_waits(s32 cpu, bool wakeup)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 wait = slice_ns;

	if (variant == PERIODIC)
		arm_once(0, slice_ns);
	if (variant != ON_ENQUEUE || !cs || cs->armed)
		return;
	if (wakeup) {
		u64 ran = scx_bpf_now() - cs->started;

		wait = ran + MIN_WAIT_NS < slice_ns ? slice_ns - ran : MIN_WAIT_NS;
	}
	arm_once(cpu, wait);
}

s32 BPF_STRUCT_OPS(slice_timer_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
	return cpu;
}

void BPF_STRUCT_OPS(slice_timer_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p);

	/* Pinned tasks skip select_cpu: their CPU may be idle. */
	if ((p->flags & PF_KTHREAD && p->nr_cpus_allowed == 1) ||
	    scx_bpf_test_and_clear_cpu_idle(cpu)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	scx_bpf_dsq_insert(p, cpu, slice_ns, enq_flags);
	somebody_waits(cpu, enq_flags & SCX_ENQ_WAKEUP);
}

void BPF_STRUCT_OPS(slice_timer_dispatch, s32 cpu, struct task_struct *prev)
{
	s32 i;

	if (scx_bpf_dsq_move_to_local(cpu, 0))
		return;
	bpf_for (i, 1, nr_cpus) {
		s32 victim = (cpu + i) % nr_cpus;

		if (scx_bpf_dsq_nr_queued(victim) && scx_bpf_dsq_move_to_local(victim, 0))
			return;
	}
	/* Nothing waits: the kernel keeps prev, and gives it 20 ms unless it has time left. */
	if (prev && prev->scx.flags & SCX_TASK_QUEUED)
		prev->scx.slice = slice_ns;
}

void BPF_STRUCT_OPS(slice_timer_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_state *cs = cpu_state(cpu);

	if (!cs)
		return;
	cs->started = scx_bpf_now();
	if (variant == ON_RUNNING && scx_bpf_dsq_nr_queued(cpu))
		arm(cpu, slice_ns);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(slice_timer_init)
{
	u32 key;
	s32 err;

	bpf_for (key, 0, nr_cpus) {
		struct slice_timer *t = bpf_map_lookup_elem(&timers, &key);

		if (!t)
			return -EINVAL;
		err = scx_bpf_create_dsq(key, -1);
		if (!err)
			err = bpf_timer_init(&t->timer, &timers, CLOCK_MONOTONIC);
		if (!err)
			err = variant == PERIODIC
				      ? bpf_timer_set_callback(&t->timer, machine_timer_fn)
				      : bpf_timer_set_callback(&t->timer, cpu_timer_fn);
		if (err)
			return err;
	}
	return 0;
}

void BPF_STRUCT_OPS(slice_timer_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(slice_timer_ops, .select_cpu = (void *)slice_timer_select_cpu,
	       .enqueue = (void *)slice_timer_enqueue, .dispatch = (void *)slice_timer_dispatch,
	       .running = (void *)slice_timer_running, .init = (void *)slice_timer_init,
	       .exit = (void *)slice_timer_exit, .timeout_ms = 5000, .name = "slice_timer");
