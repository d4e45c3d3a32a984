/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair order in a CPU's queue: which task runs first, for how long, and which may preempt which.
 *
 * Each CPU has a virtual clock: the weighted mean of the virtual run times of its running and
 * waiting tasks (kernel: avg_vruntime()). A task's lag is what the queue owes it against that mean.
 * The lag is kept over sleep and migration, clamped, and places the task in the next queue that it
 * joins (kernel: place_entity(), update_entity_lag()). A task requests an amount of time. Its
 * virtual deadline is its virtual run time at the end of the request. Of the tasks that are not
 * ahead of the mean, the one with the earliest deadline runs first (pick.h).
 *
 * Virtual times are nanoseconds at NICE0_WEIGHT: a task of twice the weight ages half as fast.
 */
#ifndef ROOST_QUEUE_H
#define ROOST_QUEUE_H

#include "util_est.h"

/*
 * Kernel: TICK_NSEC at 250 Hz. Lag is limited to this or to two requests, whichever is more, either
 * way (update_entity_lag()).
 */
#define LAG_FLOOR_NS 4000000ULL

/* [burst_slice] A task that uses less than this part of a CPU is light: its requests are short. */
#define LIGHT_UTIL   (CAPACITY_SCALE / 8)

/* [burst_slice] A light task may preempt after the minimum slice / this, its least request. */
#define LIGHT_SHARE  8

/* A slice that ends for a task which becomes eligible lasts so much longer, for timers. ns */
#define DUE_SLACK_NS 50000ULL

/* A task that joined without lag may be this far ahead of the mean by rounding. Virtual ns */
#define ROUNDING_NS  64

static __always_inline u64 to_virtual(u64 ns, u64 weight)
{
	return weight == NICE0_WEIGHT ? ns : ns * NICE0_WEIGHT / weight;
}

static __always_inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/*
 * Up to where a task is eligible: not ahead of the mean (kernel: entity_eligible()). The running
 * task has just been charged.
 */
static __always_inline u64 eligible_until(const struct cpu_state *cs)
{
	return cs->avg_vruntime + ROUNDING_NS;
}

/* ns; not below 0, though the clocks of two CPUs differ a little. */
static __always_inline u64 waited_since(u64 since, u64 now)
{
	s64 waited = now - since;

	return waited > 0 ? waited : 0;
}

/* ns until @at; 0: it has passed. */
static __always_inline u64 time_until(u64 at, u64 now)
{
	return before(now, at) ? at - now : 0;
}

/* x / y of a signed x. Only unsigned division exists on all BPF targets. */
static __always_inline s64 divided(s64 x, u64 y)
{
	u64 of = x;

	return x < 0 ? -(-of / y) : of / y;
}

/*
 * x * y of a signed x. An overflow wraps, as in the kernel; C defines that for unsigned numbers
 * only.
 */
static __always_inline s64 product(s64 x, u64 y)
{
	return (u64)x * y;
}

/* ---- policy ---- */

/* Take over the current policy of the task's arm. */
static __always_inline void policy_take(struct task_state *ts)
{
	const struct policy_image *image = image_now();

	ts->pol = arm_of(image, ts->arm)->task;
	if (ts->pol.rules & FAIR_AUTO)
		ts->pol.rules = tunables()->kernel_rules;
	ts->pol_generation = image->generation;
}

/*
 * As above, if it has changed; called at each wakeup and each new request. A frozen policy stays as
 * the task took it at its start.
 */
static __always_inline void policy_follow(struct task_state *ts)
{
	if (tunables()->frozen ||
	    (ts->pol_generation == image_now()->generation && ts->pol.arm == ts->arm))
		return;
	policy_take(ts);
}

/* ---- requests ---- */

static __always_inline bool light(const struct task_state *ts, u32 features)
{
	return (features & FEATURE_burst_slice) && ts->burst && ts->util_avg < LIGHT_UTIL;
}

/*
 * ns. A task that has run for longer than usual since it woke may never sleep again: one that only
 * yields would else ask for little, and so forfeit little, for ever.
 */
