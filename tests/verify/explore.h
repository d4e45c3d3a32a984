/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs a few threads of real C in every order. The C is compiled with -fsanitize=thread, and explore.c stands in the place of
 * the sanitizer's runtime: the compiler calls it before each access to memory, and there it decides which thread goes on. See
 * docs/testing.md.
 */
#ifndef ROOST_EXPLORE_H
#define ROOST_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>

enum {
	THREADS_MAX = 4,
	CPUS_MAX = 4,
};

enum memory_model {
	MEMORY_SC,  /* a store is seen at once */
	MEMORY_TSO, /* x86: stores are seen late, in order; a locked instruction waits for them */
	MEMORY_PSO, /* weaker: those to different words in any order */
	NR_MEMORY_MODELS,
};

/* One thread of control: a callback, or a few in turn. */
struct thread {
	const char *name;
	void (*run)(void);
	int cpu;
	bool irq; /* an interrupt: what else runs on its CPU stands still from its first step to its last */
};

struct scenario {
	const char *name;
	void (*begin)(void);	   /* after shared memory was cleared */
	void (*end)(void);	   /* all threads have ended, all stores are seen */
	void (*enter)(int thread); /* that thread goes on: what is its own */
	struct thread threads[THREADS_MAX];
	int nr_threads;
};

/* All memory that threads share; what lies elsewhere is a thread's own. */
void explore_share(void *memory, size_t size);
/* The name of a place in it, for what is printed when something is wrong. */
const char *explore_name(const void *at);

/* Every order of the scenario's threads. Answers with what was wrong, NULL if nothing. */
const char *explore(const struct scenario *s, enum memory_model model);
unsigned long explored_states(void);
unsigned long explored_runs(void);

/* ---- called by threads ---- */

/* What lies between is one step, of the kernel under a lock of its own; nothing may wait in it. */
void step_begins(void);
void step_ends(void);
/* The thread waits until @ready says so. That, and what comes until step_ends(), is one step. */
void step_when(bool (*ready)(void *arg), void *arg);
/* The same, and until then nothing of the thread is on its CPU: a timer before it fires, a CPU without work. */
void rest_until(bool (*ready)(void *arg), void *arg);
/* Between them no interrupt comes on this CPU; they nest. */
void irqs_off(void);
void irqs_on(void);
/* It is wrong unless @good. */
void must(bool good, const char *what);

/* ---- called before an access to memory (tsan.c) ---- */

enum step_kind {
	STEP_READ,
	STEP_WRITE,
	STEP_ATOMIC,
	STEP_KERNEL,
};

void explore_access(void *at, unsigned size, enum step_kind kind);

#endif /* ROOST_EXPLORE_H */
