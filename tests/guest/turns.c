// SPDX-License-Identifier: GPL-2.0-only
/*
 * turns TASKS SECONDS FREE: tasks that share a spin lock in user space. The one that has it
 * computes for 50 us, and without it for FREE us; the others call sched_yield(). Prints how many
 * turns all had, and the task with the least. With FREE 0 the lock changes hands only when its
 * holder is interrupted in the few instructions without it: a task may have no turn by chance.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST	64
#define HELD_NS 50000

struct shared {
	_Atomic int lock;
	long turns[MOST];
};

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void compute(long long ns)
{
	long long end = now_ns() + ns;

	while (now_ns() < end)
		;
}

static void compete(struct shared *shared, int me, long long free_ns, long long end)
{
	while (now_ns() < end) {
		int is_free = 0;

		if (!atomic_compare_exchange_strong(&shared->lock, &is_free, 1)) {
			sched_yield();
			continue;
		}
		compute(HELD_NS);
		shared->turns[me]++;
		atomic_store(&shared->lock, 0);
		compute(free_ns);
	}
}

int main(int argc, char **argv)
{
	int tasks = argc > 1 ? atoi(argv[1]) : 8, seconds = argc > 2 ? atoi(argv[2]) : 3;
	int free_us = argc > 3 ? atoi(argv[3]) : 0;
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	long long end = now_ns() + seconds * 1000000000LL;
	long all = 0, least = -1;

	if (shared == MAP_FAILED || tasks < 1 || tasks > MOST)
		return 2;
	for (int i = 0; i < tasks; i++) {
		if (!fork()) {
			compete(shared, i, free_us * 1000LL, end);
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < tasks; i++) {
		all += shared->turns[i];
		if (least < 0 || shared->turns[i] < least)
			least = shared->turns[i];
	}
	printf("turns %ld least %ld\n", all, least);
	return 0;
}
