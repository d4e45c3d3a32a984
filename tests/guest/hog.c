// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tasks that burn CPU, and the time that each got.
 *
 *     hog [-t SECONDS] [-w WARMUP] [-p PERCENT] SPEC...
 *
 * A SPEC is a comma-separated list: n=COUNT cpus=LIST nice=N slice_us=N fifo=PRIO idle=1
 * (SCHED_IDLE) cgroup=DIR weight=W due=PERCENT.
 * After the warm-up the CPU clocks of all tasks are read at once, and again SECONDS later. Prints a
 * line for each SPEC: its milliseconds, its share, the share due by its weights, and the context
 * switches of its tasks. With -p the exit status is 1 if a share is off by more than PERCENT of
 * itself. For a SPEC with due=, in percent of one CPU, that is compared instead, over the time that
 * has passed.
 */
#define _GNU_SOURCE
#include "attr.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define MAX_SPECS 64
#define MAX_TASKS 512

struct spec {
	const char *text;
	char cpus[64], cgroup[128];
	struct wish wish;
	int count;
	double weight;
	double due; /* percent of a CPU; 0: by weight */
	double ms;
	long switches;
};

struct task {
	pid_t pid;
	struct spec *spec;
	double ms;
	long switches;
};

static struct spec specs[MAX_SPECS];
static struct task tasks[MAX_TASKS];
static int nr_specs, nr_tasks;
static double elapsed_ms; /* the measured time: on a full machine this process wakes up late */

static void die(const char *what)
{
	fprintf(stderr, "hog: %s: %s\n", what, strerror(errno));
	kill(0, SIGKILL);
	exit(2);
}

static void parse(struct spec *s, char *text)
{
	char *word, *save = NULL;

	s->text = strdup(text);
	s->count = 1;
	s->weight = 1024;
	for (word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		errno = EINVAL;
		if (!value)
			die(word);
		*value++ = 0;
		if (!strcmp(word, "n"))
			s->count = atoi(value);
		else if (!strcmp(word, "cpus"))
			snprintf(s->cpus, sizeof(s->cpus), "%s", value);
		else if (!strcmp(word, "nice"))
			s->wish.nice = atoi(value);
		else if (!strcmp(word, "fifo"))
			s->wish.fifo = atoi(value);
		else if (!strcmp(word, "idle"))
			s->wish.idle = atoi(value);
		else if (!strcmp(word, "slice_us"))
			s->wish.slice_us = atol(value);
		else if (!strcmp(word, "cgroup"))
			snprintf(s->cgroup, sizeof(s->cgroup), "%s", value);
		else if (!strcmp(word, "weight"))
			s->weight = atof(value);
		else if (!strcmp(word, "due"))
			s->due = atof(value);
		else
			die(word);
	}
}

/* "0-3" or "5": the tests need only one range. */
static void pin(const char *list)
{
	int first = 0, last;
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sscanf(list, "%d-%d", &first, &last) < 2)
		last = first = atoi(list);
	for (int cpu = first; cpu <= last; cpu++)
		CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die(list);
}

static void join_cgroup(const char *dir)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "w");
	if (!f || fprintf(f, "%d\n", getpid()) < 0 || fclose(f))
		die(path);
}

static void burn(const struct spec *s)
{
	const char *failed;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (s->cgroup[0])
		join_cgroup(s->cgroup);
	if (s->cpus[0])
		pin(s->cpus);
	failed = set_attr(&s->wish);
	if (failed)
		die(failed);
	for (volatile unsigned long i = 0;; i++)
		;
}

static double cpu_ms(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		die("a task is gone");
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static long switches(pid_t pid)
{
	char path[64], line[128];
	long n, sum = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	if (!f)
		die(path);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 ||
		    sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1)
			sum += n;
	fclose(f);
	return sum;
}

/* Reads all clocks at one moment; @sign is -1 before and +1 after the measured time. */
static void read_clocks(int sign)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	elapsed_ms += sign * (now.tv_sec * 1e3 + now.tv_nsec / 1e6);
	for (struct task *t = tasks; t < tasks + nr_tasks; t++)
		t->ms += sign * cpu_ms(t->pid);
	for (struct task *t = tasks; t < tasks + nr_tasks; t++)
		t->switches += sign * switches(t->pid);
}

static void sleep_s(double s)
{
	struct timespec t = { s, (s - (long)s) * 1e9 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

static int report(double percent)
{
	double ms = 0, weight = 0;
	int bad = 0;

	for (struct task *t = tasks; t < tasks + nr_tasks; t++) {
		t->spec->ms += t->ms;
		t->spec->switches += t->switches;
		ms += t->ms;
	}
	for (struct spec *s = specs; s < specs + nr_specs; s++)
		weight += s->weight * s->count;
	for (struct spec *s = specs; s < specs + nr_specs; s++) {
		double share = s->ms / ms, want = s->weight * s->count / weight;
		double off;

		if (s->due)
			want = elapsed_ms * s->due / 100 / ms;
		off = (share / want - 1) * 100;
		printf("# hog %s: %.0f ms, share %.2f %%, due %.2f %%, off by %+.1f %%, %ld switches\n",
		       s->text, s->ms, share * 100, want * 100, off, s->switches);
		bad |= percent && fabs(off) > percent;
	}
	printf("# hog total: %.0f ms in %.0f ms, %.2f CPUs\n", ms, elapsed_ms, ms / elapsed_ms);
	/* A run in which no task ran is a failure. */
	return bad || ms < 1;
}

int main(int argc, char **argv)
{
	double secs = 5, warmup = 1, percent = 0;
	int c;

	while ((c = getopt(argc, argv, "t:w:p:")) > 0) {
		if (c == 't')
			secs = atof(optarg);
		else if (c == 'w')
			warmup = atof(optarg);
		else if (c == 'p')
			percent = atof(optarg);
		else
			return 2;
	}
	setpgid(0, 0);
	for (; optind < argc && nr_specs < MAX_SPECS; optind++)
		parse(&specs[nr_specs++], argv[optind]);
	for (struct spec *s = specs; s < specs + nr_specs; s++) {
		for (int i = 0; i < s->count && nr_tasks < MAX_TASKS; i++) {
			pid_t pid = fork();

			if (pid < 0)
				die("fork");
			if (!pid)
				burn(s);
			tasks[nr_tasks++] = (struct task){ .pid = pid, .spec = s };
		}
	}
	sleep_s(warmup);
	read_clocks(-1);
	sleep_s(secs);
	read_clocks(1);
	for (struct task *t = tasks; t < tasks + nr_tasks; t++)
		kill(t->pid, SIGKILL);
	while (wait(NULL) > 0)
		;
	return report(percent);
}
