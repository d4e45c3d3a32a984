// SPDX-License-Identifier: GPL-2.0-only
/*
 * QEMU plugin: how many instructions the guest executes in user space, in the kernel and in BPF.
 *
 *	-plugin plugin.so,out=FILE[,profile=FILE][,lines=on]
 *
 * Each time the guest executes the marker of guest.c, the plugin writes one line "user kernel bpf"
 * with the sums so far to `out`. To `profile` it writes one line "address instructions" per block
 * of kernel or BPF code executed since the last marker, then an empty line.
 *
 * With `lines` the line goes on with what other CPUs feel, for kernel and BPF each: locked
 * operations, reads of a cache line that another CPU wrote since this one last held it, and writes
 * to one that another CPU holds. Caches are taken to be endless: a CPU holds a line until another
 * one writes it. Only memory of the kernel counts.
 *
 * A block of translated code calls the plugin once when it is entered, with the number of its
 * instructions. So a block that a fault leaves early is counted whole. QEMU can add up by itself
 * ("inline" operations), but then x86 guests with more than one CPU fail in QEMU 10. Virtual CPUs
 * must share one host thread (thread=single), because nothing here is atomic.
 *
 * Debian has no package with qemu-plugin.h, so the parts in use are declared here: interface 3,
 * QEMU 9.1 or later.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUBLIC __attribute__((visibility("default")))

enum { NO_REGISTERS, READS_REGISTERS };

typedef void (*exec_fn)(unsigned int vcpu, void *data);

typedef uint32_t mem_info;
typedef void (*mem_fn)(unsigned int vcpu, mem_info info, uint64_t address, void *data);
enum { MEM_READ = 1, MEM_WRITE = 2, MEM_BOTH = 3 };

struct qemu_plugin_tb;
struct qemu_plugin_insn;

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id,
					   void (*fn)(uint64_t id, struct qemu_plugin_tb *tb));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, exec_fn fn, int registers,
					  void *data);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, exec_fn fn,
					    int registers, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, mem_fn fn, int registers,
				      int accesses, void *data);
bool qemu_plugin_mem_is_store(mem_info info);
void qemu_plugin_register_vcpu_init_cb(uint64_t id, void (*fn)(uint64_t id, unsigned int vcpu));

/* QEMU has these of GLib. */
struct bytes {
	uint8_t *data;
	unsigned int size;
};
struct array {
	void *data;
	unsigned int size;
};
struct qemu_plugin_register;
struct register_descriptor {
	struct qemu_plugin_register *handle;
	const char *name;
	const char *feature;
};
struct bytes *g_byte_array_new(void);
struct bytes *g_byte_array_set_size(struct bytes *bytes, unsigned int size);
struct array *qemu_plugin_get_registers(void);
int qemu_plugin_read_register(struct qemu_plugin_register *handle, struct bytes *to);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t index);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to, size_t size);

PUBLIC int qemu_plugin_version = 3;

/* The area of modules, where the kernel puts BPF programs and trampolines. The guest loads no
 * modules. */
#define KERNEL_START 0x8000000000000000ull
#define BPF_START    0xffffffffc0000000ull
#define BPF_END	     0xffffffffff000000ull

/* nopl 0x726f6f73(%rax,%rax,1): no compiler emits it. guest.c has the same bytes. */
static const uint8_t marker[] = { 0x0f, 0x1f, 0x84, 0x00, 0x73, 0x6f, 0x6f, 0x72 };

/* A block of kernel or BPF code, kept for the profile. One address may be translated, and listed,
 * several times. */
struct block {
	struct block *next;
	uint64_t address, insns, executed;
};

/* What other CPUs feel. */
struct shared {
	uint64_t locked, remote_reads, remote_writes;
};

/* A cache line. */
struct line {
	uint64_t address; /* 0: the slot is free */
	uint64_t held;	  /* the CPUs that hold it */
	bool written;	  /* at least once */
};

enum { LINE_SHIFT = 6, LINES_SHIFT = 24, MAX_CPUS = 64, LONGEST_INSN = 15 };

static uint64_t user, kernel, bpf;
static struct shared of_kernel, of_bpf;
static struct line *lines;
static struct block *blocks;
static FILE *out, *profile;

