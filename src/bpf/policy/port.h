/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The port: every question that the policy asks of the world and all that it has the kernel do, and nothing else. It is
 * implemented twice, over kfuncs and maps in port.bpf.h and act.bpf.h and over plain memory in src/native/port.native.h and
 * act.native.h; the policy is the same C. For tests of the compiled BPF, port.test.bpf.h answers placement's questions of the
 * kernel from maps.
 *
 * Facts and state:
 *   const volatile struct machine_facts *machine_facts(void)
 *   const volatile struct cpu_facts *cpu_facts(s32 cpu)	cpu: 0..MAX_CPUS-1, else wrapped into it
 *   const volatile struct llc_facts *llc_facts(u32 llc)
 *   const volatile struct node_facts *node_facts(u32 node)
 *   s32 llc_cpu(u32 index)				CPU number at llc_facts.first + pos
 *   const volatile struct tunables *tunables(void)
 *   const struct policy_image *image_now(void)	the live image: asked anew, it may be another
 *   const struct arm *arm_of(const struct policy_image *image, u32 arm)	arm: below MAX_ARMS
 *   u32 cpu_capacity_now(s32 cpu)	of the live image: cpu_facts.capacity less what limits it now
 *   struct freq_rule freq_rule(u32 arm, s32 cpu)	of the live image, in one look
 *   u64 cpu_freq_read(s32 cpu)	what userspace last read, as in cpu_freqs
 *   u64 llc_scan_told(u32 llc)	what userspace last told of it, as in llc_scans
 *   struct cpu_state *cpu_state(s32 cpu)
 *   struct llc_state *llc_state(u32 llc)
 *   struct llc_sets *llc_sets(void)
 *   struct domains *domains(void)
 *   struct cgroup_state *cgroup_state(u32 index)
 *   struct bandwidth *bandwidth(u32 index), struct limits *limits(void), struct park *park_of(u32 queue)
 *
 * The kernel's view of a CPU, peeked at and never claimed:
 *   bool cpu_idle(s32 cpu)		kernel: available_idle_cpu()
 *   u32 cpu_nr_running(s32 cpu)	kernel: rq->nr_running, all classes
 *   u64 cpu_domain(s32 cpu)		a number, the same for CPUs between which the kernel balances; not 0
 *   u64 cpu_rt_util(s32 cpu)		what real-time and deadline tasks and interrupts use, 0..CAPACITY_SCALE or a bit more
 *
 * The task at hand (its type is the port's own):
 *   bool task_in_mask(port_task *p, s32 cpu)
 *   bool task_narrow(port_task *p, u32 whole)	its mask has fewer CPUs than that
 *   s32 task_cpu(port_task *p)			the CPU that it is on, or was
 *
 * Queues of waiting tasks, ordered by deadline; aging.h numbers them:
 *   bool queue_take(u32 queue)		its first task that may run on this CPU is to run here next
 *   u32 queue_length(u32 queue)
 *
 * Beyond placement (act.bpf.h, act.native.h). Tasks:
 *   struct task_state *task_state_if(p)	NULL: it has none
 *   u32 task_pid(p), u64 task_key(p)	the key by which its queue is ordered
 *   u64 task_ran(p)		ns that it has run in all, by the kernel's account
 *   bool task_pinned(p)		it can run on one CPU only
 *   bool pcpu_kthread(p)		a thread of the kernel that is bound to one CPU
 *   bool task_runnable(p), task_sleeps(p), task_is_idle(p), task_exits(p)
 *   port_task *current_task(void), bool in_task(void)	false: an interrupt is served
 *   bool enq_placed(u64 enq_flags)	select_cpu was asked
 *   void arm_follow(p, ts)		the task is on the arm that the rules say
 *
 * CPUs:
 *   s32 this_cpu(void), u64 cpu_clock(void)	ns; stands still in a callback
 *   bool cpu_curr_idle(s32 cpu)		the idle task runs there
 *   bool cpu_taken(s32 cpu)		a task of a higher class runs there. Between two tasks of ours, when the kernel puts
 *					the one back and has not yet chosen the other, the one still counts as running
 *   bool cpu_is_ours(s32 cpu)		it is online, and none of a higher class runs there: in the local queue of another
 *					CPU nobody would find a task
 *   u32 local_length(s32 cpu)		tasks in the kernel's own queue of the CPU, which are to run there next
 *   u32 cpu_speed(s32 cpu)		0..CAPACITY_SCALE (kernel: arch_scale_freq_capacity())
 *   void ask_speed(s32 cpu, u32 speed)
 *   void kick_cpu(s32 cpu, u64 flags)
 *   u32 sweep_cgroups(u64 now)		now and then, measure and settle all cgroups
 *
 * Where a task goes, out of select_cpu and enqueue:
 *   void insert_local(p, u64 slice, u64 enq_flags)	next on its CPU
 *   void insert_on(p, s32 cpu, u64 slice, u64 enq_flags)	next on that CPU
 *   void insert_queued(p, u32 queue, u64 slice, u64 key, u64 enq_flags)	into that queue
 *   bool set_slice(p, u64 slice)	of a running task, ns
 *   port_task *queue_head(u32 queue)	NULL: it is empty
 *   for_each_queued (p, queue)		and in its body, once, bool queued_move_here(p), queued_move_to(p, cpu, enq_flags): the task
 *					is to run there next; or queued_requeue(p, queue, key): into that queue;
 *					false: somebody else has it by now
 *
 * Timers, one of each kind per CPU, and one per queue of parked tasks; started anew if it was
 * started:
 *   s32 start_slice_timer(s32 cpu, u64 ns), start_delay_timer(s32 cpu, u64 ns)	0, or an error
 *   s32 start_park_timer(u32 queue, u64 ns)
 *   void spin_gap(void)	of a test's build: the instant between the look at a CPU and the insertion there is long
 *
 * The clock, read anew, where a callback's own time (now) stands still:
 *   u64 clock_ns(void)			ns
 *
 * Memory and counting:
 *   u64 atomic_or(u64 *p, u64 bits), atomic_and(u64 *p, u64 bits)	return the old value; full barriers
 *   void atomic_add(u64 *p, u64 v)
 *   u64 atomic_swap(u64 *p, u64 v)				returns the old value
 *   bool atomic_cas(u64 *p, u64 old, u64 v)			true if *p was old and is now v
 *   void count_for(u32 arm, enum roost_stat s)	of a task on that arm
 *   void count(enum roost_stat s)		of the machine: arm 0
 *   void hist_for(u32 arm, enum roost_hist h, u64 ns)
 *   subprog			what precedes a function that holds a loop: a program of its own to the verifier,
 *				checked once for any argument; its task parameter is marked trusted, its pointers nonnull
 *   from_zero			0, which the verifier does not know to be 0, so that it checks a loop's body once
 *   opaque(x)			hides from the compiler what it knows of x, so that it leaves an index an index
 *   may_loop			the condition that every loop carries, for the verifier; true natively
 */
#ifndef ROOST_PORT_H
#define ROOST_PORT_H

#include "state.h"

#if defined(ROOST_PORT)
#include ROOST_PORT /* of a proof: tests/verify/ */
#elif defined(ROOST_NATIVE)
#include "../../native/port.native.h"
#else
#include "../port.bpf.h"
#endif

/* Where the tunables of the machine as a whole are. */
static __always_inline const struct arm *machine_arm(void)
{
	return &image_now()->arm[0];
}

/*
 * The features of an arm, that are @live. Frozen ones the verifier knows at load, so that it drops what they switch off.
 */
static __always_inline u32 features_of(u32 live)
{
	return tunables()->frozen ? tunables()->features : live;
}

#define NSEC_PER_MSEC 1000000ULL

/* The clock as userspace stamps what it tells. */
static __always_inline u32 clock_ms(void)
{
	return clock_ns() / NSEC_PER_MSEC;
}

static __always_inline bool share_cache(s32 a, s32 b)
{
	return cpu_facts(a)->llc == cpu_facts(b)->llc;
}

/*
 * for i = 0 .. @n - 1, @n at most @max, a constant: what the verifier needs to check a body once and to know that the
 * loop ends.
 */
#define for_below(i, n, max) for (i = from_zero; i < (n) && i < (max) && may_loop; i++)

/* The @i-th other thread of a core, @i below nr_sib. */
static __always_inline s32 sibling(const volatile struct cpu_facts *f, u32 i)
{
	opaque(i);
	return f->sib[i % MAX_SMT];
}

static __always_inline bool share_core(s32 a, s32 b)
{
	return cpu_facts(a)->core == cpu_facts(b)->core;
}

#endif /* ROOST_PORT_H */
