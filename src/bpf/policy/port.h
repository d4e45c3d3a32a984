/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The port: everything that the policy reads from its environment or asks the kernel to do.
 * It is implemented twice: over kfuncs and maps in port.bpf.h and act.bpf.h, and over plain memory
 * in src/native/port.native.h and act.native.h. The policy is the same C. For tests of the compiled
 * BPF, port.test.bpf.h answers placement's reads of the kernel from maps.
 *
 * Facts and state:
 *   const volatile struct machine_facts *machine_facts(void)
 *   const volatile struct cpu_facts *cpu_facts(s32 cpu)	cpu: 0..MAX_CPUS-1, else wrapped
 *   const volatile struct llc_facts *llc_facts(u32 llc)
 *   const volatile struct node_facts *node_facts(u32 node)
 *   s32 llc_cpu(u32 index)		CPU number at llc_facts.first + pos
 *   const volatile struct tunables *tunables(void)
 *   const struct policy_image *image_now(void)	the live image; the next call may return another
 *   const struct arm *arm_of(const struct policy_image *image, u32 arm)	arm: below MAX_ARMS
 *   u32 cpu_capacity_now(s32 cpu)	of the live image: cpu_facts.capacity less current limits
 *   struct freq_rule freq_rule(u32 arm, s32 cpu)	of the live image, in one read
 *   u64 cpu_freq_read(s32 cpu)	userspace's last reading, as in cpu_freqs
 *   u64 llc_scan_bound(u32 llc)	userspace's last bound of scans, as in llc_scans
 *   struct cpu_state *cpu_state(s32 cpu)
 *   struct llc_state *llc_state(u32 llc)
 *   struct llc_sets *llc_sets(void)
 *   struct domains *domains(void)
 *   struct cgroup_state *cgroup_state(u32 index)
 *   struct bandwidth *bandwidth(u32 index), struct limits *limits(void)
 *   struct park *park_of(u32 queue)
 *   struct wakeup *wakeup_of(u32 arm)	this CPU's
 *
 * The kernel's view of a CPU, which is only read and never claimed:
 *   bool cpu_idle(s32 cpu)		kernel: available_idle_cpu()
 *   u32 cpu_nr_running(s32 cpu)	kernel: rq->nr_running, all classes
 *   u64 cpu_domain(s32 cpu)	not 0; the same for CPUs between which the kernel balances
 *   u64 cpu_rt_util(s32 cpu)	use by real-time and deadline tasks and interrupts,
 *				0..CAPACITY_SCALE or a bit more
 *
 * Where a task may run (the type of tasks is the port's own):
 *   bool task_in_mask(port_task *p, s32 cpu)
 *   bool task_narrow(port_task *p, u32 whole)	its mask has fewer CPUs than that
 *   s32 task_cpu(port_task *p)			the CPU that it is on, or was
 *
 * Queues of waiting tasks, ordered by deadline; aging.h numbers them:
 *   bool queue_take(u32 queue)	run its first task that may run on this CPU here next
 *   u32 queue_length(u32 queue)
 *
 * Beyond placement (act.bpf.h, act.native.h). Tasks:
 *   struct task_state *task_state_if(p)	NULL: it has none
 *   u32 task_pid(p), u64 task_key(p)	the key by which its queue is ordered
 *   u64 task_slice(p)		what it may still run; while it waits: as insert_queued() was told
 *   u64 task_ran(p)		ns that it has run in all, by the kernel's account
 *   bool task_pinned(p)		it can run on one CPU only
 *   bool held_from_mask(p)	it may not migrate now, and not stay on its CPU
 *   bool pcpu_kthread(p)		a kthread that is bound to one CPU
 *   bool task_runnable(p), task_sleeps(p), task_is_idle(p), task_exits(p)
 *   port_task *current_task(void), bool in_task(void)	false: in an interrupt
 *   bool enq_placed(u64 enq_flags)	select_cpu was called
 *   void arm_follow(p, ts)	put the task on the arm that the rules give it
 *   bool ask_return(p)		have task_returns() (parking.h) called as it is about to return to
 *				user mode; false: the kernel cannot
 *
 * CPUs:
 *   s32 this_cpu(void), u64 cpu_clock(void)	ns; the same throughout a callback that
 *				holds the CPU's rq lock
 *   bool cpu_curr_idle(s32 cpu)	the idle task runs there
 *   bool cpu_taken(s32 cpu)	a task of a higher class runs there. While the kernel switches
 *				between two tasks of ours, the first still counts as running
 *   bool cpu_is_ours(s32 cpu)	it is online, and runs no task of a higher class; in the local
 *				queue of any other CPU a task would not be found
 *   bool cpu_leaves(s32 cpu)	the kernel has begun to take it offline
 *   u32 local_length(s32 cpu)	tasks in the kernel's own queue of the CPU, to run there next
 *   u32 cpu_speed(s32 cpu)	0..CAPACITY_SCALE (kernel: arch_scale_freq_capacity())
 *   void ask_speed(s32 cpu, u32 speed)
 *   void kick_cpu(s32 cpu, u64 flags)
 *   u32 sweep_cgroups(u64 now)	go on with the sweep of cgroups, if it is due
 *
 * Where a task goes, from select_cpu and enqueue:
 *   void insert_local(p, u64 slice, u64 enq_flags)	next on its CPU
 *   void insert_on(p, s32 cpu, u64 slice, u64 enq_flags)	next on that CPU
 *   void insert_queued(p, u32 queue, u64 slice, u64 key, u64 enq_flags)	into that queue
 *   bool set_slice(p, u64 slice)	of a running task, ns
 *   port_task *queue_head(u32 queue)	NULL: it is empty
 *   for_each_queued (p, queue)	a loop. Its body may call one of these, once; false: another CPU
 *				has taken the task by now
 *	bool queued_move_here(p), queued_move_to(p, cpu, enq_flags)	run it there next
 *	bool queued_requeue(p, queue, key)	move it into that queue
 *
 * Timers, one of each kind per CPU, and one per queue of parked tasks. Starting a timer that runs
 * restarts it:
 *   s32 start_slice_timer(s32 cpu, u64 ns), start_delay_timer(s32 cpu, u64 ns)	0, or an error
 *   s32 start_park_timer(u32 queue, u64 ns)
 *
 * For tests:
 *   void spin_gap(void)	in a build for tests, a pause between the check of a CPU and the
 *			insertion there
 *
 * The clock, read at each call, unlike a callback's own time (now):
 *   u64 clock_ns(void)		ns
 *
 * Memory and counting:
 *   u64 atomic_or(u64 *p, u64 bits), atomic_and(u64 *p, u64 bits)	return the old value;
 *							full barriers
 *   void atomic_add(u64 *p, u64 v)		orders nothing, except on x86
 *   u64 atomic_fetch_add(u64 *p, u64 v)	returns the old value; a full barrier
 *   u64 atomic_swap(u64 *p, u64 v)		returns the old value; a full barrier
 *   bool atomic_cas(u64 *p, u64 old, u64 v)	true: *p was old and is now v
 *   void count_for(u32 arm, enum roost_stat s)	for a task on that arm
 *   void count(enum roost_stat s)			for the machine: arm 0
 *   void count_wakeup(const struct wakeup *w, enum roost_stat s)	as count_for(w->arm, s),
 *				at less cost; @w is of wakeup_of()
 *   void hist_for(u32 arm, enum roost_hist h, u64 ns)
 *   subprog	marks a function that the verifier checks as a program of its own, once for any
 *		argument: most functions with a loop, and some that are long or often called. Its
 *		task parameter is marked trusted, its pointers nonnull
 *   know_cpu()	at the start of a callback that counts in many places: it asks once which CPU
 *		runs it; a subprogram asks again
 *   from_zero	0, but unknown to the verifier, so that it checks a loop's body once
 *   opaque(x)	hides from the compiler what it knows of x
 *   may_loop	the condition in every loop, for the verifier; true natively. Unrolled loops and
 *		for_each_queued, whose iterator ends by itself, do without it
 */
#ifndef ROOST_PORT_H
#define ROOST_PORT_H

#include "state.h"

/*
 * @i as an index of a table of @size entries, a power of two; natively @i is below it. What the
 * compiler knows of @i, the verifier may have forgotten, for example in a loop: so the mask stands
 * behind opaque(), where the compiler must keep it. Tables of CPUs, LLCs and nodes have a bare
 * mask: with a barrier in their accessors verifiers check two to five times as many instructions.
 */
#define masked(i, size)                                                                            \
	({                                                                                         \
		u32 index_ = (i);                                                                  \
		_Static_assert(!((size) & ((size) - 1)), "a power of two");                        \
		opaque(index_);                                                                    \
		index_ % (size);                                                                   \
	})

#if defined(ROOST_PORT)
#include ROOST_PORT /* a proof's port: tests/verify/ */
#elif defined(ROOST_NATIVE)
#include "../../native/port.native.h"
#else
#include "../port.bpf.h"
#endif

/* The arm that holds the tunables of the machine as a whole. */
static __always_inline const struct arm *machine_arm(void)
{
	return &image_now()->arm[0];
}

/*
 * The features of an arm: @live, those of its current policy. If features are frozen, they are a
 * constant instead: the verifier knows it at load and drops the code that it switches off.
 */
static __always_inline u32 features_of(u32 live)
{
	return tunables()->frozen ? tunables()->features : live;
}

#define NSEC_PER_MSEC 1000000ULL

/* The clock of userspace's time stamps. */
static __always_inline u32 clock_ms(void)
{
	return clock_ns() / NSEC_PER_MSEC;
}

static __always_inline bool share_cache(s32 a, s32 b)
{
	return cpu_facts(a)->llc == cpu_facts(b)->llc;
}

/*
 * for i = 0 .. @n - 1, with @n at most @max, a constant. So the verifier checks a body once and
 * knows that the loop ends.
 */
#define for_below(i, n, max) for (i = from_zero; i < (n) && i < (max) && may_loop; i++)

/* The @i-th other thread of a core, @i below nr_sib. */
static __always_inline s32 sibling(const volatile struct cpu_facts *f, u32 i)
{
	return f->sib[masked(i, MAX_SMT)];
}

static __always_inline bool share_core(s32 a, s32 b)
{
	return cpu_facts(a)->core == cpu_facts(b)->core;
}

#endif /* ROOST_PORT_H */
