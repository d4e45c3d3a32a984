/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs a few threads of real C in every order. The C is compiled with -fsanitize=thread, and
 * explore.c replaces the sanitizer's runtime. The compiler calls it before each access to memory,
 * and there it decides which thread goes on. See docs/explanation/testing.md.
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
	MEMORY_SC,  /* others see a store at once */
	MEMORY_TSO, /* x86: others see stores late, in order; a locked instruction waits for them */
	MEMORY_PSO, /* weaker: stores to different words are seen in any order */
	NR_MEMORY_MODELS,
};

/* One thread of control: a callback, or a few in turn. */
struct thread {
	const char *name;
	void (*run)(void);
	int cpu;
	bool irq; /* an interrupt: other threads of its CPU wait from its first step to its last */
};

struct scenario {
	const char *name;
	void (*begin)(void);	   /* after shared memory was cleared */
	void (*end)(void);	   /* all threads have ended, all stores are seen */
	void (*enter)(int thread); /* before that thread goes on: sets up its own state */
	struct thread threads[THREADS_MAX];
	int nr_threads;
};

/* All memory that the threads share. Memory elsewhere belongs to one thread. */
void explore_share(void *memory, size_t size);
/* The name of a place in shared memory, for error messages. */
const char *explore_name(const void *at);

/* Explores every order of the scenario's threads. Returns what was wrong, NULL if nothing. */
const char *explore(const struct scenario *s, enum memory_model model);
unsigned long explored_states(void);
unsigned long explored_runs(void);

/* ---- called by threads ---- */

/*
 * All accesses between these two are one step: the kernel's, under its own lock. A step must not
 * wait.
 */
void step_begins(void);
void step_ends(void);
/* Waits until @ready returns true. That, and everything up to step_ends(), is one step. */
void step_when(bool (*ready)(void *arg), void *arg);
/*
 * As step_when(), but the thread does not occupy its CPU meanwhile: a timer before it fires, a CPU
 * without work.
 */
void rest_until(bool (*ready)(void *arg), void *arg);
/* Between these two no interrupt comes on this CPU. They nest. */
void irqs_off(void);
void irqs_on(void);
/* Reports @what as an error unless @good. */
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
