// SPDX-License-Identifier: GPL-2.0-only
/* What code compiled with -fsanitize=thread calls, instead of the sanitizer's runtime. */
#include "explore.h"

#include <stdint.h>

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
	(void)pc;
}

void __tsan_func_exit(void)
{
}

#define PLAIN(bytes)                                                                               \
	void __tsan_read##bytes(void *at);                                                         \
	void __tsan_read##bytes(void *at)                                                          \
	{                                                                                          \
		explore_access(at, bytes, STEP_READ);                                              \
	}                                                                                          \
	void __tsan_write##bytes(void *at);                                                        \
	void __tsan_write##bytes(void *at)                                                         \
	{                                                                                          \
		explore_access(at, bytes, STEP_WRITE);                                             \
	}                                                                                          \
	void __tsan_unaligned_read##bytes(void *at);                                               \
	void __tsan_unaligned_read##bytes(void *at)                                                \
	{                                                                                          \
		explore_access(at, bytes, STEP_READ);                                              \
	}                                                                                          \
	void __tsan_unaligned_write##bytes(void *at);                                              \
	void __tsan_unaligned_write##bytes(void *at)                                               \
	{                                                                                          \
		explore_access(at, bytes, STEP_WRITE);                                             \
	}
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *at, long size);
void __tsan_read_range(void *at, long size)
{
	explore_access(at, size, STEP_READ);
}

void __tsan_write_range(void *at, long size);
void __tsan_write_range(void *at, long size)
{
	explore_access(at, size, STEP_WRITE);
}

#define CHANGES(what, does)                                                                        \
	uint64_t __tsan_atomic64_##what(uint64_t *at, uint64_t v, int order);                      \
	uint64_t __tsan_atomic64_##what(uint64_t *at, uint64_t v, int order)                       \
	{                                                                                          \
		uint64_t old;                                                                      \
                                                                                                   \
		(void)order;                                                                       \
		explore_access(at, 8, STEP_ATOMIC);                                                \
		old = *at;                                                                         \
		*at = does;                                                                        \
		return old;                                                                        \
	}
CHANGES(fetch_add, old + v)
CHANGES(fetch_or, old | v)
CHANGES(fetch_and, old &v)
CHANGES(exchange, v)

int __tsan_atomic64_compare_exchange_strong(uint64_t *at, uint64_t *old, uint64_t v, int order,
					    int fails);
int __tsan_atomic64_compare_exchange_strong(uint64_t *at, uint64_t *old, uint64_t v, int order,
					    int fails)
{
	uint64_t found;

	(void)order;
	(void)fails;
	explore_access(at, 8, STEP_ATOMIC);
	found = *at;
	if (found != *old) {
		*old = found;
		return 0;
	}
	*at = v;
	return 1;
}
