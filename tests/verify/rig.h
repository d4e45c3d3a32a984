/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A machine of a few CPUs for explore.c: the policy's memory, which all threads share, and the
 * kernel's part, which goes in steps. A task sleeps, waits in the queue of a CPU, is parked, is
 * next on a CPU, or runs. A wakeup has interrupts off. Enqueue, running, stopping and dispatch hold
 * the CPU's run queue lock. A callback's insertions take effect when the callback is over. The
 * delay timer is pinned to its CPU, on which the scenarios of delayed moves rely: one that fired
 * elsewhere could miss a task that is inserted a moment later.
 *
 * Not covered: SMT siblings in the idle sets, tasks of higher classes, changes of affinity.
 */
#ifndef ROOST_RIG_H
#define ROOST_RIG_H

#include "../../src/native/policy.h"
#include "explore.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum {
	NR_CPUS = 4,
	NR_TASKS = 5,
	NR_GROUPS = 2,
	NOW = 2000000000, /* ns; clocks start at twice this, which is beyond CLAIM_LOST_NS */
};

/* The number of the first queue of parked tasks (bandwidth.h). */
#define PARKS	  (2 * MAX_CPUS)

#define BEGINNING (2ULL * NOW)
#define SLICE	  3000000ULL
#define CLAIM_TTL 1000000ULL
#define DELAY	  50000ULL

enum where {
	ASLEEP,
	QUEUED, /* in the queue of p->cpu */
	NEXT,	/* in the local queue of p->cpu */
	RUNS,
	PARKED, /* its group has used up its CPU limit */
};

struct shared {
	struct cpu_state cpus[NR_CPUS];
	struct llc_state llcs[1];
	struct llc_sets sets;
	struct cpu_view views[NR_CPUS];
	struct run_view runs[NR_CPUS];
	struct task_state states[NR_TASKS];
	struct cgroup_state groups[NR_GROUPS];
	struct bandwidth bandwidths[NR_GROUPS];
	struct limits limits;
	struct park parks[NR_CPUS]; /* the first of them */
	port_task tasks[NR_TASKS];
	/* the kernel's state */
	u64 where[NR_TASKS];
	u64 rq_lock[NR_CPUS]; /* 1 + the thread that holds it */
	u64 started
		[3]
		[NR_CPUS]; /* ns: when the timer of a CPU or a park queue fires; 0: not started */
	u64 kicked[NR_CPUS];
	/* counts and conditions for the properties */
	u64 ran[NR_TASKS];
	u64 moved[NR_TASKS];
	u64 claims_hold; /* a claim must last until its task runs, and no two tasks may meet */
	u64 done;
};

/* Not static: the compiler must assume that other code changes it. */
struct shared shared;

static struct cpu_facts facts[NR_CPUS];
static struct llc_facts llc = { .nr_cpus = NR_CPUS,
				.nr_words = 1,
				.capacity = NR_CPUS * CAPACITY_SCALE };
static struct node_facts node = { .nr_llcs = 1 };
static struct domains one_piece;
static u16 cpu_of_llc[NR_CPUS];
static struct policy_image image;
static u64 frequencies[NR_CPUS], scans[1], mask;
static u64 counted[THREADS_MAX][MAX_ARMS * ROOST_NR_STATS];

/* What a callback has inserted; it takes effect when the callback is over. */
static struct insertion {
	port_task *p;
	s32 cpu;
	enum where where;
} insertions[THREADS_MAX];

static struct world worlds[THREADS_MAX];

static int me(void)
{
	return the_world - worlds;
}

static int number(const port_task *p)
{
	return p - shared.tasks;
}

/* ---- the kernel's steps ---- */

static bool rq_is_free(void *lock)
{
	u64 holder = *(u64 *)lock;

	return !holder || holder == (u64)me() + 1;
}

/* Takes the lock. The step goes on with the lock held. */
static void rq_lock_begins(s32 cpu)
{
	irqs_off();
	step_when(rq_is_free, &shared.rq_lock[cpu]);
	shared.rq_lock[cpu] = me() + 1;
}

static void rq_unlocks(s32 cpu)
{
	*(volatile u64 *)&shared.rq_lock[cpu] = 0;
	irqs_on();
}

/* In a step: the CPU gets one task more or one less. */
static void rq_counts(s32 cpu, s32 more)
{
	shared.views[cpu].nr_running += more;
	shared.views[cpu].idle = !shared.views[cpu].nr_running;
}

static void insert_now(port_task *p, s32 cpu, enum where where)
{
	shared.where[number(p)] = where;
	if (where == NEXT)
		shared.runs[cpu].local++;
}

