/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures how long runnable tasks wait. All tasks are inspected several times a second. A task
 * that is runnable, and has not run since this was first seen, has waited at least since then. The
 * result is too short by some periods, never too long.
 *
 * Time in which real-time or deadline tasks had all CPUs that the task may use is counted
 * separately, in proportion. If they had a part of each of those CPUs, the smallest part counts.
 * Real-time tasks may delay a look: then only the CPUs count that the task may use now and might
 * use at the look before.
 */
#ifndef CHAOS_WAITS_H
#define CHAOS_WAITS_H

#include "board.h"
#include "real_time.h"
#include <dirent.h>

#define WAIT_LIMIT_NS	(5 * NSEC_PER_SEC / 2) /* a quarter of the watchdog's timeout */
#define WATCH_PERIOD_NS (NSEC_PER_SEC / 4)
/*
 * Kernel threads are many and mostly asleep, so they are inspected less often. A task that waits is
 * inspected each time: its wait is shared out by what each CPU did since the last look.
 */
#define KTHREADS_EVERY	4
/* So are sleeping tasks. */
#define SLEEPERS_EVERY	2
#define MAX_TIDS	32768
#define MAX_WAITING	4096

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6
#endif

struct seen {
	int64_t ran_ns, times; /* from schedstat */
	int64_t at_ns;	       /* of the last look; 0: none */
	int64_t waited_ns;     /* caused by the class under test */
	int64_t excused_ns;    /* caused by real-time and deadline tasks */
	uint64_t allowed;      /* the CPUs that it might use at the last look */
	int schedstat, stat;   /* open files, or 0 */
	bool runnable, asleep, kthread, told;
};

struct waits {
	struct seen tasks[MAX_TIDS];
	struct real_time real_time;
	struct {
		int tid;
		int64_t span_ns; /* since the last look at this task */
	} waiting[MAX_WAITING];
	int nr_waiting;
	int64_t longest_ns, longest_excused_ns;
	char longest[160];
	int period;
};

static bool is_real_time(int policy)
{
	policy &= ~SCHED_RESET_ON_FORK;
	return policy == SCHED_FIFO || policy == SCHED_RR || policy == SCHED_DEADLINE;
}

struct stat_line {
	char state, comm[32];
	int parent, nice, cpu, policy;
};

static bool parse_stat(const char *text, struct stat_line *to)
{
	char *open = strchr(text, '('), *close = strrchr(text, ')'), *at;

	if (!open || !close || strlen(close) < 4)
		return false;
	snprintf(to->comm, sizeof(to->comm), "%.*s", (int)(close - open - 1), open + 1);
	to->state = close[2];
	at = close + 3;
	for (int field = 4; field <= 41; field++) {
		int64_t n = strtoll(at, &at, 10);

		if (field == 4)
			to->parent = n;
		else if (field == 19)
			to->nice = n;
		else if (field == 39)
			to->cpu = n;
		else if (field == 41)
			to->policy = n;
	}
	return true;
}

/*
 * Reads a file of a task, which stays open for the next time: opening costs several times as much
 * as reading. False: the task is gone.
 */
static bool reread(int *fd, int tid, const char *name, char *to, int size)
{
	char path[64];
	int length;

	if (*fd <= 0) {
		snprintf(path, sizeof(path), "/proc/%d/%s", tid, name);
		*fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	length = *fd > 0 ? pread(*fd, to, size - 1, 0) : -1;
	if (length <= 0)
		return false;
	to[length] = '\0';
	return true;
}

static void forget(struct seen *t)
{
	if (t->schedstat > 0)
		close(t->schedstat);
	if (t->stat > 0)
		close(t->stat);
	*t = (struct seen){};
}

static bool read_stat(struct waits *w, int tid, struct stat_line *to)
{
	char text[1024];

	return reread(&w->tasks[tid].stat, tid, "stat", text, sizeof(text)) && parse_stat(text, to);
}

static bool read_schedstat(struct waits *w, int tid, int64_t *ran_ns, int64_t *times)
{
	char text[128], *at;

	if (!reread(&w->tasks[tid].schedstat, tid, "schedstat", text, sizeof(text)))
		return false;
	*ran_ns = strtoll(text, &at, 10);
	strtoll(at, &at, 10);
	*times = strtoll(at, NULL, 10);
	return true;
}

/* The CPUs that the task may use. A task that is gone: none. */
static uint64_t cpus_allowed(int tid)
{
	uint64_t allowed = 0;
	cpu_set_t set;

	if (sched_getaffinity(tid, sizeof(set), &set))
		return 0;
	for (int cpu = 0; cpu < board->nr_cpus && cpu < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set))
			allowed |= 1ULL << cpu;
	return allowed;
}

static void look_at_task(struct waits *w, int tid, int64_t now)
{
	struct seen *t = &w->tasks[tid];
	int64_t ran_ns, times;
	struct stat_line line = {};
	bool ran;

	if (t->at_ns && t->kthread && !t->runnable && w->period % KTHREADS_EVERY)
		return;
	if (t->at_ns && t->asleep && w->period % SLEEPERS_EVERY)
		return;
	if (!read_schedstat(w, tid, &ran_ns, &times)) {
		/* The task is gone; if another one has its number now, that one starts here. */
		forget(t);
		if (!read_schedstat(w, tid, &ran_ns, &times)) {
			forget(t);
			return;
		}
	}
	ran = !t->at_ns || t->ran_ns != ran_ns || t->times != times;
	if (ran) {
		t->runnable = t->asleep = t->told = false;
		t->waited_ns = t->excused_ns = 0;
	}
	if (!t->at_ns || !ran) {
		if (!read_stat(w, tid, &line)) {
			forget(t);
			return;
		}
		t->kthread = line.parent == 2;
		t->asleep = line.state == 'S' || line.state == 'D' || line.state == 'I';
		if (line.state != 'R' || is_real_time(line.policy)) {
			t->runnable = false;
			t->waited_ns = t->excused_ns = 0;
		} else if (ran || !t->runnable) {
			t->runnable = true;
			t->allowed = cpus_allowed(tid);
		} else if (w->nr_waiting < MAX_WAITING) {
			/* Its wait is increased when it is known what each CPU did. */
			w->waiting[w->nr_waiting].tid = tid;
			w->waiting[w->nr_waiting++].span_ns = now - t->at_ns;
		}
	}
	t->ran_ns = ran_ns;
	t->times = times;
	t->at_ns = now;
}