static __always_inline u64 usual_burst(const struct task_state *ts)
{
	return ts->burst_run > ts->burst ? ts->burst_run : ts->burst;
}

static __always_inline bool asks_little(const struct task_state *ts, u32 features)
{
	return !ts->custom_slice && light(ts, features) && usual_burst(ts) < ts->pol.slice_ns;
}

/*
 * The task's own slice (sched_attr.sched_runtime). Without the kernel's rules at most its arm's:
 * with a longer one it would make all others wait for as long. EEVDF protects it only for the
 * shortest request in the queue, and then passes over it (set_protect_slice(), pick_eevdf()).
 */
static __always_inline u64 slice_of(const struct task_state *ts)
{
	u64 own = ts->custom_slice;

	return own && (own < ts->pol.slice_ns || ts->pol.rules & FAIR_PARITY) ? own
									      : ts->pol.slice_ns;
}

/* The task's request: its slice. [burst_slice] A light task requests its usual burst. */
static __always_inline u64 request_ns(const struct task_state *ts, u32 features)
{
	u64 least = ts->pol.min_slice_ns / LIGHT_SHARE, burst = usual_burst(ts);

	if (!asks_little(ts, features))
		return slice_of(ts);
	return burst > least ? burst : least;
}

/* As above, in virtual ns. */
static __always_inline u64 virtual_request(const struct task_state *ts, u32 features)
{
	return to_virtual(request_ns(ts, features), ts->weight);
}

static __always_inline void new_request(struct task_state *ts, u32 features)
{
	if (asks_little(ts, features))
		count_for(ts->pol.arm, STAT_burst_request);
	ts->deadline = ts->vruntime + virtual_request(ts, features);
}

/*
 * A new task starts with half a request: on average, the tasks already there are halfway through
 * theirs (kernel: PLACE_DEADLINE_INITIAL).
 */
static __always_inline void first_request(struct task_state *ts, u32 features)
{
	ts->deadline = ts->vruntime + virtual_request(ts, features) / 2;
}

/*
 * How long the task may run now while others wait: to the end of its request, but at least the
 * minimum slice. Rounded up: if the minimum is 0, the last virtual ns of a request would otherwise
 * give an empty slice each time.
 */
static __always_inline u64 slice_left(const struct task_state *ts)
{
	u64 least = ts->pol.rules & FAIR_PARITY ? 1 : ts->pol.min_slice_ns, left;

	if (!before(ts->vruntime, ts->deadline))
		return least;
	left = ((ts->deadline - ts->vruntime) * ts->weight + NICE0_WEIGHT - 1) / NICE0_WEIGHT;
	return left > least ? left : least;
}

/*
 * A task that asks for little waits until the mean reaches it: @slice, of which @ran are over, ends
 * then, but lasts for @least. It would else wait for the whole request of another. ns
 */
static __always_inline u64 until_due(struct cpu_state *cs, u64 until, u64 ran, u64 slice, u64 least)
{
	u64 ends;

	if (!cs->due)
		return slice;
	if (!before(until, cs->due)) {
		cs->due = 0;
		return slice;
	}
	ends = ran + (cs->due - until) * cs->weight / NICE0_WEIGHT + DUE_SLACK_NS;
	if (ends < least)
		ends = least;
	return ends < slice ? ends : slice;
}

/* ---- joining and leaving ---- */

static __always_inline s64 clamped_lag(const struct task_state *ts, s64 lag)
{
	u64 slice = slice_of(ts), most = 2 * slice > LAG_FLOOR_NS ? 2 * slice : LAG_FLOOR_NS;
	s64 limit;

	if (ts->pol.rules & FAIR_LAG_TICK)
		most = slice + LAG_FLOOR_NS;
	limit = to_virtual(most, ts->weight);

	return lag > limit ? limit : lag < -limit ? -limit : lag;
}

/* Longer sleeps count as this, 18 minutes: times NICE0_WEIGHT it fits into 64 bits. ns */
#define LONG_SLEEP_NS  (1ULL << 40)

