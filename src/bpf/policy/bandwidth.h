/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.max: the tasks of a group, and of all groups below it, together run for at most its quota in
 * each period.
 *
 * Problem: sched_ext leaves CPU limits to the BPF scheduler, and a container's limit is a promise
 * to its neighbours.
 *
 * Method: each group with a limit has a budget. At the end of a period the quota is added, up to
 * quota plus burst. The first callback that checks the budget later does this, so no timer runs for
 * a group that stays within its limit. A task that begins to run takes a grant of at most 5 ms from
 * its nearest group with a limit and from all limits above that. Its slice is cut to the grant, the
 * slice timer ends it, and the unused rest goes back. So the shared words change twice per grant,
 * not at each charge.
 *
 * A task whose groups have no budget is parked (parking.h), but not while it may hold a lock of the
 * kernel: it runs on until it is about to return to user mode. If the budget ends while the task is
 * at the head of its CPU's queue, it runs for OWED_NS. What is overdrawn is owed: the next periods
 * begin with less.
 *
 * While tasks of a group are parked, the budget is split among them, and a task whose grant is over
 * joins them at the end. So all of them make progress, in turn.
 *
 * Limits: a task that is about to exit and a kthread that is bound to one CPU have no limit. Two
 * CPUs that take grants at the same instant may overdraw by one of them.
 */
#ifndef ROOST_BANDWIDTH_H
#define ROOST_BANDWIDTH_H

#include "cgroup.h"

/* kernel: sched_cfs_bandwidth_slice_us */
#define GRANT_MAX_NS   5000000ULL
/* A grant is not split below this. */
#define GRANT_MIN_NS   500000ULL
/*
 * How long a task without budget runs. This is also the smallest grant: a budget below it counts as
 * none, and is kept.
 */
#define OWED_NS	       50000ULL
/* A grant that ends within this is over. */
#define GRANT_SLACK_NS 20000ULL
/* How soon parked tasks are checked again, when not the group's budget holds them back. ns */
#define PARK_AGAIN_NS  100000ULL
/* At most this many missed periods are made up for. */
#define PERIODS_MAX    1024

/* False as long as no group has had a limit. Until then limits cost only this test. */
static __always_inline bool limits_exist(void)
{
	return tunables()->limits && limits()->any;
}

/* ---- which groups have limits ---- */

static __always_inline u32 limit_search(u32 index)
{
	u32 level;

	for_below (level, MAX_CGROUPS, MAX_CGROUPS) {
		if (index == ROOT_CGROUP || bandwidth(index)->quota)
			return index;
		index = cgroup_state(index)->parent;
	}
	return ROOT_CGROUP;
}

subprog u32 limit_find(u32 index)
{
	/* A full barrier: the quotas read below are at least as new. */
	u64 changes = atomic_or(&limits()->changes, 0);
	u32 near = limit_search(index);

	bandwidth(index)->near = changes * MAX_CGROUPS + near;
	return near;
}

/*
 * The nearest group with a limit, from @index upwards; ROOT_CGROUP: none. Searched again if a limit
 * has been set since the last search.
 */
static __always_inline u32 limit_of(u32 index)
{
	u64 near = bandwidth(index)->near;

	if (index == ROOT_CGROUP)
		return ROOT_CGROUP;
	if (near / MAX_CGROUPS != limits()->changes)
		return limit_find(index);
	return near % MAX_CGROUPS;
}

/* A CPU that sees the new count also sees the quota that was set before it. */
static __always_inline void limits_changed(void)
{
	u64 changes;

	do
		changes = limits()->changes;
	while (!atomic_cas(&limits()->changes, changes, changes + 1) && may_loop);
}

static __always_inline u32 limit_above(u32 index)
{
	return limit_of(cgroup_state(index)->parent);
}

/*
 * The topmost group with a limit above @index, which has one: tasks under it are parked in one
 * queue.
 */
