// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's side of scripts/bench: one static program.
 *
 *	guest meter NAME CMD...		run CMD, print what it cost
 *	guest workers N CHUNKS SEED	N processes that compute for 1-3 ms and then talk to a
 *					coordinator, CHUNKS times
 *	guest forks N TIMES CMD		N processes that fork, execute CMD and wait, TIMES times
 *	guest probe N MS SEED		N processes that sleep about 1 ms at a time, for MS: how
 *					late they wake, on all CPUs and on the first
 *	guest hogs N			N processes that compute until this one is killed
 *	guest crowd MS SEED PROBES [NICE[:REQUEST_US]]...
 *					for MS: probes that compute for 50 us after each sleep,
 *					beside a hog for each further word; waits, switches,
 *					shares of CPU, and how long a hog runs at a time
 *	guest yielders N MS		N processes on the first CPU that yield for MS: their
 *					switches
 *	guest settle SECONDS		wait until the machine is idle
 *	guest spin N			compute a little: shifts what follows in time, by seed
 *	guest deadlines			finer interleaving of the virtual CPUs, see deadlines()
 *
 * A line for the host is "::name key=value ...".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../tests/guest/attr.h"

#define MAX_CPUS     1024
#define MAX_WORKERS  256
#define NSEC_PER_SEC 1000000000ll
#define PERIOD_NS    1000000ll

/* The plugin writes its sums when the guest executes this nop. */
#define MARKER()     asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x73, 0x6f, 0x6f, 0x72" : : : "memory")

static volatile uint64_t sink;

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "guest: %s: %s\n", what, strerror(errno));
	exit(1);
}

static pid_t fork_or_fail(void)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void *shared_memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		fail("mmap");
	return p;
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* Computes for about `us` microseconds, at 2 ns per instruction under icount. */
static void spin_us(int us)
{
	uint64_t x = us;

	for (int i = 0; i < 125 * us; i++)
		x = x * 6364136223846793005ull + i;
	sink = x;
}

/* ---- meter ---- */

static uint64_t switches_of_machine(void)
{
	unsigned long long n = 0;
	char line[512];
	FILE *f = fopen("/proc/stat", "r");

	if (!f)
		fail("/proc/stat");
	while (fgets(line, sizeof(line), f) && sscanf(line, "ctxt %llu", &n) != 1)
		;
	fclose(f);
	return n;
}

/* Counts a software event of a process and all its descendants, from its execve on. */
static int open_event(pid_t pid, uint64_t event)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = event,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		fail("perf_event_open");
	return fd;
}

static uint64_t read_event(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) != sizeof(n))
		fail("reading a perf event");
	return n;
}

/* Forks a child that executes `cmd` once a byte is written to `*gate`; its output goes to `out`. */
static pid_t start_behind_gate(char **cmd, int out, int *gate)
{
	int ends[2];
	char byte;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		fail("pipe");
	pid = fork_or_fail();
	if (pid == 0) {
		dup2(out, STDOUT_FILENO);
		dup2(out, STDERR_FILENO);
		if (read(ends[0], &byte, 1) == 1)
			execvp(cmd[0], cmd);
		fail(cmd[0]);
	}
	*gate = ends[1];
	return pid;
}

static void print_output(const char *name, int fd)
{
	char line[512];
	FILE *f = fdopen(fd, "r");

	rewind(f);
	while (fgets(line, sizeof(line), f))
		printf("::out %s %s%s", name, line, strchr(line, '\n') ? "" : "\n");
	fclose(f);
}

