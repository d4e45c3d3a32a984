// SPDX-License-Identifier: GPL-2.0-only
/*
 * limits SECONDS DIR...: every 10 ms sets another CPU limit (cpu.max) of the next of these control
 * groups. The quota is 1 to 150 ms in a period of 1 ms to 1 s, sometimes none. It runs as a
 * real-time task. Prints how often it set a limit. Exit status 1 below 80 times a second. Writers
 * of other groups' files hold the kernel's cgroup_mutex, so the number varies: 89 to 98 were seen.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const long periods_us[] = { 1000, 10000, 100000, 1000000 };

static int set_limit(const char *dir, long n)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cpu.max", dir);
	f = fopen(path, "w");
	if (!f)
		return -1;
	if (n % 16 == 7)
		fputs("max", f);
	else
		fprintf(f, "%ld %ld", 1000 + n * 7919 % 150000, periods_us[n % 4]);
	return fclose(f);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct sched_param rt = { .sched_priority = 1 };
	double seconds = argc > 2 ? atof(argv[1]) : 0, end = now_s() + seconds;
	long times = 0;

	if (seconds <= 0) {
		fprintf(stderr, "usage: limits SECONDS DIR...\n");
		return 2;
	}
	if (sched_setscheduler(0, SCHED_FIFO, &rt))
		perror("limits: SCHED_FIFO");
	for (; now_s() < end; times++) {
		if (set_limit(argv[2 + times % (argc - 2)], times)) {
			perror("limits: cpu.max");
			return 1;
		}
		nanosleep(&(struct timespec){ 0, 9500000 }, NULL);
	}
	printf("# limits: set %ld times\n", times);
	return times < 80 * seconds;
}
