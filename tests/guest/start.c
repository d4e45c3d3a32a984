// SPDX-License-Identifier: GPL-2.0-only
/*
 * Starts a process in ways that a shell does not have:
 * start into CGROUP CMD...: as a child that is created in this cgroup.
 * start thread FILE CMD...: by a thread that exists before FILE does, and calls exec when FILE
 * exists. It becomes the process.
 * start headless: a process whose first thread ends at once; another one wakes every 2 ms.
 * start deadline RUNTIME_US PERIOD_US CMD...: as a task of SCHED_DEADLINE.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attr.h"

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

static _Noreturn void fail(const char *what)
{
	perror(what);
	exit(1);
}

static _Noreturn void become(char **command)
{
	execvp(command[0], command);
	fail(command[0]);
}

/* Waits for the child, and exits with its status. */
static int into(const char *cgroup, char **command)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD };
	int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC), status;
	pid_t pid;

	if (fd < 0)
		fail(cgroup);
	args.cgroup = fd;
	pid = syscall(SYS_clone3, &args, sizeof(args));
	if (pid < 0)
		fail("clone3");
	if (pid == 0)
		become(command);
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid");
	return !WIFEXITED(status) || WEXITSTATUS(status);
}

static void *run_thread(void *arg)
{
	char **argv = arg;

	while (access(argv[0], F_OK))
		usleep(2000);
	become(argv + 1);
}

static void *wake_often(void *unused)
{
	while (!usleep(2000))
		;
	return NULL;
}

static _Noreturn void headless(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, wake_often, NULL))
		fail("pthread_create");
	pthread_exit(NULL);
}

static _Noreturn void with_deadline(const char *runtime_us, const char *period_us, char **command)
{
	struct attr attr = { .size = sizeof(attr), .policy = SCHED_DEADLINE };

	attr.runtime = atol(runtime_us) * 1000;
	attr.deadline = attr.period = atol(period_us) * 1000;
	if (syscall(SYS_sched_setattr, 0, &attr, 0))
		fail("sched_setattr");
	become(command);
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 3 && !strcmp(argv[1], "into"))
		return into(argv[2], argv + 3);
	if (argc == 2 && !strcmp(argv[1], "headless"))
		headless();
	if (argc > 4 && !strcmp(argv[1], "deadline"))
		with_deadline(argv[2], argv[3], argv + 4);
	if (argc < 4 || strcmp(argv[1], "thread"))
		return 2;
	if (pthread_create(&thread, NULL, run_thread, argv + 2))
		fail("pthread_create");
	pthread_join(thread, NULL);
	return 1;
}
