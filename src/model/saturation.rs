// SPDX-License-Identifier: GPL-2.0-only
//! Whether the machine is full, which explains wakeups that find no idle CPU, and long waits.

/// The machine becomes full at this load, in thousandths of the time of all CPUs together.
const FULL_PERMILLE: u32 = 950;
/// It stops being full below this load.
const FREE_PERMILLE: u32 = 900;
/// It must be that busy for this many looks in a row.
const LOOKS: u32 = 3;

#[derive(Default)]
pub struct Saturation {
    full: u32,
}

impl Saturation {
    /// `busy_permille`: how busy all CPUs together were since the last look; None: not known, which
    /// counts as not full.
    pub fn look(&mut self, busy_permille: Option<u32>) {
        let least = if self.saturated() {
            FREE_PERMILLE
        } else {
            FULL_PERMILLE
        };
        self.full = match busy_permille {
            Some(busy) if busy >= least => (self.full + 1).min(LOOKS),
            _ => 0,
        };
    }

    pub fn saturated(&self) -> bool {
        self.full >= LOOKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_for_some_looks_until_it_is_not() {
        let mut saturation = Saturation::default();
        let mut after = |busy: &[u32]| {
            busy.iter().for_each(|&busy| saturation.look(Some(busy)));
            saturation.saturated()
        };
        assert!(!after(&[1000, 1000, 949, 1000, 950]));
        assert!(after(&[950]));
        assert!(after(&[900, 1000, 901]));
        assert!(!after(&[899]));
        assert!(!after(&[1000, 1000]));
        assert!(after(&[1000]));
        saturation.look(None);
        assert!(!saturation.saturated());
    }
}
