// SPDX-License-Identifier: GPL-2.0-only
/*
 * stack ROUNDS CPU...: in each round a waker on each of these CPUs wakes a task of its own, all at
 * one instant. The task slept on the waker's CPU and may run anywhere. It needs an idle CPU, and
 * for tasks of one LLC the first idle CPU is the same. It then runs for a while. Prints how many of
 * the tasks started on a CPU on which another task of that round started.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

#define US	 1000L
#define AHEAD_NS (4000 * US) /* from "all sleep" to the instant */
#define AWAKE_NS (500 * US)  /* how long before it the wakers are awake */
#define RUN_NS	 (4000 * US) /* how long a woken task runs */

struct pair {
	int cpu;
	int ran_on;
	int woken;  /* futex: the round */
	int asleep; /* the round for which the wakee is about to sleep */
};

static struct pair pairs[MOST];
static int nr_pairs, rounds;
static int go;	     /* futex: the round whose instant is set */
static long instant; /* ns */
static int done;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void sleep_until(long ns)
{
	struct timespec t = { ns / 1000000000L, ns % 1000000000L };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void spin_until(long ns)
{
	while (now_ns() < ns)
		;
}

static void wait_for(int *word, int value)
{
	int seen;

	while ((seen = __atomic_load_n(word, __ATOMIC_SEQ_CST)) < value)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void wake(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, MOST, NULL, NULL, 0);
}

static void may_run(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (cpu < 0 || c == cpu)
			CPU_SET(c, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *wakee(void *arg)
{
	struct pair *p = arg;

	for (int round = 1; round <= rounds; round++) {
		may_run(p->cpu);
		may_run(-1);
		__atomic_store_n(&p->asleep, round, __ATOMIC_SEQ_CST);
		wait_for(&p->woken, round);
		p->ran_on = sched_getcpu();
		spin_until(now_ns() + RUN_NS);
		__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void *waker(void *arg)
{
	struct pair *p = arg;

	may_run(p->cpu);
	for (int round = 1; round <= rounds; round++) {
		wait_for(&go, round);
		sleep_until(instant - AWAKE_NS);
		spin_until(instant);
		wake(&p->woken, round);
	}
	return NULL;
}

static int shared_cpus(void)
{
	int shared = 0;

	for (int i = 0; i < nr_pairs; i++)
		for (int j = 0; j < i; j++)
			if (pairs[i].ran_on == pairs[j].ran_on) {
				shared++;
				break;
			}
	return shared;
}

static void until(int *word, int value)
{
	while (__atomic_load_n(word, __ATOMIC_SEQ_CST) < value)
		sleep_until(now_ns() + 1000 * US);
}

int main(int argc, char **argv)
{
	pthread_t threads[2 * MOST];
	int shared = 0;

	nr_pairs = argc - 2;
	if (nr_pairs < 1 || nr_pairs > MOST) {
		fprintf(stderr, "stack ROUNDS CPU...: 1 to %d CPUs are expected\n", MOST);
		return 1;
	}
	rounds = atoi(argv[1]);
	for (int i = 0; i < nr_pairs; i++) {
		pairs[i].cpu = atoi(argv[2 + i]);
		pthread_create(&threads[2 * i], NULL, wakee, &pairs[i]);
		pthread_create(&threads[2 * i + 1], NULL, waker, &pairs[i]);
	}
	for (int round = 1; round <= rounds; round++) {
		for (int i = 0; i < nr_pairs; i++)
			until(&pairs[i].asleep, round);
		/* Time for all tasks to fall asleep. */
		sleep_until(now_ns() + 2000 * US);
		instant = now_ns() + AHEAD_NS;
		wake(&go, round);
		until(&done, round * nr_pairs);
		shared += shared_cpus();
	}
	for (int i = 0; i < 2 * nr_pairs; i++)
		pthread_join(threads[i], NULL);
	printf("# stack: %d wakeups, %d on a CPU that another of the same instant had\n",
	       rounds * nr_pairs, shared);
	return 0;
}
