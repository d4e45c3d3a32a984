// SPDX-License-Identifier: GPL-2.0-only
//! The live view: pictures of described machines, what keys do, and the binary on a terminal of ours.

mod pictures;
mod pty;
mod random;
mod server;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use scx_roost::features::preset;
use scx_roost::monitor::draw::frame;
use scx_roost::monitor::draw::theme::Theme;
use scx_roost::monitor::sample::Sample;
use scx_roost::monitor::state::State;
use scx_roost::stats::host::{CpuGauges, CpuMetrics, CpusMetrics};
use scx_roost::stats::{ArmMetrics, CounterFields, Metrics, NR_BUCKETS, NR_STATS};
use std::time::Duration;

pub const THEME: Theme = Theme {
    color: true,
    utf8: true,
};

/// A regular machine: so many of each in the one before.
#[derive(Clone, Copy)]
pub struct Shape {
    pub nodes: u64,
    pub llcs: u64,
    pub cores: u64,
    pub threads: u64,
    /// Some frequencies are known.
    pub khz: bool,
}

pub const ONE: Shape = Shape {
    nodes: 1,
    llcs: 1,
    cores: 1,
    threads: 1,
    khz: false,
};
pub const EIGHT: Shape = Shape {
    cores: 4,
    threads: 2,
    khz: true,
    ..ONE
};
/// A Threadripper 3970X: eight caches of four cores.
pub const THREADRIPPER: Shape = Shape { llcs: 8, ..EIGHT };
pub const LARGE: Shape = Shape {
    nodes: 4,
    llcs: 16,
    cores: 8,
    threads: 2,
    khz: true,
};

impl Shape {
    /// As the machine is after so many seconds.
    pub fn sample(&self, seconds: u64) -> Sample {
        let cpus = CpusMetrics {
            running: 1,
            cpus: self.cpus(seconds),
        };
        let mut totals = metrics(seconds);
        totals.gauges.cpus_online = cpus.cpus.len() as u64;
        let busy = cpus.cpus.values().map(|c| c.gauges.busy_permille);
        totals.gauges.busy_permille = busy.sum::<u64>() / cpus.cpus.len() as u64;
        Sample::new(Duration::from_secs(seconds), totals, cpus)
    }

    fn cpus(&self, seconds: u64) -> std::collections::BTreeMap<u64, CpuMetrics> {
        let cores = self.nodes * self.llcs * self.cores;
        let cpu = |id: u64| {
            let core = id % cores;
            let busy = busy(id);
            let gauges = CpuGauges {
                core,
                llc: core / self.cores,
                node: core / self.cores / self.llcs,
                capacity: 1024,
                capacity_now: if core == 2 { 900 } else { 1024 },
                khz: if self.khz {
                    2_200_000 + core % 4 * 600_000
                } else {
                    0
                },
                min_khz: if self.khz { 2_200_000 } else { 0 },
                max_khz: if self.khz { 4_500_000 } else { 0 },
                threshold_khz: if self.khz { 2_300_000 } else { 0 },
                busy_permille: busy,
                idle_mean_us: 40 + 10 * (id % 7),
            };
            let counters = std::array::from_fn(|i| (busy + i as u64) % 50 * seconds);
            let metrics = CpuMetrics {
                gauges,
                counters: CounterFields::new(&counters),
            };
            (id, metrics)
        };
        (0..cores * self.threads).map(cpu).collect()
    }
}

/// Half of the CPUs do nothing.
fn busy(cpu: u64) -> u64 {
    if cpu % 2 == 0 { 0 } else { cpu * 137 % 1001 }
}

/// Two arms, one condition.
pub fn metrics(seconds: u64) -> Metrics {
    let roost = preset("roost").unwrap().features.to_string();
    let mainline = preset("mainline").unwrap().features.to_string();
    let mut metrics = Metrics {
        preset: "roost".into(),
        features: roost.clone(),
        governor: "schedutil".into(),
        cpuperf: "util".into(),
        freq_source: "cpuperf".into(),
        running: 1,
        ..Metrics::default()
    };
    let counters: [u64; NR_STATS] = std::array::from_fn(|i| (i as u64 * 7919 % 4001) * seconds);
    metrics.set_counters(&counters);
    metrics
        .arms
        .insert("default".into(), arm("roost", &roost, 3, seconds));
    metrics
        .arms
        .insert("games".into(), arm("mainline", &mainline, 1, seconds));
    for condition in scx_roost::stats::host::Condition::ALL {
        metrics
            .conditions
            .insert(condition.name().into(), Default::default());
    }
    let limited = metrics.conditions.get_mut("capacity_limited").unwrap();
    (limited.active, limited.count) = (1, 2);
    limited.text = "CPU 2 has 900 of 1024: it is cooled, or cpufreq's limit is low".into();
    metrics.events.periods = 10 * seconds;
    metrics.gauges.period_ms = 100;
    metrics.gauges.resident_kb = 14_200;
    metrics.gauges.psi_cpu_some_permille = 12;
    metrics
}

fn arm(preset: &str, features: &str, share: u64, seconds: u64) -> ArmMetrics {
    let bucket = |b: usize| match b {
        0..=9 => [40, 220, 310, 180, 90, 33, 12, 4, 0, 1][b] * share * 5 * seconds,
        _ => 0,
    };
    let mut arm = ArmMetrics {
        preset: preset.into(),
        features: features.into(),
        ..ArmMetrics::default()
    };
    arm.histograms.wakeup_latency = (0..NR_BUCKETS).map(bucket).collect();
    arm.counters.placed_prev = 3000 * share * seconds;
    arm.counters.placed_idle_core = 2500 * seconds;
    arm.counters.placed_other_llc = 200 * seconds;
    arm.counters.sis_none = 50 * seconds;
    arm.counters.preempt_wakeup = 17 * seconds;
    arm
}

/// After three samples.
pub fn state_of(shape: Shape) -> State {
    let mut state = State::new(Duration::from_secs(1));
    state.connected();
    for seconds in 1..=3 {
        state.sampled(shape.sample(seconds));
    }
    state
}

/// What is to be seen on a terminal of that size, line by line.
pub fn picture_in(state: &State, width: u16, height: u16, theme: Theme) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|f| frame(f, state, theme)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells = buffer.content().chunks(usize::from(width).max(1));
    let line = |cells: &[ratatui::buffer::Cell]| {
        let line: String = cells.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_string()
    };
    cells.map(line).collect()
}

pub fn picture(state: &State, width: u16, height: u16) -> Vec<String> {
    picture_in(state, width, height, THEME)
}
