/* SPDX-License-Identifier: GPL-2.0-only */
/* The states that explore.c has seen: a hash table of their hashes, which grows. */
#ifndef ROOST_STATES_H
#define ROOST_STATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATES_FIRST = 1 << 12 };

static uint64_t *seen; /* 0: free */
static unsigned long nr_states, seen_size;

static uint64_t mixed(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ (h >> 29);
}

static uint64_t mixed_bytes(uint64_t h, const void *at, size_t size)
{
	const unsigned char *p = at;
	uint64_t v = 0;

	for (; size >= 8; p += 8, size -= 8) {
		memcpy(&v, p, 8);
		h = mixed(h, v);
	}
	v = 0;
	memcpy(&v, p, size);
	return size ? mixed(h, v) : h;
}

static uint64_t *place_of(uint64_t h)
{
	unsigned long i = h % seen_size;

	while (seen[i] && seen[i] != h)
		i = i + 1 < seen_size ? i + 1 : 0;
	return &seen[i];
}

static void make_table(unsigned long size)
{
	seen = calloc(size, sizeof(*seen));
	if (!seen) {
		fprintf(stderr, "no memory for %lu states\n", size);
		exit(2);
	}
	seen_size = size;
}

static void forget_states(void)
{
	free(seen);
	make_table(STATES_FIRST);
	nr_states = 0;
}

static void make_room(void)
{
	uint64_t *old = seen;
	unsigned long size = seen_size;

	make_table(4 * size);
	for (unsigned long i = 0; i < size; i++)
		if (old[i])
			*place_of(old[i]) = old[i];
	free(old);
}

static bool state_is_new(uint64_t h)
{
	uint64_t *at = place_of(h);

	if (*at)
		return false;
	*at = h;
	if (++nr_states > seen_size / 2)
		make_room();
	return true;
}

#endif /* ROOST_STATES_H */
