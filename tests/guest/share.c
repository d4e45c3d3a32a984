// SPDX-License-Identifier: GPL-2.0-only
/*
 * share N MS: N tasks that never sleep start on the first cores of the machine, one on each thread.
 * Then they may run on all CPUs of this program. After MS, prints how many of them share their core
 * with another, and how often they have changed their CPU.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MAX_TASKS 64

struct task {
	volatile int cpu;
	volatile unsigned int moves;
} __attribute__((aligned(64)));

static int cpus[CPU_SETSIZE], core_of[CPU_SETSIZE], nr_cpus;

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

/* The first thread of a CPU's core. */
static int first_thread(int cpu)
{
	char path[96];
	int first;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
		 cpu);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%d", &first) != 1)
		fail(path);
	fclose(f);
	return first;
}

/* All CPUs, core by core. */
static void read_cpus(void)
{
	int online = sysconf(_SC_NPROCESSORS_ONLN);

	for (int cpu = 0; cpu < online; cpu++)
		core_of[cpu] = first_thread(cpu);
	for (int core = 0; core < online; core++)
		for (int cpu = core; cpu < online; cpu++)
			if (core_of[cpu] == core)
				cpus[nr_cpus++] = cpu;
}

static void allow(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set))
		fail("sched_setaffinity");
}

static void spin(struct task *self)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int cpu = sched_getcpu();

		if (cpu == self->cpu)
			continue;
		self->moves++;
		self->cpu = cpu;
	}
}

static int sharing(const struct task *tasks, int n)
{
	int shared = 0;

	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
			if (i != j && core_of[tasks[i].cpu] == core_of[tasks[j].cpu]) {
				shared++;
				break;
			}
	return shared;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, ms = argc > 2 ? atoi(argv[2]) : 0;
	struct task *tasks = mmap(NULL, sizeof(*tasks) * MAX_TASKS, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[MAX_TASKS];
	unsigned int moves = 0;
	cpu_set_t free_set;

	read_cpus();
	if (tasks == MAP_FAILED || n < 1 || n > MAX_TASKS || n > nr_cpus ||
	    sched_getaffinity(0, sizeof(free_set), &free_set))
		fail("share");
	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			fail("fork");
		if (!pids[i])
			spin(&tasks[i]);
		allow(pids[i], cpus[i]);
	}
	usleep(50000);
	for (int i = 0; i < n; i++) {
		moves -= tasks[i].moves;
		if (sched_setaffinity(pids[i], sizeof(free_set), &free_set))
			fail("sched_setaffinity");
	}
	usleep(ms * 1000);
	for (int i = 0; i < n; i++)
		moves += tasks[i].moves;
	printf("shared=%d moves=%u\n", sharing(tasks, n), moves);
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	return 0;
}
