// SPDX-License-Identifier: GPL-2.0-only
//! The live view: pictures of described machines, the effects of keys, and the binary on a pseudo
//! terminal.

mod arrows;
mod pictures;
mod pty;
mod random;
mod server;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use scx_roost::clients::monitor::draw::frame;
use scx_roost::clients::monitor::draw::theme::Theme;
use scx_roost::clients::monitor::sample::Sample;
use scx_roost::clients::monitor::state::MonitorState;
use scx_roost::policy::features::preset;
use scx_roost::wire::stats::host::{Condition, CpuGauges, CpuMetrics, CpusMetrics};
use scx_roost::wire::stats::snapshot::ArmShown;
use scx_roost::wire::stats::source::CounterSource;
use scx_roost::wire::stats::{ArmMetrics, CounterFields, Metrics, NR_BUCKETS, NR_STATS, ROWS};
use std::time::Duration;

pub const THEME: Theme = Theme {
    color: true,
    utf8: true,
};

/// One arm, and all counters 0.
fn source() -> CounterSource {
    let source = CounterSource::default();
    source.set_arms(vec![ArmShown {
        name: "default".into(),
        preset: "roost".into(),
        features: "prev_idle".into(),
        ..ArmShown::default()
    }]);
    source
}

/// A regular machine. Each number is per unit of the one before: LLCs per node and so on.
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
    /// The statistics of the machine after `seconds`.
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
            let metrics = CpuMetrics {
                gauges,
                counters: counters(busy / 300, seconds),
            };
            (id, metrics)
        };
        (0..cores * self.threads).map(cpu).collect()
    }
}

/// Half of the CPUs do nothing.
fn busy(cpu: u64) -> u64 {
    if cpu.is_multiple_of(2) {
        0
    } else {
        cpu * 137 % 1001
    }
}

/// Events per second on arm default.
const HAPPENS: &[(&str, u64)] = &[
    ("wa_sync", 310),
    ("wa_prev_idle", 7420),
    ("wa_weight_this", 640),
    ("wa_weight_prev", 980),
    ("wa_wide", 120),
    ("wa_same", 1250),
    ("prev_core", 2630),
    ("sis_target", 4110),
    ("sis_prev", 3350),
    ("core_first", 860),
    ("sis_recent", 410),
    ("sis_core", 1390),
    ("sis_cpu", 570),
    ("sis_none", 240),
    ("wide_node", 180),
    ("sync_local", 470),
    ("fork_idle", 96),
    ("claim_set", 12_300),
    ("claim_seen", 31),
    ("placed_prev", 6900),
    ("placed_idle_core", 8120),
    ("placed_other_llc", 730),
    ("enq_idle", 13_100),
    ("enq_queued", 260),
    ("preempt_wakeup", 17),
    ("dispatch_own", 250),
    ("dispatch_steal_llc", 8),
    ("dispatch_keep", 44),
    ("dispatch_none", 12_900),
    ("avg_idle_wakeup", 12_800),
    ("timer_start", 230),
    ("cpuperf_set", 1900),
];

/// Counters after `seconds`. The rates change a little each second.
fn counters(share: u64, seconds: u64) -> CounterFields {
    let mut all = [0; NR_STATS];
    for (place, (name, count)) in HAPPENS.iter().enumerate() {
        let row = ROWS.iter().position(|row| row.name == *name).unwrap();
        all[row] = (1..=seconds)
            .map(|s| count * share * (10 + (s * 7 + place as u64) % 5) / 30)
            .sum();
    }
    CounterFields::new(&all)
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
    let arms = [
        ("default", "roost", &roost, 3),
        ("games", "mainline", &mainline, 1),
    ];
    let mut sum = [0; NR_STATS];
    for (name, preset, features, share) in arms {
        let arm = arm(preset, features, share, seconds);
        sum = scx_roost::wire::stats::add(&sum, &arm.counters());
        metrics.arms.insert(name.into(), arm);
    }
    metrics.set_counters(&sum);
    for condition in Condition::ALL {
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
    const BUCKETS: [u64; 10] = [160, 890, 1250, 730, 360, 130, 48, 16, 0, 2];
    let bucket = |b: usize| BUCKETS.get(b).map_or(0, |n| n * share * seconds * 4 / 3);
    let mut arm = ArmMetrics {
        preset: preset.into(),
        features: features.into(),
        counters: counters(share, seconds),
        ..ArmMetrics::default()
    };
    arm.histograms.wakeup_latency = (0..NR_BUCKETS).map(bucket).collect();
    arm
}

/// The view after half a minute.
pub fn state_of(shape: Shape) -> MonitorState {
    let mut state = MonitorState::new(Duration::from_secs(1));
    state.connected();
    for seconds in 1..=30 {
        state.sampled(shape.sample(seconds));
    }
    state
}

/// What a terminal of this size shows, line by line.
pub fn picture_in(state: &MonitorState, width: u16, height: u16, theme: Theme) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|f| frame(f, state, theme)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells = buffer.content().chunks(usize::from(width).max(1));
    let line = |cells: &[ratatui::buffer::Cell]| {
        let line: String = cells.iter().map(Cell::symbol).collect();
        line.trim_end().to_string()
    };
    cells.map(line).collect()
}

pub fn picture(state: &MonitorState, width: u16, height: u16) -> Vec<String> {
    picture_in(state, width, height, THEME)
}
