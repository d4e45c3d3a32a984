// SPDX-License-Identifier: GPL-2.0-only
/*
 * Explores every order of the threads by trying. A run repeats the choices of the run before it up
 * to the last one that has an alternative, and takes that. A state that was seen before ends a run.
 * A thread's state is a hash of what it has read: two runs that have read the same and left the
 * same memory continue alike.
 *
 * Threads give way before a step of the kernel and before an access to a contended word. A word is
 * contended if two threads use it, one of them writes it, not both in steps, and neither has begun
 * another step since: then nothing orders the accesses. Contended words are found on the way, and a
 * new one restarts the search. A word that passes from one thread to another under a lock is not
 * contended.
 *
 * Stores that other CPUs do not see yet are kept for each CPU. They are laid over memory while a
 * thread of the CPU runs, and taken back when it gives way. So a thread's own loads and stores stay
 * as the compiler made them.
 */
#include "explore.h"
#include "states.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum {
	STACK_BYTES = 256 << 10,
	STEPS_MAX = 1000,
	STORES_MAX = 64,
	WORDS_MAX = 1024, /* of shared memory */
	STATES_MAX = 3000000,
	REHEARSALS = 2000,
	CHOICES_MAX = 64,
};

/* A store that other CPUs do not see yet. */
struct store {
	unsigned char *at;
	unsigned size;
	unsigned char value[8], under[8]; /* what it stores; what other CPUs see there meanwhile */
};

struct cpu {
	struct store stores[STORES_MAX];
	int nr_stores;
};

static const char *const step_names[] = { "reads", "writes", "changes", "kernel" };

struct context {
	jmp_buf here;
	ucontext_t first;
	bool started, done, rests;
	int irqs_off;
	bool in_step;	/* in a step of the kernel: does not give way */
	int just_wrote; /* the last stores of its CPU not read back from memory yet */
	bool (*ready)(void *arg);
	void *ready_arg;
	uint64_t history;
	enum step_kind kind;
	const void *at;
	unsigned char *stack;
};

/* What can come next: a thread goes on, or a store of a CPU becomes visible. */
struct choice {
	short thread, cpu, store;
};

/*
 * What a thread has used since its last scheduling point, except contended words. A bit for each
 * word; [1]: in a step.
 */
struct uses {
	uint64_t reads[2][WORDS_MAX / 64], writes[2][WORDS_MAX / 64];
};

struct node {
	struct choice choices[CHOICES_MAX];
	int nr, now;
};

static const struct scenario *scenario;
static enum memory_model memory;
static unsigned char *shared;
static size_t shared_size;
static struct context contexts[THREADS_MAX];
static struct cpu cpus[CPUS_MAX];
static int running = -1; /* -1: no thread, accesses do not count */
static jmp_buf scheduler;
static const char *wrong;
static const char too_many[] = "not explored: it has too many states";

static struct node *path;
static int path_length, depth;
static unsigned long nr_runs;

static bool contended[WORDS_MAX], news;
static struct uses latest[THREADS_MAX];

/* ---- stores that are not visible yet ---- */

static struct cpu *cpu_of(int thread)
{
	return &cpus[scenario->threads[thread].cpu];
}

/* The thread's last stores are in memory by now: read their values. */
static void read_back(int thread)
{
	struct cpu *c = cpu_of(thread);

	for (int i = c->nr_stores; contexts[thread].just_wrote > 0; contexts[thread].just_wrote--) {
		struct store *s = &c->stores[--i];

		memcpy(s->value, s->at, s->size);
	}
}

static void lay_over(struct cpu *c)
{
	for (int i = 0; i < c->nr_stores; i++) {
		memcpy(c->stores[i].under, c->stores[i].at, c->stores[i].size);
		memcpy(c->stores[i].at, c->stores[i].value, c->stores[i].size);
	}
}

static void take_back(struct cpu *c)
{
	for (int i = c->nr_stores; i-- > 0;)
		memcpy(c->stores[i].at, c->stores[i].under, c->stores[i].size);
}

/* The store becomes visible. */
static void see(struct cpu *c, int i)
{
	memcpy(c->stores[i].at, c->stores[i].value, c->stores[i].size);
	memmove(&c->stores[i], &c->stores[i + 1], (c->nr_stores - i - 1) * sizeof(struct store));
	c->nr_stores--;
}

/* All stores of the thread's CPU become visible. Called while they lie in memory. */
static void see_all(int thread)
{
	read_back(thread);
	cpu_of(thread)->nr_stores = 0;
}

