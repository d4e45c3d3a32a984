// SPDX-License-Identifier: GPL-2.0-only
//! Random numbers from a seed: splitmix64.

pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0..end
    pub fn below(&mut self, end: usize) -> usize {
        assert!(end > 0);
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// from..=to
    pub fn within(&mut self, from: usize, to: usize) -> usize {
        from + self.below(to - from + 1)
    }

    /// True in `percent` of the cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// 1 up to `most`, small numbers as likely as large ones.
    pub fn scale(&mut self, most: usize) -> usize {
        let bits = usize::BITS - most.leading_zeros();
        let top = self.within(1, bits as usize);
        self.within(1, most.min((1 << top) - 1))
    }
}
