// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bounds of the ladder, proved by cbmc on the machines of four CPUs in ladder.py, in every
 * state and for every set of features. place() and all that it calls is the policy's own code. The
 * assumptions are what the load and the callbacks guarantee. Each prove_*() is a proof of its own:
 * ladder.py says which are run, and which functions are replaced in each.
 */
#include "../../src/bpf/policy/signal.h"

/* Any number: only used to weigh one CPU against another. */
#define LOAD_MAX (1ULL << 40)
static u64 any_below(u64 end)
{
	u64 n = nondet_u64();

	assume(n < end);
	return n;
}
#define cpu_load(cpu, now)   (cpu_state(cpu), any_below(LOAD_MAX))
#define cpu_util(cpu, now)   (cpu_state(cpu), any_below(CAPACITY_SCALE + 1))
#define first_util(cpu, now) (cpu_state(cpu), any_below(CAPACITY_SCALE + 1))
#define task_load(ts, now)   any_below(LOAD_MAX)

#include "../../src/bpf/policy/ladder.h"

/* cbmc takes any value for their results. */
struct cpu_view nondet_view(void);
struct cpu_state nondet_cpu_state(void);
struct task_state nondet_task(void);
struct wakeup nondet_wakeup(void);

static u32 below(u32 end)
{
	u32 n = nondet_u32();

	assume(n < end);
	return n;
}

/* ---- the machine: how four CPUs, some of them offline, share cores, caches and nodes ---- */

/*
 * Core, LLC and node of each CPU; core 9: offline. The machine is a constant, so each machine is a
 * proof of its own.
 */
static const u8 shape[CPUS][3] = { MACHINE };

static void make_cpu(u32 i)
{
	struct cpu_facts *f = ROW(the_cpu, i);

	*f = (struct cpu_facts){};
	f->online = shape[i][0] != 9;
	the_domains.away[i] = !f->online;
	if (!f->online)
		return;
	f->core = shape[i][0];
	f->llc = shape[i][1];
	f->node = shape[i][2];
	f->capacity = 1 + below(CAPACITY_SCALE);
}

/* Cores are within LLCs, LLCs within nodes, and LLCs are numbered node by node. */
static void nests(const struct cpu_facts *a, const struct cpu_facts *b)
{
	if (!a->online || !b->online)
		return;
	assume(a->core != b->core || a->llc == b->llc);
	assume(a->llc != b->llc || a->node == b->node);
	assume(a->llc >= b->llc || a->node <= b->node);
}

static u32 fill_llc(u32 llc, u32 first)
{
	struct llc_facts *f = ROW(the_llc, llc);
	u32 i, n = 0;

	*f = (struct llc_facts){ .first = first, .nr_words = 1 };
	for (i = 0; i < CPUS; i++) {
		struct cpu_facts *c = ROW(the_cpu, i);

		if (!c->online || c->llc != llc)
			continue;
		c->pos = n;
		the_llc_cpu[first + n++] = i;
		f->node = c->node;
		f->capacity += c->capacity;
	}
	f->nr_cpus = n;
	return n;
}

static void fill_siblings(u32 i)
{
	struct cpu_facts *f = ROW(the_cpu, i);
	u32 j;

	for (j = 0; j < CPUS; j++) {
		struct cpu_facts *other = ROW(the_cpu, j);

		nests(f, other);
		if (j != i && f->online && other->online && f->core == other->core)
			f->sib[f->nr_sib++] = j;
	}
	the_machine.smt |= f->nr_sib > 0;
}

static void fill_node(u32 llc)
{
	struct node_facts *f = ROW(the_node, ROW(the_llc, llc)->node);

	if (!f->nr_llcs) {
		f->first_llc = llc;
		the_machine.nr_nodes++;
	}
	f->nr_llcs++;
}

static void make_machine(void)
{
	u32 i, first = 0;

	the_machine = (struct machine_facts){ .nr_cpu_ids = CPUS };
	for (i = 0; i < CPUS; i++)
		make_cpu(i);
	for (i = 0; i < CPUS; i++) {
		u32 n = fill_llc(i, first);

		/* LLC numbers have no gaps. */
		assume(!n || i == the_machine.nr_llcs);
		first += n;
		the_machine.nr_llcs += n > 0;
		fill_siblings(i);
	}
	the_machine.nr_online = first;
	for (i = 0; i < CPUS; i++)
		if (i < the_machine.nr_llcs)
			fill_node(i);
	for (i = 0; i < CPUS; i++)
		assume(i >= the_machine.nr_llcs || ROW(the_llc, i)->node < the_machine.nr_nodes);
	/*
	 * Userspace decides whether CPUs count as unequal, so ASYM is independent of the
	 * capacities.
	 */
	the_machine.asym = ASYM;
}

