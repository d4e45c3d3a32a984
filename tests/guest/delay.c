// SPDX-License-Identifier: GPL-2.0-only
/*
 * delay [-n CHILDREN] ROUNDS MODE: where children first run, and how long after their fork.
 * In each round the parent forks CHILDREN, and then does what MODE says:
 *     wait    waits for them, which frees its CPU
 *     spin    burns CPU until all of them have run
 *     affine  burns CPU for 0.2 ms, moves them to CPU 2 alone, and burns on until all have run
 *     kill    burns CPU for 0.2 ms and kills them
 * MODE exec differs: the process calls exec ROUNDS times, and forks no child.
 * Prints one line: how many children first ran on their parent's CPU (here) and elsewhere (away),
 * and how many obeyed the affinity or not. Then the times from fork to the first instruction in us,
 * the least for those that ran elsewhere. Exit status 1 if a child was lost.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "now.h"

#define MAX_CHILDREN 16
#define PAUSE_US     200
#define LOST_US	     2e6

struct child {
	volatile int ran;
	volatile int cpu;
	volatile double at;
	double forked;
	double told; /* when its affinity was set; 0: it was not */
	pid_t pid;
};

static struct child *children;
static int here, away, obeyed, disobeyed, lost;
static double least = 1e9, most;

static void start(struct child *c)
{
	pid_t pid;

	c->ran = 0;
	c->told = 0;
	c->forked = now_us();
	pid = fork();
	if (pid) {
		c->pid = pid;
		return;
	}
	c->at = now_us();
	c->cpu = sched_getcpu();
	c->ran = 1;
	_exit(0);
}

static int all_ran(int n)
{
	for (int i = 0; i < n; i++)
		if (!children[i].ran)
			return 0;
	return 1;
}

static void to_cpu_two(struct child *c)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(2, &set);
	sched_setaffinity(c->pid, sizeof(set), &set);
	c->told = now_us();
}

static void go_on(const char *mode, int n)
{
	double begin = now_us();

	if (!strcmp(mode, "wait"))
		return;
	if (strcmp(mode, "spin")) {
		burn(PAUSE_US);
		for (int i = 0; i < n; i++) {
			if (!strcmp(mode, "kill"))
				kill(children[i].pid, SIGKILL);
			else
				to_cpu_two(&children[i]);
		}
	}
	if (strcmp(mode, "kill"))
		while (!all_ran(n) && now_us() - begin < LOST_US)
			;
}

static void account(const struct child *c, int parent_cpu)
{
	double took = c->at - c->forked;

	here += c->cpu == parent_cpu;
	away += c->cpu != parent_cpu;
	/* A child that ran before its affinity was set may have run anywhere. */
	obeyed += c->told && c->at > c->told && c->cpu == 2;
	disobeyed += c->told && c->at > c->told && c->cpu != 2;
	if (c->cpu != parent_cpu && took < least)
		least = took;
	most = took > most ? took : most;
}

static void round_of(const char *mode, int n)
{
	int parent_cpu = sched_getcpu();

	for (int i = 0; i < n; i++)
		start(&children[i]);
	go_on(mode, n);
	for (int i = 0; i < n; i++) {
		waitpid(children[i].pid, NULL, 0);
		if (children[i].ran)
			account(&children[i], parent_cpu);
		else
			lost += strcmp(mode, "kill") != 0;
	}
	usleep(2000);
}

int main(int argc, char **argv)
{
	int n = 1, rounds;
	char left[16];

	if (argc > 2 && !strcmp(argv[1], "-n")) {
		n = atoi(argv[2]);
		argc -= 2;
		argv += 2;
	}
	if (argc < 3 || n < 1 || n > MAX_CHILDREN)
		return 2;
	rounds = atoi(argv[1]);
	if (!strcmp(argv[2], "exec")) {
		snprintf(left, sizeof(left), "%d", rounds - 1);
		if (rounds > 0)
			execl("/proc/self/exe", "delay", left, "exec", NULL);
		return 0;
	}
	children = mmap(NULL, MAX_CHILDREN * sizeof(*children), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (children == MAP_FAILED)
		return 2;
	for (int i = 0; i < rounds; i++)
		round_of(argv[2], n);
	printf("# delay %s: here %d away %d obeyed %d disobeyed %d lost %d least %.0f most %.0f us\n",
	       argv[2], here, away, obeyed, disobeyed, lost, least, most);
	return lost > 0;
}
