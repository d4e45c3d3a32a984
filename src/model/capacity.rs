// SPDX-License-Identifier: GPL-2.0-only
//! The capacity of a CPU while cpufreq keeps it below its highest frequency (kernel:
//! cpufreq_get_pressure()).

use crate::machine::Limit;
use crate::util::text::count;
use std::collections::VecDeque;

/// `whole` is the capacity of each CPU at its highest frequency, 0 if offline. The result for an
/// online CPU is at least 1.
pub fn capacities(whole: &[u16], limits: &[Option<Limit>]) -> Vec<u16> {
    let of = |cpu: usize| match limits.get(cpu).copied().flatten() {
        Some(limit) => held(whole[cpu], limit),
        None => whole[cpu],
    };
    (0..whole.len()).map(of).collect()
}

/// A higher capacity, or a slightly lower one, must be seen in this many looks in a row before it
/// counts. Cooling that alternates every second thus keeps the lower value, without constant
/// changes.
const LOOKS: usize = 5;
/// A fall by at least 1/LARGE of the current value counts at once.
const LARGE: u16 = 20;

/// The capacities in force, by CPU number: a fall counts at once, a rise after a while.
pub struct Settled {
    capacity: Vec<u16>,
    /// The last looks.
    seen: VecDeque<Vec<u16>>,
}

impl Settled {
    pub fn new(capacity: Vec<u16>) -> Settled {
        Settled {
            seen: std::iter::repeat_n(capacity.clone(), LOOKS).collect(),
            capacity,
        }
    }

    pub fn capacity(&self) -> &[u16] {
        &self.capacity
    }

    /// `now`: the capacity of each CPU.
    pub fn look(&mut self, now: Vec<u16>) {
        self.seen.pop_front();
        self.seen.push_back(now);
        for (cpu, capacity) in self.capacity.iter_mut().enumerate() {
            let seen = || self.seen.iter().map(|look| look[cpu]);
            let (least, most) = (seen().min().unwrap_or(0), seen().max().unwrap_or(0));
            let large = least + (*capacity / LARGE).max(1) <= *capacity;
            if large || most < *capacity || least > *capacity {
                *capacity = least;
            }
        }
    }
}

/// A sentence for people, if some CPU's capacity is less `now` than at its best.
pub fn limited(whole: &[u16], now: &[u16]) -> Option<String> {
    let less = |(whole, now): &(&u16, &u16)| now < whole;
    let both = || whole.iter().zip(now);
    let (cpu, (_, capacity)) = both().enumerate().find(|(_, c)| less(c))?;
    Some(format!(
        "cpufreq keeps {} below the highest frequency, CPU {cpu} at {capacity} of {}: a power profile, or cooling (scaling_max_freq)",
        count(both().filter(less).count(), "CPU"),
        whole[cpu]
    ))
}

fn held(whole: u16, limit: Limit) -> u16 {
    let part = u64::from(whole) * u64::from(limit.now_khz) / u64::from(limit.most_khz.max(1));
    (part as u16).clamp(whole.min(1), whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(now_khz: u32, most_khz: u32) -> Option<Limit> {
        Some(Limit { now_khz, most_khz })
    }

    #[test]
    fn as_much_less_as_the_frequency() {
        let limits = [
            None,
            limit(3_000_000, 3_000_000),
            limit(1_500_000, 3_000_000),
            limit(1_000_000, 3_000_000),
            limit(4_000_000, 3_000_000),
            limit(0, 3_000_000),
            limit(7, 0),
        ];
        let whole = [1024, 1024, 1024, 600, 1024, 1024, 1024];
        assert_eq!(
            capacities(&whole, &limits),
            [1024, 1024, 512, 200, 1024, 1, 1024]
        );
    }

    /// The value in force after each of these looks.
    fn counts(settled: &mut Settled, looks: &[u16]) -> Vec<u16> {
        let look = |&now: &u16| {
            settled.look(vec![now]);
            settled.capacity()[0]
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn a_large_fall_counts_at_once_and_a_return_after_some_looks() {
        let mut settled = Settled::new(vec![1000]);
        assert_eq!(counts(&mut settled, &[950]), [950]);
        assert_eq!(counts(&mut settled, &[500, 1000]), [500, 500]);
        let back = counts(&mut settled, &[1000; 5]);
        assert_eq!(back, [500, 500, 500, 1000, 1000]);
    }

    #[test]
    fn what_flaps_stays_down() {
        let mut settled = Settled::new(vec![1000]);
        let all = counts(
            &mut settled,
            &[1000, 600, 1000, 1000, 600, 1000, 800, 1000, 600],
        );
        assert_eq!(all, [1000, 600, 600, 600, 600, 600, 600, 600, 600]);
        assert_eq!(counts(&mut settled, &[1000, 800, 900, 1000])[3], 600);
        assert_eq!(counts(&mut settled, &[1000]), [800], "the lowest of them");
    }

    #[test]
    fn a_small_fall_waits() {
        let mut settled = Settled::new(vec![1000]);
        let all = counts(&mut settled, &[960, 1000, 960, 970, 965, 960]);
        assert_eq!(all, [1000; 6]);
        assert_eq!(counts(&mut settled, &[980, 960]), [960, 960]);
        assert_eq!(counts(&mut settled, &[913, 960, 914]), [960; 3]);
        assert_eq!(counts(&mut settled, &[912]), [912]);
    }

    #[test]
    fn an_offline_cpu_and_the_least_stay() {
        let mut settled = Settled::new(vec![0, 1]);
        settled.look(vec![0, 1]);
        assert_eq!(settled.capacity(), [0, 1]);
    }

    #[test]
    fn a_limited_cpu_is_reported() {
        assert_eq!(limited(&[1024, 0], &[1024, 0]), None);
        let text = limited(&[1024, 1000, 0, 1024], &[1024, 250, 0, 1000]).unwrap();
        assert!(
            text.contains("keeps 2 CPUs below") && text.contains("CPU 1 at 250 of 1000"),
            "{text}"
        );
    }

    #[test]
    fn an_offline_cpu_stays_at_zero_and_an_unlimited_one_at_its_capacity() {
        assert_eq!(capacities(&[0, 512], &[limit(1, 2)]), [0, 512]);
    }
}