/* A running task is charged at every tick, if not before. The slowest tick is 100 Hz. ns */
#define CHARGE_NS      10000000ULL
/* Where ticks may stop, the kernel's remote tick charges it: once a second, maybe late. ns */
#define NOHZ_CHARGE_NS 2000000000ULL

/*
 * How far the mean has moved since the running task was last charged: a task that joins is placed
 * against the mean as it is now (kernel: update_curr() before place_entity()). 0 for the running
 * task itself, which is reweighed and has just been charged. Virtual ns
 */
static __always_inline u64 clock_behind(const struct cpu_state *cs, const struct task_state *ts,
					u64 now)
{
	u64 weight = cs->weight;
	s64 ns = now - cs->charged_at, most = machine_facts()->nohz ? NOHZ_CHARGE_NS : CHARGE_NS;

	if (!cs->curr_pid || ts->started || !weight || ns <= 0)
		return 0;
	return (u64)(ns < most ? ns : most) * NICE0_WEIGHT / weight;
}

/*
 * What the task owes shrinks while it sleeps, at the speed of the mean of the queue that it joins.
 * The kernel instead keeps it in its queue until the mean has caught up (delayed dequeue). If debts
 * shrank faster, sleepers that use the whole CPU would owe nothing whenever they come back. Then
 * the mean would not advance, and tasks behind it would wait forever. Virtual ns, at most the debt.
 */
static __always_inline s64 decayed_lag(const struct task_state *ts, u64 weight, u64 now)
{
	u64 slept = waited_since(ts->left_at, now), ns;

	if (slept > LONG_SLEEP_NS)
		slept = LONG_SLEEP_NS;
	ns = slept * NICE0_WEIGHT / (weight + ts->weight);
	return ns < (u64)-ts->lag ? (s64)ns : -ts->lag;
}

/*
 * How far the mean of tasks that weigh @weight together moves by @sum, a distance times a weight.
 * The remainder is kept for the next time. If it was dropped, the error would reach a whole slice
 * within minutes on a CPU that is never empty.
 */
static __always_inline s64 mean_moves(struct cpu_state *cs, s64 sum, u64 weight)
{
	u64 of;
	s64 whole;

	sum += cs->mean_rest;
	of = sum;
	whole = sum < 0 ? -((-of + weight - 1) / weight) : of / weight;
	cs->mean_rest = sum - whole * weight;
	return whole;
}

/*
 * Place the task, which stands at the mean as it is now, by its lag. Joining moves the mean, so the
 * task would lose a part of its lag: it is placed further away by as much (kernel: place_entity()).
 * @mean: as of the last charge; @weight: of the queue
 */
static __always_inline void place_by_lag(struct cpu_state *cs, struct task_state *ts, s64 lag,
					 u64 mean, u64 weight)
{
	u64 sum = weight + ts->weight, rest;
	/*
	 * A lag times the task's own weight is real time and fits into 64 bits. Times the queue's
	 * weight it may not: the products in the rest wrap, their sum is small.
	 */
	s64 moves = divided(product(lag, ts->weight), weight);

	ts->vruntime -= lag + moves;
	rest = (ts->vruntime - mean) * ts->weight + (u64)moves * sum;
	atomic_add(&cs->avg_vruntime, mean_moves(cs, rest, sum) - moves);
}

/*
 * The queue begins to count a task that has a request of its own, shorter than its arm's. What the
 * shortest is, is known until none is left (kernel: cfs_rq_min_slice()).
 */
static __always_inline void short_joins(struct cpu_state *cs, struct task_state *ts)
{
	u64 own = ts->custom_slice;

	if (!own || own >= ts->pol.slice_ns)
		return;
	if (!atomic_fetch_add(&cs->short_requests, 1) || own < cs->least_request)
		cs->least_request = own;
	ts->on_rq_short = 1;
}

