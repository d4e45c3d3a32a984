// SPDX-License-Identifier: GPL-2.0-only
/*
 * game TRICK MS N: N attackers of user 1000 play TRICK beside an honest task that computes, one
 * that wakes every millisecond, and a server with its client. All are pinned to the last CPU, but
 * for a trick that is about idle CPUs. Prints
 *
 *     TRICK N SHARE GAP LATE ANSWER
 *
 * the first task's share of a CPU in percent, its longest wait, and the 99th percentiles of how
 * late the second one woke and of the server's response time. Times are us.
 *
 * The groups of OWN belong to user 1000.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "attr.h"
#include "now.h"

#define OWN	     "/sys/fs/cgroup/own/"
#define SAMPLES_MAX  4000
#define NEVER_US     1e9
#define SLEEPERS     8
#define CROWD	     20
#define CROWD_GROUPS 16
#define RING_MAX     20

struct samples {
	volatile int n;
	volatile double us[SAMPLES_MAX];
};

static struct shared {
	volatile double gap;
	volatile int counts, failed;
	struct samples late, answer;
} *shared;
enum { QUESTIONS, ANSWERS, WAKES, RING, PIPES = RING + RING_MAX };
static int last_cpu, attackers, pipes[PIPES][2];
static pid_t group; /* of all players */

static void fail(const char *what)
{
	perror(what);
	if (shared)
		shared->failed = 1;
	exit(2);
}

static void pin(pid_t pid, int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(pid, sizeof(set), &set))
		fail("sched_setaffinity");
}

static void unpin(void)
{
	cpu_set_t set;

	memset(&set, 0xff, sizeof(set));
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

static void put(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(file);
	close(fd);
}

static void tell(int pipe)
{
	if (write(pipes[pipe][1], "", 1) != 1)
		_exit(1);
}

static void hear(int pipe)
{
	char c;

	if (read(pipes[pipe][0], &c, 1) != 1)
		_exit(1);
}

static void sample(struct samples *s, double us)
{
	if (shared->counts && s->n < SAMPLES_MAX)
		s->us[s->n++] = us;
}

static void slice(long us)
{
	set_attr(&(struct wish){ .slice_us = us });
}

static void nap(long us)
{
	nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

/* ---- the honest ---- */

static void computes(int i)
{
	double last = now_us(), now;

	for (;; last = now) {
		now = now_us();
		if (shared->counts && now - last > shared->gap)
			shared->gap = now - last;
	}
}

static void wakes(int i)
{
	for (;;) {
		double at = now_us() + 1000;
		struct timespec t = { at / 1e6, (long)(at * 1e3) % 1000000000 };

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		sample(&shared->late, now_us() - at);
		burn(50);
	}
}

static void serves(int i)
{
	for (;; tell(ANSWERS)) {
		hear(QUESTIONS);
		burn(100);
	}
}

static void asks(int i)
{
	for (double at;; sample(&shared->answer, now_us() - at)) {
		nap(3000);
		at = now_us();
		tell(QUESTIONS);
		hear(ANSWERS);
	}
}

/* ---- tricks ---- */

static void hog(int i)
{
	for (;;)
		burn(1000);
}

static void long_slice(int i)
{
	slice(100000);
	hog(i);
}

/* A long slice to run, a short one to be picked. */
static void two_slices(int i)
{
	for (;;) {
		slice(100000);
		burn(97000);
		slice(100);
		nap(20);
	}
}

/* Sleeps so often that it looks light. */
static void naps(int i)
{
	for (;;) {
		burn(300);
		nap(20);
	}
}

static void short_naps(int i)
{
	for (;;) {
		burn(90);
		nap(1);
	}
}

static void yields(int i)
{
	for (;;) {
		burn(100);
		sched_yield();
	}
}

static void pins(int i)
{
	for (;;) {
		burn(100);
		pin(0, last_cpu);
	}
}

static void batch(int i)
{
	for (int on = 0;; on = !on) {
		burn(100);
		set_attr(&(struct wish){ .batch = on, .slice_us = 3000 });
	}
}

static void idle_class(int i)
{
	for (int on = 0;; on = !on) {
		burn(100);
		set_attr(&(struct wish){ .idle = on, .slice_us = 3000 });
	}
}

/* Each child goes on with the work of its parent. */
static void forks(int i)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		burn(300);
		if (fork() > 0)
			_exit(0);
	}
}

/* One after the other: each runs for a moment and wakes the next. */
static void ring(int i)
{
	int me = RING + i, next = RING + (i + 1) % attackers;

	if (!i)
		tell(me);
	for (;; tell(next)) {
		hear(me);
		burn(200);
	}
}

/* Renames itself, and a rule by name moves it between two arms. */
static void arms(int i)
{
	for (char name[16];; i++) {
		burn(100);
		snprintf(name, sizeof(name), "%s%d", i % 2 ? "odd" : "even", i);
		prctl(PR_SET_NAME, name);
	}
}

