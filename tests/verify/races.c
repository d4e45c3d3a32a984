// SPDX-License-Identifier: GPL-2.0-only
/*
 * The races that the policy's comments discuss. Each is a scenario of a few threads (explore.h),
 * with what must be true in every order. Each callback is the policy's own.
 *
 *     races			prints their names
 *     races NAME MODEL	one scenario; MODEL: sc, tso (x86, includes sc) or pso
 */
#include "rig.h"

static const char *const model_names[NR_MEMORY_MODELS] = { "sc", "tso", "pso" };
static const struct scenario *current;

enum { WAKER, OTHER_WAKER, FIRST, SECOND, BUSY };

/* @tasks: 1: FIRST has run; 2: SECOND has too. */
static bool all_ran(int tasks)
{
	return shared.ran[FIRST] && (tasks == 1 || shared.ran[SECOND]);
}

/* ---- claims: two wakers, on CPUs 0 and 1, and one idle CPU, 2 ---- */

static void wake_first(void)
{
	wakes(FIRST, 0);
	step_begins();
	shared.done++;
	step_ends();
}

static void wake_second(void)
{
	wakes(SECOND, 0);
	step_begins();
	shared.done++;
	step_ends();
}

static bool work_or_end(void *cpu)
{
	return first_of(*(s32 *)cpu, 0, NEXT) || shared.done == 2;
}

/* CPU 2 runs each task that comes, until no more will come. */
static void cpu2_serves(void)
{
	static s32 cpu = 2;

	while (true) {
		bool more;

		rest_until(work_or_end, &cpu);
		more = first_of(cpu, 0, NEXT);
		step_ends();
		if (!more)
			return;
		runs_next(cpu);
		sleeps(cpu);
	}
}

static void claims_begin(u64 later)
{
	rig_begins(current, 1, FEATURE_prev_idle | FEATURE_claim);
	rig_runs(WAKER, 0);
	rig_runs(OTHER_WAKER, 1);
	rig_runs(BUSY, 3);
	shared.tasks[SECOND].cpu = 1;
	worlds[1].clock = BEGINNING + later;
	worlds[2].clock = BEGINNING + later + 1000;
	shared.claims_hold = later < CLAIM_TTL;
}

static void claims_begin_at_once(void)
{
	claims_begin(0);
}

static void claims_begin_apart(void)
{
	claims_begin(200);
}

static void claims_are_over(void)
{
	for (int i = 0; i < NR_CPUS; i++) {
		must(!shared.cpus[i].claim, "a claim has outlived its task");
		must(!shared.cpus[i].core_claim, "a claim of a core has outlived its task");
	}
	must(!count_of(STAT_stacked), "two tasks were put on one idle CPU");
	must(shared.ran[FIRST] || shared.ran[SECOND], "no waker got the idle CPU");
}

/* ---- claims that expire: the second waker comes when the first one's claim has expired ---- */

static void claims_begin_late(void)
{
	claims_begin(CLAIM_TTL + 1000);
}

/* Two tasks may meet there. But no claim remains, and a claim ends only by its own task. */
static void late_claims_are_over(void)
{
	for (int i = 0; i < NR_CPUS; i++)
		must(!shared.cpus[i].claim, "a claim has outlived its task");
}

/* ---- a core: its two threads, 2 and 3, are idle, and two wakers want an idle core ---- */

static void cores_begin(void)
{
	rig_begins(current, 2, FEATURE_prev_idle | FEATURE_claim | FEATURE_core_claim);
	shared.claims_hold = true;
	rig_runs(WAKER, 0);
	rig_runs(OTHER_WAKER, 1);
	shared.tasks[SECOND].cpu = 1;
}

static void wake_first_only(void)
{
	wakes(FIRST, 0);
}

static void wake_second_only(void)
{
	wakes(SECOND, 0);
}

static void cores_are_over(void)
{
	int claims = !!shared.cpus[2].claim + !!shared.cpus[3].claim;

	must(count_of(STAT_sis_core) <= 1, "two tasks were placed on one idle core");
	must(claims == (shared.where[FIRST] == NEXT) + (shared.where[SECOND] == NEXT),
	     "a task and no claim, or the reverse");
	must(!!shared.cpus[2].core_claim == count_of(STAT_sis_core),
	     "a claim of a core and no task, or the reverse");
}

/* ---- release: a task with an expired claim leaves our class before it runs; another wakes ---- */

static void release_begins(void)
{
	claims_begin(CLAIM_TTL + 1000);
	rig_enters(1);
	worlds[1].clock = BEGINNING;
	wakes(FIRST, 0);
	worlds[1].clock = BEGINNING + CLAIM_TTL + 1000;
	must(shared.where[FIRST] == NEXT && shared.cpus[2].claim, "the first task has no claim");
}

