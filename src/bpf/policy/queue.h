/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fair order in a CPU's queue: who goes first, for how long, and who may interrupt whom.
 *
 * Each CPU has a virtual clock, the weighted mean of the virtual run times of its running and waiting tasks
 * (kernel: avg_vruntime()). A task's lag is what the queue owes it against that mean. It is carried over sleep and
 * migration, clamped, and places the task when it joins the next queue (kernel: place_entity(), update_entity_lag()).
 * A task asks for a request of time; its virtual deadline is where it will be once it got it, and the earliest deadline
 * runs first.
 *
 * Limits: there is no test of eligibility when the next task is picked, as EEVDF has. A task that is ahead of the mean
 * still waits, because its deadline moves with its virtual run time; but for up to one request it may run early. And a light
 * task's deadline is far away, where EEVDF would pass over a task that is ahead: aging.h bounds its wait.
 *
 * Virtual times are nanoseconds at NICE0_WEIGHT: a task of twice the weight ages half as fast.
 */
#ifndef ROOST_QUEUE_H
#define ROOST_QUEUE_H

#include "util_est.h"

/* Kernel: TICK_NSEC at 250 Hz. No more than this, or two requests, of lag either way (update_entity_lag()). */
#define LAG_FLOOR_NS 4000000ULL

/* [burst_slice] A task that uses less than this part of a CPU is light: it asks for little, and gets it soon. */
#define LIGHT_UTIL   (CAPACITY_SCALE / 8)

/* [burst_slice] A light task interrupts after this part of the minimum slice. */
#define LIGHT_SHARE  8

/* Who joined without any lag may be this far ahead of the mean by rounding. Virtual ns */
#define ROUNDING_NS  64

static __always_inline u64 to_virtual(u64 ns, u64 weight)
{
	return weight == NICE0_WEIGHT ? ns : ns * NICE0_WEIGHT / weight;
}

static __always_inline bool before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* ns; the clocks of two CPUs differ a little. */
static __always_inline u64 waited_since(u64 since, u64 now)
{
	s64 waited = now - since;

	return waited > 0 ? waited : 0;
}

/* ns; 0: it is over. */
static __always_inline u64 time_until(u64 at, u64 now)
{
	return before(now, at) ? at - now : 0;
}

/* x / y of a signed x; BPF has only the unsigned division everywhere. */
static __always_inline s64 divided(s64 x, u64 y)
{
	u64 of = x;

	return x < 0 ? -(-of / y) : of / y;
}

/* x * y of a signed x. An overflow wraps, as in the kernel; C defines that for unsigned numbers only. */
static __always_inline s64 product(s64 x, u64 y)
{
	return (u64)x * y;
}

/* ---- policy ---- */

/* Take over what the task's arm says now. */
static __always_inline void policy_take(struct task_state *ts)
{
	const struct policy_image *image = image_now();

	ts->pol = arm_of(image, ts->arm)->task;
	ts->pol_generation = image->generation;
}

/* The same, with each wakeup and each new request. What is frozen is as it was when the task came. */
static __always_inline void policy_follow(struct task_state *ts)
{
	if (tunables()->frozen || (ts->pol_generation == image_now()->generation && ts->pol.arm == ts->arm))
		return;
	policy_take(ts);
}

/* ---- requests ---- */

static __always_inline bool light(const struct task_state *ts, u32 features)
{
	return (features & FEATURE_burst_slice) && ts->burst && ts->util_avg < LIGHT_UTIL;
}

static __always_inline bool asks_little(const struct task_state *ts, u32 features)
{
	return !ts->custom_slice && light(ts, features) && ts->burst < ts->pol.slice_ns;
}

/*
 * The time that the task asks for: its own (sched_attr.sched_runtime), else its arm's slice. [burst_slice] A light
 * task asks for what it last used.
 */
static __always_inline u64 request_ns(const struct task_state *ts, u32 features)
{
	u64 least = ts->pol.min_slice_ns / LIGHT_SHARE;

	if (ts->custom_slice)
		return ts->custom_slice;
	if (!asks_little(ts, features))
		return ts->pol.slice_ns;
	return ts->burst > least ? ts->burst : least;
}

static __always_inline void new_request(struct task_state *ts, u32 features)
{
	if (asks_little(ts, features))
		count_for(ts->pol.arm, STAT_burst_request);
	ts->deadline = ts->vruntime + to_virtual(request_ns(ts, features), ts->weight);
}

/*
 * A new task starts with half a request: those that are there are halfway through theirs, on average (kernel:
 * PLACE_DEADLINE_INITIAL).
 */
static __always_inline void first_request(struct task_state *ts, u32 features)
{
	ts->deadline = ts->vruntime + to_virtual(request_ns(ts, features), ts->weight) / 2;
}