static int meter(char **argv)
{
	int out = open("/tmp/output", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int gate, status, switches, migrations;
	uint64_t machine;
	int64_t start, end;
	pid_t pid;

	if (out < 0)
		fail("/tmp/output");
	pid = start_behind_gate(argv + 1, out, &gate);
	switches = open_event(pid, PERF_COUNT_SW_CONTEXT_SWITCHES);
	migrations = open_event(pid, PERF_COUNT_SW_CPU_MIGRATIONS);
	usleep(20000); /* the child reaches its gate */

	machine = switches_of_machine();
	start = now_ns();
	MARKER();
	if (write(gate, "", 1) != 1 || waitpid(pid, &status, 0) != pid)
		fail("running the command");
	MARKER();
	end = now_ns();
	machine = switches_of_machine() - machine;

	print_output(argv[0], out);
	printf("::meter name=%s status=%d ns=%lld switches=%llu migrations=%llu machine_switches=%llu\n",
	       argv[0], WIFEXITED(status) ? WEXITSTATUS(status) : 255, (long long)(end - start),
	       (unsigned long long)read_event(switches), (unsigned long long)read_event(migrations),
	       (unsigned long long)machine);
	return 0;
}

/* ---- workers: does one share its core while another core is free? ---- */

struct worker {
	volatile int cpu;  /* where it was at its last look, -1: nowhere yet */
	volatile int busy; /* it computes and wants a core of its own */
	uint64_t looks, shared, avoidable, moves;
} __attribute__((aligned(128)));

static int core_of[MAX_CPUS], nr_cores;

/* A core is identified by its first CPU. */
static void read_cores(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (int cpu = 0; cpu < cpus && cpu < MAX_CPUS; cpu++) {
		char path[96];
		FILE *f;

		snprintf(path, sizeof(path),
			 "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
		f = fopen(path, "r");
		if (!f || fscanf(f, "%d", &core_of[cpu]) != 1)
			fail(path);
		fclose(f);
		nr_cores += core_of[cpu] == cpu;
	}
}

static void look_around(struct worker *all, int count, struct worker *me)
{
	uint8_t taken[MAX_CPUS] = { 0 };
	int cpu = sched_getcpu(), cores = 0, shared = 0;

	if (cpu != me->cpu) {
		me->moves += me->cpu >= 0;
		me->cpu = cpu;
	}
	for (struct worker *w = all; w < all + count; w++) {
		int core = w->busy && w->cpu >= 0 ? core_of[w->cpu] : -1;

		if (core < 0)
			continue;
		shared |= w != me && core == core_of[cpu];
		cores += !taken[core];
		taken[core] = 1;
	}
	me->looks++;
	me->shared += shared;
	me->avoidable += shared && cores < nr_cores;
}

/* Computes for about `us` microseconds. Looks around every 20 us. */
static void compute(struct worker *all, int count, struct worker *me, int us)
{
	for (int done = 0; done < us; done += 20) {
		look_around(all, count, me);
		spin_us(20);
	}
}

static void work(struct worker *all, int count, int self, int chunks, unsigned int seed, int to,
		 int from)
{
	uint64_t dice = seed * 2654435761ull + self * 40503ull + 1;
	unsigned char id = self;

	for (int i = 0; i < chunks; i++) {
		dice = dice * 6364136223846793005ull + 1442695040888963407ull;
		all[self].busy = 1;
		compute(all, count, &all[self], 1000 + (dice >> 33) % 2000);
		all[self].busy = 0;
		if (write(to, &id, 1) != 1 || read(from, &id, 1) != 1)
			fail("talking to the coordinator");
	}
}

static int workers(int count, int chunks, unsigned int seed)
{
	struct worker *all = shared_memory(sizeof(*all) * count), sum = { 0 };
	int to_coordinator[2], to_worker[MAX_WORKERS][2];
	int64_t start = now_ns();
	unsigned char id;

	read_cores();
	if (count > MAX_WORKERS || pipe(to_coordinator))
		fail("workers");
	for (int i = 0; i < count; i++) {
		all[i].cpu = -1;
		if (pipe(to_worker[i]))
			fail("pipe");
		if (fork_or_fail() == 0) {
			work(all, count, i, chunks, seed, to_coordinator[1], to_worker[i][0]);
			_exit(0);
		}
	}
	for (int i = 0; i < count * chunks; i++)
		if (read(to_coordinator[0], &id, 1) != 1 || write(to_worker[id][1], &id, 1) != 1)
			fail("coordinating");
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < count; i++) {
		sum.looks += all[i].looks;
		sum.shared += all[i].shared;
		sum.avoidable += all[i].avoidable;
		sum.moves += all[i].moves;
	}
	printf("ns=%lld looks=%llu shared=%llu avoidable=%llu moves=%llu\n",
	       (long long)(now_ns() - start), (unsigned long long)sum.looks,
	       (unsigned long long)sum.shared, (unsigned long long)sum.avoidable,
	       (unsigned long long)sum.moves);
	return 0;
}

/* ---- probe: wakeup latency ---- */

struct sample {
	uint32_t us;  /* how late it woke */
	uint32_t cpu; /* where it woke */
};

static int ascending(const void *a, const void *b)
{
	uint32_t x = ((const struct sample *)a)->us, y = ((const struct sample *)b)->us;

	return (x > y) - (x < y);
}

static void stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		fail("affinity");
}

