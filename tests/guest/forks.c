// SPDX-License-Identifier: GPL-2.0-only
/*
 * forks COUNT PARALLEL: forks and reaps COUNT children, with PARALLEL parents at once. Exit status
 * 1 if a child is lost.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int parent(int count)
{
	for (int i = 0; i < count; i++) {
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(7);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		    WEXITSTATUS(status) != 7)
			return 1;
	}
	return 0;
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 10000, parallel = argc > 2 ? atoi(argv[2]) : 4;
	int status, bad = 0, ended = 0;
	long begin = now_ms();

	for (int i = 0; i < parallel; i++)
		if (!fork())
			_exit(parent(count / parallel));
	while (wait(&status) > 0) {
		ended++;
		bad += !WIFEXITED(status) || WEXITSTATUS(status);
	}
	printf("# forks: %d, %d parents, %d in trouble, %ld ms\n", count, ended, bad,
	       now_ms() - begin);
	return bad || ended != parallel;
}
