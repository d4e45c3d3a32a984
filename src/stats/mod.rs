// SPDX-License-Identifier: GPL-2.0-only
//! Statistics. `Counters` is what the BPF half counted since it was loaded, `Metrics` is what a client gets:
//! counters or their growth since the client last asked, and what runs. Both have one field per row of
//! src/bpf/stats.tbl.h.

pub mod monitor;
pub mod server;
pub mod source;
pub mod view;

use crate::bpf::intf;
use anyhow::Result;
use scx_stats::prelude::*;
use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};

/// Indexed by enum roost_stat.
pub type Counters = [u64; NR_STATS];

/// A row of the table.
pub struct Row {
    pub name: &'static str,
    /// The part of the scheduler that counts it.
    pub group: &'static str,
    pub help: &'static str,
}

macro_rules! stat_table {
    ($($name:ident, $index:ident, $group:literal, $help:tt;)*) => {
        pub const ROWS: &[Row] =
            &[$(Row { name: stringify!($name), group: $group, help: $help }),*];

        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
        #[stat(top, desc = "scx_roost: what was counted since the last request, and what runs", _om_prefix = "roost_")]
        pub struct Metrics {
            #[stat(desc = "preset the features started from")]
            pub preset: String,
            #[stat(desc = "features that are on")]
            pub features: String,
            #[stat(desc = "cpufreq governors of the machine")]
            pub governor: String,
            #[stat(desc = "what the scheduler does about frequencies: off or util")]
            pub cpuperf: String,
            #[stat(desc = "restarts after hotplug or suspend")]
            pub restarts: u64,
            #[stat(desc = "1 while the scheduler is loaded, 0 before the first load and during a restart")]
            pub running: u64,
            #[stat(desc = "milliseconds that the counters cover")]
            pub interval_ms: u64,
            $(#[stat(desc = $help)] pub $name: u64,)*
        }

        impl Metrics {
            /// A scheduler is loaded, or one was.
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
    };
}

include!(concat!(env!("OUT_DIR"), "/stats_tbl.rs"));

pub const NR_STATS: usize = ROWS.len();

/// Growth from `old` to `new`.
pub fn delta(new: &Counters, old: &Counters) -> Counters {
    std::array::from_fn(|i| new[i].saturating_sub(old[i]))
}

pub fn add(a: &Counters, b: &Counters) -> Counters {
    std::array::from_fn(|i| a[i].wrapping_add(b[i]))
}

/// --help-stats: the fields and what they mean.
pub fn describe() -> Result<String> {
    let mut text = Vec::new();
    StatsServerData::<(), ()>::new()
        .add_meta(Metrics::meta())
        .describe_meta(&mut text, None)?;
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
            assert!(
                !row.group.is_empty(),
                "{} stands below no heading",
                row.name
            );
        }
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
