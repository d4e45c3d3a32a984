// SPDX-License-Identifier: GPL-2.0-only
/*
 * crowd THREADS SECONDS LIMIT_MS [idle|taken|limited]: THREADS threads wake up at once and compute
 * on CPU 1. Prints the longest wait of any thread. A thread looks at the clock and at the number of
 * its context switches again and again. A slice of a large crowd may be too short for a look. So a
 * thread may have waited several times between two looks; such a time is divided by the number of
 * waits. More than one in twenty such looks are a failure, and so are such times beyond LIMIT_MS
 * for more than one thread in a hundred. Emulated CPUs share their speed, so the threads are
 * created before. idle: policy SCHED_IDLE. taken: a real-time task has CPU 1, and when all threads
 * wait there, they may use every CPU. limited: the group is over its CPU limit, so two switches may
 * be one wait: a thread leaves the CPU at the end of its slice, and once more on its way to user
 * mode. Exit status 1 if a wait exceeds LIMIT_MS or a thread has not run.
 */
#define _GNU_SOURCE
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 16384

static struct one {
	double last;	/* ms */
	double longest; /* ms */
	long looks;
	long waited;   /* looks after a wait */
	long unclear;  /* of these, after more than one */
	double gap;    /* ms: the longest that is unclear */
	long switches; /* away from it, at the last look */
} all[MAX_THREADS];

static atomic_int gate, stop;
static double opened; /* ms */
static int idle, taken;
static long per_wait = 1; /* switches */

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* How often the calling thread was switched away from. */
static long switches(void)
{
	struct rusage used;

	getrusage(RUSAGE_THREAD, &used);
	return used.ru_nvcsw + used.ru_nivcsw;
}

static void look(struct one *one)
{
	long before = one->switches, seen;
	double now, wait;

	/* Time and number are of the same moment if no switch is between them. */
	do {
		seen = switches();
		now = now_ms();
		one->switches = switches();
	} while (one->switches != seen);
	wait = now - one->last;
	one->last = now;
	one->looks++;
	one->waited += one->switches > before;
	if (one->switches > before + per_wait) {
		one->unclear++;
		if (wait > one->gap)
			one->gap = wait;
		wait /= (one->switches - before + per_wait - 1) / per_wait;
	}
	if (wait > one->longest)
		one->longest = wait;
}

static void *compute(void *arg)
{
	struct sched_param none = {};
	struct one *one = arg;

	if (idle)
		sched_setscheduler(0, SCHED_IDLE, &none);
	one->switches = switches();
	while (!gate)
		syscall(SYS_futex, &gate, FUTEX_WAIT_PRIVATE, 0, NULL);
	one->last = opened;
	while (!stop) {
		look(one);
		for (volatile int i = 0; i < 200; i++)
			;
	}
	look(one);
	return NULL;
}

/* Wakes the threads. */
static void open_gate(void)
{
	opened = now_ms();
	gate = 1;
	syscall(SYS_futex, &gate, FUTEX_WAKE_PRIVATE, INT_MAX);
}

static void real_time(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	/* A run that no real-time task disturbs would prove nothing. */
	if (sched_setscheduler(0, priority ? SCHED_FIFO : SCHED_OTHER, &param)) {
		perror("crowd: sched_setscheduler");
		exit(2);
	}
}

/* A real-time task takes the CPU of @set for so many seconds. Returns its pid. */
static pid_t take_cpu(const cpu_set_t *set, double seconds)
{
	double end = now_ms() + seconds * 1e3;
	pid_t pid = fork();

	if (pid)
		return pid;
	sched_setaffinity(0, sizeof(*set), set);
	real_time(50);
	while (now_ms() < end)
		;
	_exit(0);
}

/* The threads wake up while the CPU of @set is taken, and may then use every CPU. */
static void open_gate_of_taken(pthread_t *threads, int n, const cpu_set_t *set)
{
	cpu_set_t all;

	CPU_ZERO(&all);
	for (long cpu = sysconf(_SC_NPROCESSORS_ONLN); cpu--;)
		CPU_SET(cpu, &all);
	/* Its own turn would come late among them. */
	real_time(60);
	open_gate();
	for (int i = 0; i < n; i++)
		pthread_setaffinity_np(threads[i], sizeof(all), &all);
	real_time(0);
	printf("# crowd: all may use all CPUs after %.0f ms\n", now_ms() - opened);
}

int main(int argc, char **argv)
{
	static pthread_t threads[MAX_THREADS];
	pid_t taker = 0;
	int status;
	int n = argc > 3 ? atoi(argv[1]) : 0, started, never = 0, doubtful = 0;
	long waited = 0, unclear = 0;
	double limit = n ? atof(argv[3]) : 0, longest = 0;
	pthread_attr_t attr;
	struct rusage used;
	cpu_set_t set;

	if (n < 1 || n > MAX_THREADS) {
		fprintf(stderr,
			"usage: crowd THREADS SECONDS LIMIT_MS [idle|taken|limited], at most %d threads\n",
			MAX_THREADS);
		return 2;
	}
	idle = argc > 4 && !strcmp(argv[4], "idle");
	taken = argc > 4 && !strcmp(argv[4], "taken");
	per_wait += argc > 4 && !strcmp(argv[4], "limited");
	CPU_ZERO(&set);
	CPU_SET(1, &set);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	pthread_attr_setaffinity_np(&attr, sizeof(set), &set);
	for (started = 0; started < n; started++) {
		if (pthread_create(&threads[started], &attr, compute, &all[started])) {
			perror("crowd: pthread_create");
			stop = 1;
			return 2;
		}
	}
	printf("# crowd: %d threads started\n", started);
	sleep(1);
	if (taken)
		taker = take_cpu(&set, atof(argv[2]) + 2);
	sleep(1);
	if (taken)
		open_gate_of_taken(threads, n, &set);
	else
		open_gate();
	for (double end = now_ms() + atof(argv[2]) * 1e3; now_ms() < end;)
		nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
	stop = 1;
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < n; i++) {
		never += all[i].looks < 2; /* the last look is after the end */
		waited += all[i].waited;
		unclear += all[i].unclear;
		doubtful += all[i].gap > limit;
		if (all[i].longest > longest)
			longest = all[i].longest;
	}
	if (taken && (waitpid(taker, &status, 0) != taker || status)) {
		fprintf(stderr, "crowd: the CPU was not taken\n");
		return 2;
	}
	getrusage(RUSAGE_SELF, &used);
	printf("# crowd: longest wait %.0f ms, %d never ran, limit %.0f ms, %ld switches, "
	       "%ld of %ld looks after a wait unclear, of %d threads beyond the limit\n",
	       longest, never, limit, used.ru_nivcsw, unclear, waited, doubtful);
	return longest > limit || never || unclear > waited / 20 || doubtful > n / 100;
}