/* ---- its state: anything, except that sets hold only CPUs which exist ---- */

static void make_state(u32 i)
{
	struct llc_state *ls = ROW(the_llc_state, i);
	u32 s;

	*ROW(the_state, i) = nondet_cpu_state();
	*ROW(the_view, i) = nondet_view();
	ROW(the_view, i)->idle = below(2);
	*ls = (struct llc_state){ .summed_at = nondet_u64(), .scan_budget = nondet_u32() };
	ls->load = any_below(LOAD_MAX);
	ls->util = below(CPUS * CAPACITY_SCALE + 1);
	for (s = 0; s < NR_CPU_SETS; s++) {
		ls->set[s][0] = any_below(1ULL << ROW(the_llc, i)->nr_cpus);
		the_llc_sets.set[s][0] = any_below(1ULL << the_machine.nr_llcs);
	}
}

static void make_states(void)
{
	u32 i;

	for (i = 0; i < CPUS; i++)
		make_state(i);
	the_image.arm[0].migration_cost_ns = any_below(1ULL << 40);
	the_stale_ms = nondet_u32();
	the_tunables.imbalance_pct = 100 + below(300);
}

/* ---- the wakeup ---- */

static port_task task;
static struct task_state ts, waker;
static struct wakeup w;

static void make_task(struct task_state *t)
{
	*t = nondet_task();
	t->recent_cpu = below(CPUS + 1);
	t->load_cpu = below(CPUS + 1);
	t->pol.arm = below(MAX_ARMS);
}

static void make_wakeup(void)
{
	task.allowed = below(1 << CPUS);
	task.restricted = task.allowed != (1 << CPUS) - 1;
	w = nondet_wakeup();
	w.features = ts.pol.features;
	w.arm = ts.pol.arm;
	w.this_cpu = below(CPUS);
	assume(cpu_facts(w.this_cpu)->online);
	w.last_cpu = below(CPUS);
	w.prev = task_allowed(&task, w.last_cpu) ? w.last_cpu : NO_CPU;
	w.this_allowed = task_allowed(&task, w.this_cpu);
	w.recent = below(CPUS + 1) - 1;
	w.fork = below(2);
	w.sync = below(2);
	w.waker_pcpu_kthread = below(2);
	w.sched_idle = below(2);
	w.short_burst = below(2);
	w.vacant_core = below(2);
	/* The clock has run for a while, so no stamp is 0: 0 means that there is none. */
	assume(w.now > 2 * CLAIM_LOST_NS && w.now < 1ULL << 62);
}

static void make(void)
{
	make_machine();
	make_states();
	make_task(&ts);
	make_task(&waker);
	make_wakeup();
}

static u32 llc_index(u32 llc)
{
	return in_range(llc, the_machine.nr_llcs);
}

/* ---- what is proved ---- */

/* The task may run on the answer, or may not use its previous CPU and is queued there. */
static void good(struct placement at)
{
	__CPROVER_assert(at.cpu >= 0 && at.cpu < CPUS, "the answer is a CPU");
	__CPROVER_assert(task_allowed(&task, at.cpu) ||
				 (at.how == PLACE_BUSY && w.prev == NO_CPU && at.cpu == w.last_cpu),
			 "the answer is online and in the task's mask");
}

/*
 * What replaces a function while its callers are proved: it returns any answer that the function
 * may give, and more. The proofs below that ladder.py runs cover some of them; the scans' answers
 * are assumed (docs/explanation/testing.md). They access what their arguments name, so that
 * indexes are checked.
 */

static bool can_go_to(s32 cpu)
{
	return cpu_facts(cpu)->online && task_allowed(&task, cpu);
}

static s32 any_allowed(void)
{
	s32 cpu = (s32)below(CPUS + 1) - 1;

	assume(cpu == NO_CPU || can_go_to(cpu));
	return cpu;
}

s32 scan_llc_summary(port_task *p, const struct scan *s)
{
	s32 cpu = any_allowed();

	assume(cpu == NO_CPU ||
	       (cpu_facts(cpu)->llc == llc_index(s->llc) && scan_accepts(p, s, cpu)));
	return cpu;
}

s32 scan_and_take_summary(port_task *p, const struct scan *s)
{
	(void)p;
	llc_index(s->llc);
	return any_allowed();
}