static void first_leaves(void)
{
	port_task *p = &shared.tasks[FIRST];

	rq_lock_begins(2);
	shared.where[FIRST] = ASLEEP;
	shared.runs[2].local--;
	rq_counts(2, -1);
	step_ends();
	run_disable(p);
	rq_unlocks(2);
}

static void release_is_over(void)
{
	const struct task_state *second = &shared.states[SECOND];

	must(!!shared.cpus[2].claim == (second->idle_cpu == 3),
	     "a claim and no task, or the reverse");
	must(!shared.cpus[2].claim || claim_made(shared.cpus[2].claim, second->idle_at),
	     "a claim of another");
}

/* ---- the slice timer of CPU 0 fires while a task is queued there by CPU 1 ---- */

static void timer_begins(void)
{
	rig_begins(current, 1, FEATURE_prev_idle);
	mask = 1;
	shared.tasks[FIRST].restricted = true;
	rig_runs(WAKER, 0);
	rig_runs(OTHER_WAKER, 1);
	/* Started for the slice of a task that has gone. */
	shared.cpus[0].timer_at = shared.started[TIMER_SLICE][0] = BEGINNING;
}

static bool slice_timer_is_armed(void *cpu)
{
	(void)cpu;
	return shared.started[TIMER_SLICE][0];
}

static void slice_timer_comes(void)
{
	rest_until(slice_timer_is_armed, NULL);
	shared.started[TIMER_SLICE][0] = 0;
	step_ends();
	slice_timer_fires(0);
}

static void timer_is_over(void)
{
	must(shared.where[FIRST] == QUEUED, "the task was not queued");
	must(shared.started[TIMER_SLICE][0] || shared.kicked[0],
	     "a task waits, and no timer ends the slice");
}

/* ---- CPU limits: the timer of the queue where tasks of group 1 are parked ---- */

#define PERIOD 100000000ULL

/* The last parked task came long ago. */
static void park_begins_with(u64 runtime)
{
	rig_begins(current, 1, FEATURE_prev_idle);
	rig_runs(WAKER, 1);
	rig_runs(BUSY, 2);
	shared.states[FIRST].cgroup = 1;
	shared.tasks[FIRST].cpu = 2;
	shared.bandwidths[1] = (struct bandwidth){ .quota = PERIOD / 10,
						   .period = PERIOD,
						   .runtime = runtime,
						   .period_end = BEGINNING + PERIOD,
						   .throttled_since = BEGINNING - 1000,
						   .near = MAX_CGROUPS + 1 };
	shared.limits = (struct limits){ .changes = 1, .any = 1 };
	shared.parks[1] =
		(struct park){ .timer_at = BEGINNING, .came_at = BEGINNING - 2 * PARK_WATCH_NS };
	shared.started[TIMER_PARK][1] = BEGINNING;
}

/* A task is about to be parked. */
static void park_begins(void)
{
	park_begins_with(0);
}

/* Two CPUs start the timer, for different times. */
static void park_timer_begins(void)
{
	park_begins_with(0);
	shared.parks[1].timer_at = 0;
	shared.started[TIMER_PARK][1] = 0;
}

static void park_timer_late(void)
{
	park_timer_start(1, BEGINNING, BEGINNING + PERIOD);
}

static void park_timer_soon(void)
{
	park_timer_start(1, BEGINNING, BEGINNING + PERIOD / 10);
}

static void park_timer_is_soon(void)
{
	must(shared.started[TIMER_PARK][1] == BEGINNING + PERIOD / 10,
	     "the timer fires at the later time");
}

/* One task is parked, and its group has budget. */
static void release_of_parked_begins(void)
{
	park_begins_with(PERIOD / 10);
	shared.where[FIRST] = PARKED;
	shared.tasks[FIRST].runnable = true;
	shared.states[FIRST].waits_since = BEGINNING - 1000;
	shared.states[FIRST].parked_in = 1;
	shared.bandwidths[1].parked = 1;
	rq_counts(2, 1);
}

static bool park_timer_is_armed(void *unused)
{
	(void)unused;
	return shared.started[TIMER_PARK][1];
}

static void park_timer_comes(void)
{
	rest_until(park_timer_is_armed, NULL);
	shared.started[TIMER_PARK][1] = 0;
	step_ends();
	park_timer_fires(1);
}

static void parked_is_watched(void)
{
	must(shared.where[FIRST] == PARKED, "the task was not parked");
	must(shared.bandwidths[1].parked == 1, "it is not counted as parked");
	must(shared.started[TIMER_PARK][1], "a task is parked, and no timer looks after it");
}

