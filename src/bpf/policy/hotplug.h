/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs go offline and come back while the scheduler runs.
 *
 * Problem: loading the scheduler again takes a second or more. Meanwhile the kernel's own
 * scheduler has all tasks.
 *
 * Method: the tables of CPUs, cores and caches stay as they were at load. A CPU that goes offline
 * is marked as away: no task is placed there, and its core is idle when its other threads are. The
 * tasks of its queues, parked ones too, are handed to the kernel, which pushes them to other CPUs.
 * There they come to enqueue. A CPU that comes back finds its place as it was.
 *
 * Only kernel threads that are bound to the CPU go on there, among them the one that takes it
 * offline. The kernel no longer calls dispatch for it. A task whose slice ends while no other waits
 * would be put into the local queue, and the CPU would go idle beside it: with SCX_OPS_ENQ_LAST
 * balance_one() does not keep it, and dispatch_enqueue() does not wake a CPU on which a task of
 * ours was just running. So no slice ends there unless another task is in the local queue.
 *
 * The kernel begins to take the CPU offline before it says so, and waits for an RCU grace period in
 * between (kernel: sched_cpu_deactivate()). In that time it takes no task of another CPU (steal.h).
 * The kernel need not call dispatch nor enqueue for it, and lets it idle beside its queues. Other
 * CPUs rescue what they may run (serve.h). The rest the timer hands to the kernel (slice_timer.h):
 * the grace period may wait for such a task.
 *
 * Limits: the slice of that thread may end after the grace period, just before ops.cpu_offline.
 * Then the thread waits until the kernel schedules on that CPU again. The place of a CPU that was
 * offline at the load is unknown; if one comes, the scheduler is loaded again. While a CPU is away,
 * searches of its LLC may take one step more, and the LLC's capacity still includes it.
 */
#ifndef ROOST_HOTPLUG_H
#define ROOST_HOTPLUG_H

#include "aging.h"
#include "bandwidth.h"
#include "idle_scan.h"

/*
 * Move the tasks of @queue that are @cpu's to the kernel's own queue of that CPU, which only the
 * kernel empties now (kernel: balance_push()). No other CPU could take a task that is bound to this
 * one, and the kernel would wait for it (kernel: balance_hotplug_wait()).
 */
subprog u32 give_up(u32 queue, s32 cpu)
{
	port_task *p;

	for_each_queued(p, queue) if (task_cpu(p) == cpu) queued_move_to(p, cpu, 0);
	return 0;
}

static __always_inline void give_up_queues(s32 cpu)
{
	give_up(young_queue(cpu), cpu);
	give_up(old_queue(cpu), cpu);
}

/* A thread of @cpu's core has gone or come: renew the core's masks. */
subprog u32 core_changes(s32 cpu)
{
	const volatile struct cpu_facts *f = cpu_facts(cpu);
	u32 i;

	core_mask_init(cpu);
	for_below (i, f->nr_sib, MAX_SMT)
		core_mask_init(sibling(f, i));
	return 0;
}

/* ---- tasks on a CPU that is away ---- */

/* A slice that does not end. With SLICE_INF the tick of a nohz_full CPU would stop. ns */
#define AWAY_SLICE (1ULL << 62)

static __always_inline void away_runs(port_task *p, s32 cpu)
{
	if (cpu_away(cpu))
		set_slice(p, AWAY_SLICE);
}

/*
 * The tick of such a CPU. Whenever the kernel chooses a task there that is not one of its own
 * threads, it pushes it away (kernel: balance_push()), so a kick is enough for that.
 */
static __always_inline void away_tick(port_task *p, const struct cpu_state *cs, s32 cpu, u64 now)
{
	if (!pcpu_kthread(p))
		kick_cpu(cpu, 0);
	if (local_length(cpu) && !before(now, cs->curr_start + cs->curr_slice))
		set_slice(p, 0);
}

/* ---- it goes and comes ---- */

/*
 * @cpu goes offline. The kernel no longer calls enqueue for it (kernel: scx_rq_online()). The
 * current task is the one that takes it offline.
 */
static __always_inline void cpu_goes(s32 cpu)
{
	u32 queue;

	if (cpu_away(cpu))
		return;
	domains()->away[masked(cpu, MAX_CPUS)] = 1;
	away_runs(current_task(), cpu);
	llc_state(cpu_facts(cpu)->llc)->nr_away++;
	core_changes(cpu);
	/*
	 * A full barrier: a timer that releases parked tasks to this CPU from now on gives them up
	 * itself (park_left()).
	 */
	atomic_swap(&cpu_state(cpu)->uncounted, 0);
	give_up_queues(cpu);
	if (!tunables()->limits)
		return;
	for_below (queue, PARK_QUEUES, PARK_QUEUES)
		give_up(park_number(queue), cpu);
}

/* @cpu comes online. False: it was offline at the load, and its place is not known. */
static __always_inline bool cpu_comes(s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);

	if (!cpu_facts(cpu)->online)
		return false;
	cs->assigned_cpu = cs->help_for = 0;
	cs->dispatched_at = cs->balanced_at = cs->busy_since = now;
	if (cpu_away(cpu)) {
		domains()->away[masked(cpu, MAX_CPUS)] = 0;
		llc_state(cpu_facts(cpu)->llc)->nr_away--;
		set_slice(current_task(), machine_arm()->task.slice_ns);
	}
	core_changes(cpu);
	return true;
}

#endif /* ROOST_HOTPLUG_H */