static void kernel_inserts(void *self, port_task *p, s32 cpu, u64 slice, u64 flags)
{
	(void)self;
	(void)slice;
	(void)flags;
	insertions[me()] = (struct insertion){ p, cpu, NEXT };
}

static void kernel_queues(void *self, port_task *p, u32 queue, u64 slice, u64 key, u64 flags)
{
	(void)self;
	(void)slice;
	(void)flags;
	p->key = key;
	insertions[me()] = (struct insertion){ p, queue, queue < PARKS ? QUEUED : PARKED };
}

static void kernel_kicks(void *self, s32 cpu, u64 flags)
{
	(void)self;
	step_begins();
	shared.kicked[cpu] |= flags | 1ULL << 63;
	step_ends();
}

static void kernel_asks_speed(void *self, s32 cpu, u32 speed)
{
	(void)self;
	(void)cpu;
	(void)speed;
}

static void kernel_arms(void *self, enum timer_kind which, s32 cpu, u64 ns)
{
	(void)self;
	step_begins();
	shared.started[which][cpu] = the_world->clock + ns;
	step_ends();
}

static const struct kernel kernel_of_rig = { kernel_inserts, kernel_queues, kernel_kicks,
					     kernel_asks_speed, kernel_arms };

static port_task *first_of(s32 cpu, int from, enum where where)
{
	for (int i = from; i < NR_TASKS; i++)
		if (shared.where[i] == where && shared.tasks[i].cpu == cpu)
			return &shared.tasks[i];
	return NULL;
}

/* All parked tasks are in one queue. */
static port_task *first_in(u32 queue, int from)
{
	if (queue < PARKS)
		return first_of(queue, from, QUEUED);
	for (int i = from; i < NR_TASKS; i++)
		if (shared.where[i] == PARKED)
			return &shared.tasks[i];
	return NULL;
}

/* In a step: the task moves from a queue to the local queue of a CPU. */
static void moves(port_task *p, s32 cpu)
{
	rq_counts(p->cpu, -1);
	if (p->cpu != cpu)
		shared.moved[number(p)]++;
	p->cpu = cpu;
	rq_counts(cpu, 1);
	insert_now(p, cpu, NEXT);
}

/* Each CPU has one queue here, its number the CPU's: turns outlast a scenario (aging.h). */
static bool queue_gives(void *queues, u32 cpu)
{
	port_task *p;

	(void)queues;
	step_begins();
	p = first_of(cpu, 0, QUEUED);
	if (p)
		moves(p, the_world->this_cpu);
	step_ends();
	return p;
}

static u32 queue_counts(void *queues, u32 queue)
{
	port_task *p;
	u32 n = 0;

	(void)queues;
	step_begins();
	for (int i = 0; (p = first_in(queue, i)); i = number(p) + 1)
		n++;
	step_ends();
	return n;
}

/* A cursor's position is the number of the next task to look at. */
static port_task *queue_goes_on(void *queues, u32 queue, struct cursor *at)
{
	port_task *p;

	(void)queues;
	step_begins();
	p = first_in(queue, at->seq);
	step_ends();
	at->seq = p ? number(p) + 1 : NR_TASKS;
	at->key = queue;
	return p;
}

/*
 * The kernel checks that the task is still where the loop found it, and locks the run queue that it
 * goes to.
 */
static bool queue_moves(void *queues, port_task *p, s32 cpu)
{
	s32 to = cpu == NO_CPU ? the_world->this_cpu : cpu;
	bool there;

	(void)queues;
	step_when(rq_is_free, &shared.rq_lock[to]);
	there = shared.where[number(p)] == QUEUED;
	if (there)
		moves(p, to);
	step_ends();
	return there;
}

/* The same from a queue of parked tasks to the queue of the task's CPU. */
static bool queue_requeues(void *queues, port_task *p, u32 queue, u64 key)
{
	bool there;

	(void)queues;
	(void)queue;
	step_when(rq_is_free, &shared.rq_lock[p->cpu]);
	there = shared.where[number(p)] == PARKED;
	if (there) {
		shared.where[number(p)] = QUEUED;
		p->key = key;
	}
	step_ends();
	return there;
}

/* Carries out the callback's insertion, now that the callback is over. */
static void insertion_is_done(void)
{
	struct insertion *i = &insertions[me()];

	if (!i->p)
		return;
	step_begins();
	insert_now(i->p, i->p->cpu, i->where);
	step_ends();
	i->p = NULL;
}

/* ---- a task's life ---- */

