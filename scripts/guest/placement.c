// SPDX-License-Identifier: GPL-2.0-only
/*
 * placement: evaluates what the scheduler did, from the ring buffers of tracefs, which it empties.
 *
 * Tracing has recorded sched_switch and sched_wakeup, and is off by now. The topology is read from
 * /sys. The records of all CPUs are merged by time and replayed: which task runs where, and where
 * each task was last. Prints 'name value' lines. The kernel emits these events in the same way for
 * every scheduler.
 *
 * A wakeup counts where sched_wakeup reports its placement. A scheduler may still move the task
 * before it runs.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_CPUS 256
#define MAX_PIDS (1 << 22)
#define TRACING	 "/sys/kernel/tracing/"
#define PAGE	 4096
/* Types of ring buffer records (kernel: enum ring_buffer_type). Smaller ones are data of that many
 * words. */
enum { TYPE_DATA_MAX = 28, TYPE_PADDING, TYPE_TIME_EXTEND, TYPE_TIME_STAMP };
enum kind { SWITCH, WAKEUP, NR_KINDS };

struct record {
	uint64_t time;
	size_t order; /* order of reading, for records of one CPU with equal times */
	int cpu, kind;
	int pid, other; /* switch: next and previous pid; wakeup: pid and CPU */
};

static struct {
	int id, pid_at, other_at;
} formats[NR_KINDS];
static const char *names[NR_KINDS] = { "sched_switch", "sched_wakeup" };
static const char *pid_fields[NR_KINDS] = { " next_pid;\toffset:", " pid;\toffset:" };
static const char *other_fields[NR_KINDS] = { " prev_pid;\toffset:", " target_cpu;\toffset:" };

static struct record *records;
static size_t nr_records, room;
static int core_of[MAX_CPUS], llc_of[MAX_CPUS], nr_cpus;
static int running[MAX_CPUS];  /* pid, 0 idle */
static int last_cpu[MAX_PIDS]; /* + 1; 0: not seen yet */

static void die(const char *what)
{
	fprintf(stderr, "placement: %s\n", what);
	exit(1);
}

static int number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	if (!at)
		die(key);
	return atoi(at + strlen(key));
}

static void read_format(int kind)
{
	char path[256], text[4096];
	FILE *f;

	snprintf(path, sizeof(path), TRACING "events/sched/%s/format", names[kind]);
	f = fopen(path, "r");
	if (!f)
		die(path);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	formats[kind].id = number_after(text, "ID: ");
	formats[kind].pid_at = number_after(text, pid_fields[kind]);
	formats[kind].other_at = number_after(text, other_fields[kind]);
}

/* The lowest CPU of a list in /sys identifies the group of CPUs in the list. */
static int first_of(int cpu, const char *file, int otherwise)
{
	char path[256];
	int first = otherwise;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
	f = fopen(path, "r");
	if (!f)
		return otherwise;
	if (fscanf(f, "%d", &first) != 1)
		first = otherwise;
	fclose(f);
	return first;
}

static void add(uint64_t time, int cpu, const uint8_t *data)
{
	uint16_t id;
	int32_t pid, other;

	memcpy(&id, data, sizeof(id));
	for (int k = 0; k < NR_KINDS; k++) {
		if (formats[k].id != id)
			continue;
		memcpy(&pid, data + formats[k].pid_at, sizeof(pid));
		memcpy(&other, data + formats[k].other_at, sizeof(other));
		if (nr_records == room) {
			room = room ? room * 2 : 1 << 16;
			records = realloc(records, room * sizeof(*records));
			if (!records)
				die("out of memory");
		}
		records[nr_records] = (struct record){ time, nr_records, cpu, k, pid, other };
		nr_records++;
	}
}

/* A page holds the time of its first record, the number of bytes used, and records with time
 * deltas. */
