// SPDX-License-Identifier: GPL-2.0-only
/*
 * Experiment 2: can every rung be live in one program, what does a live mask cost, which loop is
 * cheapest?
 *
 * These are classifier programs, because BPF_PROG_RUN can repeat those; the packet does not matter.
 * The only kfuncs are the open-coded iterator's, so any kernel since 6.9 verifies and runs them.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

#define MAX_CPUS  1024
#define MAX_LLCS  1024
#define LLC_WORDS 16
#define MAX_NODES 64
#define CLAIM_TTL 1000000

enum {
	F_PREV_IDLE = 1,
	F_SIS_UTIL = 2,
	F_WIDE_IDLE = 4,
	F_PREV_CORE = 8,
	F_RECENT_CORE = 16,
	F_SYNC_CORE = 32,
	F_UTIL_FITS = 64,
	F_BIAS_PREV = 128,
	F_CLAIM = 256,
};

struct cpu_facts {
	u32 llc, pos, node, capacity;
	u32 idle, core_idle, util, nr_running;
	u64 load;
	u32 nr_sib;
	u32 sib[8];
};

struct llc_facts {
	u32 first, nr_words, budget;
	u64 idle_cpus[LLC_WORDS], idle_cores[LLC_WORDS];
};

struct node_facts {
	u32 first_llc, end_llc;
};

struct cpu_facts cpus[MAX_CPUS];
struct llc_facts llcs[MAX_LLCS];
struct node_facts nodes[MAX_NODES];
u64 claims[MAX_CPUS];
u32 llc_cpus[MAX_CPUS];
u64 llcs_with_cpu[16], llcs_with_core[16];
u64 allowed[MAX_CPUS / 64];
u32 nr_llcs;
u32 live_features;
const volatile u32 frozen_features = 0;
u64 now;
s32 result;

struct {
	u32 this, prev, recent, recent_start, sync, util, anywhere;
	u64 load;
} query;

/* A step and a start that the verifier does not know, so that a may_goto loop converges. */
volatile u32 one = 1, zero;

static __always_inline bool allowed_cpu(u32 cpu)
{
	return allowed[cpu / 64 & 15] & 1ull << (cpu & 63);
}

/*
 * The number of the lowest set bit; `word` is not 0. BPF has no instruction for it. Clang's own
 * code has no branches. The other way (-DBRANCHY) halves the word, which costs the verifier up to
 * 2^6 paths.
 */
#ifdef BRANCHY
static __always_inline u32 lowest(u64 word)
{
	u32 n = 0;

	if (!(word & 0xffffffff)) {
		n += 32;
		word >>= 32;
	}
	if (!(word & 0xffff)) {
		n += 16;
		word >>= 16;
	}
	if (!(word & 0xff)) {
		n += 8;
		word >>= 8;
	}
	if (!(word & 0xf)) {
		n += 4;
		word >>= 4;
	}
	if (!(word & 0x3)) {
		n += 2;
		word >>= 2;
	}
	return n + !(word & 1);
}
#else
static __always_inline u32 lowest(u64 word)
{
	return __builtin_ctzll(word);
}
#endif

#define LOOP_PLAIN(i, from, to, max)	for (i = (from); i < (to) && i < (max); i++)
#define LOOP_MAY_GOTO(i, from, to, max) for (i = (from); i < (to) && can_loop; i++)
#define LOOP_UNKNOWN(i, from, to, max)	for (i = (from) + zero; i < (to) && can_loop; i += one)
#define LOOP_ITER(i, from, to, max)	bpf_for (i, from, to)

#define INLINED				static __always_inline
#define SUBPROG				__noinline

/* One row per program: name, mask, loop, compilation of scan_llc. */
#define NAME(x)				x##_plain_live
#define MASK				live_features
#define LOOP				LOOP_PLAIN
#define SCAN				INLINED
#define ONE_WORD			0
#include "ladder.h"

#define NAME(x)	 x##_plain_frozen
#define MASK	 frozen_features
#define LOOP	 LOOP_PLAIN
#define SCAN	 INLINED
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_may_goto_live
#define MASK	 live_features
#define LOOP	 LOOP_MAY_GOTO
#define SCAN	 INLINED
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_may_goto_frozen
#define MASK	 frozen_features
#define LOOP	 LOOP_MAY_GOTO
#define SCAN	 INLINED
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_unknown_live
#define MASK	 live_features
#define LOOP	 LOOP_UNKNOWN
#define SCAN	 INLINED
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_unknown_frozen
#define MASK	 frozen_features
#define LOOP	 LOOP_UNKNOWN
#define SCAN	 INLINED
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_iter_live
#define MASK	 live_features
#define LOOP	 LOOP_ITER
#define SCAN	 INLINED
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_iter_frozen
#define MASK	 frozen_features
#define LOOP	 LOOP_ITER
#define SCAN	 INLINED
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_plain_live_sub
#define MASK	 live_features
#define LOOP	 LOOP_PLAIN
#define SCAN	 SUBPROG
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_unknown_live_sub
#define MASK	 live_features
#define LOOP	 LOOP_UNKNOWN
#define SCAN	 SUBPROG
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_unknown_frozen_sub
#define MASK	 frozen_features
#define LOOP	 LOOP_UNKNOWN
#define SCAN	 SUBPROG
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_iter_live_sub
#define MASK	 live_features
#define LOOP	 LOOP_ITER
#define SCAN	 SUBPROG
#define ONE_WORD 0
#include "ladder.h"

#define NAME(x)	 x##_unknown_live_word
#define MASK	 live_features
#define LOOP	 LOOP_UNKNOWN
#define SCAN	 INLINED
#define ONE_WORD 1
#include "ladder.h"

SEC("tc")
int prog_empty(struct __sk_buff *skb)
{
	query.recent = query.recent_start;
	now += 2 * CLAIM_TTL;
	result = query.prev;
	return 0;
}
