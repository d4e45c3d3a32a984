// SPDX-License-Identifier: GPL-2.0-only
//! An input read as a sequence of choices. After its end each choice is the first, so a shorter
//! input is a simpler one.

pub struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub fn new(input: &'a [u8]) -> Bytes<'a> {
        Bytes(input)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// 0..end; `end` is at most 1 << 16.
    pub fn below(&mut self, end: usize) -> usize {
        match end {
            0..=256 => usize::from(self.byte()) % end.max(1),
            _ => usize::from(u16::from_le_bytes(self.bytes())) % end,
        }
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 != 0
    }

    /// Any number. More often than others a number near a bound: 0, `base`, or the range of a type.
    pub fn number(&mut self, base: u64) -> u64 {
        let near = |of: u64, by: u64| of.wrapping_add(by);
        match self.byte() % 12 {
            0 => 0,
            1 => u64::from(self.byte()),
            2 => near(base, u64::from(u32::from_le_bytes(self.bytes()))),
            3 => near(
                base,
                u64::from(u32::from_le_bytes(self.bytes())).wrapping_neg(),
            ),
            4 => near(base, u64::from(self.byte()).wrapping_sub(128)),
            5 => near(1 << 31, u64::from(self.byte()).wrapping_sub(128)),
            6 => near(1 << 32, u64::from(self.byte()).wrapping_sub(128)),
            7 => near(1 << 63, u64::from(self.byte()).wrapping_sub(128)),
            8 => u64::from(self.byte()).wrapping_neg(),
            9 => 1 << (self.byte() % 64),
            10 => u64::from(u32::from_le_bytes(self.bytes())),
            _ => u64::from_le_bytes(self.bytes()),
        }
    }
}