/* The task yields: it is a request further back than it would be with a new one, however often it yields. */
static __always_inline void yield_request(struct task_state *ts, u32 features)
{
	ts->deadline = ts->vruntime + 2 * to_virtual(request_ns(ts, features), ts->weight);
}

/*
 * How long it may run now while others wait: to the end of its request, but at least the minimum slice. Rounded up: with
 * no minimum a virtual ns that is left would be a slice of none, again and again.
 */
static __always_inline u64 slice_left(const struct task_state *ts)
{
	u64 least = ts->pol.min_slice_ns, left;

	if (!before(ts->vruntime, ts->deadline))
		return least;
	left = ((ts->deadline - ts->vruntime) * ts->weight + NICE0_WEIGHT - 1) / NICE0_WEIGHT;
	return left > least ? left : least;
}

/* ---- joining and leaving ---- */

static __always_inline s64 clamped_lag(const struct task_state *ts, s64 lag)
{
	u64 slice = 2 * (ts->custom_slice ? ts->custom_slice : ts->pol.slice_ns);
	s64 limit = to_virtual(slice > LAG_FLOOR_NS ? slice : LAG_FLOOR_NS, ts->weight);

	return lag > limit ? limit : lag < -limit ? -limit : lag;
}

/* No longer sleep counts, 18 minutes: times NICE0_WEIGHT it fits. ns */
#define LONG_SLEEP_NS  (1ULL << 40)

/* A running task is charged at least at every tick: 100 Hz is the slowest. ns */
#define CHARGE_NS      10000000ULL
/* Where ticks may stop, by the kernel's remote tick: once a second, which may be late. ns */
#define NOHZ_CHARGE_NS 2000000000ULL

/*
 * By how much the mean has moved since what runs there was last charged; the task that joins is placed against where it is
 * now (kernel: update_curr() before place_entity()). The running task itself, reweighed, has just been charged.
 */
static __always_inline u64 clock_behind(const struct cpu_state *cs, const struct task_state *ts, u64 now)
{
	u64 weight = cs->weight;
	s64 ns = now - cs->charged_at, most = machine_facts()->nohz ? NOHZ_CHARGE_NS : CHARGE_NS;

	if (!cs->curr_pid || ts->started || !weight || ns <= 0)
		return 0;
	return (u64)(ns < most ? ns : most) * NICE0_WEIGHT / weight;
}

/*
 * What it owes melts while it sleeps, as fast as the mean of the queue that it joins moves: the kernel keeps it in its queue until the
 * mean has come to it (delayed dequeue). Faster, and sleepers that use the whole CPU owe nothing whenever they come back: the mean
 * then stands still, and who waits behind it waits for good. Virtual ns, no more than it owes.
 */
static __always_inline s64 melted(const struct task_state *ts, u64 weight, u64 now)
{
	u64 slept = waited_since(ts->left_at, now), ns;

	if (slept > LONG_SLEEP_NS)
		slept = LONG_SLEEP_NS;
	ns = slept * NICE0_WEIGHT / (weight + ts->weight);
	return ns < (u64)-ts->lag ? (s64)ns : -ts->lag;
}

/*
 * Place the task by its lag. Its joining moves the mean, by which it would lose a part of its lag: it is placed
 * further out by as much (kernel: place_entity()).
 */
static __always_inline void queue_join(s32 cpu, struct task_state *ts, u64 now)
{
	struct cpu_state *cs = cpu_state(cpu);
	u64 vtime = cs->vtime, weight = cs->weight;
	u64 ahead = clock_behind(cs, ts, now);
	s64 lag = ts->lag < 0 ? ts->lag + melted(ts, weight, now) : ts->lag;

	cpu_integrate(cs, now);
	ts->vruntime = vtime + ahead;
	if (weight && lag) {
		/* A lag times its own task's weight is real time, which fits; times the queue's weight it may not. */
		s64 moves = divided(product(lag, ts->weight), weight);

		ts->vruntime -= lag + moves;
		atomic_add(&cs->vtime, -moves);
	}
	if (ahead)
		atomic_add(&cs->vtime, ahead * ts->weight / (weight + ts->weight));
	atomic_add(&cs->weight, ts->weight);
	util_est_join(cs, ts);
	ts->joined = cpu + 1;
	ts->joined_weight = ts->weight;
}

/*
 * The task leaves the queue that counts it, and keeps its lag. Alone, it was the mean: it has none. The CPU's load is
 * brought up to now before, by a caller that holds its lock (queue_settle()); a thief does not, and may not write it.
 */
static __always_inline void queue_leave(struct task_state *ts, u64 now)
{
	struct cpu_state *cs;
	u64 rest;
	s64 lag;

	if (!ts->joined)
		return;
	cs = cpu_state(ts->joined - 1);
	ts->lag = 0;
	if (cs->weight > ts->joined_weight) {
		rest = cs->weight - ts->joined_weight;
		lag = cs->vtime - ts->vruntime;
		if (lag)
			atomic_add(&cs->vtime, divided(product(lag, ts->joined_weight), rest));
		ts->lag = clamped_lag(ts, lag);
	}
	atomic_add(&cs->weight, -(u64)ts->joined_weight);
	util_est_leave(cs, ts);
	ts->left_at = now;
	ts->joined = 0;
}

