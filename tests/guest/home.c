// SPDX-License-Identifier: GPL-2.0-only
/*
 * home ROUNDS CPU HOME: in each round a task goes to sleep on CPU HOME. A second task, bound to
 * HOME, then computes for a while and sleeps. Then a waker on CPU, which goes on running, wakes the
 * first task, which may run anywhere. So its previous CPU is idle, and was busy recently. Prints
 * how often the task ran elsewhere.
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

#define MS	1000000L
#define BUSY_NS (20 * MS)

/* Each is a futex, and holds the last round that it was signalled for. */
static int go_home, asleep, compute, computed, woken, ran;
static int home, rounds, elsewhere;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 * MS + t.tv_nsec;
}

static void nap(long ns)
{
	struct timespec t = { 0, ns };

	nanosleep(&t, NULL);
}

static void pin(int first, int last)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("sched_setaffinity");
		exit(1);
	}
}

static void tell(int *word, int round)
{
	__atomic_store_n(word, round, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wait_for(int *word, int round)
{
	int seen;

	while ((seen = __atomic_load_n(word, __ATOMIC_SEQ_CST)) < round)
		syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void *sleeper(void *arg)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (int round = 1; round <= rounds; round++) {
		wait_for(&go_home, round);
		pin(home, home);
		pin(0, cpus - 1);
		tell(&asleep, round);
		wait_for(&woken, round);
		elsewhere += sched_getcpu() != home;
		tell(&ran, round);
	}
	return arg;
}

static void *computer(void *arg)
{
	pin(home, home);
	for (int round = 1; round <= rounds; round++) {
		wait_for(&compute, round);
		for (long end = now_ns() + BUSY_NS; now_ns() < end;)
			;
		tell(&computed, round);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t one, two;

	if (argc != 4)
		return 2;
	rounds = atoi(argv[1]);
	home = atoi(argv[3]);
	pin(atoi(argv[2]), atoi(argv[2]));
	pthread_create(&one, NULL, sleeper, NULL);
	pthread_create(&two, NULL, computer, NULL);
	for (int round = 1; round <= rounds; round++) {
		tell(&go_home, round);
		wait_for(&asleep, round);
		tell(&compute, round);
		wait_for(&computed, round);
		nap(MS);
		tell(&woken, round);
		wait_for(&ran, round);
	}
	pthread_join(one, NULL);
	pthread_join(two, NULL);
	printf("%d\n", elsewhere);
	return 0;
}