/* try_to_wake_up(): the task wakes. A callback that has no choice leaves it on its previous CPU. */
static void wakes(int task, u64 flags)
{
	port_task *p = &shared.tasks[task];
	s32 cpu;

	irqs_off();
	cpu = run_select_cpu(p, p->cpu, flags);
	rq_lock_begins(cpu);
	p->cpu = cpu;
	p->runnable = true;
	if (insertions[me()].p && shared.claims_hold)
		must(shared.views[cpu].idle, "a task goes to an idle CPU, and another is there");
	rq_counts(cpu, 1);
	step_ends();
	if (!insertions[me()].p)
		run_enqueue(p, ENQ_WAKEUP | ENQ_PLACED);
	insertion_is_done();
	rq_unlocks(cpu);
	irqs_on();
}

/* In a step: if a claim was made for the task, it must stand until the task runs there. */
static void claim_stood(port_task *p, s32 cpu)
{
	struct task_state *ts = p->state;

	if (shared.claims_hold && ts->idle_cpu == cpu + 1)
		must(claim_made(shared.cpus[cpu].claim, ts->idle_at),
		     "a claim has ended before its task ran");
}

/* schedule(): the next task of the local queue runs. */
static void runs_next(s32 cpu)
{
	port_task *p;

	rq_lock_begins(cpu);
	p = first_of(cpu, 0, NEXT);
	if (p) {
		claim_stood(p, cpu);
		shared.where[number(p)] = RUNS;
		shared.ran[number(p)]++;
		shared.runs[cpu].local--;
		shared.runs[cpu].curr_idle = false;
	}
	step_ends();
	if (p)
		run_running(p);
	rq_unlocks(cpu);
}

/* The running task goes to sleep. Returns with the lock held. */
static void stops(s32 cpu)
{
	port_task *p;

	rq_lock_begins(cpu);
	p = first_of(cpu, 0, RUNS);
	step_ends();
	run_stopping(p, false);
	step_begins();
	shared.where[number(p)] = ASLEEP;
	p->runnable = false;
	rq_counts(cpu, -1);
	shared.runs[cpu].curr_idle = true;
	step_ends();
}

/* The running task goes to sleep, and the CPU looks for another. */
static void sleeps(s32 cpu)
{
	stops(cpu);
	run_dispatch(cpu, NULL);
	rq_unlocks(cpu);
}

/* The running task goes to sleep, and the CPU does not look for another yet. */
static void falls_asleep(s32 cpu)
{
	stops(cpu);
	rq_unlocks(cpu);
}

/* ---- setting up ---- */

static void rig_machine(int threads_per_core)
{
	llc.nr_cpus = NR_CPUS;
	for (int i = 0; i < NR_CPUS; i++) {
		facts[i] = (struct cpu_facts){ .pos = i,
					       .core = i / threads_per_core,
					       .capacity = CAPACITY_SCALE,
					       .online = 1,
					       .nr_sib = threads_per_core - 1 };
		facts[i].sib[0] = i ^ 1;
		cpu_of_llc[i] = i;
		image.capacity[i] = CAPACITY_SCALE;
	}
	mask = (1 << NR_CPUS) - 1;
}

static void rig_world(int thread, s32 cpu, bool smt)
{
	struct world *w = &worlds[thread];

	*w = (struct world){
		.machine = { NR_CPUS, NR_CPUS, 1, 1, smt, 0 },
		.tunables = { .timers = 1,
			      .wait_bound_ns = 2500000000,
			      .imbalance_pct = 117,
			      .limits = 1 },
		.policy = &image,
		.cpus = facts,
		.llcs = &llc,
		.nodes = &node,
		.llc_cpus = cpu_of_llc,
		.views = shared.views,
		.cpu_states = shared.cpus,
		.llc_states = shared.llcs,
		.llc_sets = &shared.sets,
		.cgroups = shared.groups,
		.bandwidths = shared.bandwidths,
		.limits = &shared.limits,
		.parks = shared.parks,
		.nr_cgroups = NR_GROUPS,
		.domains = &one_piece,
		.freqs = frequencies,
		.llc_scans = scans,
		.counters = counted[thread],
		.clock = BEGINNING,
		.queue_take = queue_gives,
		.queue_length = queue_counts,
		.queue_next = queue_goes_on,
		.queued_move = queue_moves,
		.queued_requeue = queue_requeues,
		.kernel = &kernel_of_rig,
		.runs = shared.runs,
		.this_cpu = cpu,
		.immed = IMMED,
	};
	memset(counted[thread], 0, sizeof(counted[thread]));
	insertions[thread].p = NULL;
}