/* The load of the CPU whose queue counts the task, and whose lock is held, is complete up to now. */
static __always_inline void queue_settle(const struct task_state *ts, u64 now)
{
	if (ts->joined)
		cpu_integrate(cpu_state(ts->joined - 1), now);
}

/* The task goes on in @cpu's queue: its lag and what is left of its request come with it. */
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
	s32 joined = ts->joined;
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

/*
 * By how much the mean moves when a task of the queue ages by @own. What the division leaves is kept for the next time:
 * dropped, it adds up, on a CPU that is never empty, to a whole slice within minutes.
 */
static __always_inline u64 mean_moves(struct cpu_state *cs, u64 own, u32 own_weight)
{
	u64 weight = cs->weight, sum, moves;

	if (weight <= own_weight)
		return own;
	sum = own * own_weight + cs->mean_rest;
	moves = sum / weight;
	cs->mean_rest = sum - moves * weight;
	return moves;
}

/* The running task has used @ns more. */
static __always_inline void queue_charge(struct cpu_state *cs, struct task_state *ts, u64 ns)
{
	u64 own = to_virtual(ns, ts->joined_weight);
	u64 mean = mean_moves(cs, own, ts->joined_weight);

	ts->vruntime += own;
	cs->progress += mean;
	atomic_add(&cs->vtime, mean);
}

/* Its queues may hold tasks, or one that it counts runs. */
static __always_inline bool queue_holds(const struct cpu_state *cs)
{
	return cs->weight || cs->unjoined;
}

/* Somebody besides the running task is in the queue. */
static __always_inline bool queue_contended(const struct cpu_state *cs)
{
	return cs->weight > cs->curr_weight || cs->unjoined;
}

enum preempt {
	PREEMPT_NO,
	PREEMPT_NOW,
	PREEMPT_LATER, /* once the running task has had its minimum slice */
};

/*
 * For how long @ts does not interrupt a running task: the minimum slice. [burst_slice] A light task interrupts sooner;
 * tasks that would only take turns do not.
 */
static __always_inline u64 protected_ns(const struct task_state *ts, u32 features)
{
	u64 least = ts->pol.min_slice_ns;

	return light(ts, features) ? least / LIGHT_SHARE : least;
}

/*
 * May the task that just joined interrupt the one running there? A SCHED_IDLE task always gives way; batch and idle
 * tasks never interrupt. Otherwise the earlier deadline wins, or the one that is owed time against one that is ahead
 * of the mean: the kernel would find the latter not eligible. A running task is protected for a while: the earlier
 * deadline ends its slice then. Who is only owed time waits on, because the order of the queue is by deadline.
 */
static __always_inline enum preempt preempts(struct cpu_state *cs, const struct task_state *ts, u32 features, u64 now)
{
	u64 ran = now - cs->curr_start, mean, vruntime, wait;
	bool earlier;

	if (!cs->curr_pid)
		return PREEMPT_NO;
	if (cs->curr_sched_idle && !ts->sched_idle)
		return PREEMPT_NOW;
	/* While a queue is late those that wait go before those that wake (aging.h). */
	if (ts->sched_idle || ts->batch || cs->late)
		return PREEMPT_NO;
	earlier = before(ts->deadline, cs->curr_deadline);
	if (!earlier) {
		mean = cs->vtime + clock_behind(cs, ts, now) + ROUNDING_NS;
		vruntime = cs->curr_vruntime + to_virtual(ran, cs->curr_weight);
		if (!before(mean, vruntime) || before(mean, ts->vruntime))
			return PREEMPT_NO;
	}
	wait = protected_ns(ts, features);
	if ((s64)ran >= (s64)wait) {
		if ((s64)ran < (s64)ts->pol.min_slice_ns)
			count_for(ts->pol.arm, STAT_burst_preempt);
		return PREEMPT_NOW;
	}
	if (!earlier)
		return PREEMPT_NO;
	if (cs->curr_slice > wait)
		cs->curr_slice = wait;
	return PREEMPT_LATER;
}

/* ---- bursts ---- */

/* The task sleeps: learn how long it ran since it woke; up at once, down by a quarter (kernel: util_est's rule). */
static __always_inline void burst_end(struct task_state *ts)
{
	if (ts->burst_run >= ts->burst)
		ts->burst = ts->burst_run;
	else
		ts->burst -= (ts->burst - ts->burst_run) / 4;
	ts->burst_run = 0;
}

#endif /* ROOST_QUEUE_H */