static __always_inline void short_leaves(struct cpu_state *cs, struct task_state *ts)
{
	if (!ts->on_rq_short)
		return;
	atomic_add(&cs->short_requests, -1);
	ts->on_rq_short = 0;
}

/* The task joins @cpu's queue, with what is left of its lag. */
static __always_inline void queue_join(s32 cpu, struct task_state *ts, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 avg_vruntime = cs->avg_vruntime, weight = cs->weight;
	s64 lag = ts->lag < 0 ? ts->lag + decayed_lag(ts, weight, now) : ts->lag;

	cpu_integrate(cs, now);
	ts->vruntime = avg_vruntime + clock_behind(cs, ts, now);
	if (!weight)
		cs->kept_ahead = cs->mean_rest = 0;
	else if (lag || ts->vruntime != avg_vruntime)
		place_by_lag(cs, ts, lag, avg_vruntime, weight);
	/*
	 * A full barrier: the CPU's timer is looked at next. Either it is seen to be started, or it
	 * sees this weight as it fires.
	 */
	atomic_fetch_add(&cs->weight, ts->weight);
	util_est_join(cs, ts);
	short_joins(cs, ts);
	ts->on_rq = cpu + 1;
	ts->on_rq_weight = ts->weight;
}

/*
 * The task leaves the queue that counts it, and keeps its lag. If it was alone, it was the mean and
 * has none. A caller that holds the CPU's lock first brings the CPU's load up to now
 * (queue_settle()). A thief does not hold it, and may not write the load.
 */
static __always_inline void queue_leave(struct task_state *ts, u64 now)
{
	struct cpu_state *cs;
	u64 rest;
	s64 lag;

	if (!ts->on_rq)
		return;
	cs = cpu_state(ts->on_rq - 1);
	ts->lag = 0;
	if (cs->weight > ts->on_rq_weight) {
		rest = cs->weight - ts->on_rq_weight;
		lag = cs->avg_vruntime - ts->vruntime;
		if (lag)
			atomic_add(&cs->avg_vruntime,
				   mean_moves(cs, product(lag, ts->on_rq_weight), rest));
		ts->lag = clamped_lag(ts, lag);
	}
	atomic_add(&cs->weight, -(u64)ts->on_rq_weight);
	util_est_leave(cs, ts);
	short_leaves(cs, ts);
	ts->left_at = now;
	ts->on_rq = 0;
}

/*
 * The task has left the queue to sleep. What it owes still holds for tasks that stay and come: the
 * clock is not set back to their mean. Else tasks that take turns to run for a moment would each
 * find it where the first did, and one that computes beside them would never be due. (The kernel
 * keeps such a task in its queue until the clock has caught up: delayed dequeue.)
 */
subprog u32 clock_stays(struct cpu_state *cs nonnull, const struct task_state *ts nonnull)
{
	u64 weight = cs->weight, ahead;

	if (weight && ts->lag < 0) {
		ahead = (u64)-ts->lag * ts->weight / weight;
		cs->kept_ahead += ahead * weight;
		atomic_add(&cs->avg_vruntime, ahead);
	}
	return 0;
}

/* Bring the load of the CPU whose queue counts the task up to now. The caller holds its lock. */
static __always_inline void queue_settle(const struct task_state *ts, u64 now)
{
	if (ts->on_rq)
		cpu_integrate(cpu_state(ts->on_rq - 1), now);
}

/* The task moves to @cpu's queue, with its lag and the rest of its request. */
static __always_inline void queue_move(s32 cpu, struct task_state *ts, u64 now)
{
	s64 left = ts->deadline - ts->vruntime;

	queue_leave(ts, now);
	queue_join(cpu, ts, now);
	ts->deadline = ts->vruntime + left;
}

/* A changed weight rescales the lag and what is left of the request (kernel: reweight_entity()). */
static __always_inline void queue_reweigh(struct task_state *ts, u32 weight, u64 now)
{
	s32 joined = ts->on_rq;
	s64 left = (s64)(ts->deadline - ts->vruntime);

	if (weight == ts->weight)
		return;
	queue_settle(ts, now);
	queue_leave(ts, now);
	ts->lag = divided(product(ts->lag, ts->weight), weight);
	left = divided(product(left, ts->weight), weight);
	ts->weight = weight;
	if (!joined)
		return;
	queue_join(joined - 1, ts, now);
	ts->deadline = ts->vruntime + left;
}