/* Moves a hog between two groups. A move sleeps in the kernel, the hog does not. */
static void groups(int i)
{
	char hogs[16];
	pid_t pid = fork();

	if (!pid)
		hog(i);
	snprintf(hogs, sizeof(hogs), "%d", pid);
	for (int on = 0;; on = !on) {
		nap(1000);
		put(on ? OWN "a/cgroup.procs" : OWN "b/cgroup.procs", hogs);
	}
}

static void *hogs(void *unused)
{
	hog(0);
	return NULL;
}

/* A process of CROWD threads goes from group to group, all of them at once. */
static void crowd(int i)
{
	char path[64], threads[16];
	pid_t pid = fork();
	pthread_t thread;

	for (int n = 1; !pid && n < CROWD; n++)
		if (pthread_create(&thread, NULL, hogs, NULL))
			fail("pthread_create");
	if (!pid)
		hog(i);
	snprintf(threads, sizeof(threads), "%d", pid);
	for (int n = 0;; n = (n + 1) % CROWD_GROUPS) {
		snprintf(path, sizeof(path), OWN "crowd%d", n);
		if (mkdir(path, 0755) && errno != EEXIST)
			fail(path);
		strcat(path, "/cgroup.procs");
		put(path, threads);
		nap(12000);
	}
}

/* Sets and removes the limit of its group, in which a hog is. */
static void limits(int i)
{
	if (!fork())
		hog(i);
	for (int on = 0;; on = !on) {
		nap(1000);
		put(OWN "a/cpu.max", on ? "50000 100000" : "max 100000");
	}
}

/* Wakes tasks, and pins them to its own CPU before they run on the idle ones chosen for them. */
static void claims(int i)
{
	pid_t sleepers[SLEEPERS];

	for (int n = 0; n < SLEEPERS; n++) {
		sleepers[n] = fork();
		while (!sleepers[n]) {
			unpin();
			hear(WAKES);
		}
	}
	for (;;) {
		burn(500);
		for (int n = 0; n < SLEEPERS; n++)
			tell(WAKES);
		for (int n = 0; n < SLEEPERS; n++)
			pin(sleepers[n], sched_getcpu());
	}
}

static const struct trick {
	const char *name;
	void (*plays)(int);
	int grouped, unpinned; /* its attackers are in a group of their own; nobody is pinned */
} *trick, tricks[] = {
	{ "hog", hog },
	{ "long_slice", long_slice },
	{ "two_slices", two_slices },
	{ "naps", naps },
	{ "short_naps", short_naps },
	{ "yields", yields },
	{ "pins", pins },
	{ "batch", batch },
	{ "idle_class", idle_class },
	{ "forks", forks },
	{ "ring", ring },
	{ "arms", arms },
	{ "groups", groups, .grouped = 1 },
	{ "crowd", crowd, .grouped = 1 },
	{ "limits", limits, .grouped = 1 },
	{ "claims", claims, .unpinned = 1 },
};

/* ---- the game ---- */

static pid_t start(void (*plays)(int), int i)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid) {
		group = group ? group : pid;
		setpgid(pid, group);
		return pid;
	}
	setpgid(0, group);
	if (!trick->unpinned)
		pin(0, last_cpu);
	if (trick->grouped && plays == trick->plays)
		put(OWN "a/cgroup.procs", "0");
	if (setgroups(0, NULL) || setgid(1000) || setuid(1000))
		fail("setuid");
	plays(i);
	_exit(0);
}

static double cpu_us(pid_t pid)
{
	clockid_t clock;
	struct timespec t;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		fail("clock of the honest task");
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double p99(struct samples *s)
{
	qsort((void *)s->us, s->n, sizeof(double), by_value);
	return s->n ? s->us[s->n * 99 / 100] : NEVER_US;
}

static void prepare(void)
{
	last_cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		fail("memory");
	for (int i = 0; i < PIPES; i++)
		if (pipe(pipes[i]))
			fail("pipe");
}

int main(int argc, char **argv)
{
	const struct trick *end = tricks + sizeof(tricks) / sizeof(*tricks);
	double begin, used, share;
	pid_t honest;

	for (trick = tricks; argc == 4 && trick < end && strcmp(trick->name, argv[1]);)
		trick++;
	if (argc != 4 || trick == end) {
		fprintf(stderr, "usage: game TRICK MS N\n");
		return 2;
	}
	attackers = atoi(argv[3]);
	if (attackers > RING_MAX) {
		fprintf(stderr, "at most %d attackers\n", RING_MAX);
		return 2;
	}
	prepare();
	honest = start(computes, 0);
	start(wakes, 0);
	start(serves, 0);
	start(asks, 0);
	for (int i = 0; i < attackers; i++)
		start(trick->plays, i);
	nap(500000);
	shared->counts = 1;
	begin = now_us();
	used = cpu_us(honest);
	nap(atol(argv[2]) % 1000 * 1000);
	sleep(atol(argv[2]) / 1000);
	share = 100 * (cpu_us(honest) - used) / (now_us() - begin);
	shared->counts = 0;
	kill(-group, SIGKILL);
	if (shared->failed)
		return 2;
	printf("%s %s %.1f %.0f %.0f %.0f\n", argv[1], argv[3], share, shared->gap,
	       p99(&shared->late), p99(&shared->answer));
	return 0;
}