static void busy_sleeps(void)
{
	sleeps(2);
}

static void released_is_served(void)
{
	bool told = shared.kicked[2] || shared.started[TIMER_SLICE][2];

	must(!shared.bandwidths[1].parked, "a released task counts as parked");
	must(shared.where[FIRST] == NEXT || (told && shared.cpus[2].uncounted),
	     "a released task waits, and its CPU does not know");
}

/* ---- delayed moves: a task waits on CPU 0 for its move to CPU 1, which is slow ---- */

static void delay_begins(void)
{
	rig_begins(current, 1, FEATURE_prev_idle | FEATURE_claim | FEATURE_delay_migration);
	image.threshold[0][1] = image.threshold[0][2] = CAPACITY_SCALE;
	rig_runs(WAKER, 0);
	rig_runs(BUSY, 3);
}

static void delay_begins_stolen(void)
{
	delay_begins();
	worlds[2].clock = BEGINNING + 2 * DELAY;
}

static void waker_wakes_and_sleeps(void)
{
	wakes(FIRST, 0);
	sleeps(0);
	runs_next(0);
}

static bool delay_timer_or_end(void *tasks)
{
	return shared.started[TIMER_DELAY][0] || all_ran(*(int *)tasks);
}

static void delay_timer_serves(int *tasks)
{
	while (true) {
		u64 at;

		rest_until(delay_timer_or_end, tasks);
		at = shared.started[TIMER_DELAY][0];
		shared.started[TIMER_DELAY][0] = 0;
		step_ends();
		if (!at)
			return;
		the_world->clock = at;
		delay_timer_fires(0);
	}
}

static void delay_timer_comes(void)
{
	static int tasks = 1;

	delay_timer_serves(&tasks);
}

static void delay_timer_comes_for_two(void)
{
	static int tasks = 2;

	delay_timer_serves(&tasks);
}

static bool cpu1_or_first(void *unused)
{
	(void)unused;
	return first_of(1, 0, NEXT) || all_ran(1);
}

static void cpu1_serves(void)
{
	rest_until(cpu1_or_first, NULL);
	step_ends();
	runs_next(1);
}

static bool work_on_1_or_2(void *unused)
{
	(void)unused;
	return first_of(1, 0, NEXT) || first_of(2, 0, NEXT);
}

/*
 * CPUs 1 and 2. If one of the two tasks does not come, this waits for ever, which is an error. They
 * do not steal: with thieves here no search ended, so delay_steal has one.
 */
static void idle_cpus_run_both(void)
{
	for (int i = 0; i < 2; i++) {
		rest_until(work_on_1_or_2, NULL);
		the_world->this_cpu = first_of(1, 0, NEXT) ? 1 : 2;
		step_ends();
		runs_next(the_world->this_cpu);
		falls_asleep(the_world->this_cpu);
	}
}

static void cpu2_steals(void)
{
	rq_lock_begins(2);
	step_ends();
	run_dispatch(2, NULL);
	rq_unlocks(2);
	runs_next(2);
}

static void second_wakes_later(void)
{
	the_world->clock = BEGINNING + DELAY / 2;
	wakes(SECOND, 0);
}

/* Both tasks wait; a timer is started for the first. */
static void two_delays_begin(void)
{
	delay_begins();
	/* It would preempt the waker, which is ahead of the mean by then. */
	shared.states[SECOND].batch = 1;
	rig_enters(1);
	wakes(FIRST, 0);
	must(shared.started[TIMER_DELAY][0], "no timer was started");
}

static u64 delays_ended(void)
{
	return count_of(STAT_delay_expire) + count_of(STAT_delay_cancel) +
	       count_of(STAT_delay_stolen) + count_of(STAT_delay_overdue) +
	       count_of(STAT_delay_dropped) + count_of(STAT_delay_disallowed) +
	       count_of(STAT_delay_refused);
}

static void no_delay_is_left(u64 tasks)
{
	for (int i = 0; i < NR_TASKS; i++) {
		must(!shared.states[i].delay_at, "a delay has outlived the task's run");
		must(!shared.states[i].pushed, "a task has run, and still counts as sent");
		must(shared.moved[i] <= 1, "a task has moved twice");
	}
	for (int i = 0; i < NR_CPUS; i++)
		must(!shared.cpus[i].claim, "a claim has outlived its task");
	must(count_of(STAT_delay_wake) == tasks, "not each task was delayed");
	must(delays_ended() == tasks, "a delay has ended twice, or not at all");
	must(count_of(STAT_claim_set) ==
		     count_of(STAT_claim_release) + count_of(STAT_claim_clear_run),
	     "a claim has ended twice, or not at all");
}