subprog u32 limit_top(u32 index)
{
	u32 level, above;

	for_below (level, MAX_CGROUPS, MAX_CGROUPS) {
		above = limit_above(index);
		if (above == ROOT_CGROUP)
			break;
		index = above;
	}
	return index;
}

static __always_inline u32 park_queue(u32 index)
{
	return limit_top(index) % PARK_QUEUES;
}

/* The number of a queue of parked tasks, after those of CPUs (aging.h). */
static __always_inline u32 park_number(u32 queue)
{
	return 2 * MAX_CPUS + queue % PARK_QUEUES;
}

/* ---- budgets ---- */

/*
 * Count the time without budget up to now. @goes_on: the group still has none. Otherwise it has
 * budget again, or no limit any more.
 */
static __always_inline void throttle_counts(struct bandwidth *bw, u64 now, bool goes_on)
{
	u64 since = bw->throttled_since;

	if (since && atomic_cas(&bw->throttled_since, since, goes_on ? now : 0))
		bw->throttled_ns += waited_since(since, now);
}

/*
 * Add the quota for the periods that are over; the first CPU that notices does this. At most quota
 * plus burst is kept, plus OWED_NS: a rest below that counts as none.
 */
subprog u32 budget_refill(u32 index, u64 now)
{
	struct bandwidth *bw = bandwidth(index);
	u64 end = bw->period_end, period = bw->period, over;
	s64 runtime, full = bw->quota + bw->burst + OWED_NS;

	if (before(now, end) || !period)
		return 0;
	over = 1 + (now - end) / period;
	if (!atomic_cas(&bw->period_end, end, end + over * period))
		return 0;
	bw->periods += over;
	runtime = bw->runtime;
	full -= runtime;
	over = (over < PERIODS_MAX ? over : PERIODS_MAX) * bw->quota;
	if ((s64)over < full)
		full = over;
	atomic_add(&bw->runtime, full);
	throttle_counts(bw, now, runtime + full < (s64)OWED_NS);
	return 0;
}

/* ns; less than OWED_NS counts as none. */
static __always_inline s64 budget_left(u32 index, u64 now)
{
	if (!before(now, bandwidth(index)->period_end))
		budget_refill(index, now);
	return bandwidth(index)->runtime;
}

/*
 * The nearest group without budget, from @index, which has a limit, upwards. ROOT_CGROUP: none, its
 * tasks may run.
 */
subprog u32 limit_blocker(u32 index, u64 now)
{
	u32 level;

	for_below (level, MAX_CGROUPS, MAX_CGROUPS) {
		if (index == ROOT_CGROUP || budget_left(index, now) < (s64)OWED_NS)
			return index;
		index = limit_above(index);
	}
	return ROOT_CGROUP;
}

/*
 * For @index and all limits above it: @used ns were used, and @back ns of what was taken are given
 * back (below 0: taken as well).
 */
subprog u32 budget_settle(u32 index, u64 used, s64 back)
{
	u32 level;

	for_below (level, MAX_CGROUPS, MAX_CGROUPS) {
		struct bandwidth *bw = bandwidth(index);

		if (index == ROOT_CGROUP)
			break;
		if (back)
			atomic_add(&bw->runtime, back);
		if (used)
			atomic_add(&bw->used_ns, used);
		index = limit_above(index);
	}
	return 0;
}

/* What one task gets of @left: its share among the parked tasks. */
static __always_inline u64 grant_share(u64 left, u64 parked)
{
	u64 share = left / (1 + parked);

	if (share < GRANT_MIN_NS)
		share = GRANT_MIN_NS;
	return share < left ? share : left;
}

/* Take time to run from @index and all limits above it. 0: one of them has none. */
subprog u64 grant_take(u32 index, u64 now)
{
	u64 grant = GRANT_MAX_NS, parked = bandwidth(index)->parked;
	u32 level, at = index;

	for_below (level, MAX_CGROUPS, MAX_CGROUPS) {
		s64 left;
		u64 share;

		if (at == ROOT_CGROUP)
			break;
		left = budget_left(at, now);
		if (left < (s64)OWED_NS)
			return 0;
		share = grant_share(left, parked);
		if (share < grant)
			grant = share;
		at = limit_above(at);
	}
	budget_settle(index, 0, -(s64)grant);
	return grant;
}