static void read_page(int cpu, const uint8_t *page)
{
	const uint8_t *p = page + 16, *end;
	uint64_t time, commit;

	memcpy(&time, page, 8);
	memcpy(&commit, page + 8, 8);
	end = p + (commit & 0xfffff);
	if (end > page + PAGE)
		end = page + PAGE;
	while (p + 4 <= end) {
		uint32_t head, word;

		memcpy(&head, p, 4);
		memcpy(&word, p + 4, 4);
		switch (head & 31) {
		case TYPE_PADDING:
			if (!(head >> 5))
				return;
			time += head >> 5;
			p += 4 + word;
			break;
		case TYPE_TIME_EXTEND:
			time += ((uint64_t)word << 27) + (head >> 5);
			p += 8;
			break;
		case TYPE_TIME_STAMP:
			/* The top five bits of the absolute time are not recorded. */
			time = (time & ~((1ULL << 59) - 1)) | ((uint64_t)word << 27) | (head >> 5);
			p += 8;
			break;
		case 0:
			time += head >> 5;
			add(time, cpu, p + 8);
			p += 4 + word;
			break;
		default:
			time += head >> 5;
			add(time, cpu, p + 4);
			p += 4 + (head & 31) * 4;
		}
	}
}

static void read_cpu(int cpu)
{
	uint8_t page[PAGE];
	char path[256];
	size_t first = nr_records;
	int fd;

	snprintf(path, sizeof(path), TRACING "per_cpu/cpu%d/trace_pipe_raw", cpu);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	if (fd < 0)
		die(path);
	while (read(fd, page, PAGE) == PAGE)
		read_page(cpu, page);
	close(fd);
	/* The task that ran before the first switch. A CPU without any switch was idle all the
	 * time. */
	for (; first < nr_records; first++) {
		if (records[first].kind == SWITCH) {
			running[cpu] = records[first].other;
			break;
		}
	}
}

static int by_time(const void *x, const void *y)
{
	const struct record *a = x, *b = y;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->order < b->order ? -1 : 1;
}

static int core_idle(int cpu)
{
	for (int c = 0; c < nr_cpus; c++)
		if (core_of[c] == core_of[cpu] && running[c])
			return 0;
	return 1;
}

static void replay(void)
{
	long wakeups = 0, placed = 0, prev = 0, idle_core = 0, other_llc = 0;

	for (struct record *r = records; r < records + nr_records; r++) {
		int *last = r->pid > 0 && r->pid < MAX_PIDS ? &last_cpu[r->pid] : NULL;

		if (r->kind == SWITCH) {
			running[r->cpu] = r->pid;
			if (last)
				*last = r->cpu + 1;
			continue;
		}
		if (!last || r->other < 0 || r->other >= nr_cpus)
			continue;
		wakeups++;
		idle_core += core_idle(r->other);
		if (!*last)
			continue;
		placed++;
		prev += *last - 1 == r->other;
		other_llc += llc_of[*last - 1] != llc_of[r->other];
	}
	printf("wakeups %ld\n", wakeups);
	printf("idle_core_pct %.1f\n", wakeups ? 100.0 * idle_core / wakeups : 0);
	printf("previous_pct %.1f\n", placed ? 100.0 * prev / placed : 0);
	printf("other_llc_pct %.1f\n", placed ? 100.0 * other_llc / placed : 0);
}

int main(void)
{
	for (int k = 0; k < NR_KINDS; k++)
		read_format(k);
	for (int cpu = 0; cpu < MAX_CPUS; cpu++) {
		core_of[cpu] = first_of(cpu, "topology/core_cpus_list", -1);
		if (core_of[cpu] < 0)
			break;
		llc_of[cpu] = first_of(cpu, "cache/index3/shared_cpu_list", 0);
		nr_cpus++;
		read_cpu(cpu);
	}
	if (!nr_records)
		die("no records: were the events on?");
	qsort(records, nr_records, sizeof(*records), by_time);
	replay();
	return 0;
}
