/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Measures how long tasks of real-time, deadline and stop priority had each CPU. A BPF program at
 * the kernel's tracepoint sched_switch adds it up. To read the times of the tasks in /proc is not
 * enough: a task that has ended is not there any more, and one of the highest priority may keep the
 * watcher off its CPU for as long as it lives.
 *
 * Limits: a task that changes its policy while it runs counts with the old one until it leaves the
 * CPU, and then with the new one for all of its turn. The kernel skips the program at switches of a
 * CPU on which a task is just reading or writing a BPF map by bpf(2).
 */
#ifndef CHAOS_REAL_TIME_H
#define CHAOS_REAL_TIME_H

#include "board.h"
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <sys/ioctl.h>

#define TRACEPOINT    "/sys/kernel/tracing/events/sched/sched_switch/"
#define RT_PRIOS      100 /* kernel: MAX_RT_PRIO; priorities below it are real-time or deadline */
#define POSSIBLE_CPUS "/sys/devices/system/cpu/possible"

/* Of each CPU, written by the program at each switch. */
struct turn {
	uint64_t began_ns;     /* of the running task, CLOCK_MONOTONIC; 0: no switch was seen */
	uint64_t real_time_ns; /* of the real-time tasks that have left the CPU */
	int64_t prio;	       /* of the running task, when it came */
};

struct real_time {
	int map, nr_possible;
	int64_t total_ns[MAX_CPUS];	 /* up to the last look */
	int64_t since_last_ns[MAX_CPUS]; /* may be negative: see the head of this file */
};

static long bpf(int command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static _Noreturn void no_real_time(const char *what)
{
	fprintf(stderr, "chaos: real-time tasks cannot be watched: %s: %s\n", what,
		strerror(errno));
	exit(2);
}

/* The offset of a field in the tracepoint's record. */
static int field_offset(const char *field)
{
	char text[4096], wanted[64], *at;

	if (read_file(TRACEPOINT "format", text, sizeof(text)) <= 0)
		no_real_time(TRACEPOINT "format");
	snprintf(wanted, sizeof(wanted), " %s;\toffset:", field);
	at = strstr(text, wanted);
	if (!at)
		no_real_time(field);
	return atoi(at + strlen(wanted));
}

#define INSN(op, dst, src, offset, number)                                                         \
	((struct bpf_insn){ .code = (op),                                                          \
			    .dst_reg = (dst),                                                      \
			    .src_reg = (src),                                                      \
			    .off = (offset),                                                       \
			    .imm = (number) })
#define CALL(helper)		     INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##helper)
#define MOVE(dst, src)		     INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define MOVE_NUMBER(dst, n)	     INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, n)
#define ADD(dst, src)		     INSN(BPF_ALU64 | BPF_ADD | BPF_X, dst, src, 0, 0)
#define ADD_NUMBER(dst, n)	     INSN(BPF_ALU64 | BPF_ADD | BPF_K, dst, 0, 0, n)
#define SUBTRACT(dst, src)	     INSN(BPF_ALU64 | BPF_SUB | BPF_X, dst, src, 0, 0)
#define SHIFT_LEFT(dst, n)	     INSN(BPF_ALU64 | BPF_LSH | BPF_K, dst, 0, 0, n)
#define SHIFT_SIGNED(dst, n)	     INSN(BPF_ALU64 | BPF_ARSH | BPF_K, dst, 0, 0, n)
#define LOAD(dst, src, at)	     INSN(BPF_LDX | BPF_MEM | BPF_DW, dst, src, at, 0)
#define LOAD_WORD(dst, src, at)	     INSN(BPF_LDX | BPF_MEM | BPF_W, dst, src, at, 0)
#define STORE(dst, src, at)	     INSN(BPF_STX | BPF_MEM | BPF_DW, dst, src, at, 0)
#define STORE_ZERO_WORD(dst, at)     INSN(BPF_ST | BPF_MEM | BPF_W, dst, 0, at, 0)
#define SKIP_IF(dst, test, n, insns) INSN(BPF_JMP | BPF_K | (test), dst, 0, insns, n)
#define LOAD_MAP(dst, fd)                                                                          \
	INSN(BPF_LD | BPF_DW | BPF_IMM, dst, BPF_PSEUDO_MAP_FD, 0, fd), INSN(0, 0, 0, 0, 0)
/* A signed 32-bit field of the tracepoint's record, which r6 points at. */
#define LOAD_FIELD(dst, offset)                                                                    \
	LOAD_WORD(dst, BPF_REG_6, offset), SHIFT_LEFT(dst, 32), SHIFT_SIGNED(dst, 32)

static int load_program(int map, int prev_prio, int next_prio)
{
	static char log[65536];
	const struct bpf_insn program[] = {
		MOVE(BPF_REG_6, BPF_REG_1),
		CALL(ktime_get_ns),
		MOVE(BPF_REG_7, BPF_REG_0),
		STORE_ZERO_WORD(BPF_REG_10, -4),
		LOAD_MAP(BPF_REG_1, map),
		MOVE(BPF_REG_2, BPF_REG_10),
		ADD_NUMBER(BPF_REG_2, -4),
		CALL(map_lookup_elem),
		SKIP_IF(BPF_REG_0, BPF_JEQ, 0, 15),
		/* r0: this CPU's turn; r7: now */
		LOAD(BPF_REG_1, BPF_REG_0, offsetof(struct turn, began_ns)),
		STORE(BPF_REG_0, BPF_REG_7, offsetof(struct turn, began_ns)),
		LOAD_FIELD(BPF_REG_2, next_prio),
		STORE(BPF_REG_0, BPF_REG_2, offsetof(struct turn, prio)),
		LOAD_FIELD(BPF_REG_2, prev_prio),
		SKIP_IF(BPF_REG_2, BPF_JSGE, RT_PRIOS, 5),
		SKIP_IF(BPF_REG_1, BPF_JEQ, 0, 4),
		SUBTRACT(BPF_REG_7, BPF_REG_1),
		LOAD(BPF_REG_3, BPF_REG_0, offsetof(struct turn, real_time_ns)),
		ADD(BPF_REG_3, BPF_REG_7),
		STORE(BPF_REG_0, BPF_REG_3, offsetof(struct turn, real_time_ns)),
		MOVE_NUMBER(BPF_REG_0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	union bpf_attr attr;
	int fd;

	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_TRACEPOINT;
	attr.insns = (uint64_t)(uintptr_t)program;
	attr.insn_cnt = sizeof(program) / sizeof(*program);
	attr.license = (uint64_t)(uintptr_t)"GPL";
	attr.log_buf = (uint64_t)(uintptr_t)log;
	attr.log_size = sizeof(log);
	attr.log_level = 1;
	fd = bpf(BPF_PROG_LOAD, &attr);
	if (fd < 0) {
		fprintf(stderr, "%s", log);
		no_real_time("the BPF program");
	}
	return fd;
}

/* One event on one CPU is enough: the program runs on all of them. */
static void attach_program(int program)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr) };
	char text[32];
	int fd;

	if (read_file(TRACEPOINT "id", text, sizeof(text)) <= 0)
		no_real_time(TRACEPOINT "id");
	attr.config = atoi(text);
	fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) ||
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		no_real_time("the tracepoint sched_switch");
}