/* ---- the timer of a queue of parked tasks ---- */

/* A timer that is this long overdue was lost, or starved. ns */
#define PARK_LOST_NS 4000000ULL

static __always_inline bool park_timer_lost(u64 fires_at, u64 now)
{
	return fires_at && !before(now, fires_at + PARK_LOST_NS);
}

/*
 * Make the timer fire by @at. While its callback runs, timer_at is the time at which it fired, and
 * the callback itself checks whether tasks came meanwhile. A timer that is long overdue is set to
 * fire at once: at @at it would be even later for all other tasks.
 */
subprog u32 park_timer_start(u32 queue, u64 now, u64 at)
{
	struct park *park = park_of(queue);
	u32 i;

	if (before(at, park->rests_until))
		at = park->rests_until;
	for_below (i, 4, 4) {
		u64 fires_at = park->timer_at;

		if (park_timer_lost(fires_at, now))
			at = now;
		else if (fires_at && !before(at, fires_at))
			return 0;
		if (atomic_cas(&park->timer_at, fires_at, at))
			break;
	}
	/* Another CPU may have set an earlier time meanwhile, and have started the timer before. */
	for_below (i, 4, 4) {
		if (start_park_timer(queue, time_until(at, now))) {
			park->timer_at = 0;
			break;
		}
		if (park->timer_at == at || !park->timer_at)
			break;
		at = park->timer_at;
	}
	return 0;
}

/* ---- a task runs on its groups' budget ---- */

/* The nearest group whose limit holds for the task; ROOT_CGROUP: none. */
static __always_inline u32 limit_on(port_task *p, const struct task_state *ts)
{
	return pcpu_kthread(p) ? ROOT_CGROUP : limit_of(ts->cgroup);
}

/* The task is no longer parked. The first CPU to find this takes it off the count. */
static __always_inline void park_ends(struct task_state *ts)
{
	u64 in;

	if (!ts->parked_in)
		return;
	in = atomic_swap(&ts->parked_in, 0);
	if (in)
		atomic_add(&bandwidth(in)->parked, -1ULL);
}

/* Give back the grant of limit @index that the task holds without running. */
static __always_inline void grant_drop(struct task_state *ts, u32 index)
{
	u64 granted;

	if (!ts->granted)
		return;
	granted = atomic_swap(&ts->granted, 0);
	if (index != ROOT_CGROUP)
		budget_settle(index, 0, granted);
}

/* The task leaves its group, or our class, or dies. */
static __always_inline void limit_leaves(struct task_state *ts)
{
	park_ends(ts);
	grant_drop(ts, limit_of(ts->cgroup));
}

/*
 * What the running task has used of its grant, by the kernel's own account, which leaves out
 * interrupt time. It is up to date in dispatch and in stopping.
 */
static __always_inline u64 budget_used(port_task *p, const struct task_state *ts)
{
	return task_ran(p) - ts->budget_from;
}

/* Cut the slice to the budget. */
static __always_inline void budget_caps(port_task *p, struct cpu_state *cs,
					const struct task_state *ts)
{
	u64 used = budget_used(p, ts), left = used < ts->budget ? ts->budget - used : 0;

	if (cs->curr_slice > left)
		cs->curr_slice = left;
}

/* The task runs on @grant of limit @of. */
static __always_inline void budget_starts(port_task *p, struct task_state *ts, u32 of, u64 grant)
{
	ts->budget_of = of;
	ts->budget = grant;
	ts->budget_from = task_ran(p);
}

/*
 * The task begins to run, on the grant that it got when it was released, or else on a new one. With
 * neither it is still to be parked: the kernel stops and starts a running task also to change it.
 */
