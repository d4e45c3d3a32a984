// SPDX-License-Identifier: GPL-2.0-only
/*
 * failing-fork PROCESSES: each is refused a fork, because its user has too many processes, runs for
 * 20 ms, sleeps, and runs again. Prints how many forks were refused.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void run_for_ms(long ms)
{
	struct timespec t;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	while (t.tv_sec * 1000 + t.tv_nsec / 1000000 < ms);
}

/* Exit status 0 if the fork was refused. */
static int try_fork(void)
{
	struct rlimit none = {};
	pid_t child;

	if (setrlimit(RLIMIT_NPROC, &none) || setuid(65534))
		return 2;
	child = fork();
	if (!child)
		_exit(0);
	run_for_ms(20);
	usleep(20000);
	run_for_ms(40);
	return child >= 0;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1, refused = 0, status;

	for (int i = 0; i < count; i++)
		if (!fork())
			_exit(try_fork());
	while (wait(&status) > 0)
		refused += WIFEXITED(status) && !WEXITSTATUS(status);
	printf("%d\n", refused);
	return 0;
}