/* ---- running ---- */

/* While it is ahead, the clock follows all but this part of the mean. */
#define WAITS_PART 8

/* How much of @mean the clock does not follow, since it is ahead. Virtual ns */
subprog u64 clock_waits(struct cpu_state *cs nonnull, u64 mean)
{
	u64 weight = cs->weight, ahead;

	if (!weight)
		return 0;
	ahead = cs->kept_ahead / weight;
	if (ahead > mean / WAITS_PART)
		ahead = mean / WAITS_PART;
	cs->kept_ahead -= ahead * weight;
	return ahead;
}

/* The running task ages by @own, and the mean with it. Returns by how much the mean moves. */
static __always_inline u64 queue_age(struct cpu_state *cs, struct task_state *ts, u64 own)
{
	u64 weight = cs->weight, mean = own;

	if (weight > ts->on_rq_weight)
		mean = mean_moves(cs, own * ts->on_rq_weight, weight);

	ts->vruntime += own;
	atomic_add(&cs->avg_vruntime, mean - (cs->kept_ahead ? clock_waits(cs, mean) : 0));
	return mean;
}

/* The running task has used @ns more. */
static __always_inline void queue_charge(struct cpu_state *cs, struct task_state *ts, u64 ns)
{
	cs->progress += queue_age(cs, ts, to_virtual(ns, ts->on_rq_weight));
}

/* The CPU runs a task that it counts, or its queues may hold tasks. */
static __always_inline bool queue_holds(const struct cpu_state *cs)
{
	return cs->weight || cs->uncounted;
}

/* Another task besides the running one is in the queue. */
static __always_inline bool queue_contended(const struct cpu_state *cs)
{
	return cs->weight > cs->curr_weight || cs->uncounted;
}

/* Yields move a deadline no further ahead than this: times a weight it fits into 64 bits. */
#define PUSH_MOST (1ULL << 40)

/*
 * The running task, which has been charged, yields: it forfeits the rest of its request, and begins
 * the next. A task that polls a lock thus leaves the CPU to the lock's holder. One that is ahead of
 * the mean keeps its request: it is not eligible, so another runs (kernel: yield_task_fair()).
 * Older kernels only move the deadline.
 */
static __always_inline void queue_yield(struct cpu_state *cs, struct task_state *ts, u32 features)
{
	u64 request = virtual_request(ts, features);
	u64 rest = ts->deadline - ts->vruntime;

	if (ts->pol.rules & FAIR_PUSH) {
		if (rest < PUSH_MOST)
			ts->deadline += request;
		cs->curr_vprot = ts->vruntime;
		return;
	}
	if (before(eligible_until(cs), ts->vruntime))
		return;
	if (before(ts->vruntime, ts->deadline))
		queue_age(cs, ts, rest < request ? rest : request);
	ts->deadline = ts->vruntime + request;
}

/*
 * The running slice ends on time: a task waits here, a limit ends it, or the CPU serves another's
 * queue.
 */
static __always_inline bool slice_ends(const struct cpu_state *cs)
{
	return queue_contended(cs) || cs->budgeted || cs->assigned_cpu;
}

/* As above, by a timer. By the kernel's rules some slices end at a tick (hrtick_start_fair()). */
static __always_inline bool timer_ends_slice(const struct cpu_state *cs)
{
	return slice_ends(cs) && (!cs->curr_untimed || cs->budgeted || cs->assigned_cpu);
}

enum preempt {
	PREEMPT_NO,
	PREEMPT_NOW,
	PREEMPT_LATER, /* once the running task has had its minimum slice */
};

/*
 * How long a running task is protected from @ts: the minimum slice. [burst_slice] A light task may
 * preempt one that is not light sooner. Others would only take turns.
 */