static bool overlap(const struct store *a, const struct store *b)
{
	return a->at < b->at + b->size && b->at < a->at + a->size;
}

static bool may_be_seen(const struct cpu *c, int i)
{
	if (memory != MEMORY_PSO)
		return i == 0;
	for (int j = 0; j < i; j++)
		if (overlap(&c->stores[j], &c->stores[i]))
			return false;
	return true;
}

/* ---- states ---- */

static uint64_t state(void)
{
	uint64_t h = mixed_bytes(1, shared, shared_size);

	for (int i = 0; i < scenario->nr_threads; i++)
		h = mixed(mixed(h, contexts[i].history),
			  contexts[i].done + 2 * contexts[i].irqs_off);
	for (int i = 0; i < CPUS_MAX; i++) {
		h = mixed(h, cpus[i].nr_stores);
		for (int j = 0; j < cpus[i].nr_stores; j++) {
			h = mixed(h, cpus[i].stores[j].at - shared);
			h = mixed_bytes(h, cpus[i].stores[j].value, cpus[i].stores[j].size);
		}
	}
	return h ? h : 1;
}

/* ---- threads ---- */

static void give_way(void)
{
	int me = running;

	read_back(me);
	take_back(cpu_of(me));
	if (!_setjmp(contexts[me].here))
		_longjmp(scheduler, 1);
}

static void thread_begins(void)
{
	int me = running;

	scenario->threads[me].run();
	read_back(me);
	contexts[me].done = true;
	take_back(cpu_of(me));
	_longjmp(scheduler, 1);
}

static void go_on(int thread)
{
	struct context *c = &contexts[thread];

	memset(&latest[thread], 0, sizeof(latest[thread]));
	running = thread;
	lay_over(cpu_of(thread));
	scenario->enter(thread);
	if (c->started) {
		if (!_setjmp(scheduler))
			_longjmp(c->here, 1);
	} else {
		c->started = true;
		if (!_setjmp(scheduler))
			setcontext(&c->first);
	}
	running = -1;
}

static bool may_go_on(int thread)
{
	const struct thread *t = &scenario->threads[thread];
	struct context *c = &contexts[thread];

	if (c->done)
		return false;
	for (int i = 0; i < scenario->nr_threads; i++) {
		const struct thread *other = &scenario->threads[i];

		if (i == thread || other->cpu != t->cpu || contexts[i].done)
			continue;
		if (contexts[i].irqs_off ||
		    (other->irq && contexts[i].started && !contexts[i].rests))
			return false;
	}
	return !c->ready || c->ready(c->ready_arg);
}

static void add_choice(struct node *n, int thread, int cpu, int store)
{
	if (n->nr == CHOICES_MAX) {
		fprintf(stderr, "%s: more choices than fit\n", scenario->name);
		exit(2);
	}
	n->choices[n->nr++] = (struct choice){ thread, cpu, store };
}

static void find_choices(struct node *n)
{
	n->nr = n->now = 0;
	for (int i = 0; i < scenario->nr_threads; i++)
		if (may_go_on(i))
			add_choice(n, i, -1, -1);
	for (int i = 0; i < CPUS_MAX; i++)
		for (int j = 0; j < cpus[i].nr_stores; j++)
			if (may_be_seen(&cpus[i], j))
				add_choice(n, -1, i, j);
}

static void carry_out(struct choice c)
{
	if (c.thread >= 0)
		go_on(c.thread);
	else
		see(&cpus[c.cpu], c.store);
}

/*
 * Nothing orders what two threads have used since each began its last step. Words in conflict are
 * contended.
 */
static void compare(const struct uses *a, const struct uses *b)
{
	for (size_t i = 0; i <= shared_size / 512; i++) {
		uint64_t a_all =
			a->reads[0][i] | a->writes[0][i] | a->reads[1][i] | a->writes[1][i];
		uint64_t b_all =
			b->reads[0][i] | b->writes[0][i] | b->reads[1][i] | b->writes[1][i];
		uint64_t clash = (a->writes[0][i] & b_all) | (b->writes[0][i] & a_all) |
				 (a->writes[1][i] & b->reads[0][i]) |
				 (b->writes[1][i] & a->reads[0][i]);

		for (int bit = 0; clash; bit++, clash >>= 1)
			if (clash & 1)
				contended[i * 64 + bit] = news = true;
	}
}