/* A look at the map gives one value for each possible CPU. */
static int nr_possible(void)
{
	char text[64], *dash;

	if (read_file(POSSIBLE_CPUS, text, sizeof(text)) <= 0)
		no_real_time(POSSIBLE_CPUS);
	dash = strrchr(text, '-');
	return atoi(dash ? dash + 1 : text) + 1;
}

static void open_real_time(struct real_time *rt)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_PERCPU_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = sizeof(struct turn);
	attr.max_entries = 1;
	rt->nr_possible = nr_possible();
	rt->map = bpf(BPF_MAP_CREATE, &attr);
	if (rt->map < 0)
		no_real_time("the BPF map");
	attach_program(load_program(rt->map, field_offset("prev_prio"), field_offset("next_prio")));
}

/* Brings since_last_ns up to date, the running tasks included. */
static void look_at_real_time(struct real_time *rt)
{
	static struct turn turns[1024];
	uint32_t key = 0;
	union bpf_attr attr;
	int64_t now = now_ns();

	/* The kernel refuses rests of the union that are not zero. */
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = rt->map;
	attr.key = (uint64_t)(uintptr_t)&key;
	attr.value = (uint64_t)(uintptr_t)turns;
	if (rt->nr_possible > (int)(sizeof(turns) / sizeof(*turns)) ||
	    bpf(BPF_MAP_LOOKUP_ELEM, &attr))
		no_real_time("the BPF map");
	for (int cpu = 0; cpu < board->nr_cpus && cpu < MAX_CPUS; cpu++) {
		const struct turn *t = &turns[cpu];
		int64_t total = t->real_time_ns;

		if (t->began_ns && t->prio < RT_PRIOS && now > (int64_t)t->began_ns)
			total += now - t->began_ns;
		rt->since_last_ns[cpu] = total - rt->total_ns[cpu];
		rt->total_ns[cpu] = total;
	}
}

#endif /* CHAOS_REAL_TIME_H */
