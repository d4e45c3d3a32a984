// SPDX-License-Identifier: GPL-2.0-only
//! How many CPUs of a cache a wakeup's scan should visit. The shorter the idle periods, the sooner
//! a scan costs more than the idle time that it finds (kernel until 6.6: SIS_PROP in
//! select_idle_cpu()).

/// A scan may cost 1/PART of a mean idle period. From the kernel, which calls it a fuzz factor:
/// periods vary much.
const PART: u64 = 512;
/// A scan of fewer CPUs finds too little. From the kernel.
const LEAST: u64 = 4;
/// Estimated cost of visiting one CPU: reading a run queue that its own CPU wrote last.
/// docs/reference/features/avg_idle.md has the reasons.
const VISIT_NS: u64 = 50;

/// The number of CPUs to visit in one cache, from the mean idle period of each of its CPUs, in ns.
/// At least four, or all if there are fewer. 0: the cache has no CPU.
pub fn scan_worth(means: &[u64]) -> u32 {
    let size = means.len() as u64;
    let sum = means
        .iter()
        .fold(0u64, |sum, mean| sum.saturating_add(*mean));
    let mean = sum.checked_div(size).unwrap_or(0);
    // size * mean / PART / cost of the whole cache, which is size * VISIT_NS
    let worth = mean / (PART * VISIT_NS);
    worth.max(LEAST).min(size) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSEC: u64 = 1_000_000;

    #[test]
    fn an_empty_cache_is_worth_nothing() {
        assert_eq!(scan_worth(&[]), 0);
    }

    #[test]
    fn a_cache_of_four_or_less_is_searched_whole() {
        for size in 1..=4 {
            assert_eq!(scan_worth(&vec![0; size]), size as u32);
            assert_eq!(scan_worth(&vec![MSEC; size]), size as u32);
        }
    }

    #[test]
    fn short_idle_periods_leave_four_cpus() {
        for mean in [0, 1, 25_600, 4 * 25_600, 5 * 25_600 - 1] {
            assert_eq!(scan_worth(&[mean; 16]), 4, "{mean}");
        }
    }

    #[test]
    fn long_idle_periods_leave_all() {
        assert_eq!(scan_worth(&[16 * 25_600; 16]), 16);
        assert_eq!(scan_worth(&[MSEC; 16]), 16);
        assert_eq!(scan_worth(&[u64::MAX; 1024]), 1024);
    }

    /// 25.6 us for each CPU.
    #[test]
    fn between_them_in_proportion() {
        assert_eq!(scan_worth(&[5 * 25_600; 16]), 5);
        assert_eq!(scan_worth(&[11 * 25_600 + 25_599; 16]), 11);
        assert_eq!(scan_worth(&[MSEC; 64]), 39);
    }

    #[test]
    fn the_mean_is_over_all_cpus_of_the_cache() {
        let mut means = [0; 16];
        means[3] = 16 * 9 * 25_600;
        assert_eq!(scan_worth(&means), 9);
        means.reverse();
        assert_eq!(scan_worth(&means), 9);
    }

    #[test]
    fn longer_periods_are_never_worth_less() {
        for size in [1, 5, 16, 100] {
            let worth = (0..2000).map(|step| scan_worth(&vec![step * 997; size]));
            let worth: Vec<u32> = worth.collect();
            assert!(worth.is_sorted(), "{size}");
            assert!(worth[0] < worth[1999] || size < 5, "{size}");
        }
    }
}
