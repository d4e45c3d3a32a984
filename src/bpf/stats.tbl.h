/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of counters. A row is STAT(name, help) if count_wakeup() or count_for() counts it for
 * an arm, or MACHINE_STAT(name, help) if count() counts it for no arm. RUNG is a STAT that counts
 * the wakeups whose CPU this rung of the ladder gave; EARLY_RUNG is one that does not ask
 * wake_affine before.
 * All count events since the first load, restarts included. build.rs reads the same rows for Rust
 * (src/wire/stats/), where each becomes a field of the statistics with its description. The comment
 * above a group of rows is the group's name, up to its colon.
 */
#ifndef RUNG
#define RUNG STAT
#endif
#ifndef EARLY_RUNG
#define EARLY_RUNG RUNG
#endif
/* wake_affine: which CPU is the target (kernel: wake_affine_idle, wake_affine_weight) */
STAT(wa_idle_this, "wake_affine: the waker's CPU is idle (the waker is an interrupt) and shares the cache; it is the target")
STAT(wa_idle_prev, "wake_affine: as wa_idle_this, but the previous CPU is idle too, and is the target")
STAT(wa_sync, "wake_affine: a sync wakeup by a waker that runs alone; the waker's CPU is the target")
STAT(wa_prev_idle, "wake_affine: the previous CPU is idle and is the target (feature prev_idle)")
STAT(wa_weight_this, "wake_affine: the loads were compared; the waker's CPU is the target")
STAT(wa_weight_prev, "wake_affine: the loads were compared; the previous CPU is the target")
STAT(wa_wide, "wake_affine is skipped: wake_wide found one waker with many wakees")
STAT(wa_same, "wake_affine is skipped: the waker's CPU is the previous CPU, or is not allowed")
EARLY_RUNG(prev_core, "the previous CPU, whose whole core is idle (feature prev_core); wake_affine is skipped")
/* select_idle_sibling: the rung that gave the CPU */
RUNG(recent_core, "the recently used CPU, whose whole core is idle, before the target is tried (feature recent_core)")
RUNG(sync_core, "the target, whose whole core is idle, on a sync wakeup (feature sync_core)")
STAT(sync_core_passed, "an idle target was passed over: not a sync wakeup, or a thread of its core is busy (feature sync_core)")
RUNG(sis_target, "the target, idle")
RUNG(sis_prev, "the previous CPU, idle, in the target's LLC")
STAT(core_first, "an idle CPU was passed over, because its sibling is busy and a core is vacant (feature core_first)")
RUNG(sis_kthread, "the previous CPU, on which a per-CPU kthread wakes the task")
RUNG(sis_recent, "the recently used CPU, idle, in the target's LLC")
RUNG(sis_capacity, "an idle CPU that fits the task, on a machine with unequal CPUs")
RUNG(sis_smt, "an idle SMT sibling of the previous CPU")
RUNG(sis_core, "a CPU of a wholly idle core in the target's LLC")
RUNG(sis_cpu, "an idle CPU in the target's LLC")
STAT(sis_budget_out, "the budget shortened the scan of the LLC, or skipped it (feature sis_util)")
STAT(idle_scan_bound, "the scan of the LLC was limited to some CPUs, because the idle periods there are short (feature avg_idle_scan)")
STAT(idle_scan_out, "of these, the scans that were cut: they ended before an idle CPU further on")
STAT(idle_scan_unknown, "the scan of the LLC was not limited: its idle periods are unknown, or were last reported too long ago (feature avg_idle_scan)")
RUNG(sis_none, "no idle CPU was found: the target, busy")
RUNG(wide_node, "an idle CPU in another LLC of the node (feature wide_idle)")
RUNG(wide_machine, "an idle CPU in another node (feature wide_idle)")
RUNG(spread_wakeup, "a vacant core in another LLC, because the target's LLC had none (feature smt_spread)")
STAT(spread_none, "smt_spread searched for a vacant core, and the task found none")
EARLY_RUNG(pack, "the first idle CPU of the node (feature pack); wake_affine is skipped")
EARLY_RUNG(sync_local, "the CPU of a waker that is about to sleep (feature sync_local)")
STAT(fork_pack, "fork: the first idle CPU of the parent's node (feature pack)")
STAT(fork_idle, "fork: an idle CPU in the idlest group")
STAT(fork_busy, "fork: no CPU is idle; the least loaded CPU of the idlest group")
/* claims: what wakeups found and took (feature claim) */
STAT(claim_set, "idle CPUs claimed")
STAT(claim_seen, "an idle CPU or core was passed over because another wakeup had claimed it")
STAT(claim_expired, "claims taken over because they were older than claim-ttl-us")
STAT(claim_lost, "claims taken over that nothing had released after 2 s (must stay 0)")
/* util_fits and bias_prev: rungs that gave a CPU, which were tried first, and what it cost */
RUNG(fits_target, "the target, busy, with room for the task (feature util_fits)")
STAT(fits_target_nonsync, "of these, those of a wakeup that is not sync")
RUNG(fits_prev, "the previous CPU, busy, with room for the task (feature util_fits)")
RUNG(fits_recent, "the recently used CPU, busy, with room for the task (feature util_fits)")
STAT(fits_reject, "a busy CPU had no room for the task; the search went on (feature util_fits)")
STAT(fits_idle_available, "a busy CPU was taken for its room while its LLC had an idle one (feature util_fits)")
STAT(bias_prev_first, "of sis_prev and fits_prev, those found before the target was tried (feature bias_prev)")
RUNG(bias_prev_last, "no idle CPU was found: the previous CPU, busy, instead of the target (feature bias_prev)")
/* delayed migration: results of placements on another CPU, if the arm has a frequency rule */
STAT(delay_wake, "wakeups whose move to a CPU at a low frequency was delayed (feature delay_migration)")
STAT(delay_fork, "forks whose move to a CPU at a low frequency was delayed (feature delay_migration)")
STAT(delay_idle_here, "not delayed: the waker's CPU is idle itself (the waker is an interrupt) and takes the task")
STAT(delay_fast, "not delayed: the CPU's frequency is above the threshold")
STAT(delay_unknown, "not delayed: the CPU's frequency is unknown, or was last read too long ago")
/* what a wakeup got */
STAT(placed_prev, "wakeups placed on the previous CPU")
STAT(placed_idle_core, "wakeups placed on a wholly idle core; without SMT, on an idle CPU")
STAT(placed_other_llc, "wakeups placed in another LLC than the previous CPU's")
/* races: wakeups for one CPU, and the end of claims */
STAT(stacked, "placed on an idle CPU on which another task was placed at the same moment; the other task ran first")
STAT(claim_conflict, "a wakeup lost the race for an idle CPU to another claim")
STAT(core_claim_conflict, "a wakeup lost the race for an idle core to another claim (feature core_claim)")
STAT(claim_release, "claims given back: the CPU became busy between look and claim, the task went elsewhere, or its move there is delayed")
STAT(claim_clear_run, "claims ended because their task ran on the CPU (claim_plain: or another task)")
MACHINE_STAT(claim_clear_idle, "claims ended because the CPU went idle or another class took it (feature claim_plain)")
/* delayed migration: how delays ended, and the timer */
STAT(delay_cancel, "the task ran beside its waker in time and did not move")
STAT(delay_expire, "the task moved at the end of the delay")
STAT(delay_stolen, "another CPU took the task before the end of the delay")
STAT(delay_overdue, "another CPU took the task after the end of the delay, before the timer moved it")
STAT(delay_disallowed, "the task stayed: its CPU is no longer allowed, is offline, or runs a task of a higher class")
STAT(delay_refused, "the task stayed: it was just being taken from the queue")
STAT(delay_dropped, "the task was queued again meanwhile, as after a change of its affinity; it did not move")
MACHINE_STAT(delay_late, "a timer was lost or 2 ms late; if tasks wait, the CPU's tick starts it again and opens its queue")
MACHINE_STAT(delay_timer_start, "the delay timer was started")
MACHINE_STAT(delay_timer_fire, "the delay timer fired")
MACHINE_STAT(delay_timer_spurious, "the delay timer fired, and no task was left to move")
/* queueing and dispatch */
STAT(enq_idle, "tasks inserted directly into the local queue of an idle CPU (from Linux 7.1 on)")
STAT(enq_queued, "tasks queued by deadline; before Linux 7.1 also those for an idle CPU")
STAT(enq_back, "tasks that came back from a local queue: their CPU was taken before they ran")
STAT(enq_unplaced, "wakeups that were not placed: the kernel asks for no CPU when a task may not leave its own")
STAT(wake_delayed, "wakeups of a task that was still in its queue: it slept ahead of the mean, and was not placed (rules of a kernel)")
STAT(enq_pinned, "queued tasks that may run on this one CPU only")
STAT(enq_kthread, "per-CPU kthreads inserted directly into the local queue of their CPU")
STAT(preempt_wakeup, "a woken task with an earlier deadline took the CPU at once")
STAT(burst_request, "requests for less than the slice, because the task's bursts are short (feature burst_slice)")
STAT(burst_preempt, "a light task took the CPU before the running one had its minimum slice (feature burst_slice)")
MACHINE_STAT(preempt_slice, "the slice timer, not the tick, ended a slice on time")
STAT(preempt_protected, "a preemption was put off, because the running task had not yet had its minimum slice")
MACHINE_STAT(dispatch_own, "dispatch: from the CPU's own queue")
MACHINE_STAT(dispatch_help, "dispatch: from the queue of the CPU that asked for help")
MACHINE_STAT(dispatch_steal_llc, "dispatch: stolen from a CPU of the same LLC")
MACHINE_STAT(dispatch_steal_node, "dispatch: stolen from another LLC of the node")
MACHINE_STAT(dispatch_steal_machine, "dispatch: stolen from another node")
STAT(dispatch_keep, "dispatch: the previous task continued")
MACHINE_STAT(dispatch_none, "dispatch: nothing to run; the CPU goes idle")
MACHINE_STAT(steal_miss, "a queue that looked worth stealing from gave no task")
MACHINE_STAT(steal_skipped, "a search for work, or its next level, would have taken longer than the CPU's mean idle period (feature avg_idle)")
MACHINE_STAT(rescue, "a busy CPU fetched a task that had waited too long for a CPU that does not dispatch")
MACHINE_STAT(starved, "a task that had waited for long was served ahead of its turn")
MACHINE_STAT(balance_pull, "a busy CPU fetched a task from a queue whose tasks get less CPU time by weight")
STAT(spread_run, "a running task left a shared core for an idle one (feature smt_spread)")
STAT(misfit, "a running task left a CPU that is too small for it for a bigger idle one; only on machines of unequal CPUs")
STAT(push_lost, "a running task should have left for an idle core and did not: the core was taken or no longer allowed, other tasks waited here, or the task slept or was dequeued first")
MACHINE_STAT(idle_kick, "a tick or a timer woke an idle CPU, because a queue had waiters")
/* CPU limits (cpu.max) */
STAT(park, "a task was parked: its group had used up its CPU limit, or other tasks wait before it")
MACHINE_STAT(park_release, "a parked task was released: its group had budget again")
MACHINE_STAT(park_owed, "of these, those whose group had no budget: the task had waited for 1.25 s")
STAT(budget_none, "a task was chosen to run without budget, and ran for 50 us that its group then owes")
/* idle periods: what ended them */
MACHINE_STAT(avg_idle_wakeup, "idle periods ended by a wakeup, or by a real-time task")
MACHINE_STAT(avg_idle_fork, "idle periods ended by a new task (counted in the mean with avg_idle_every)")
MACHINE_STAT(avg_idle_steal, "idle periods ended by a stolen task (counted in the mean with avg_idle_every)")
MACHINE_STAT(avg_idle_other, "idle periods ended by a task that was moved there (counted in the mean with avg_idle_every)")
/* timers and the rest */
MACHINE_STAT(timer_start, "the slice timer was started")
MACHINE_STAT(timer_fire, "the slice timer fired")
MACHINE_STAT(timer_spurious, "the slice timer fired, and no task waited")
MACHINE_STAT(given_back, "a task of a higher class took the CPU; the tasks of its local queue were enqueued again")
MACHINE_STAT(cpuperf_set, "frequency requests to schedutil")
MACHINE_STAT(cgroup_full, "cgroups that needed a place in the table and got none; their tasks count as those of the group above")
MACHINE_STAT(no_task_ctx, "a callback found no context of its task (must stay 0)")
#undef RUNG
#undef EARLY_RUNG