s32 scan_llcs_summary(port_task *p, struct scan *s, u32 from, u32 end, u32 own)
{
	(void)p;
	(void)own;
	(void)s;
	__CPROVER_assert(from <= end && end <= the_machine.nr_llcs, "LLCs that exist");
	return any_allowed();
}

s32 take_in_machine_summary(port_task *p, const struct wakeup *wakeup, s32 target, u32 least)
{
	(void)p;
	(void)wakeup;
	(void)least;
	cpu_facts(target);
	return any_allowed();
}

bool claim_live_summary(s32 cpu, u64 now, u64 ttl)
{
	(void)now;
	(void)ttl;
	cpu_facts(cpu);
	return below(2);
}

bool core_unclaimed_summary(s32 cpu, u32 features, u64 now, u64 ttl)
{
	(void)features;
	return claim_live_summary(cpu, now, ttl);
}

bool claim_take_summary(s32 cpu, u32 features, u32 arm, u64 now, u64 ttl)
{
	(void)features;
	(void)arm;
	return claim_live_summary(cpu, now, ttl);
}

bool core_vacant_summary(s32 cpu, u64 now, u64 ns)
{
	return claim_live_summary(cpu, now, ns);
}

static struct scan make_scan(void)
{
	struct scan s = scan_for(&w);

	s.what = below(2) ? SCAN_CORE : SCAN_CPU;
	s.llc = below(CPUS);
	assume(s.llc < the_machine.nr_llcs);
	s.start = below(CPUS);
	assume(s.start < llc_facts(s.llc)->nr_cpus);
	s.budget = nondet_u32();
	s.by_idle = below(2);
	s.vacant_ns = nondet_u64();
	return s;
}

/* scan_llc_summary() is true. ladder.py does not run this proof. */
void prove_scan_llc(void)
{
	struct scan s;
	s32 cpu;

	make();
	s = make_scan();
	cpu = scan_llc(&task, &s);
	if (cpu == NO_CPU)
		return;
	__CPROVER_assert(cpu_facts(cpu)->online && cpu_facts(cpu)->llc == s.llc, "of that LLC");
	__CPROVER_assert(scan_accepts(&task, &s, cpu), "accepted");
}

/* One LLC: no claim fails, so the search does not restart. ladder.py does not run this proof. */
void prove_scan_and_take(void)
{
	struct scan s;
	s32 cpu;

	make();
	s = make_scan();
	/* It is called with this feature only. */
	s.features |= FEATURE_claim;
	cpu = scan_and_take(&task, &s);
	__CPROVER_assert(cpu == NO_CPU || can_go_to(cpu), "the task may run there");
}

/* Several LLCs. ladder.py does not run this proof. */
void prove_scan_llcs(void)
{
	struct scan s;
	u32 from, end;
	s32 cpu;

	make();
	s = make_scan();
	end = below(the_machine.nr_llcs + 1);
	from = below(end + 1);
	cpu = scan_llcs_and_take(&task, &s, from, end, below(CPUS));
	__CPROVER_assert(cpu == NO_CPU || can_go_to(cpu), "the task may run there");
}

void prove_scan_cores(void)
{
	struct scan s;
	u32 from, end;
	s32 cpu;

	make();
	s = make_scan();
	end = below(the_machine.nr_llcs + 1);
	from = below(end + 1);
	cpu = scan_cores(&task, &s, from, end, below(CPUS));
	__CPROVER_assert(cpu == NO_CPU || can_go_to(cpu), "the task may run there");
}

void prove_claims(void)
{
	u32 cpu = below(CPUS);

	make();
	assume(cpu_facts(cpu)->online);
	claim_live(cpu, w.now, w.claim_ttl);
	claim_core_take(cpu, w.features, w.arm, w.now, w.claim_ttl);
	core_vacant(cpu, w.now, w.vacant_ns);
}

/*
 * The part of take_in_machine() that chooses a CPU, for a wakeup and for a running task. That its
 * loop ends is not proved.
 */
void prove_capacity(void)
{
	u32 target = below(CPUS), least = below(2 * CAPACITY_SCALE);
	s32 cpu;

	make();
	assume(cpu_facts(target)->online);
	cpu = choose_in_machine(&task, &w, target, least);
	__CPROVER_assert(cpu == NO_CPU || can_go_to(cpu), "the task may run there");
}

/* All of place(), with searches and claims replaced. */
void prove_fork(void)
{
	make();
	w.fork = true;
	good(place(&task, &ts, below(2) ? &waker : NULL, &w));
}

void prove_wakeup(void)
{
	make();
	w.fork = false;
	good(place(&task, &ts, below(2) ? &waker : NULL, &w));
}
