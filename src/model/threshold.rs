// SPDX-License-Identifier: GPL-2.0-only
//! Which frequencies are low. A rule gives the same answer for all CPUs, or it is learnt from the
//! frequencies that each CPU was seen at.

use crate::machine::Policies;
use std::fmt;

/// When delay_migration considers a CPU's frequency low. As a tunable it is a number: `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreqRule {
    Off,
    /// Learnt; the lowest frequency until enough samples were seen.
    Auto,
    /// At most this many kHz.
    Khz(u32),
    /// At most this many per cent above the lowest frequency.
    Above(u32),
}

const CODE_AUTO: u32 = 1;
const CODE_ABOVE: u32 = 1 << 31;
/// In kHz.
const LEAST: u32 = 1_000;
const MOST: u32 = 100_000_000;
const MOST_ABOVE: u32 = 1_000;

impl FreqRule {
    pub const DEFAULT: u32 = CODE_AUTO;
    pub const POSSIBLE: &str =
        "off, auto, 1000 to 100000000 kHz, or +0% to +1000% (above the lowest frequency)";

    /// None: not a rule. Numbers have no sign of their own.
    pub fn parse(text: &str) -> Option<FreqRule> {
        let number = |text: &str| -> Option<u32> {
            let digits = text.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        };
        let percent = text.strip_prefix('+').and_then(|t| t.strip_suffix('%'));
        match text {
            "off" => Some(FreqRule::Off),
            "auto" => Some(FreqRule::Auto),
            _ => match percent {
                Some(n) => number(n).filter(|n| *n <= MOST_ABOVE).map(FreqRule::Above),
                None => number(text)
                    .filter(|khz| (LEAST..=MOST).contains(khz))
                    .map(FreqRule::Khz),
            },
        }
    }

    pub fn code(self) -> u32 {
        match self {
            FreqRule::Off => 0,
            FreqRule::Auto => CODE_AUTO,
            FreqRule::Khz(khz) => khz,
            FreqRule::Above(percent) => CODE_ABOVE | percent,
        }
    }

    pub fn of_code(code: u32) -> FreqRule {
        match code {
            0 => FreqRule::Off,
            CODE_AUTO => FreqRule::Auto,
            _ if code & CODE_ABOVE != 0 => FreqRule::Above(code & !CODE_ABOVE),
            khz => FreqRule::Khz(khz),
        }
    }
}

impl fmt::Display for FreqRule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            FreqRule::Off => f.write_str("off"),
            FreqRule::Auto => f.write_str("auto"),
            FreqRule::Khz(khz) => write!(f, "{khz}"),
            FreqRule::Above(percent) => write!(f, "+{percent}%"),
        }
    }
}

const BINS: usize = 32;
/// Samples of a CPU that are enough to learn from.
const ENOUGH: u32 = 100;
/// A bin counts if it holds at least 1/SHARE of the samples.
const SHARE: u32 = 100;
/// A learnt threshold is at most this many per cent of the way from the lowest frequency to the
/// highest.
const FURTHEST: u64 = 25;
/// A threshold moves only after this many looks in a row found a different one.
const LOOKS: u32 = 2;

/// One CPU: its range of frequencies, and how often it was seen in each part of that.
#[derive(Clone, Debug, Default)]
struct Seen {
    least: u32,
    most: u32,
    bins: [u32; BINS],
    samples: u32,
    /// The threshold in force.
    settled: Option<u32>,
    /// Consecutive looks that found another threshold.
    moved: u32,
}

impl Seen {
    fn new(least: u32, most: u32) -> Seen {
        Seen {
            least,
            most,
            ..Seen::default()
        }
    }

    fn range(&self) -> u64 {
        u64::from(self.most.saturating_sub(self.least))
    }

    fn add(&mut self, khz: u32) {
        let above = u64::from(khz.saturating_sub(self.least));
        let bin = (above * BINS as u64).checked_div(self.range()).unwrap_or(0);
        self.bins[(bin as usize).min(BINS - 1)] += 1;
        self.samples += 1;
        // Old samples count less: after a day of idling the machine must still learn from new work.
        if self.samples >= 100 * ENOUGH {
            self.bins.iter_mut().for_each(|n| *n /= 2);
            self.samples = self.bins.iter().sum();
        }
    }

