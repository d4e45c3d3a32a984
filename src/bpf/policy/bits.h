/* SPDX-License-Identifier: GPL-2.0-only */
/* Bits of words. BPF has no instructions for these, and its compiler has no builtins. */
#ifndef ROOST_BITS_H
#define ROOST_BITS_H

#include "port.h"

/* Index of the lowest set bit of @word, which must not be 0: a lookup by a de Bruijn sequence. */
static __always_inline u32 lowest_bit(u64 word)
{
	static const u8 index_of[WORD_BITS] = {
		0,  1,	2,  53, 3,  7,	54, 27, 4,  38, 41, 8,	34, 55, 48, 28,
		62, 5,	39, 46, 44, 42, 22, 9,	24, 35, 59, 56, 49, 18, 29, 11,
		63, 52, 6,  26, 37, 40, 33, 47, 61, 45, 43, 21, 23, 58, 17, 10,
		51, 25, 36, 32, 60, 20, 57, 16, 50, 31, 19, 15, 30, 14, 13, 12,
	};

	return index_of[((word & -word) * 0x022fdd63cc95386dULL) >> 58];
}

static __always_inline u32 count_bits(u64 word)
{
	word -= (word >> 1) & 0x5555555555555555ULL;
	word = (word & 0x3333333333333333ULL) + ((word >> 2) & 0x3333333333333333ULL);
	word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return (word * 0x0101010101010101ULL) >> 56;
}

static __always_inline u64 bit_of(u32 pos)
{
	return 1ULL << (pos % WORD_BITS);
}

#endif /* ROOST_BITS_H */