/*
 * Starts on one CPU; afterwards the scheduler may move the process. Otherwise the measurement would
 * depend on where two probes happen to start: see deadlines().
 */
static void begin_on(int cpu)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all))
		fail("affinity");
	stay_on(cpu);
	if (sched_setaffinity(0, sizeof(all), &all))
		fail("affinity");
}

/*
 * Sleeps to one beat after the other and skips those already missed. Returns the number of samples.
 * Beats are 0.5 to 1.5 ms apart: a constant period would stay in step with the ticks, and the
 * result would depend on its phase. Computes for `run_us` after each sleep.
 */
static uint32_t sleep_to_beats(struct sample *samples, int64_t length_ns, uint32_t dice, int run_us)
{
	int64_t beat = now_ns() + PERIOD_NS, end = beat + length_ns;
	uint32_t n = 0;

	prctl(PR_SET_TIMERSLACK, 1);
	while (beat < end) {
		struct timespec t = { beat / NSEC_PER_SEC, beat % NSEC_PER_SEC };
		int64_t woken;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		woken = now_ns();
		samples[n].cpu = sched_getcpu();
		samples[n++].us = (woken - beat) / 1000;
		spin_us(run_us);
		woken = run_us ? now_ns() : woken;
		while (beat <= woken) {
			dice = dice * 1664525 + 1013904223;
			beat += PERIOD_NS / 2 + (dice >> 8) % PERIOD_NS;
		}
	}
	return n;
}

static void print_figures(const char *prefix, const struct sample *sorted, uint32_t n)
{
	printf("%ssamples=%u ", prefix, n);
	if (n)
		printf("%sp50=%u %sp99=%u %smax=%u ", prefix, sorted[n / 2].us, prefix,
		       sorted[n * 99ull / 100].us, prefix, sorted[n - 1].us);
}

/* Moves the samples of the first CPU to the front, in their order. */
static uint32_t keep_first_cpu(struct sample *samples, uint32_t n)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < n; i++)
		if (samples[i].cpu == 0)
			samples[kept++] = samples[i];
	return kept;
}

static int probe(int count, int ms, uint32_t seed)
{
	size_t room = 2 * ms + 2; /* the shortest beat is half a millisecond */
	struct sample *samples = shared_memory(sizeof(*samples) * count * room);
	uint32_t *nr = shared_memory(sizeof(*nr) * count), total = 0;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (int i = 0; i < count; i++)
		if (fork_or_fail() == 0) {
			begin_on(i % cpus);
			nr[i] = sleep_to_beats(samples + i * room, ms * 1000000ll, seed * 977 + i,
					       0);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < count; i++) {
		memmove(samples + total, samples + i * room, sizeof(*samples) * nr[i]);
		total += nr[i];
	}
	if (!total)
		fail("no sample");
	qsort(samples, total, sizeof(*samples), ascending);
	print_figures("", samples, total);
	print_figures("first_", samples, keep_first_cpu(samples, total));
	printf("\n");
	return 0;
}

/* ---- crowd: hogs and probes ---- */

#define RUN_US	   50	 /* of a probe, each time it has woken */
#define GAP_NS	   20000 /* another task ran, if a hog sees no time for so long */
#define WARM_UP_US 200000
#define MAX_CROWD  64

enum phase { WARM_UP, MEASURE, END };

struct member {
	struct sample *samples; /* waits of a probe; how long a hog ran at a time */
	uint32_t nr;
	int64_t cpu_ns;
	long voluntary, involuntary;
} __attribute__((aligned(128)));

struct crowd {
	volatile enum phase phase;
	struct member members[MAX_CROWD];
};

static int64_t cpu_time_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

/* Counted from `sign` -1 to `sign` 1. */
static void count_up(struct member *me, int sign)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	me->cpu_ns += sign * cpu_time_ns();
	me->voluntary += sign * usage.ru_nvcsw;
	me->involuntary += sign * usage.ru_nivcsw;
}

/* Computes in the given phase; keeps how long it ran between two gaps in its time. */
static void compute_in(struct crowd *crowd, enum phase phase, struct member *me, uint32_t room)
{
	int64_t last = now_ns(), begin = last, now;

	for (me->nr = 0; crowd->phase == phase; last = now) {
		spin_us(2);
		now = now_ns();
		if (now - last < GAP_NS)
			continue;
		if (me->nr < room)
			me->samples[me->nr++].us = (last - begin) / 1000;
		begin = now;
	}
}