static void look_at_threads(struct waits *w, int pid, int64_t now)
{
	char path[64];
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	/* Two links, and one for each thread. */
	if (stat(path, &st) || st.st_nlink < 4)
		return;
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		int tid = atoi(entry->d_name);

		if (tid > 0 && tid != pid && tid < MAX_TIDS)
			look_at_task(w, tid, now);
	}
	if (dir)
		closedir(dir);
}

static void look_at_all(struct waits *w, int64_t now)
{
	static DIR *dir;
	struct dirent *entry;

	if (!dir)
		dir = opendir("/proc");
	rewinddir(dir);
	while ((entry = readdir(dir))) {
		int pid = atoi(entry->d_name);

		if (pid <= 0 || pid >= MAX_TIDS)
			continue;
		look_at_task(w, pid, now);
		if (!w->tasks[pid].kthread)
			look_at_threads(w, pid, now);
	}
}

/*
 * The share of the time since the last look that real-time and deadline tasks left on the best CPU
 * that the task might use all the time.
 */
static double our_part(const struct waits *w, uint64_t allowed, int64_t passed_ns)
{
	double best = 0;

	for (int cpu = 0; cpu < board->nr_cpus && cpu < MAX_CPUS; cpu++) {
		double part = 1 - (double)w->real_time.since_last_ns[cpu] / passed_ns;

		if (allowed >> cpu & 1 && part > best)
			best = part;
	}
	return best < 1 ? best : 1;
}

/*
 * A group with cpu.max: its tasks wait for the limit, not for the scheduler. The plan names such
 * groups 'limited-...'.
 */
static bool is_limited(int tid)
{
	char path[64], text[256];

	snprintf(path, sizeof(path), "/proc/%d/cgroup", tid);
	return read_file(path, text, sizeof(text)) > 0 && strstr(text, "limited-");
}

static void describe(int tid, char *to, int size)
{
	struct stat_line line = { .comm = "?" };
	char path[64], text[1024];
	int n = 0;
	cpu_set_t set;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	if (read_file(path, text, sizeof(text)) > 0)
		parse_stat(text, &line);
	if (!sched_getaffinity(tid, sizeof(set), &set))
		n = CPU_COUNT(&set);
	snprintf(to, size, "%s[%d] policy %d nice %d on CPU %d, may use %d CPUs", line.comm, tid,
		 line.policy, line.nice, line.cpu, n);
}

static void judge_wait(struct waits *w, int tid)
{
	struct seen *t = &w->tasks[tid];
	bool late = t->waited_ns > WAIT_LIMIT_NS && !t->told;

	if (t->excused_ns > w->longest_excused_ns)
		w->longest_excused_ns = t->excused_ns;
	if ((!late && t->waited_ns <= w->longest_ns) || is_limited(tid))
		return;
	if (t->waited_ns > w->longest_ns) {
		w->longest_ns = t->waited_ns;
		describe(tid, w->longest, sizeof(w->longest));
	}
	if (late) {
		t->told = true;
		describe(tid, w->longest, sizeof(w->longest));
		bad("waits", "%.1f s: %s", seconds(t->waited_ns), w->longest);
	}
}

/* A task that is gone keeps two files open until they are forgotten. */
static void forget_all(struct waits *w)
{
	for (int tid = 0; tid < MAX_TIDS; tid++)
		forget(&w->tasks[tid]);
}

/* Each look checks a part of the table. */
#define SWEEP_TIDS (MAX_TIDS / 64)

static void forget_old(struct waits *w, int64_t now)
{
	int first = w->period % (MAX_TIDS / SWEEP_TIDS) * SWEEP_TIDS;

	for (struct seen *t = w->tasks + first; t < w->tasks + first + SWEEP_TIDS; t++)
		if (t->at_ns && now - t->at_ns > 2 * KTHREADS_EVERY * WATCH_PERIOD_NS)
			forget(t);
}

static void look_at_waits(struct waits *w, int64_t now, int64_t passed_ns)
{
	w->nr_waiting = 0;
	look_at_real_time(&w->real_time);
	look_at_all(w, now);
	for (int i = 0; i < w->nr_waiting; i++) {
		int tid = w->waiting[i].tid;
		struct seen *t = &w->tasks[tid];
		uint64_t allowed = cpus_allowed(tid);
		int64_t span_ns = w->waiting[i].span_ns,
			ours_ns = span_ns * our_part(w, t->allowed & allowed, passed_ns);

		t->allowed = allowed;
		t->waited_ns += ours_ns;
		t->excused_ns += span_ns - ours_ns;
		judge_wait(w, tid);
	}
	forget_old(w, now);
	w->period++;
}

static void tell_waits(const struct waits *w)
{
	tell("::watch waits longest %.1f s by our class%s%s, longest behind real-time tasks %.1f s, limit %.1f s",
	     seconds(w->longest_ns), w->longest_ns ? " of " : "", w->longest,
	     seconds(w->longest_excused_ns), seconds(WAIT_LIMIT_NS));
}

#endif /* CHAOS_WAITS_H */
