/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads of this project: affinity storms that check where they run, real-time and deadline tasks,
 * tracing.
 */
#ifndef CHAOS_WORK_H
#define CHAOS_WORK_H

#include "board.h"
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>

/* In a child: it ends with its parent; returns the time when it should end by itself. */
static int64_t work_ends(const char *seconds)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return now_ns() + atof(seconds) * NSEC_PER_SEC;
}

static void random_mask(cpu_set_t *set, unsigned int *seed, int nr_cpus)
{
	int n = 1 + rand_r(seed) % 3;

	CPU_ZERO(set);
	while (n--)
		CPU_SET(rand_r(seed) % nr_cpus, set);
}

/* How often the parent has changed a storm task's mask; odd while it does so. */
struct storm_task {
	atomic_uint changes;
};

/*
 * The CPU must be in the task's mask, unless the parent changed the mask meanwhile. @lie: check
 * against another mask, so that the watch has something to find.
 */
static bool runs_where_it_may(struct storm_task *t, bool lie)
{
	unsigned int changes = t->changes;
	cpu_set_t before, after;
	int cpu;

	if (changes & 1 || sched_getaffinity(0, sizeof(before), &before))
		return true;
	cpu = sched_getcpu();
	if (sched_getaffinity(0, sizeof(after), &after) || t->changes != changes)
		return true;
	if (lie) {
		CPU_CLR(cpu, &before);
		CPU_CLR(cpu, &after);
	}
	return !CPU_EQUAL(&before, &after) || CPU_ISSET(cpu, &before);
}

/*
 * A change of cpusets sets a new mask first, and only then takes the task off its CPU. A CPU that
 * goes offline leaves the mask at once, and its task when that is next scheduled.
 */
#define SETTLES_NS (NSEC_PER_SEC / 100)

/* Does not sleep: a wakeup would bring the task back to where it may run. */
static bool stays_where_it_may(struct storm_task *t, bool lie)
{
	int64_t until = now_ns() + SETTLES_NS;

	while (!runs_where_it_may(t, lie))
		if (now_ns() > until)
			return false;
	return true;
}

static _Noreturn void change_affinity(struct storm_task *t, unsigned int seed, int64_t until,
				      bool lie)
{
	int nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct timespec nap = {};
	cpu_set_t set;

	prctl(PR_SET_NAME, "chaos-affinity");
	while (now_ns() < until) {
		random_mask(&set, &seed, nr_cpus);
		sched_setaffinity(0, sizeof(set), &set);
		for (int i = 0; i < 20; i++) {
			if (!stays_where_it_may(t, lie)) {
				tell("::bad affinity 0 a task ran on CPU %d, which is not in its mask",
				     sched_getcpu());
				_exit(1);
			}
			nap.tv_nsec = rand_r(&seed) % 1000000;
			if (i % 4 == 0)
				nanosleep(&nap, NULL);
			else
				for (volatile int spin = rand_r(&seed) % 20000; spin > 0; spin--)
					;
		}
	}
	_exit(0);
}

#define MAX_STORM 64

/*
 * affinity TASKS SECONDS SEED [lie]: the tasks change their own masks, and their parent changes
 * them as well.
 */
static int affinity(int argc, char **argv)
{
	int n = atoi(argv[0]), nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	unsigned int seed = atoi(argv[2]);
	int64_t until = work_ends(argv[1]);
	struct storm_task *tasks;
	pid_t pids[MAX_STORM];
	cpu_set_t set;

	n = n > MAX_STORM ? MAX_STORM : n;
	tasks = mmap(NULL, sizeof(*tasks) * MAX_STORM, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < n; i++)
		if (!(pids[i] = fork()))
			change_affinity(&tasks[i], seed * MAX_STORM + i, until, argc > 3);
	while (now_ns() < until) {
		int i = rand_r(&seed) % n;

		usleep(5000);
		random_mask(&set, &seed, nr_cpus);
		tasks[i].changes++;
		sched_setaffinity(pids[i], sizeof(set), &set);
		tasks[i].changes++;
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

/*
 * real_time CPU PRIORITY SECONDS: a busy task of SCHED_FIFO. It is gone as soon as it ends: with
 * SIGCHLD ignored, the kernel reaps it.
 */
static int real_time(int argc, char **argv)
{
	struct sched_param param = { .sched_priority = atoi(argv[1]) };
	int64_t until = work_ends(argv[2]);
	cpu_set_t set;

	if (argc < 3)
		return 2;
	signal(SIGCHLD, SIG_IGN);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "chaos-real-time");
		CPU_ZERO(&set);
		CPU_SET(atoi(argv[0]), &set);
		/* While the CPU is offline there is none that it might use. */
		if (sched_setaffinity(0, sizeof(set), &set) ||
		    sched_setscheduler(0, SCHED_FIFO, &param))
			_exit(0);
		/* real_time.h sees the policy with which a task comes to its CPU. */
		usleep(1000);
		while (now_ns() < until)
			;
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

struct deadline_attr { /* struct sched_attr of sched_setattr(2), version 0 */
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* deadline TASKS SECONDS RUNTIME_US PERIOD_US: each task uses all the runtime that it is granted.
 */
static int deadline(int argc, char **argv)
{
	struct deadline_attr attr = { .size = sizeof(attr), .policy = 6 };
	int64_t until = work_ends(argv[1]);

	if (argc < 4)
		return 2;
	attr.runtime = atol(argv[2]) * 1000;
	attr.deadline = attr.period = atol(argv[3]) * 1000;
	for (int i = 0; i < atoi(argv[0]); i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "chaos-deadline");
		/* A kernel that refuses it, as one without an unlimited sched_rt_runtime_us may
		 * do, has no load, and this is no failure. */
		if (syscall(SYS_sched_setattr, 0, &attr, 0))
			_exit(0);
		while (now_ns() < until)
			;
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

/*
 * trace SECONDS: a busy task is seized, stopped and continued, again and again; each round uses
 * another one.
 */
static int trace(int argc, char **argv)
{
	int64_t until = work_ends(argv[0]);

	while (now_ns() < until) {
		pid_t pid = fork();
		int status;

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				;
		}
		if (ptrace(PTRACE_SEIZE, pid, 0, 0)) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return 1;
		}
		for (int i = 0; i < 50 && now_ns() < until; i++) {
			usleep(1000);
			ptrace(PTRACE_INTERRUPT, pid, 0, 0);
			if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
				break;
			usleep(500);
			ptrace(PTRACE_CONT, pid, 0, 0);
		}
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	return 0;
}

#endif /* CHAOS_WORK_H */
