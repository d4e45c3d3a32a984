// SPDX-License-Identifier: GPL-2.0-only
//! What a CPU is worth while cpufreq keeps it below its highest frequency (kernel: cpufreq_get_pressure()).

use crate::machine::Limit;
use crate::topology_view::count;

/// `whole` is what each CPU is worth at its highest frequency, 0 offline. An online CPU is never worth nothing.
pub fn capacities(whole: &[u16], limits: &[Option<Limit>]) -> Vec<u16> {
    let of = |cpu: usize| match limits.get(cpu).copied().flatten() {
        Some(limit) => held(whole[cpu], limit),
        None => whole[cpu],
    };
    (0..whole.len()).map(of).collect()
}

/// What is to be told if some CPU is worth less `now` than at its best.
pub fn limited(whole: &[u16], now: &[u16]) -> Option<String> {
    let less = |(whole, now): &(&u16, &u16)| now < whole;
    let both = || whole.iter().zip(now);
    let (cpu, (_, worth)) = both().enumerate().find(|(_, c)| less(c))?;
    Some(format!(
        "cpufreq holds {} below the highest frequency, CPU {cpu} to {worth} of {}: a power profile, or cooling (scaling_max_freq)",
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

    #[test]
    fn who_is_limited_is_told() {
        assert_eq!(limited(&[1024, 0], &[1024, 0]), None);
        let text = limited(&[1024, 1000, 0, 1024], &[1024, 250, 0, 1000]).unwrap();
        assert!(
            text.contains("holds 2 CPUs below") && text.contains("CPU 1 to 250 of 1000"),
            "{text}"
        );
    }

    #[test]
    fn an_offline_cpu_stays_nothing_and_who_is_not_limited_is_whole() {
        assert_eq!(capacities(&[0, 512], &[limit(1, 2)]), [0, 512]);
    }
}
