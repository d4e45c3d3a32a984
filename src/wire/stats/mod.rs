// SPDX-License-Identifier: GPL-2.0-only
//! Statistics. `Counters` is what the BPF half counted since it was loaded. `Metrics` is what a
//! client gets: counters or their growth since its last request, and what runs. Both have one field
//! per row of src/bpf/stats.tbl.h. The tables of the daemon's own statistics are in `host`. Clients
//! see 0 or an empty text in fields that a scheduler of another version does not send.

pub mod client;
pub mod deltas;
pub mod host;
pub mod monitor;
pub mod server;
pub mod snapshot;
pub mod source;
pub mod view;

use crate::bpf::intf;
use anyhow::Result;
use host::{ConditionMetrics, CpuGauges, CpuMetrics, CpusMetrics, Events, Gauges};
use scx_stats::prelude::*;
use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::slice::from_ref;

/// Indexed by enum roost_stat.
pub type Counters = [u64; NR_STATS];

/// Indexed by bucket (src/bpf/hist.tbl.h).
pub type Histogram = [u64; NR_BUCKETS];

pub const NR_BUCKETS: usize = intf::NR_HIST_BUCKETS as usize;

/// The counters and histograms of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct ArmCounts {
    pub counters: Counters,
    /// Indexed by enum roost_hist.
    pub hists: [Histogram; NR_HISTS],
    /// Sum of the times in each histogram, in ns.
    pub sums: [u64; NR_HISTS],
}

impl Default for ArmCounts {
    fn default() -> ArmCounts {
        ArmCounts {
            counters: [0; NR_STATS],
            hists: [[0; NR_BUCKETS]; NR_HISTS],
            sums: [0; NR_HISTS],
        }
    }
}

impl ArmCounts {
    fn with(&self, other: &ArmCounts, each: impl Fn(u64, u64) -> u64) -> ArmCounts {
        ArmCounts {
            counters: std::array::from_fn(|i| each(self.counters[i], other.counters[i])),
            hists: std::array::from_fn(|h| {
                std::array::from_fn(|b| each(self.hists[h][b], other.hists[h][b]))
            }),
            sums: std::array::from_fn(|h| each(self.sums[h], other.sums[h])),
        }
    }

    pub fn plus(&self, other: &ArmCounts) -> ArmCounts {
        self.with(other, u64::wrapping_add)
    }

    /// Growth from `old` to `self`.
    pub fn since(&self, old: &ArmCounts) -> ArmCounts {
        self.with(old, u64::saturating_sub)
    }
}

/// Upper end in us of the bucket that contains quantile `share` (0 to 1); 0 without events.
pub fn quantile_us(hist: &Histogram, share: f64) -> u64 {
    // Of any server: the sum may exceed a u64.
    let all: u128 = hist.iter().map(|n| u128::from(*n)).sum();
    let rank = (all as f64 * share).ceil().max(1.0) as u128;
    let mut seen = 0;
    let reached = |n: &u64| {
        seen += u128::from(*n);
        seen >= rank
    };
    let bucket = hist.iter().position(reached);
    bucket.map_or(0, |i| (1024u64 << (i + 1)) / 1000)
}

/// A row of src/bpf/stats.tbl.h.
pub struct Row {
    pub name: &'static str,
    /// The part of the scheduler that counts it.
    pub group: &'static str,
    /// Counted for the machine, not by arm. Counters by arm hold it with the first arm, but it says
    /// nothing about that arm.
    pub machine: bool,
    pub help: &'static str,
}