static __always_inline u64 protected_ns(const struct cpu_state *cs, const struct task_state *ts,
					u32 features)
{
	u64 least = ts->pol.min_slice_ns;

	return light(ts, features) && !cs->curr_light ? least / LIGHT_SHARE : least;
}

/* What a task that joins is compared with, from @now on. */
static __always_inline void curr_shows(struct cpu_state *cs, const struct task_state *ts, u64 now)
{
	cs->curr_deadline = ts->deadline;
	cs->curr_vruntime = ts->vruntime;
	cs->curr_start = now;
	cs->curr_light = light(ts, ts->pol.features);
	cs->curr_request = request_ns(ts, ts->pol.features);
	cs->curr_rules = ts->pol.rules;
}

/* As eligible_until(), with the running task charged up to now. @ts: has joined its queue */
static __always_inline u64 eligible_now(const struct cpu_state *cs, const struct task_state *ts,
					u64 now)
{
	return eligible_until(cs) + clock_behind(cs, ts, now);
}

static __always_inline u64 curr_vruntime_now(const struct cpu_state *cs, u64 now)
{
	return cs->curr_vruntime + to_virtual(waited_since(cs->curr_start, now), cs->curr_weight);
}

/*
 * The shortest request in the queue of a task that requested @own. The others without one of their
 * own have requested @slice. ns
 */
static __always_inline u64 shortest_request(const struct cpu_state *cs, u64 own, u64 slice)
{
	u64 least = cs->short_requests ? cs->least_request : slice;

	return least < own ? least : own;
}

/* Virtual: from where the running task is ahead of the others (kernel: ineligible_vruntime()). */
static __always_inline u64 ahead_of_others(const struct cpu_state *cs, const struct task_state *ts)
{
	s64 lag = cs->avg_vruntime - ts->vruntime;
	u64 weight = cs->weight, own = ts->on_rq_weight;

	if (weight <= own)
		return ts->deadline;
	return cs->avg_vruntime + divided(product(lag, own), weight - own) + 1;
}

/*
 * The task begins to run: how far it is protected. Not renewed where it only goes on (kernel:
 * set_protect_slice(), put_prev_set_next_task()).
 */
static __always_inline void protects(struct cpu_state *cs, const struct task_state *ts)
{
	u32 rules = ts->pol.rules;
	u64 own = request_ns(ts, ts->pol.features),
	    least = shortest_request(cs, own, ts->pol.slice_ns);
	u64 until = ts->deadline, cap = until;

	if (least < own && rules & FAIR_SHORTEST)
		cap = ts->vruntime + to_virtual(least, ts->weight);
	if (least < own && rules & FAIR_INELIGIBLE)
		cap = ahead_of_others(cs, ts);
	cs->curr_vprot = before(cap, until) ? cap : until;
}

/* The running task, now at @curr, keeps the CPU after the test (kernel: update_protect_slice()). */
static __always_inline void protection_clips(struct cpu_state *cs, const struct task_state *ts,
					     u64 curr, u64 until, u64 request)
{
	u64 least = shortest_request(cs, cs->curr_request, ts->pol.slice_ns), end;

	if (request < least)
		least = request;
	if (least >= cs->curr_request || !(ts->pol.rules & (FAIR_SHORTEST | FAIR_INELIGIBLE)))
		return;
	if (ts->pol.rules & FAIR_INELIGIBLE && before(until, curr))
		curr = until;
	end = curr + to_virtual(least, cs->curr_weight);
	if (before(end, cs->curr_vprot))
		cs->curr_vprot = end;
}

/*
 * The kernel's test (RUN_TO_PARITY, PREEMPT_SHORT): a running task that is not ahead of the mean is
 * protected, but from a shorter request. @until: up to where a task is eligible
 */