static _Noreturn void be_hog(struct crowd *crowd, struct member *me, uint32_t room,
			     const char *word)
{
	struct wish wish = { .nice = atoi(word) };
	const char *request = strchr(word, ':'), *failed;

	wish.slice_us = request ? atoi(request + 1) : 0;
	failed = set_attr(&wish);
	if (failed)
		fail(failed);
	compute_in(crowd, WARM_UP, me, room);
	count_up(me, -1);
	compute_in(crowd, MEASURE, me, room);
	count_up(me, 1);
	_exit(0);
}

static _Noreturn void be_probe(struct member *me, int ms, uint32_t dice)
{
	count_up(me, -1);
	me->nr = sleep_to_beats(me->samples, ms * 1000000ll, dice, RUN_US);
	count_up(me, 1);
	_exit(0);
}

/* The samples of all these, sorted, and their sums. */
static struct member sum_up(const struct member *members, int count, size_t room)
{
	struct member sum = { .samples = shared_memory(sizeof(*sum.samples) * (count * room + 1)) };

	for (const struct member *m = members; m < members + count; m++) {
		memcpy(sum.samples + sum.nr, m->samples, sizeof(*m->samples) * m->nr);
		sum.nr += m->nr;
		sum.cpu_ns += m->cpu_ns;
		sum.voluntary += m->voluntary;
		sum.involuntary += m->involuntary;
	}
	qsort(sum.samples, sum.nr, sizeof(*sum.samples), ascending);
	return sum;
}

static uint32_t less_than(const struct sample *sorted, uint32_t n, uint32_t us)
{
	uint32_t less = 0;

	while (less < n && sorted[less].us < us)
		less++;
	return less;
}

static void print_crowd(const struct member *hogs, int nr_hogs, int nr_probes, size_t room)
{
	struct member of_hogs = sum_up(hogs, nr_hogs, room),
		      of_probes = sum_up(hogs + nr_hogs, nr_probes, room);
	uint32_t median = of_hogs.nr ? of_hogs.samples[of_hogs.nr / 2].us : 0;

	print_figures("", of_probes.samples, of_probes.nr);
	print_figures("run_", of_hogs.samples, of_hogs.nr);
	printf("soon=%u run_early=%u voluntary=%ld involuntary=%ld run_voluntary=%ld run_involuntary=%ld run_ns=%lld",
	       less_than(of_probes.samples, of_probes.nr, RUN_US),
	       less_than(of_hogs.samples, of_hogs.nr, median * 9 / 10), of_probes.voluntary,
	       of_probes.involuntary, of_hogs.voluntary, of_hogs.involuntary,
	       (long long)of_hogs.cpu_ns);
	for (int i = 0; i < nr_hogs; i++)
		printf(" hog%d_ns=%lld", i, (long long)hogs[i].cpu_ns);
	printf("\n");
}

static int crowd(int ms, uint32_t seed, int nr_probes, char **hogs, int nr_hogs)
{
	struct crowd *crowd = shared_memory(sizeof(*crowd));
	size_t room = 20 * ms + 2; /* a hog may run as shortly as 50 us at a time */
	pid_t probes[MAX_CROWD];

	if (nr_probes < 0 || nr_hogs + nr_probes > MAX_CROWD)
		fail("crowd");
	for (int i = 0; i < nr_hogs + nr_probes; i++)
		crowd->members[i].samples = shared_memory(sizeof(struct sample) * room);
	for (int i = 0; i < nr_hogs; i++)
		if (fork_or_fail() == 0)
			be_hog(crowd, &crowd->members[i], room, hogs[i]);
	usleep(WARM_UP_US);
	crowd->phase = MEASURE;
	for (int i = 0; i < nr_probes; i++) {
		probes[i] = fork_or_fail();
		if (probes[i] == 0)
			be_probe(&crowd->members[nr_hogs + i], ms, seed * 977 + i);
	}
	usleep(nr_probes ? 0 : ms * 1000);
	for (int i = 0; i < nr_probes; i++)
		waitpid(probes[i], NULL, 0);
	crowd->phase = END;
	while (wait(NULL) > 0)
		;
	print_crowd(crowd->members, nr_hogs, nr_probes, room);
	return 0;
}

/* ---- the small ones ---- */

static long yield_until(int64_t end)
{
	long yields = 0;

	for (; now_ns() < end; yields++)
		sched_yield();
	return yields;
}

