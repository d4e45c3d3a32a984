/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether the scheduler is there, and what the kernel logs. An event that takes the scheduler away
 * (a killed daemon, a reload) leaves the file EXCUSE. The scheduler then has RETURN_LIMIT_S to be
 * back.
 */
#ifndef CHAOS_HEALTH_H
#define CHAOS_HEALTH_H

#include "board.h"

#define STATE	       "/sys/kernel/sched_ext/state"
#define EXCUSE	       "/run/chaos/excuse"
/*
 * Two loads: a change during one load makes another necessary. tests/guest/lib.sh grants 10 s for
 * each on a machine with little work. All emulated CPUs share one emulator: if n of them work, a
 * loading one has 1/n of its speed. So a second counts as 1/n.
 */
#define RETURN_LIMIT_S 20.0

#define REASON_LIMIT_S 5

struct health {
	bool want_scheduler; /* false: the kernel's own scheduler is under test */
	int kmsg;
	int64_t down_ns;   /* when it went away, or 0 */
	double down_own_s; /* the same in seconds of a CPU that has the emulator to itself */
	double longest_s, longest_own_s;
	int absences, lines;
	long idle_ticks;
	int64_t idle_at_ns;
	char reason[256];
};

/* Lines that the kernel logs in no healthy run. */
static const char *const bad_lines[] = {
	"WARNING:",
	"BUG:",
	"Oops",
	"soft lockup",
	"hard LOCKUP",
	"blocked for more",
	"general protection",
	"runnable task stall",
	"sched_ext: error",
	"scheduling while atomic",
	"rcu: INFO",
	"lockup",
	"deprecated",
};

static bool is_bad_line(const char *text)
{
	for (size_t i = 0; i < sizeof(bad_lines) / sizeof(*bad_lines); i++)
		if (strstr(text, bad_lines[i]))
			return true;
	return strstr(text, "sched_ext:") && (strstr(text, "error") || strstr(text, "stall") ||
					      strstr(text, "runtime") || strstr(text, "sysrq"));
}

/*
 * Warnings with causes in the kernel itself, which say nothing about the scheduler. Seen in 6.16,
 * 7.0 and 7.2, also without any sched_ext scheduler: cpuset partitions change while CPUs go and
 * come (several lines of cpuset.c).
 */
static bool is_known_line(const char *text)
{
	return strstr(text, "WARNING:") && strstr(text, "kernel/cgroup/cpuset.c:");
}

static void open_kmsg(struct health *h)
{
	h->kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (h->kmsg < 0 || lseek(h->kmsg, 0, SEEK_END) < 0) {
		perror("chaos: /dev/kmsg");
		exit(2);
	}
}

static void read_line(struct health *h, const char *text)
{
	if (is_known_line(text)) {
		tell("::known %.1f %s", since_begin(), text);
		return;
	}
	if (!is_bad_line(text))
		return;
	if (h->lines++ < 20)
		bad("kernel", "%s", text);
	if (strstr(text, "sched_ext:") && !h->reason[0])
		snprintf(h->reason, sizeof(h->reason), "%s", text);
}

static void read_kmsg(struct health *h)
{
	char record[1024], *text, *end;
	ssize_t length;

	/* EPIPE: the kernel overwrote records before they were read. */
	while ((length = read(h->kmsg, record, sizeof(record) - 1)) > 0 ||
	       (length < 0 && errno == EPIPE)) {
		if (length < 0) {
			bad("kernel", "lines of the kernel's log were lost");
			continue;
		}
		record[length] = '\0';
		text = strchr(record, ';');
		end = strchr(record, '\n');
		if (end)
			*end = '\0';
		if (text)
			read_line(h, text + 1);
	}
}

/* The number of busy CPUs since the last call, at least one. */
static double busy_cpus(struct health *h, int64_t now)
{
	double passed = seconds(now - h->idle_at_ns) * sysconf(_SC_CLK_TCK), busy;
	long user, nice, system, idle, wait;
	char text[256];

	if (read_file("/proc/stat", text, sizeof(text)) < 0 ||
	    sscanf(text, "cpu %ld %ld %ld %ld %ld", &user, &nice, &system, &idle, &wait) != 5 ||
	    passed <= 0)
		return 1;
	idle += wait;
	busy = board->nr_cpus - (idle - h->idle_ticks) / passed;
	h->idle_ticks = idle;
	h->idle_at_ns = now;
	return busy < 1 ? 1 : busy > board->nr_cpus ? board->nr_cpus : busy;
}

static void end_absence(struct health *h, int64_t now)
{
	double s = seconds(now - h->down_ns);

	if (s > h->longest_s)
		h->longest_s = s;
	if (h->down_own_s > h->longest_own_s)
		h->longest_own_s = h->down_own_s;
	h->down_ns = 0;
	h->down_own_s = 0;
}

/*
 * The run is over when the scheduler is: there is nothing more to learn. The kernel logs the reason
 * a moment after it has ended the scheduler.
 */
static void eject(struct health *h, const char *why)
{
	double at = seconds((h->down_ns ? h->down_ns : now_ns()) - board->begin_ns);

	for (int i = 0; i < REASON_LIMIT_S * 10 && !h->reason[0]; i++) {
		sleep_until(now_ns() + NSEC_PER_SEC / 10);
		read_kmsg(h);
	}
	bad_at(at, "enabled", "%s", why);
	tell("::ejected %.1f %s", at, h->reason[0] ? h->reason : why);
	board->over = true;
}

static void look_at_scheduler(struct health *h, int64_t now, int64_t passed_ns)
{
	char state[32] = "";
	double busy = busy_cpus(h, now);
	bool there;

	if (!h->want_scheduler) {
		board->in_charge = true;
		return;
	}
	there = read_file(STATE, state, sizeof(state)) > 0 && !strncmp(state, "enabled", 7);
	board->in_charge = there;
	if (there && h->down_ns)
		end_absence(h, now);
	if (there || board->over)
		return;
	if (!h->down_ns) {
		h->down_ns = now;
		h->absences++;
	}
	h->down_own_s += seconds(passed_ns) / busy;
	if (h->reason[0])
		eject(h, "the kernel ended the scheduler");
	else if (access(EXCUSE, F_OK))
		eject(h, "the scheduler is gone");
	else if (h->down_own_s > RETURN_LIMIT_S)
		eject(h, "the scheduler did not come back in time");
}

static void tell_health(const struct health *h)
{
	tell("::watch enabled %d absences, longest %.1f s (%.1f s of a CPU by itself, limit %.0f s)",
	     h->absences, h->longest_s, h->longest_own_s, RETURN_LIMIT_S);
	tell("::watch kernel %d bad lines", h->lines);
}

#endif /* CHAOS_HEALTH_H */