static __always_inline enum preempt
parity_preempts(struct cpu_state *cs, const struct task_state *ts, u32 features, u64 until, u64 now)
{
	u64 curr = curr_vruntime_now(cs, now), request = request_ns(ts, features);
	bool shorter = request < cs->curr_request;
	enum preempt verdict = PREEMPT_NO;

	if (!before(until, ts->vruntime)) {
		if (before(until, curr) || (shorter && ts->pol.rules & FAIR_INELIGIBLE))
			return PREEMPT_NOW;
		/* Of equal deadlines the waiting one's counts as the earlier one. */
		if (!before(cs->curr_deadline, ts->deadline)) {
			if (shorter || !before(curr, cs->curr_vprot))
				return PREEMPT_NOW;
			verdict = PREEMPT_LATER;
		}
	}
	protection_clips(cs, ts, curr, until, request);
	return verdict;
}

/*
 * The running task is not protected any more: the pick is made again wherever it is charged beside
 * others (kernel: update_curr()).
 */
static __always_inline bool protection_over(const struct cpu_state *cs, u64 now)
{
	return cs->curr_rules & FAIR_PARITY && queue_contended(cs) &&
	       !before(curr_vruntime_now(cs, now), cs->curr_vprot);
}

/* The task just joined, ahead of the mean, which is @until. It is due where it no longer is. */
static __always_inline void falls_due(struct cpu_state *cs, const struct task_state *ts, u64 until)
{
	if (!cs->due || !before(cs->due, ts->vruntime) || !before(until, cs->due))
		cs->due = ts->vruntime;
}

/*
 * May the task that just joined preempt the running one? A running SCHED_IDLE task gives way to any
 * other. Apart from that, batch and SCHED_IDLE tasks never preempt, nor does a task that is ahead
 * of the mean. One that is not wins against a running task that is ahead, which the kernel would
 * not find eligible and does not protect (pick_eevdf()). Else the earlier deadline wins, once the
 * running task has been protected for a while: in the kernel to the end of its request.
 * [burst_slice] A light task is protected from another even if it is ahead: it is about to sleep.
 * Of tasks that wake each other in turn, each would else be interrupted by the next, and all of
 * them would wait, and count, beside a task that computes.
 */
static __always_inline enum preempt preempts(struct cpu_state *cs, const struct task_state *ts,
					     u32 features, u64 now)
{
	u64 until = eligible_now(cs, ts, now), wait = protected_ns(cs, ts, features);
	s64 ran = now - cs->curr_start;

	if (!cs->curr_pid)
		return PREEMPT_NO;
	if (cs->curr_sched_idle && !ts->sched_idle)
		return PREEMPT_NOW;
	/* While a queue is late, waiting tasks run before waking ones (aging.h). */
	if (ts->sched_idle || ts->batch || cs->late)
		return PREEMPT_NO;
	if (ts->pol.rules & FAIR_PARITY)
		return parity_preempts(cs, ts, features, until, now);
	if (before(until, ts->vruntime)) {
		if (asks_little(ts, features)) {
			falls_due(cs, ts, until);
			cs->curr_slice = until_due(cs, until, ran, cs->curr_slice, wait);
		}
		return PREEMPT_NO;
	}
	if (before(until, curr_vruntime_now(cs, now)) && (!cs->curr_light || !light(ts, features)))
		return PREEMPT_NOW;
	if (!before(ts->deadline, cs->curr_deadline))
		return PREEMPT_NO;
	if (ran >= (s64)wait) {
		if (ran < (s64)ts->pol.min_slice_ns)
			count_for(ts->pol.arm, STAT_burst_preempt);
		return PREEMPT_NOW;
	}
	if (cs->curr_slice > wait)
		cs->curr_slice = wait;
	return PREEMPT_LATER;
}

/* ---- bursts ---- */

/*
 * The task sleeps: update its usual burst, up at once, down by a quarter (kernel: util_est's rule).
 */
static __always_inline void burst_end(struct task_state *ts)
{
	if (ts->burst_run >= ts->burst)
		ts->burst = ts->burst_run;
	else
		ts->burst -= (ts->burst - ts->burst_run) / 4;
	ts->burst_run = 0;
}

#endif /* ROOST_QUEUE_H */