static void count_user(unsigned int vcpu, void *insns)
{
	user += (uintptr_t)insns;
}

static void count_kernel(unsigned int vcpu, void *insns)
{
	kernel += (uintptr_t)insns;
}

static void count_bpf(unsigned int vcpu, void *insns)
{
	bpf += (uintptr_t)insns;
}

static void count_block(unsigned int vcpu, void *data)
{
	struct block *b = data;

	b->executed += b->insns;
}

/*
 * Which CPU executes. QEMU 10 gives callbacks that of the CPU for which the code was translated, if
 * virtual CPUs share one host thread. The base of the kernel's per-CPU memory is another for each
 * CPU. It is in one of two registers, which the kernel swaps when it is entered.
 */
static struct qemu_plugin_register *gs_base, *k_gs_base;
static uint64_t bases[MAX_CPUS];
static unsigned int this_cpu;

static void find_registers(uint64_t id, unsigned int vcpu)
{
	const struct array *all = qemu_plugin_get_registers();
	const struct register_descriptor *d = all->data;

	for (unsigned int i = 0; i < all->size; i++) {
		if (strcmp(d[i].name, "gs_base") == 0)
			gs_base = d[i].handle;
		if (strcmp(d[i].name, "k_gs_base") == 0)
			k_gs_base = d[i].handle;
	}
	if (gs_base && k_gs_base)
		return;
	fprintf(stderr, "plugin: QEMU shows no register gs_base, or no k_gs_base\n");
	abort();
}

static uint64_t read_register(struct qemu_plugin_register *handle)
{
	static struct bytes *bytes;
	uint64_t value = 0;

	if (!bytes)
		bytes = g_byte_array_new();
	g_byte_array_set_size(bytes, 0);
	if (qemu_plugin_read_register(handle, bytes) == sizeof(value))
		memcpy(&value, bytes->data, sizeof(value));
	return value;
}

static void find_cpu(unsigned int vcpu, void *data)
{
	uint64_t base = read_register(gs_base);
	unsigned int cpu = 0;

	if (base < KERNEL_START)
		base = read_register(k_gs_base);
	if (bases[this_cpu] == base)
		return;
	while (bases[cpu] && bases[cpu] != base)
		if (++cpu == MAX_CPUS) {
			fprintf(stderr, "plugin: more than %d CPUs\n", MAX_CPUS);
			abort();
		}
	bases[cpu] = base;
	this_cpu = cpu;
}

static void count_locked(unsigned int vcpu, void *data)
{
	((struct shared *)data)->locked++;
}

static struct line *line_of(uint64_t address)
{
	uint64_t number = address >> LINE_SHIFT;
	uint64_t slot = number * 0x9e3779b97f4a7c15ull >> (64 - LINES_SHIFT), tries;

	for (tries = 0; tries < 1ull << LINES_SHIFT; tries++) {
		struct line *line = &lines[(slot + tries) & ((1ull << LINES_SHIFT) - 1)];

		if (!line->address)
			line->address = number;
		if (line->address == number)
			return line;
	}
	fprintf(stderr, "plugin: the guest uses more cache lines than there is room for\n");
	abort();
}

static void count_access(unsigned int vcpu, mem_info info, uint64_t address, void *data)
{
	uint64_t self = 1ull << this_cpu;
	struct shared *sums = data;
	struct line *line;

	if (address < KERNEL_START)
		return;
	line = line_of(address);
	if (qemu_plugin_mem_is_store(info)) {
		sums->remote_writes += (line->held & ~self) != 0;
		line->held = self;
		line->written = true;
	} else if (!(line->held & self)) {
		sums->remote_reads += line->written;
		line->held |= self;
	}
}

/* The prefix lock, or an exchange with memory, which locks without it. */
static bool is_locked(const uint8_t *bytes, size_t size)
{
	size_t i = 0;

	while (i < size &&
	       (bytes[i] == 0x2e || bytes[i] == 0x3e || bytes[i] == 0x65 || bytes[i] == 0x66))
		i++;
	if (i < size && bytes[i] == 0xf0)
		return true;
	if (i < size && (bytes[i] & 0xf0) == 0x40)
		i++;
	return i + 1 < size && (bytes[i] == 0x86 || bytes[i] == 0x87) && bytes[i + 1] < 0xc0;
}