    /// The upper edge of the lowest bin with at least 1/SHARE of the samples, bounded by FURTHEST.
    fn learnt(&self) -> Option<u32> {
        if self.samples < ENOUGH {
            return None;
        }
        let held = |n: &u32| *n > 0 && u64::from(*n) * u64::from(SHARE) >= u64::from(self.samples);
        let lowest = self.bins.iter().position(held).unwrap_or(0) as u64;
        let edge = self.range() * (lowest + 1) / BINS as u64;
        Some(self.least + edge.min(self.range() * FURTHEST / 100) as u32)
    }

    /// The first threshold counts at once. Later ones must differ by more than a bin, for more than
    /// one look. Otherwise a CPU that alternates between two bins would change the policy each
    /// time.
    fn settle(&mut self) {
        let Some(learnt) = self.learnt() else { return };
        let settled = *self.settled.get_or_insert(learnt);
        let far = u64::from(learnt.abs_diff(settled)) * BINS as u64 > self.range();
        self.moved = if far { self.moved + 1 } else { 0 };
        if self.moved >= LOOKS {
            (self.settled, self.moved) = (Some(learnt), 0);
        }
    }

    /// The threshold; 0 for a CPU with a single frequency, which is never low.
    fn low(&self) -> u32 {
        if self.range() == 0 {
            return 0;
        }
        self.settled.unwrap_or(self.least)
    }
}

/// Learns the thresholds of all CPUs, by number.
#[derive(Clone, Debug, Default)]
pub struct Learner {
    cpus: Vec<Seen>,
}

impl Learner {
    pub fn new(policies: &Policies) -> Learner {
        let seen = |cpu| {
            let policy = policies.of(cpu)?;
            Some(Seen::new(policy.min_khz?, policy.max_khz?))
        };
        let seen = |cpu| seen(cpu).unwrap_or_default();
        Learner {
            cpus: (0..policies.cpus.len()).map(seen).collect(),
        }
    }

    /// Adds one sample of each CPU, in kHz; None is skipped.
    pub fn add(&mut self, khz: &[Option<u32>]) {
        for (cpu, khz) in self.cpus.iter_mut().zip(khz) {
            if let Some(khz) = khz.filter(|_| cpu.most > 0) {
                cpu.add(khz);
            }
        }
    }

    /// Called now and then: lets the samples since the last call count.
    pub fn look(&mut self) {
        self.cpus.iter_mut().for_each(Seen::settle);
    }

    /// The threshold of each CPU, in kHz; 0: nothing is low.
    pub fn thresholds(&self, rule: FreqRule) -> Vec<u32> {
        let of = |cpu: &Seen| match rule {
            FreqRule::Off => 0,
            FreqRule::Auto => cpu.low(),
            FreqRule::Khz(khz) => khz,
            FreqRule::Above(percent) => {
                let least = u64::from(cpu.least);
                (least + least * u64::from(percent) / 100).min(MOST.into()) as u32
            }
        };
        self.cpus.iter().map(of).collect()
    }

    /// Converts kHz to parts of `scale`, which stands for the highest frequency. An unknown one
    /// becomes 0.
    pub fn scaled(&self, khz: &[u32], scale: u32) -> Vec<u32> {
        let part = |(cpu, &khz): (&Seen, &u32)| {
            let part = (u64::from(khz) * u64::from(scale)).checked_div(cpu.most.into());
            part.unwrap_or(0).min(scale.into()) as u32
        };
        self.cpus.iter().zip(khz).map(part).collect()
    }