static __always_inline void budget_take(port_task *p, struct task_state *ts, u32 of, u64 now)
{
	u64 grant = ts->granted ? atomic_swap(&ts->granted, 0) : 0;

	if (!grant)
		grant = grant_take(of, now);
	if (grant) {
		ts->returning = 0;
	} else {
		grant = ts->over_budget ? GRANT_MAX_NS : OWED_NS;
		count_for(ts->pol.arm, STAT_budget_none);
		budget_settle(of, 0, -(s64)grant);
	}
	budget_starts(p, ts, of, grant);
}

subprog u32 budget_begins(port_task *p trusted, struct task_state *ts nonnull, s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u32 of;

	park_ends(ts);
	of = limit_on(p, ts);
	if (of == ROOT_CGROUP) {
		/* There is no limit any more. */
		grant_drop(ts, limit_of(ts->cgroup));
		ts->returning = 0;
		cs->budgeted = 0;
		return 0;
	}
	budget_take(p, ts, of, now);
	cs->budgeted = 1;
	budget_caps(p, cs, ts);
	return 0;
}

/*
 * The task stops. If it goes on waiting, it keeps what is left of its grant. Otherwise the rest is
 * given back, which may release others.
 */
subprog u32 budget_ends(port_task *p trusted, struct task_state *ts nonnull, bool waits, u64 now)
{
	u64 used = budget_used(p, ts);
	s64 left = ts->budget - used;
	u32 of = ts->budget_of, queue;

	ts->budget_of = ROOT_CGROUP;
	if (waits && !ts->returning && left > (s64)GRANT_SLACK_NS) {
		atomic_add(&ts->granted, left);
		left = 0;
	}
	budget_settle(of, used, left);
	if (!waits)
		grant_drop(ts, of);
	if (left < (s64)OWED_NS)
		return 0;
	queue = park_queue(of);
	if (queue_length(park_number(queue)))
		park_timer_start(queue, now, now + PARK_AGAIN_NS);
	return 0;
}

/*
 * The running task is at the end of its slice. True: its grant is not over. False: it has ended
 * now, or there was none. On the way to user mode it ends.
 */
static __always_inline bool grant_lasts(port_task *p, struct task_state *ts)
{
	u64 used = budget_used(p, ts);
	u32 of = ts->budget_of;

	if (of == ROOT_CGROUP)
		return false;
	if (!ts->returning && used + GRANT_SLACK_NS < ts->budget)
		return true;
	budget_settle(of, used, (s64)(ts->budget - used));
	ts->budget_of = ROOT_CGROUP;
	return false;
}

/*
 * The task that runs on @cpu is at the end of its slice: may it go on? Yes, if its grant is not
 * over, or if it gets another because no task of the group is parked. Its limit is looked up again:
 * one may have been set since it began to run.
 */
subprog bool budget_lasts(port_task *p trusted, struct task_state *ts nonnull, s32 cpu, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 grant;
	u32 of;

	if (grant_lasts(p, ts))
		return true;
	cs->budgeted = 0;
	of = limit_on(p, ts);
	if (of == ROOT_CGROUP)
		return true;
	if (bandwidth(of)->parked)
		return false;
	grant = grant_take(of, now);
	if (!grant)
		return false;
	budget_starts(p, ts, of, grant);
	ts->returning = 0;
	cs->budgeted = 1;
	return true;
}

/* ---- a task wants to run ---- */

/*
 * The task has to wait for its group's budget, or for its turn among those that wait. One that
 * exits does not return to user mode, so it never waits, and its group owes the time.
 */
subprog bool must_park(port_task *p trusted, struct task_state *ts nonnull, u64 now)
{
	u32 of = limit_on(p, ts);

	if (of == ROOT_CGROUP || ts->granted)
		return false;
	if (task_exits(p)) {
		ts->over_budget = 1;
		return false;
	}
	return bandwidth(of)->parked || limit_blocker(of, now) != ROOT_CGROUP;
}

#endif /* ROOST_BANDWIDTH_H */
