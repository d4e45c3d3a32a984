/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The conductor starts each event of the plan at its time. A line of the plan is 'MILLISECONDS
 * CLASS COMMAND...'. The event is 'sh /chaos/events COMMAND...', an ordinary task in a process
 * group of its own.
 */
#ifndef CHAOS_CONDUCT_H
#define CHAOS_CONDUCT_H

#include "board.h"
#include <ctype.h>
#include <dirent.h>

#define EVENTS "/chaos/events"

static void start_event(char *command)
{
	char *argv[64] = { "sh", EVENTS }, *save = NULL;
	int argc = 2;

	if (fork())
		return;
	setsid();
	for (char *word = strtok_r(command, " ", &save); word && argc < 63;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	execv("/bin/sh", argv);
	_exit(127);
}

static void reap(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Waits until @ns, or until the run is over. */
static void wait_until(int64_t ns)
{
	while (!board->over && now_ns() < ns)
		sleep_until(ns - now_ns() > NSEC_PER_SEC / 5 ? now_ns() + NSEC_PER_SEC / 5 : ns);
}

/* Returns the number of events that were started. */
static int conduct(const char *plan)
{
	FILE *f = fopen(plan, "re");
	char line[1024], class[32];
	int ms, at, n = 0;

	if (!f) {
		perror(plan);
		exit(2);
	}
	while (!board->over && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%d %31s %n", &ms, class, &at) != 2)
			continue;
		wait_until(board->begin_ns + ms * 1000000LL);
		reap();
		if (board->over)
			break;
		tell("::event %.1f %s", since_begin(), class);
		start_event(line + at);
		n++;
	}
	fclose(f);
	return n;
}

/*
 * Ends all processes that events have left: those that are not in the session of init's shell, not
 * kernel threads, which are in none, and not in @keep.
 */
static void sweep(char **keep, int n)
{
	int own = getsid(0);
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && (entry = readdir(dir))) {
		int pid = atoi(entry->d_name);
		bool kept = pid <= 1 || getsid(pid) == own || getsid(pid) <= 0;

		for (int i = 0; i < n; i++)
			kept = kept || atoi(keep[i]) == pid;
		if (!kept)
			kill(pid, SIGKILL);
	}
	if (dir)
		closedir(dir);
}

static void some(int count, char **names, int n)
{
	char path[64], comm[32];
	struct dirent *entry;
	DIR *dir = opendir("/proc");

	while (dir && count > 0 && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%.10s/comm", entry->d_name);
		if (atoi(entry->d_name) <= 0 || read_file(path, comm, sizeof(comm)) < 0)
			continue;
		for (int i = 0; i < n; i++) {
			if (strncmp(comm, names[i], strlen(names[i])))
				continue;
			printf("%s\n", entry->d_name);
			count--;
			break;
		}
	}
}

#endif /* CHAOS_CONDUCT_H */