static void delay_is_over(void)
{
	must(shared.ran[FIRST] == 1, "the task has not run once");
	no_delay_is_left(1);
}

static void two_delays_are_over(void)
{
	must(shared.ran[FIRST] == 1 && shared.ran[SECOND] == 1, "a task has not run once");
	no_delay_is_left(2);
}

#define THREAD(name_, run_, cpu_)    { .name = name_, .run = run_, .cpu = cpu_ }
#define INTERRUPT(name_, run_, cpu_) { .name = name_, .run = run_, .cpu = cpu_, .irq = true }

static const struct scenario scenarios[] = {
	{ "claim_at_once",
	  claims_begin_at_once,
	  claims_are_over,
	  rig_enters,
	  { THREAD("waker 0", wake_first, 0), THREAD("waker 1", wake_second, 1),
	    THREAD("CPU 2", cpu2_serves, 2) },
	  3 },
	{ "claim_apart",
	  claims_begin_apart,
	  claims_are_over,
	  rig_enters,
	  { THREAD("waker 0", wake_first, 0), THREAD("waker 1", wake_second, 1),
	    THREAD("CPU 2", cpu2_serves, 2) },
	  3 },
	{ "claim_expires",
	  claims_begin_late,
	  late_claims_are_over,
	  rig_enters,
	  { THREAD("waker 0", wake_first, 0), THREAD("waker 1", wake_second, 1),
	    THREAD("CPU 2", cpu2_serves, 2) },
	  3 },
	{ "claim_release",
	  release_begins,
	  release_is_over,
	  rig_enters,
	  { THREAD("CPU 2", first_leaves, 2), THREAD("waker 1", wake_second_only, 1) },
	  2 },
	{ "core_claim",
	  cores_begin,
	  cores_are_over,
	  rig_enters,
	  { THREAD("waker 0", wake_first_only, 0), THREAD("waker 1", wake_second_only, 1) },
	  2 },
	{ "delay",
	  delay_begins,
	  delay_is_over,
	  rig_enters,
	  { THREAD("CPU 0", waker_wakes_and_sleeps, 0), INTERRUPT("timer 0", delay_timer_comes, 0),
	    THREAD("CPU 1", cpu1_serves, 1) },
	  3 },
	{ "delay_two",
	  two_delays_begin,
	  two_delays_are_over,
	  rig_enters,
	  { THREAD("timer 0", delay_timer_comes_for_two, 0),
	    INTERRUPT("wakeup on CPU 0", second_wakes_later, 0),
	    THREAD("CPUs 1, 2", idle_cpus_run_both, 1) },
	  3 },
	{ "delay_steal",
	  delay_begins_stolen,
	  delay_is_over,
	  rig_enters,
	  { THREAD("CPU 0", wake_first_only, 0), INTERRUPT("timer 0", delay_timer_comes, 0),
	    THREAD("thief", cpu2_steals, 2), THREAD("CPU 1", cpu1_serves, 1) },
	  4 },
	{ "slice_timer",
	  timer_begins,
	  timer_is_over,
	  rig_enters,
	  { THREAD("waker 1", wake_first_only, 1), INTERRUPT("timer 0", slice_timer_comes, 0) },
	  2 },
	{ "park",
	  park_begins,
	  parked_is_watched,
	  rig_enters,
	  { THREAD("waker 1", wake_first_only, 1), INTERRUPT("timer 0", park_timer_comes, 0) },
	  2 },
	{ "park_timer",
	  park_timer_begins,
	  park_timer_is_soon,
	  rig_enters,
	  { THREAD("CPU 1", park_timer_late, 1), THREAD("CPU 2", park_timer_soon, 2) },
	  2 },
	{ "park_release",
	  release_of_parked_begins,
	  released_is_served,
	  rig_enters,
	  { THREAD("CPU 2", busy_sleeps, 2), INTERRUPT("timer 0", park_timer_comes, 0) },
	  2 },
};

static bool holds(struct scenario s, enum memory_model model)
{
	const char *wrong;

	current = &s;
	wrong = explore(&s, model);
	printf("%s %s: %s (%lu states, %lu runs)\n", s.name, model_names[model],
	       wrong ? wrong : "holds", explored_states(), explored_runs());
	return !wrong;
}

int main(int argc, char **argv)
{
	bool all = true;

	explore_share(&shared, sizeof(shared));
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++) {
		if (argc < 3)
			puts(scenarios[i].name);
		for (int m = 0; m < NR_MEMORY_MODELS; m++)
			if (argc >= 3 && !strcmp(argv[1], scenarios[i].name) &&
			    !strcmp(argv[2], model_names[m]))
				all &= holds(scenarios[i], m);
	}
	return !all;
}