static int yielders(int count, int ms)
{
	struct member *sum = shared_memory(sizeof(*sum) * count);
	int64_t end = now_ns() + ms * 1000000ll;
	long yields = 0, switches = 0;

	for (int i = 0; i < count; i++)
		if (fork_or_fail() == 0) {
			stay_on(0);
			count_up(&sum[i], -1);
			sum[i].nr = yield_until(end);
			count_up(&sum[i], 1);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < count; i++) {
		yields += sum[i].nr;
		switches += sum[i].voluntary + sum[i].involuntary;
	}
	printf("yields=%ld yield_switches=%ld\n", yields, switches);
	return 0;
}

static void fork_and_wait(int times, char *cmd)
{
	char *argv[] = { cmd, NULL };
	int status;

	for (int i = 0; i < times; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			execv(cmd, argv);
			fail(cmd);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			fail("the child");
	}
}

static int forks(int count, int times, char *cmd)
{
	int status, bad = 0;

	for (int i = 0; i < count; i++)
		if (fork_or_fail() == 0) {
			fork_and_wait(times, cmd);
			_exit(0);
		}
	while (wait(&status) > 0)
		bad |= status;
	return bad != 0;
}

static _Noreturn void hogs(int count)
{
	for (int i = 0; i < count; i++)
		if (fork_or_fail() == 0)
			for (;;)
				sink++;
	for (;;)
		pause();
}

/* Jiffies of all CPUs since boot: in total, and idle. */
static void read_jiffies(unsigned long long *all, unsigned long long *idle)
{
	unsigned long long v[8];
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", v, v + 1, v + 2, v + 3,
			 v + 4, v + 5, v + 6, v + 7) != 8)
		fail("/proc/stat");
	fclose(f);
	*all = 0;
	for (int i = 0; i < 8; i++)
		*all += v[i];
	*idle = v[3] + v[4];
}

static int settle(int seconds)
{
	unsigned long long all, idle, all_before, idle_before;

	for (int i = 0; i < 2 * seconds; i++) {
		read_jiffies(&all_before, &idle_before);
		usleep(500000);
		read_jiffies(&all, &idle);
		if ((idle - idle_before) * 100 >= (all - all_before) * 97)
			return 0;
	}
	fprintf(stderr, "guest: not idle after %d s\n", seconds);
	return 1;
}

static int spin(long n)
{
	while (n-- > 0)
		sink++;
	return 0;
}

static uint8_t rtc_read(uint8_t reg)
{
	outb(reg, 0x70);
	return inb(0x71);
}

static void rtc_write(uint8_t reg, uint8_t value)
{
	outb(reg, 0x70);
	outb(value, 0x71);
}

/*
 * Under icount the virtual CPUs share one clock and take turns. A turn lasts until the next timer
 * of the emulated machine. The periodic timer of the real-time clock at 8192 Hz makes turns short.
 * The guest sees no interrupt from it, because its line is cut while the HPET replaces the old
 * timers, as Linux sets it up.
 *
 * A timer that ends a turn is still served at once only on the first CPU. On the second it waits
 * for the turn of the first, up to 61 us of the 122.
 */
static int deadlines(void)
{
	const uint8_t rate = 3, periodic = 0x40;

	if (ioperm(0x70, 2, 1))
		fail("ioperm");
	rtc_write(0x0a, (rtc_read(0x0a) & 0xf0) | rate);
	rtc_write(0x0b, rtc_read(0x0b) | periodic);
	return 0;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (!strcmp(verb, "meter") && argc > 3)
		return meter(argv + 2);
	if (!strcmp(verb, "workers") && argc == 5)
		return workers(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
	if (!strcmp(verb, "forks") && argc == 5)
		return forks(atoi(argv[2]), atoi(argv[3]), argv[4]);
	if (!strcmp(verb, "probe") && argc == 5)
		return probe(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]));
	if (!strcmp(verb, "crowd") && argc > 4)
		return crowd(atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), argv + 5, argc - 5);
	if (!strcmp(verb, "yielders") && argc == 4)
		return yielders(atoi(argv[2]), atoi(argv[3]));
	if (!strcmp(verb, "hogs") && argc == 3)
		hogs(atoi(argv[2]));
	if (!strcmp(verb, "settle") && argc == 3)
		return settle(atoi(argv[2]));
	if (!strcmp(verb, "spin") && argc == 3)
		return spin(atol(argv[2]));
	if (!strcmp(verb, "deadlines"))
		return deadlines();
	fprintf(stderr, "guest: see the head of scripts/bench.d/guest.c for the verbs\n");
	return 2;
}