static void watch_memory(struct qemu_plugin_tb *tb, size_t insns, struct shared *sums)
{
	for (size_t i = 0; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		uint8_t bytes[LONGEST_INSN];
		size_t size = qemu_plugin_insn_data(insn, bytes, sizeof(bytes));

		if (is_locked(bytes, size))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, count_locked, NO_REGISTERS,
							       sums);
		qemu_plugin_register_vcpu_mem_cb(insn, count_access, NO_REGISTERS, MEM_BOTH, sums);
	}
}

static void write_profile(void)
{
	for (struct block *b = blocks; b; b = b->next) {
		if (b->executed)
			fprintf(profile, "%llx %llu\n", (unsigned long long)b->address,
				(unsigned long long)b->executed);
		b->executed = 0;
	}
	fprintf(profile, "\n");
	fflush(profile);
}

static void write_sums(unsigned int vcpu, void *data)
{
	const uint64_t sums[] = { user,
				  kernel,
				  bpf,
				  of_kernel.locked,
				  of_kernel.remote_reads,
				  of_kernel.remote_writes,
				  of_bpf.locked,
				  of_bpf.remote_reads,
				  of_bpf.remote_writes };
	size_t count = lines ? sizeof(sums) / sizeof(sums[0]) : 3;

	for (size_t i = 0; i < count; i++)
		fprintf(out, "%llu ", (unsigned long long)sums[i]);
	fprintf(out, "\n");
	fflush(out);
	if (profile)
		write_profile();
}

static bool is_marker(const struct qemu_plugin_insn *insn)
{
	uint8_t bytes[sizeof(marker)];

	return qemu_plugin_insn_size(insn) == sizeof(marker) &&
	       qemu_plugin_insn_data(insn, bytes, sizeof(bytes)) == sizeof(bytes) &&
	       memcmp(bytes, marker, sizeof(bytes)) == 0;
}

static void find_markers(struct qemu_plugin_tb *tb, size_t insns)
{
	for (size_t i = 0; i < insns; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		if (is_marker(insn))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, write_sums, NO_REGISTERS,
							       NULL);
	}
}

static void keep_block(struct qemu_plugin_tb *tb, uint64_t address, size_t insns)
{
	struct block *b = calloc(1, sizeof(*b));

	if (!b)
		abort();
	b->address = address;
	b->insns = insns;
	b->next = blocks;
	blocks = b;
	qemu_plugin_register_vcpu_tb_exec_cb(tb, count_block, NO_REGISTERS, b);
}

static void translated(uint64_t id, struct qemu_plugin_tb *tb)
{
	size_t insns = qemu_plugin_tb_n_insns(tb);
	uint64_t at = qemu_plugin_tb_vaddr(tb);
	exec_fn count = count_kernel;
	struct shared *sums = &of_kernel;

	if (at < KERNEL_START) {
		count = count_user;
		find_markers(tb, insns);
	} else if (at >= BPF_START && at < BPF_END) {
		count = count_bpf;
		sums = &of_bpf;
	}
	if (lines && at >= KERNEL_START) {
		qemu_plugin_register_vcpu_tb_exec_cb(tb, find_cpu, READS_REGISTERS, NULL);
		watch_memory(tb, insns, sums);
	}
	qemu_plugin_register_vcpu_tb_exec_cb(tb, count, NO_REGISTERS, (void *)(uintptr_t)insns);
	if (profile && at >= KERNEL_START)
		keep_block(tb, at, insns);
}

PUBLIC int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "out=", 4) == 0)
			out = fopen(argv[i] + 4, "w");
		if (strncmp(argv[i], "profile=", 8) == 0)
			profile = fopen(argv[i] + 8, "w");
		if (strcmp(argv[i], "lines=on") == 0)
			lines = calloc(1ull << LINES_SHIFT, sizeof(*lines));
	}
	if (!out) {
		fprintf(stderr, "plugin: out=FILE is missing or cannot be written\n");
		return 1;
	}
	if (lines)
		qemu_plugin_register_vcpu_init_cb(id, find_registers);
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}
