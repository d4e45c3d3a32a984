/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Experiment 2: every rung of the placement ladder, over dummy state, once per way to write it.
 *
 * ladder.bpf.c includes this file once for each set of values of
 *	NAME(x)			a suffix for each function
 *	MASK			the feature mask: a map that may change, or a constant at load
 *	LOOP(i, from, to, max)	how a loop is written
 *	SCAN			how scan_llc is compiled: inlined, or as a subprogram,
 *				which is verified by itself
 *	ONE_WORD		1: an LLC of at most 64 CPUs is looked up without a loop
 *				when the task may run anywhere
 * The ladder has the loads, branches and loops of the real one; the values mean nothing.
 */

static __always_inline bool NAME(take)(u32 features, u32 cpu)
{
	u64 *claim = MEMBER_VPTR(claims, [cpu]);
	u64 seen;

	if (!(features & F_CLAIM))
		return true;
	if (!claim)
		return false;
	seen = *claim;
	return now - seen > CLAIM_TTL && __sync_val_compare_and_swap(claim, seen, now) == seen;
}

static __always_inline bool NAME(free)(u32 features, u32 cpu)
{
	struct cpu_facts *c = MEMBER_VPTR(cpus, [cpu]);

	return c && c->idle && allowed_cpu(cpu) && NAME(take)(features, cpu);
}

static __always_inline bool NAME(fits)(u32 features, u32 cpu)
{
	struct cpu_facts *c = MEMBER_VPTR(cpus, [cpu]);

	return features & F_UTIL_FITS && c && allowed_cpu(cpu) &&
	       (c->util + query.util) * 1280 <= c->capacity * 1024;
}

/* The first idle CPU (or CPU of an idle core) of the LLC, from `pos` on, wrapping around. */
SCAN s32 NAME(scan_llc)(u32 features, u32 llc, u32 pos, u32 whole_core)
{
	struct llc_facts *l = MEMBER_VPTR(llcs, [llc]);
	u32 first = pos / 64, nr, k, b, w;
	u64 tail = ~0ull << (pos & 63);

	if (!l)
		return -1;
	if (ONE_WORD && l->nr_words == 1 && query.anywhere && !(features & F_CLAIM)) {
		u64 word = whole_core ? l->idle_cores[0] : l->idle_cpus[0];

		if (!word)
			return -1;
		if (word & tail)
			word &= tail;
		return llc_cpus[(l->first + lowest(word)) & (MAX_CPUS - 1)];
	}
	nr = l->nr_words;
	if (features & F_SIS_UTIL && nr > l->budget)
		nr = l->budget;
	LOOP(k, 0, nr + 1, LLC_WORDS + 1)
	{
		u64 word;

		w = first + k;
		if (w >= l->nr_words)
			w -= l->nr_words;
		w &= LLC_WORDS - 1;
		word = whole_core ? l->idle_cores[w] : l->idle_cpus[w];
		if (k == 0)
			word &= tail;
		else if (k == l->nr_words)
			word &= ~tail;
		LOOP(b, 0, 64, 64)
		{
			u32 cpu;

			if (!word)
				break;
			cpu = llc_cpus[(l->first + w * 64 + lowest(word)) & (MAX_CPUS - 1)];
			word &= word - 1;
			if (allowed_cpu(cpu) && NAME(take)(features, cpu))
				return cpu;
		}
	}
	return -1;
}

/* The same over the LLCs [from, to) that have something idle, except `skip`. */
static __always_inline s32 NAME(scan_wide)(u32 features, u32 from, u32 to, u32 skip, u32 whole_core)
{
	u32 w, b;
	s32 cpu;

	LOOP(w, from / 64, (to + 63) / 64, MAX_LLCS / 64)
	{
		u64 word = whole_core ? llcs_with_core[w & 15] : llcs_with_cpu[w & 15];

		if (w == from / 64)
			word &= ~0ull << (from & 63);
		if (w == to / 64)
			word &= (1ull << (to & 63)) - 1;
		LOOP(b, 0, 64, 64)
		{
			u32 llc;

			if (!word)
				break;
			llc = (w * 64 + lowest(word)) & (MAX_LLCS - 1);
			word &= word - 1;
			if (llc == skip)
				continue;
			cpu = NAME(scan_llc)(features, llc, 0, whole_core);
			if (cpu >= 0)
				return cpu;
		}
	}
	return -1;
}

