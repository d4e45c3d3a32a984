// SPDX-License-Identifier: GPL-2.0-only
/*
 * affine THREADS SECONDS: threads change their affinity at random, and look all the time whether
 * they run on an allowed CPU. Prints the number of looks and of violations. Exit status 1 on a
 * violation.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 256

static atomic_long looks, moves, violations;
static atomic_int stop;
static int nr_cpus;

static void random_mask(cpu_set_t *set, unsigned *seed)
{
	int want = 1 + rand_r(seed) % 3;

	CPU_ZERO(set);
	while (want--)
		CPU_SET(rand_r(seed) % nr_cpus, set);
}

static void nap(long ns)
{
	struct timespec t = { 0, ns };

	nanosleep(&t, NULL);
}

static void look(const cpu_set_t *set, unsigned *seed)
{
	for (int i = 0; i < 200; i++) {
		int cpu = sched_getcpu();

		atomic_fetch_add(&looks, 1);
		if (!CPU_ISSET(cpu, set)) {
			atomic_fetch_add(&violations, 1);
			printf("# affine: thread %d ran on CPU %d, which is not in its mask\n",
			       gettid(), cpu);
		}
		if (i % 50 == 0)
			nap(rand_r(seed) % 300000);
		else if (i % 20 == 0)
			sched_yield();
	}
}

static void *run(void *arg)
{
	unsigned seed = (unsigned)(long)arg * 7919 + 1;
	cpu_set_t set;

	while (!stop) {
		random_mask(&set, &seed);
		if (sched_setaffinity(0, sizeof(set), &set))
			continue;
		atomic_fetch_add(&moves, 1);
		look(&set, &seed);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[MAX_THREADS];
	int n = argc > 1 ? atoi(argv[1]) : 8, secs = argc > 2 ? atoi(argv[2]) : 5;

	if (n > MAX_THREADS)
		n = MAX_THREADS;
	nr_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	for (long i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	sleep(secs);
	stop = 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("# affine: %ld masks, %ld looks, %ld violations\n", moves, looks, violations);
	return violations || moves < n || looks < n;
}
