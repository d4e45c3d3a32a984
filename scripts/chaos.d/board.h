/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Data shared by the conductor, the watcher and the probes, and helpers of all. Must be included
 * first.
 */
#ifndef CHAOS_BOARD_H
#define CHAOS_BOARD_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000LL
#define MAX_CPUS     64

struct board {
	volatile bool in_charge; /* the scheduler under test runs; always true without one */
	volatile bool over;	 /* the plan is done, or the scheduler was ejected */
	int nr_cpus;
	int64_t begin_ns;
};

static struct board *board;

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static double seconds(int64_t ns)
{
	return ns / 1e9;
}

static double since_begin(void)
{
	return seconds(now_ns() - board->begin_ns);
}

static void sleep_until(int64_t ns)
{
	struct timespec t = { ns / NSEC_PER_SEC, ns % NSEC_PER_SEC };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* One write per line, so that lines of several processes do not mix. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
	char line[512];
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	if (length > (int)sizeof(line) - 2)
		length = sizeof(line) - 2;
	line[length++] = '\n';
	if (write(STDOUT_FILENO, line, length) < 0)
		exit(2);
}

/* Reports a failure found by the watch named @watch. */
#define bad_at(at_s, watch, format, ...) tell("::bad " watch " %.1f " format, at_s, ##__VA_ARGS__)
#define bad(watch, format, ...)		 bad_at(since_begin(), watch, format, ##__VA_ARGS__)

/* Returns the length, or -1. The text ends with a zero. */
static int read_file(const char *path, char *to, int size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), length;

	if (fd < 0)
		return -1;
	length = read(fd, to, size - 1);
	close(fd);
	if (length >= 0)
		to[length] = '\0';
	return length;
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, text, strlen(text)) < 0)
		perror(path);
	close(fd);
}

/* Makes this process real-time; its children are ordinary again. */
static void become_real_time(int priority)
{
	struct sched_param param = { .sched_priority = priority };

	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &param) ||
	    mlockall(MCL_CURRENT | MCL_FUTURE)) {
		perror("chaos: real-time");
		exit(2);
	}
}

#endif /* CHAOS_BOARD_H */