static __always_inline s32 NAME(idle_sibling)(u32 features, struct cpu_facts *prev)
{
	u32 i;

	LOOP(i, 0, prev->nr_sib, 8)
	{
		u32 cpu = prev->sib[i & 7];

		if (NAME(free)(features, cpu))
			return cpu;
	}
	return -1;
}

/* wake_affine: whether the search starts from `this` or from `prev`. */
static __always_inline u32 NAME(wake_affine)(u32 features, struct cpu_facts *this,
					     struct cpu_facts *prev)
{
	u64 this_load, prev_load;

	if (this->idle && this->llc == prev->llc)
		return prev->idle ? query.prev : query.this;
	if (query.sync && this->nr_running == 1)
		return query.this;
	if (features & F_PREV_IDLE && prev->idle)
		return query.prev;
	this_load = (this->load + query.load) * 100 * prev->capacity;
	prev_load = (prev->load - query.load) * (100 + (117 - 100) / 2) * this->capacity;
	return this_load < prev_load ? query.this : query.prev;
}

static __always_inline s32 NAME(ladder)(void)
{
	u32 features = MASK, target, recent = query.recent;
	struct cpu_facts *this = MEMBER_VPTR(cpus, [query.this]),
			 *prev = MEMBER_VPTR(cpus, [query.prev]), *t, *r;
	bool share;
	s32 cpu;

	if (!this || !prev)
		return -1;
	if (features & F_PREV_CORE && prev->core_idle && NAME(free)(features, query.prev))
		return query.prev;
	target = NAME(wake_affine)(features, this, prev);
	t = MEMBER_VPTR(cpus, [target]);
	r = MEMBER_VPTR(cpus, [recent]);
	if (!t || !r)
		return -1;
	query.recent = query.prev;
	share = t->llc == prev->llc;
	if (features & F_RECENT_CORE && r->llc == t->llc && r->core_idle &&
	    NAME(free)(features, recent))
		return recent;
	if (features & F_BIAS_PREV && share &&
	    (NAME(free)(features, query.prev) || NAME(fits)(features, query.prev)))
		return query.prev;
	if (!(features & F_SYNC_CORE) || (query.sync && t->core_idle))
		if (NAME(free)(features, target))
			return target;
	if (NAME(fits)(features, target))
		return target;
	if (!(features & F_BIAS_PREV) && share &&
	    (NAME(free)(features, query.prev) || NAME(fits)(features, query.prev)))
		return query.prev;
	if (r->llc == t->llc && !(features & F_RECENT_CORE) && NAME(free)(features, recent))
		return recent;
	if (r->llc == t->llc && NAME(fits)(features, recent))
		return recent;
	cpu = NAME(scan_llc)(features, t->llc, t->pos + 1, 1);
	if (cpu >= 0)
		return cpu;
	if (share) {
		cpu = NAME(idle_sibling)(features, prev);
		if (cpu >= 0)
			return cpu;
	}
	cpu = NAME(scan_llc)(features, t->llc, t->pos + 1, 0);
	if (cpu >= 0)
		return cpu;
	if (features & F_WIDE_IDLE) {
		struct node_facts *n = MEMBER_VPTR(nodes, [t->node]);

		if (!n)
			return -1;
		cpu = NAME(scan_wide)(features, n->first_llc, n->end_llc, t->llc, 1);
		if (cpu < 0)
			cpu = NAME(scan_wide)(features, n->first_llc, n->end_llc, t->llc, 0);
		if (cpu < 0)
			cpu = NAME(scan_wide)(features, 0, nr_llcs, t->llc, 1);
		if (cpu < 0)
			cpu = NAME(scan_wide)(features, 0, nr_llcs, t->llc, 0);
		if (cpu >= 0)
			return cpu;
	}
	return features & F_BIAS_PREV && share ? query.prev : target;
}

SEC("tc")
int NAME(prog)(struct __sk_buff *skb)
{
	query.recent = query.recent_start;
	now += 2 * CLAIM_TTL;
	result = NAME(ladder)();
	return 0;
}

#undef NAME
#undef MASK
#undef LOOP
#undef SCAN
#undef ONE_WORD
