// SPDX-License-Identifier: GPL-2.0-only
//! The statistics of a scheduler that does not run: a machine of four CPUs, two arms, and counters
//! of a given value.

use scx_roost::wire::socket::Server;
use scx_roost::wire::stats::host::{Condition, CpuGauges, Event, Gauges};
use scx_roost::wire::stats::snapshot::ArmShown;
use scx_roost::wire::stats::source::{Counted, CounterSource, Counting, Running};
use scx_roost::wire::stats::{ArmCounts, Counters, NR_STATS, ROWS, server};
use std::path::Path;

/// Counters that stay 0 while nothing is wrong.
pub const MUST_BE_ZERO: [&str; 2] = ["claim_lost", "no_task_ctx"];

pub struct FakeDaemon {
    pub source: CounterSource,
    _counting: Counting,
    _server: Server,
}

struct Fake(Box<dyn Fn() -> u64 + Send>);

impl Fake {
    /// Every counter has the same value, except those that must be zero.
    fn counters(&self, factor: u64) -> Counters {
        let count = (self.0)() * factor;
        std::array::from_fn(|i| {
            let zero = MUST_BE_ZERO.contains(&ROWS[i].name);
            if zero { 0 } else { count }
        })
    }
}

impl Counted for Fake {
    /// Slot n counts n + 1 times as much. Half of the times are in the first bucket, a quarter in
    /// the second, and so on.
    fn read(&self, slot: usize) -> ArmCounts {
        let mut counts = ArmCounts {
            counters: self.counters(slot as u64 + 1),
            ..ArmCounts::default()
        };
        let count = counts.counters[0];
        for (hist, sum) in counts.hists.iter_mut().zip(&mut counts.sums) {
            for (i, bucket) in hist.iter_mut().enumerate() {
                *bucket = count >> (i + 1);
                *sum += *bucket * (1500 << i);
            }
        }
        counts
    }

    fn read_cpu(&self, _cpu: usize) -> Counters {
        debug_assert_eq!(ROWS.len(), NR_STATS);
        self.counters(1)
    }
}

fn arm(slot: usize, name: &str, preset: &str, features: &str) -> ArmShown {
    ArmShown {
        slot,
        name: name.into(),
        profile: String::new(),
        preset: preset.into(),
        features: features.into(),
    }
}

/// Two cores in each of two caches. The frequency of the last CPU is unknown.
fn cpu(number: u64) -> (usize, CpuGauges) {
    let gauges = CpuGauges {
        core: number,
        llc: number / 2,
        capacity: 1024,
        capacity_now: 1024 - 100 * number,
        khz: (3 - number) * 1_000_000,
        min_khz: 500_000,
        max_khz: 4_000_000,
        threshold_khz: 1_500_000,
        busy_permille: 250 * number,
        idle_mean_us: 150,
        ..CpuGauges::default()
    };
    (number as usize, gauges)
}

impl FakeDaemon {
    pub fn serve(path: &Path, count: impl Fn() -> u64 + Send + 'static) -> FakeDaemon {
        let source = CounterSource::default();
        FakeDaemon::set_arms(&source, &["default", "games"]);
        source.set_cpus((0..4).map(cpu).collect(), None);
        source.set_governor("schedutil");
        source.set_gauges(Gauges {
            period_ms: 100,
            cpus_online: 4,
            busy_permille: 700,
            saturated: 0,
            psi_cpu_some_permille: 12,
            resident_kb: 16,
        });
        source.event(Event::PolicyPublished);
        source.set_condition(
            Condition::CapacityLimited,
            Some("CPU 3: 724 of 1024".into()),
        );
        let running = Running {
            cpuperf: "util".into(),
            restarts: 2,
        };
        source.begin(1_790_000_000);
        let counting = source.attach(Box::new(Fake(Box::new(count))), running);
        let server = server::launch(path, None, source.clone()).expect("a server");
        FakeDaemon {
            source,
            _counting: counting,
            _server: server,
        }
    }

    pub fn set_arms(source: &CounterSource, names: &[&str]) {
        let arms = names.iter().enumerate();
        let arms = arms.map(|(slot, name)| match slot {
            0 => arm(slot, name, "roost", "prev_idle wide_idle"),
            _ => arm(slot, name, "mainline", "prev_idle"),
        });
        source.set_arms(arms.collect());
    }
}