static void compare_with_others(int thread)
{
	for (int i = 0; i < scenario->nr_threads; i++)
		if (i != thread)
			compare(&latest[thread], &latest[i]);
}

/* ---- one run ---- */

static void start(void)
{
	memset(shared, 0, shared_size);
	memset(cpus, 0, sizeof(cpus));
	memset(latest, 0, sizeof(latest));
	for (int i = 0; i < scenario->nr_threads; i++) {
		unsigned char *stack = contexts[i].stack;

		if (!stack)
			stack = malloc(STACK_BYTES);
		contexts[i] = (struct context){ .stack = stack, .kind = STEP_KERNEL };
		getcontext(&contexts[i].first);
		contexts[i].first.uc_stack.ss_sp = stack;
		contexts[i].first.uc_stack.ss_size = STACK_BYTES;
		makecontext(&contexts[i].first, thread_begins, 0);
	}
	scenario->begin();
	depth = 0;
	nr_runs++;
}

static bool all_done(void)
{
	for (int i = 0; i < scenario->nr_threads; i++)
		if (!contexts[i].done)
			return false;
	return true;
}

/*
 * All threads have ended, none can go on, or the run is too long. Otherwise finds the node's
 * choices.
 */
static bool is_over(struct node *n)
{
	if (depth == STEPS_MAX) {
		wrong = "it does not end";
		return true;
	}
	find_choices(n);
	if (n->nr)
		return false;
	if (all_done())
		scenario->end();
	else
		wrong = "some thread waits for ever";
	return true;
}

/*
 * A run ends with the last thread, at a state that was seen before, with an error, or with a new
 * contended word.
 */
static void run(void)
{
	start();
	while (!wrong && !news) {
		struct node *n = &path[depth];

		if (depth == path_length) {
			if (!state_is_new(state()) || is_over(n))
				break;
			path_length++;
		}
		carry_out(n->choices[n->now]);
		if (depth == path_length - 1 && n->choices[n->now].thread >= 0)
			compare_with_others(n->choices[n->now].thread);
		depth++;
	}
	if (nr_states > STATES_MAX && !wrong)
		wrong = too_many;
}

/* Steps back to the last choice that has an alternative. */
static bool next_path(void)
{
	while (path_length && ++path[path_length - 1].now >= path[path_length - 1].nr)
		path_length--;
	return path_length;
}

/* Every order, up to the first error or new contended word. */
static void search(void)
{
	news = false;
	path_length = 0;
	nr_runs = 0;
	forget_states();
	do
		run();
	while (!wrong && !news && next_path());
}

/* ---- rehearsals ---- */

/* A random number below @end, from a fixed seed. */
static unsigned dice(unsigned end)
{
	static uint64_t last = 1;

	last = mixed(last, end);
	return (last >> 33) % end;
}

/* Prefers that thread @last goes on, as in a real run. */
static int any_choice(const struct node *n, int last)
{
	for (int i = 0; i < n->nr; i++)
		if (last >= 0 && n->choices[i].thread == last && dice(4))
			return i;
	return dice(n->nr);
}

/* One random order. */
static void rehearse(void)
{
	int last = -1;

	start();
	path_length = 0;
	while (!wrong && !is_over(&path[depth])) {
		path[depth].now = any_choice(&path[depth], last);
		last = path[depth].choices[path[depth].now].thread;
		path_length++;
		carry_out(path[depth].choices[path[depth].now]);
		if (last >= 0)
			compare_with_others(last);
		depth++;
	}
}

/* Random orders find most contended words early, so that the search seldom restarts. */
static void rehearse_all(void)
{
	for (int i = 0; i < REHEARSALS && !wrong; i++)
		rehearse();
}

/* ---- printing how an error came about ---- */

static void tell_step(struct choice c)
{
	struct context *t;

	if (c.thread < 0) {
		fprintf(stderr, "    CPU %d's store to %s is seen\n", c.cpu,
			explore_name(cpus[c.cpu].stores[c.store].at));
		return;
	}
	t = &contexts[c.thread];
	fprintf(stderr, "    %s %s %s\n", scenario->threads[c.thread].name,
		t->started ? step_names[t->kind] : "begins",
		t->started && t->at ? explore_name(t->at) : "");
}

static void tell(void)
{
	const char *what = wrong;
	int steps = path_length;

	wrong = NULL;
	fprintf(stderr, "  %s: %s\n", scenario->name, what);
	start();
	for (depth = 0; depth < steps && !wrong; depth++) {
		struct choice c = path[depth].choices[path[depth].now];

		tell_step(c);
		carry_out(c);
	}
	wrong = what;
}

