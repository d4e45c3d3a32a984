// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's half of scripts/chaos:
 *
 *   chaos run PLAN SECONDS yes|no        events of PLAN, probes and watches; no: the kernel's own
 *                                        scheduler is under test
 *   chaos sweep PID...                   end all processes that events left, except these
 *   chaos some N NAME...                 print N processes whose names begin with a NAME
 *   chaos affinity|real_time|deadline|trace
 *                                        loads; see work.h
 *
 * Its lines start with '::'; record.py parses them.
 */
#define _GNU_SOURCE
#include "board.h"
#include "conduct.h"
#include "health.h"
#include "probe.h"
#include "waits.h"
#include "work.h"
#include <sys/reboot.h>

#define HANG_LIMIT_S 90

static _Noreturn void watch(bool want_scheduler)
{
	static struct health health;
	static struct waits waits;
	int64_t last = now_ns(), next = last + WATCH_PERIOD_NS;
	bool counted = false;

	health.want_scheduler = want_scheduler;
	open_kmsg(&health);
	busy_cpus(&health, last);
	open_real_time(&waits.real_time);
	become_real_time(90);
	while (!board->over) {
		int64_t now;

		sleep_until(next);
		now = now_ns();
		next = now + WATCH_PERIOD_NS;
		read_kmsg(&health);
		look_at_scheduler(&health, now, now - last);
		if (board->in_charge && counted)
			look_at_waits(&waits, now, now - last);
		else if (counted)
			forget_all(&waits);
		counted = board->in_charge;
		last = now;
	}
	read_kmsg(&health);
	tell_health(&health);
	tell_waits(&waits);
	_exit(0);
}

/*
 * Ends a machine that hangs after the run, so that the host does not wait in vain. Seen in 7.2: a
 * scheduler that ends while cpuset partitions change leaves forks waiting for good.
 */
static _Noreturn void end_hanging_machine(void)
{
	become_real_time(91);
	while (!board->over)
		sleep_until(now_ns() + NSEC_PER_SEC);
	sleep_until(now_ns() + HANG_LIMIT_S * NSEC_PER_SEC);
	bad("guest", "the machine hangs: %d s after the run it had not ended", HANG_LIMIT_S);
	write_file("/proc/sys/kernel/printk", "7");
	write_file("/proc/sysrq-trigger", "w");
	sleep_until(now_ns() + 2 * NSEC_PER_SEC);
	reboot(RB_POWER_OFF);
	_exit(1);
}

static int run(const char *plan, double secs, bool want_scheduler)
{
	pid_t watcher;
	int n, status;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	board->nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	board->begin_ns = now_ns();
	watcher = fork();
	if (!watcher)
		watch(want_scheduler);
	if (!fork())
		end_hanging_machine();
	start_probes();
	become_real_time(80);
	n = conduct(plan);
	wait_until(board->begin_ns + secs * NSEC_PER_SEC);
	tell("::ran %.1f %d", since_begin(), n);
	board->over = true;
	if (waitpid(watcher, &status, 0) != watcher || status)
		bad("guest", "the watcher ended early");
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "run") && argc == 5)
		return run(argv[2], atof(argv[3]), !strcmp(argv[4], "yes"));
	if (!strcmp(what, "sweep"))
		return sweep(argv + 2, argc - 2), 0;
	if (!strcmp(what, "some") && argc > 3)
		return some(atoi(argv[2]), argv + 3, argc - 3), 0;
	if (!strcmp(what, "affinity") && argc > 4)
		return affinity(argc - 2, argv + 2);
	if (!strcmp(what, "real_time") && argc > 4)
		return real_time(argc - 2, argv + 2);
	if (!strcmp(what, "deadline") && argc > 5)
		return deadline(argc - 2, argv + 2);
	if (!strcmp(what, "trace") && argc > 2)
		return trace(argc - 2, argv + 2);
	fprintf(stderr, "chaos: unknown command; see the head of chaos.c\n");
	return 2;
}
