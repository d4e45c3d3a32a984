/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mean idle periods of CPUs, and whether a search for work is worth one.
 *
 * Problem: a CPU without work searches other queues. If its idle periods are shorter than the
 * search, the search delays the next task that wakes there. And what it finds, another CPU would
 * soon have run.
 *
 * Method: each CPU keeps the mean length of its idle periods (kernel: rq->avg_idle). A period
 * begins when a search begins that finds nothing, so the search counts as idle time.
 * [avg_idle] The search has levels: LLC, node, machine. A level is skipped when the mean is less
 * than the cost of this search so far plus what that level may cost (kernel:
 * sched_balance_newidle()). As in the kernel until January 2026, a wakeup ends the period. A stolen
 * task cancels it. Other arrivals do not end it, so a wakeup that comes while they run counts a
 * period that is too long.
 * [avg_idle_every] Every arrival ends it: wakeup, fork, stolen task, or other. This is Huang's
 * patch, and in effect what the kernel has done since.
 * [avg_idle_scan] The mean also bounds the scan at wakeup: userspace reads the means of an LLC and
 * sets the bound (scan_worth()).
 *
 * Limits: a task that waits longer than a slice is still found. Its CPU's timer or tick calls an
 * idle CPU, which then searches whatever its mean is. The means are always kept, even if no feature
 * reads them. Each CPU starts with the longest mean.
 */
#ifndef ROOST_AVG_IDLE_H
#define ROOST_AVG_IDLE_H

#include "bits.h"

/* What ends an idle period. */
enum arrival {
	ARRIVAL_WAKEUP,
	ARRIVAL_FORK,
	ARRIVAL_STEAL,
	ARRIVAL_OTHER,
};

/* A search counts as at most this above the migration cost (kernel: update_newidle_cost()). ns */
#define SEARCH_SLACK_NS 200ULL

#define SECOND_NS	1000000000ULL

/* The longest mean: twice what a search may cost (kernel: 2 * rq->max_idle_balance_cost). ns */
static __always_inline u64 longest_idle(const struct cpu_state *cs)
{
	u64 cost = cs->steal_cost[STEAL_LLC] + cs->steal_cost[STEAL_NODE] +
		   cs->steal_cost[STEAL_MACHINE];
	u64 least = machine_arm()->migration_cost_ns;

	return 2 * (cost > least ? cost : least);
}

static __always_inline void idle_init(struct cpu_state *cs)
{
	cs->idle_wakeup.mean = cs->idle_every.mean = longest_idle(cs);
}

/*
 * A search that began at @now has found nothing. If the CPU was idle already, its period goes on.
 */
static __always_inline void idle_begins(struct cpu_state *cs, u64 now)
{
	if (!cs->idle_every.since)
		cs->idle_wakeup.since = cs->idle_every.since = now;
}

/* Fold one period into the mean, an eighth of it (kernel: update_avg(), update_rq_avg_idle()). */
static __always_inline void idle_fold(struct idle_time *t, u64 now, u64 longest)
{
	u64 period;

	if (!t->since)
		return;
	/* The clocks of two CPUs differ a little. */
	period = (s64)(now - t->since) > 0 ? now - t->since : 0;
	t->since = 0;
	if (period > t->mean)
		t->mean += (period - t->mean) / 8;
	else
		t->mean -= (t->mean - period) / 8;
	if (t->mean > longest)
		t->mean = longest;
}

_Static_assert(STAT_avg_idle_wakeup + ARRIVAL_FORK == STAT_avg_idle_fork &&
		       STAT_avg_idle_wakeup + ARRIVAL_STEAL == STAT_avg_idle_steal &&
		       STAT_avg_idle_wakeup + ARRIVAL_OTHER == STAT_avg_idle_other,
	       "a counter for each arrival, in their order");

/*
 * A task arrives on a CPU that may be idle. In idle_wakeup a stolen task also ends the period, but
 * as in the kernel that period is not part of the mean.
 */
static __always_inline void idle_ends(struct cpu_state *cs, u64 now, enum arrival arrival)
{
	u64 longest;

	if (!cs->idle_every.since && !cs->idle_wakeup.since)
		return;
	longest = longest_idle(cs);
	if (cs->idle_every.since)
		count(STAT_avg_idle_wakeup + arrival);
	idle_fold(&cs->idle_every, now, longest);
	if (arrival == ARRIVAL_WAKEUP)
		idle_fold(&cs->idle_wakeup, now, longest);
	else if (arrival == ARRIVAL_STEAL)
		cs->idle_wakeup.since = 0;
}

/*
 * A task runs, so the CPU is not idle. A period may still seem to go on: a search may drop its
 * CPU's lock (steal.h), a task then arrives before the search ends, and the search begins a period.
 */
static __always_inline void idle_is_over(struct cpu_state *cs)
{
	if (cs->idle_every.since)
		cs->idle_every.since = cs->idle_wakeup.since = 0;
}

/* How long a search may take. ns */
static __always_inline u64 search_budget(const struct cpu_state *cs)
{
	u32 features = features_of(machine_arm()->task.features);

	if (!(features & FEATURE_avg_idle))
		return ~0ULL;
	return features & FEATURE_avg_idle_every ? cs->idle_every.mean : cs->idle_wakeup.mean;
}

/*
 * A search of @level took @ns. The cost of a level is the most that it has taken, less one per cent
 * a second (kernel: update_newidle_cost()).
 */
static __always_inline void search_took(struct cpu_state *cs, enum steal_level level, u64 ns,
					u64 now)
{
	u64 most = machine_arm()->migration_cost_ns + SEARCH_SLACK_NS;
	u64 *cost = &cs->steal_cost[level];

	if (ns > *cost)
		*cost = ns < most ? ns : most;
	else if ((s64)(now - cs->steal_cost_at[level]) > (s64)SECOND_NS)
		*cost = *cost * 253 / 256;
	else
		return;
	cs->steal_cost_at[level] = now;
}

/*
 * Let costs shrink also while they keep the CPU from searching (kernel: sched_balance_domains()).
 */
static __always_inline void searches_forgotten(struct cpu_state *cs, u64 now)
{
	search_took(cs, STEAL_LLC, 0, now);
	search_took(cs, STEAL_NODE, 0, now);
	search_took(cs, STEAL_MACHINE, 0, now);
}

#endif /* ROOST_AVG_IDLE_H */