    /// Converts back to kHz.
    pub fn in_khz(&self, parts: &[u32], scale: u32) -> Vec<Option<u32>> {
        let khz = |(cpu, &part): (&Seen, &u32)| {
            let khz = u64::from(part) * u64::from(cpu.most) / u64::from(scale);
            (khz > 0).then_some(khz as u32)
        };
        self.cpus.iter().zip(parts).map(khz).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Policy;

    fn learner(least: u32, most: u32) -> Learner {
        let policy = Policy {
            min_khz: Some(least),
            max_khz: Some(most),
            ..Policy::default()
        };
        Learner::new(&Policies {
            cpus: vec![Some(policy), None],
            odd: vec![],
        })
    }

    fn add(learner: &mut Learner, khz: u32, times: u32) {
        (0..times).for_each(|_| learner.add(&[Some(khz), Some(khz)]));
    }

    fn seen(at: &[(u32, u32)]) -> u32 {
        let mut learner = learner(1_000_000, 4_200_000);
        at.iter()
            .for_each(|&(khz, times)| add(&mut learner, khz, times));
        learner.look();
        learner.thresholds(FreqRule::Auto)[0]
    }

    #[test]
    fn rules_are_read_and_printed_alike() {
        for text in ["off", "auto", "1200000", "+5%", "+0%", "1000"] {
            let rule = FreqRule::parse(text).expect(text);
            assert_eq!(rule.to_string(), text);
            assert_eq!(FreqRule::of_code(rule.code()), rule);
        }
        for text in [
            "",
            "on",
            "5%",
            "+5",
            "+1001%",
            "999",
            "-1",
            "100000001",
            "1.2e6",
            "+1500000",
            "++5%",
        ] {
            assert_eq!(FreqRule::parse(text), None, "{text}");
        }
        assert_eq!(FreqRule::of_code(FreqRule::DEFAULT), FreqRule::Auto);
    }

    #[test]
    fn a_rule_says_what_is_low() {
        let learner = learner(1_200_000, 3_000_000);
        let low = |rule| learner.thresholds(rule);
        assert_eq!(low(FreqRule::Off), [0, 0]);
        assert_eq!(low(FreqRule::Khz(1_500_000)), [1_500_000; 2]);
        assert_eq!(low(FreqRule::Above(5)), [1_260_000, 0]);
        assert_eq!(low(FreqRule::Auto), [1_200_000, 0], "the lowest");
    }

    #[test]
    fn auto_starts_from_the_lowest_frequency() {
        assert_eq!(seen(&[(1_000_000, 99)]), 1_000_000);
        assert_eq!(seen(&[(1_000_000, 100)]), 1_100_000);
    }

    #[test]
    fn auto_learns_where_a_cpu_idles() {
        // Its lowest is 1.25 GHz, whatever cpufreq says.
        assert_eq!(seen(&[(1_250_000, 50), (4_000_000, 150)]), 1_300_000);
        // One sample in a thousand does not count.
        assert_eq!(
            seen(&[(1_000_000, 1), (1_250_000, 500), (4_000_000, 499)]),
            1_300_000
        );
        // The threshold of a CPU that never slows down is at most a quarter of its range.
        assert_eq!(seen(&[(4_200_000, 1000)]), 1_800_000);
    }

    #[test]
    fn what_is_learnt_does_not_flap() {
        let mut learner = learner(1_000_000, 4_200_000);
        let mut told = |khz: u32| {
            // Enough samples that earlier ones are forgotten.
            add(&mut learner, khz, 200_000);
            learner.look();
            learner.thresholds(FreqRule::Auto)[0]
        };
        assert_eq!(told(1_050_000), 1_100_000);
        assert_eq!(told(1_150_000), 1_100_000, "the next bin");
        assert_eq!(told(1_150_000), 1_100_000);
        assert_eq!(told(1_350_000), 1_100_000, "far away, for one look");
        assert_eq!(told(1_150_000), 1_100_000);
        assert_eq!(told(1_350_000), 1_100_000);
        assert_eq!(told(1_350_000), 1_400_000, "far away, for two looks");
        assert_eq!(told(1_050_000), 1_400_000);
        assert_eq!(told(1_050_000), 1_100_000);
    }

    #[test]
    fn one_frequency_is_never_low() {
        let mut learner = learner(2_000_000, 2_000_000);
        add(&mut learner, 2_000_000, 1000);
        learner.look();
        assert_eq!(learner.thresholds(FreqRule::Auto), [0, 0]);
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        assert_eq!(seen(&[(1_000_000, 9_000), (1_500_000, 200_000)]), 1_600_000);
    }

    #[test]
    fn frequencies_as_parts_of_the_highest() {
        let learner = learner(1_000_000, 4_096_000);
        assert_eq!(learner.scaled(&[1_024_000, 1_024_000], 1024), [256, 0]);
        assert_eq!(learner.scaled(&[9_000_000, 1], 1024), [1024, 0]);
        assert_eq!(learner.in_khz(&[256, 256], 1024), [Some(1_024_000), None]);
    }
}
