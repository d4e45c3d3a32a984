// SPDX-License-Identifier: GPL-2.0-only
//! Random numbers, the same for the same seed on every host (splitmix64; Steele, Lea, Flood 2014).

pub struct Rng(u64);

impl Rng {
    #[cfg(feature = "internals")]
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// An independent stream for each number.
    pub fn stream(seed: u64, number: u64) -> Rng {
        let of_seed = Rng(seed).next();
        Rng(Rng(of_seed ^ number).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in 0..end; `end` must be above 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }

    /// Uniform in (0, 1].
    #[cfg(feature = "internals")]
    pub fn part(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}