macro_rules! stat_table {
    ($($name:ident, $index:ident, $group:literal, $machine:literal, $help:tt;)*) => {
        pub const ROWS: &[Row] =
            &[$(Row { name: stringify!($name), group: $group, machine: $machine, help: $help }),*];

        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
        #[serde(default)]
        #[stat(top, desc = "scx_roost: counts since the last request, and the current state", _om_prefix = "roost_")]
        pub struct Metrics {
            #[stat(desc = "the same per arm, by name", _om_skip)]
            pub arms: BTreeMap<String, ArmMetrics>,
            #[stat(desc = "states that may need action, by name")]
            pub conditions: BTreeMap<String, ConditionMetrics>,
            #[stat(desc = "events of the daemon")]
            #[serde(flatten)]
            pub events: Events,
            #[stat(desc = "the current state of the machine and the daemon")]
            #[serde(flatten)]
            pub gauges: Gauges,
            #[stat(desc = "version of the scheduler")]
            pub version: String,
            #[stat(desc = "profile of arm default, and what auto stands for now; empty: none")]
            pub profile: String,
            #[stat(desc = "preset, and what differs from it, as a variant of ab: roost+claim=off")]
            pub preset: String,
            #[stat(desc = "features that are on")]
            pub features: String,
            #[stat(desc = "cpufreq governors of the machine")]
            pub governor: String,
            #[stat(desc = "frequency requests of the scheduler: off or util")]
            pub cpuperf: String,
            #[stat(desc = "source of the CPUs' frequencies: none, cpuperf, a file of cpufreq, or a folder")]
            pub freq_source: String,
            #[stat(desc = "when the scheduler was started, in seconds since 1970")]
            pub start_time_s: u64,
            #[stat(desc = "restarts that added a CPU which was offline at the load")]
            pub restarts: u64,
            #[stat(desc = "1 while the scheduler is loaded; 0 before the first load and during a restart")]
            pub running: u64,
            #[stat(desc = "time that the counters cover, in milliseconds")]
            pub interval_ms: u64,
            $(#[stat(desc = $help)] pub $name: u64,)*
        }

        impl Metrics {
            /// True if a scheduler is loaded or was.
            pub fn was_loaded(&self) -> bool {
                self.running == 1 || !self.preset.is_empty()
            }

            pub fn counters(&self) -> Counters {
                let mut counters = [0; NR_STATS];
                $(counters[intf::$index as usize] = self.$name;)*
                counters
            }

            pub fn set_counters(&mut self, counters: &Counters) {
                $(self.$name = counters[intf::$index as usize];)*
            }
        }

        impl CounterFields {
            pub fn new(counters: &Counters) -> CounterFields {
                CounterFields { $($name: counters[intf::$index as usize],)* }
            }

            pub fn counters(&self) -> Counters {
                let mut counters = [0; NR_STATS];
                $(counters[intf::$index as usize] = self.$name;)*
                counters
            }
        }

        impl ArmMetrics {
            pub fn counters(&self) -> Counters {
                self.counters.counters()
            }

            pub fn set(&mut self, counts: &ArmCounts) {
                self.counters = CounterFields::new(&counts.counters);
                self.set_hists(&counts.hists);
                self.set_sums(&counts.sums);
            }
        }

        /// The counters of an arm or a CPU.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
        #[serde(default)]
        #[stat(desc = "counters of an arm or a CPU")]
        pub struct CounterFields {
            $(#[stat(desc = $help)] pub $name: u64,)*
        }
    };
}

macro_rules! hist_table {
    ($($name:ident, $sum:ident, $index:ident, $help:tt, $sum_help:tt;)*) => {
        /// Names of the histograms.
        pub const HISTS: &[&str] = &[$(stringify!($name)),*];
        pub const HIST_HELPS: &[&str] = &[$($help),*];

        /// The histograms of one arm.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
        #[serde(default)]
        #[stat(desc = "histograms of an arm: bucket i counts times from 2^i to 2^(i+1) times 1.024 us")]
        pub struct ArmHists {
            $(#[stat(desc = $help)] pub $name: Vec<u64>,)*
        }

        /// The sums of the histograms of one arm.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
        #[serde(default)]
        #[stat(desc = "sums of the times in an arm's histograms, in us")]
        pub struct ArmSums {
            $(#[stat(desc = $sum_help)] pub $sum: u64,)*
        }

        impl ArmMetrics {
            fn set_sums(&mut self, sums: &[u64; NR_HISTS]) {
                $(self.histogram_sums_us.$sum = sums[intf::$index as usize] / 1000;)*
            }

            /// Buckets, and sum in us, of each histogram in the order of `HISTS`.
            pub fn hists(&self) -> [(&[u64], u64); NR_HISTS] {
                [$((&self.histograms.$name[..], self.histogram_sums_us.$sum)),*]
            }

            fn set_hists(&mut self, hists: &[Histogram; NR_HISTS]) {
                $(self.histograms.$name = hists[intf::$index as usize].to_vec();)*
                let wakeups = &hists[intf::roost_hist_HIST_wakeup_latency as usize];
                self.wakeup_p50_us = quantile_us(wakeups, 0.5);
                self.wakeup_p99_us = quantile_us(wakeups, 0.99);
            }
        }
    };
}

include!(concat!(env!("OUT_DIR"), "/stats_tbl.rs"));
include!(concat!(env!("OUT_DIR"), "/hist_tbl.rs"));

/// One arm, as clients get it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[serde(default)]
#[stat(desc = "an arm: counts of its tasks")]
pub struct ArmMetrics {
    #[stat(desc = "profile of the arm, and what auto stands for now; empty: none")]
    pub profile: String,
    #[stat(desc = "preset, and what differs from it, as a variant of ab: roost+claim=off")]
    pub preset: String,
    #[stat(desc = "features that are on")]
    pub features: String,
    #[stat(desc = "time within which half of the woken tasks ran, us (upper end of the bucket)")]
    pub wakeup_p50_us: u64,
    #[stat(desc = "time within which 99 % of the woken tasks ran, us (upper end of the bucket)")]
    pub wakeup_p99_us: u64,
    #[stat(desc = "counters")]
    #[serde(flatten)]
    pub counters: CounterFields,
    #[stat(desc = "histograms")]
    #[serde(flatten)]
    pub histograms: ArmHists,
    #[stat(desc = "sums of the histograms")]
    #[serde(flatten)]
    pub histogram_sums_us: ArmSums,
}

pub const NR_STATS: usize = ROWS.len();
pub const NR_HISTS: usize = HISTS.len();

/// Growth from `old` to `new`.
pub fn delta(new: &Counters, old: &Counters) -> Counters {
    std::array::from_fn(|i| new[i].saturating_sub(old[i]))
}

pub fn add(a: &Counters, b: &Counters) -> Counters {
    std::array::from_fn(|i| a[i].wrapping_add(b[i]))
}

/// What the fields mean, for clients. Those of upstream expect no structure in another but in maps
/// by name, so the parts of `top` are flat.
pub fn metas() -> BTreeMap<String, StatsMeta> {
    let counters = CounterFields::meta();
    let hists = [ArmHists::meta(), ArmSums::meta()];
    [
        flat(Metrics::meta(), &[Events::meta(), Gauges::meta()]),
        flat(
            ArmMetrics::meta(),
            &[&hists[..], from_ref(&counters)].concat(),
        ),
        counters,
        ConditionMetrics::meta(),
        CpuGauges::meta(),
        CpuMetrics::meta(),
        CpusMetrics::meta(),
    ]
    .map(|meta| (meta.name.clone(), meta))
    .into()
}

/// `whole` with the fields of the parts in place of the fields that serde flattens.
fn flat(mut whole: StatsMeta, parts: &[StatsMeta]) -> StatsMeta {
    for part in parts {
        let is_part = |f: &StatsField| f.data.to_string() == part.name;
        whole.fields.retain(|_, field| !is_part(field));
        whole.fields.extend(part.fields.clone());
    }
    whole
}

/// The text of --help-stats: the fields and what they mean.
pub fn describe() -> Result<String> {
    let mut text = Vec::new();
    let metas = metas().into_values();
    let data = metas.fold(StatsServerData::<(), ()>::new(), StatsServerData::add_meta);
    data.describe_meta(&mut text, None)?;
    // By default it describes what `top` holds.
    data.describe_meta(&mut text, Some(&[&CpusMetrics::meta().name]))?;
    Ok(String::from_utf8(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered() -> Counters {
        std::array::from_fn(|i| i as u64 * 3 + 1)
    }

    #[test]
    fn each_counter_has_its_own_field() {
        let mut metrics = Metrics::default();
        metrics.set_counters(&numbered());
        assert_eq!(metrics.counters(), numbered());
        let json = serde_json::to_value(&metrics).unwrap();
        for (row, value) in ROWS.iter().zip(numbered()) {
            assert_eq!(json[row.name], value, "{}", row.name);
        }
    }

    #[test]
    fn each_counter_is_described() {
        let text = describe().unwrap();
        for row in ROWS {
            assert!(
                text.contains(row.name) && text.contains(row.help),
                "{}",
                row.name
            );
            assert!(!row.group.is_empty(), "{} has no heading", row.name);
        }
    }

    #[test]
    fn what_another_version_does_not_tell_is_nothing() {
        let json = r#"{"sis_prev": 3, "unheard_of": 1, "cpus_online": 4, "arms": {"x": {}}}"#;
        let metrics: Metrics = serde_json::from_str(json).unwrap();
        assert_eq!((metrics.sis_prev, metrics.sis_target), (3, 0));
        assert_eq!(metrics.gauges.cpus_online, 4);
        assert_eq!(metrics.arms["x"], ArmMetrics::default());
    }

    #[test]
    fn quantiles_are_ends_of_buckets() {
        let mut hist = [0; NR_BUCKETS];
        assert_eq!(quantile_us(&hist, 0.5), 0);
        hist[0] = 98;
        hist[3] = 2;
        assert_eq!(quantile_us(&hist, 0.5), 2);
        assert_eq!(quantile_us(&hist, 0.98), 2);
        assert_eq!(quantile_us(&hist, 0.99), 16);
    }

    #[test]
    fn each_counter_of_an_arm_has_its_own_field() {
        let mut arm = ArmMetrics::default();
        arm.set(&ArmCounts {
            counters: numbered(),
            ..ArmCounts::default()
        });
        assert_eq!(arm.counters(), numbered());
        assert_eq!(arm.histograms.wakeup_latency, [0; NR_BUCKETS]);
    }

    #[test]
    fn a_delta_never_runs_backwards() {
        let (mut new, old) = (numbered(), numbered());
        new[0] = 0;
        new[1] += 7;
        let grown = delta(&new, &old);
        assert_eq!((grown[0], grown[1], grown[2]), (0, 7, 0));
    }
}