/* All tasks sleep, all CPUs are idle. Each thread is on its CPU, and all tasks have @features. */
static void rig_begins(const struct scenario *s, int threads_per_core, u32 features)
{
	rig_machine(threads_per_core);
	image.arm[0].migration_cost_ns = 500000;
	image.arm[0].task = (struct task_policy){ .features = features,
						  .slice_ns = SLICE,
						  .min_slice_ns = 100000,
						  .claim_ttl_ns = CLAIM_TTL,
						  .delay_ns = DELAY,
						  .fits_scale = CAPACITY_SCALE };
	memset(image.threshold, 0, sizeof(image.threshold));
	for (int i = 0; i < s->nr_threads; i++)
		rig_world(i, s->threads[i].cpu, threads_per_core > 1);
	the_world = &worlds[0];
	for (int i = 0; i < NR_TASKS; i++) {
		shared.tasks[i] = (port_task){
			.allowed = &mask, .state = &shared.states[i], .pid = 100 + i, .sleeps = true
		};
		task_begins(&shared.states[i], BEGINNING - SLICE);
		shared.states[i].load_cpu = 1;
		shared.states[i].nice_weight = NICE0_WEIGHT;
	}
	for (int i = 0; i < NR_CPUS; i++) {
		cpu_begins(i);
		shared.views[i].idle = shared.runs[i].curr_idle = true;
		mark_idle(i, cpu_state(i));
		idle_begins(cpu_state(i), BEGINNING - SLICE);
		cpu_state(i)->turn_at = BEGINNING + 1000000000ULL;
	}
}

/* @task runs on @cpu; wakeups by threads on that CPU come from it. */
static void rig_runs(int task, s32 cpu)
{
	port_task *p = &shared.tasks[task];

	p->cpu = cpu;
	p->runnable = true;
	shared.where[task] = RUNS;
	rq_counts(cpu, 1);
	shared.runs[cpu].curr_idle = false;
	task_runs(p, p->state, BEGINNING - 1000);
	for (int i = 0; i < THREADS_MAX; i++)
		if (worlds[i].this_cpu == cpu)
			worlds[i].current = p;
}

static u64 count_of(enum roost_stat s)
{
	u64 n = 0;

	for (int i = 0; i < THREADS_MAX; i++)
		n += counted[i][s];
	return n;
}

static void rig_enters(int thread)
{
	the_world = &worlds[thread];
}

/* ---- names, for error messages ---- */

#define FIELD(type, field)                                                                         \
	{ offsetof(struct type, field), sizeof(((struct type *)0)->field), #field }

struct field {
	size_t at, size;
	const char *name;
};

static const struct field cpu_fields[] = {
	FIELD(cpu_state, avg_vruntime),	  FIELD(cpu_state, weight),
	FIELD(cpu_state, util_est),	  FIELD(cpu_state, curr_pid),
	FIELD(cpu_state, curr_weight),	  FIELD(cpu_state, curr_start),
	FIELD(cpu_state, curr_slice),	  FIELD(cpu_state, idle_marked),
	FIELD(cpu_state, claim),	  FIELD(cpu_state, core_claim),
	FIELD(cpu_state, placed_started), FIELD(cpu_state, timer_at),
	FIELD(cpu_state, delay_timer_at), {},
};
static const struct field task_fields[] = {
	FIELD(task_state, on_rq),	FIELD(task_state, idle_cpu),
	FIELD(task_state, idle_at),	FIELD(task_state, delay_at),
	FIELD(task_state, delay_began), FIELD(task_state, pushed),
	FIELD(task_state, delay_cpu),	{},
};

static const char *named(const char *what, size_t at, size_t each, const struct field *fields)
{
	static char name[64];
	size_t in = at % each;

	for (; fields->name; fields++)
		if (in >= fields->at && in < fields->at + fields->size)
			break;
	if (fields->name)
		snprintf(name, sizeof(name), "%s %zu: %s", what, at / each, fields->name);
	else
		snprintf(name, sizeof(name), "%s %zu + %zu", what, at / each, in);
	return name;
}

const char *explore_name(const void *place)
{
	static const struct field none[] = { {} };
	size_t at = (const char *)place - (const char *)&shared;

	if (at < sizeof(shared.cpus))
		return named("CPU", at, sizeof(struct cpu_state), cpu_fields);
	if (at - offsetof(struct shared, states) < sizeof(shared.states))
		return named("task", at - offsetof(struct shared, states),
			     sizeof(struct task_state), task_fields);
	if (at - offsetof(struct shared, llcs) < sizeof(shared.llcs))
		return named("LLC", at - offsetof(struct shared, llcs), sizeof(struct llc_state),
			     none);
	return named("kernel", at - offsetof(struct shared, sets), sizeof(shared), none);
}

#endif /* ROOST_RIG_H */