const char *explore(const struct scenario *s, enum memory_model model)
{
	scenario = s;
	memory = model;
	memset(contended, 0, sizeof(contended));
	path = path ? path : malloc(STEPS_MAX * sizeof(*path) + sizeof(*path));
	wrong = NULL;
	rehearse_all();
	for (news = true; news && !wrong;)
		search();
	if (wrong && wrong != too_many && !getenv("EXPLORE_QUIET"))
		tell();
	return wrong;
}

unsigned long explored_states(void)
{
	return nr_states;
}

unsigned long explored_runs(void)
{
	return nr_runs;
}

void explore_share(void *memory_, size_t size)
{
	shared = memory_;
	shared_size = size;
	if (size / 8 > WORDS_MAX) {
		fprintf(stderr, "more memory is shared than fits: %zu bytes\n", size);
		exit(2);
	}
}

/* ---- called by threads ---- */

static void step(enum step_kind kind, const void *at)
{
	contexts[running].kind = kind;
	contexts[running].at = at;
	contexts[running].history = mixed(contexts[running].history, kind);
	give_way();
}

void step_begins(void)
{
	if (running < 0)
		return;
	step(STEP_KERNEL, NULL);
	see_all(running);
	contexts[running].in_step = true;
}

void step_ends(void)
{
	if (running < 0)
		return;
	contexts[running].in_step = false;
}

void step_when(bool (*ready)(void *arg), void *arg)
{
	if (running < 0)
		return;
	contexts[running].ready = ready;
	contexts[running].ready_arg = arg;
	step_begins();
	contexts[running].ready = NULL;
}

void rest_until(bool (*ready)(void *arg), void *arg)
{
	contexts[running].rests = true;
	step_when(ready, arg);
	contexts[running].rests = false;
}

void irqs_off(void)
{
	if (running < 0)
		return;
	contexts[running].irqs_off++;
}

void irqs_on(void)
{
	if (running < 0)
		return;
	if (--contexts[running].irqs_off)
		return;
	for (int i = 0; i < scenario->nr_threads; i++)
		if (scenario->threads[i].irq &&
		    scenario->threads[i].cpu == scenario->threads[running].cpu) {
			step(STEP_KERNEL, NULL);
			return;
		}
}

void must(bool good, const char *what)
{
	if (!good && !wrong)
		wrong = what;
}

/* ---- called by the compiler ---- */

static void use(size_t word, bool write)
{
	struct uses *u = &latest[running];
	bool in_step = contexts[running].in_step;

	if (!contended[word])
		(write ? u->writes : u->reads)[in_step][word / 64] |= 1ULL << (word % 64);
}

/* Records a store that is about to happen, in pieces that a struct store can hold. */
static void keep_back(unsigned char *at, unsigned size)
{
	struct cpu *c = cpu_of(running);

	for (unsigned piece; size; at += piece, size -= piece) {
		struct store *s = &c->stores[c->nr_stores];

		if (c->nr_stores == STORES_MAX) {
			must(false, "more stores than fit");
			return;
		}
		c->nr_stores++;
		piece = size < 8 ? size : 8;
		s->at = at;
		s->size = piece;
		memcpy(s->under, at, piece);
		contexts[running].just_wrote++;
	}
}

/* A thread is about to use memory. */
void explore_access(void *at, unsigned size, enum step_kind kind)
{
	size_t from = (unsigned char *)at - shared;
	bool gives_way = false, write = kind != STEP_READ;

	if (running < 0 || (unsigned char *)at < shared || from >= shared_size)
		return;
	read_back(running);
	for (size_t word = from / 8; word <= (from + size - 1) / 8; word++)
		gives_way |= contended[word];
	if (gives_way && !contexts[running].in_step)
		step(kind, at);
	for (size_t word = from / 8; word <= (from + size - 1) / 8; word++)
		use(word, write);
	/* The history has reads only: what a thread writes follows from what it has read. */
	if (kind == STEP_ATOMIC)
		see_all(running);
	if (kind != STEP_WRITE)
		contexts[running].history =
			mixed_bytes(mixed(contexts[running].history, from), at, size);
	if (kind == STEP_WRITE && gives_way && !contexts[running].in_step && memory != MEMORY_SC)
		keep_back(at, size);
}
