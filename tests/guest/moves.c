// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command and prints how often it and its children changed their CPU, as the kernel counts
 * it.
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_MIGRATIONS,
		.inherit = 1,
	};
	/* Of this process, which sleeps, and of all its children. */
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0), status;
	uint64_t moves;
	pid_t pid;

	if (fd < 0 || argc < 2)
		fail("perf_event_open");
	pid = fork();
	if (pid == 0) {
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execvp(argv[1], argv + 1);
		fail(argv[1]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		fail("running the command");
	if (read(fd, &moves, sizeof(moves)) != sizeof(moves))
		fail("reading the count");
	printf("%llu\n", (unsigned long long)moves);
	return !WIFEXITED(status) || WEXITSTATUS(status);
}
