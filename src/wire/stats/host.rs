// SPDX-License-Identifier: GPL-2.0-only
//! Statistics of the daemon itself, besides the counters of the BPF half. They are events that it
//! counts, gauges of the machine and of each CPU, and conditions. A condition is a named state that
//! an operator may want to act on. To add one, add a row to a table. The JSON field, its
//! description, its metric and its line of text follow from the row.

use super::CounterFields;
use log::{info, warn};
use scx_stats_derive::Stats;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A row of the tables of events and gauges.
pub struct HostRow {
    pub name: &'static str,
    /// Unit as OpenMetrics defines it; "" for a count.
    pub unit: &'static str,
    pub help: &'static str,
}

macro_rules! event_table {
    ($($name:ident, $variant:ident, $help:literal;)*) => {
        /// Events that are counted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Event { $($variant),* }

        pub const EVENTS: &[HostRow] =
            &[$(HostRow { name: stringify!($name), unit: "", help: $help }),*];

        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
        #[serde(default)]
        #[stat(desc = "events of the daemon")]
        pub struct Events {
            $(#[stat(desc = $help)] pub $name: u64,)*
        }

        impl Events {
            /// Counts `event`, `times` times.
            pub fn count(&mut self, event: Event, times: u64) {
                match event { $(Event::$variant => self.$name += times,)* }
            }

            /// Growth from `old` to `self`.
            pub fn since(&self, old: &Events) -> Events {
                Events { $($name: self.$name.saturating_sub(old.$name),)* }
            }

            /// In the order of the table.
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$name),*]
            }
        }
    };
}

macro_rules! gauge_table {
    ($table:ident, $struct:ident, $desc:literal, $($name:ident, $unit:literal, $help:literal;)*) => {
        pub const $table: &[HostRow] =
            &[$(HostRow { name: stringify!($name), unit: $unit, help: $help }),*];

        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
        #[serde(default)]
        #[stat(desc = $desc)]
        pub struct $struct {
            $(#[stat(desc = $help)] pub $name: u64,)*
        }

        impl $struct {
            /// In the order of the table.
            pub fn values(&self) -> Vec<u64> {
                vec![$(self.$name),*]
            }
        }
    };
}

macro_rules! condition_table {
    ($($name:ident, $variant:ident, $help:literal;)*) => {
        /// A state that lasts, and that an operator may want to act on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Condition { $($variant),* }

        impl Condition {
            pub const ALL: &[Condition] = &[$(Condition::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Condition::$variant => stringify!($name),)* }
            }

            pub fn help(self) -> &'static str {
                match self { $(Condition::$variant => $help,)* }
            }
        }
    };
}

event_table! {
    policies_published, PolicyPublished, "policies published, with features, tunables, capacities and thresholds";
    thresholds_changed, ThresholdsChanged, "of these, those caused by other frequency thresholds";
    capacities_changed, CapacitiesChanged, "of these, those caused by other capacities of CPUs";
    machine_changed, MachineChanged, "the machine differed from the one at the load: CPUs came or went";
    periods, Period, "periods of the daemon: it reads the machine once in each";
    periods_late, PeriodLate, "of these, those that began more than 500 ms late";
    periods_skipped, PeriodSkipped, "periods skipped because one began too late";
    periods_slow, PeriodSlow, "periods whose look at the machine took more than a second: reading a file took long, or the daemon got no CPU";
    clock_jumps, ClockJump, "the wall clock was set";
    suspends, Suspend, "the machine was suspended and woke";
    reads_failed, ReadFailed, "an existing file in /sys or /proc could not be read, or held no value";
}

gauge_table! {
    GAUGES, Gauges, "the current state of the machine and the daemon",
    period_ms, "milliseconds", "time from one period of the daemon to the next";
    cpus_online, "", "CPUs that are online";
    busy_permille, "permille", "part of the time in which the CPUs were busy, in thousandths";
    saturated, "", "1 from when the CPUs are busy for 95 % of the time until they are busy for less than 90 %";
    psi_cpu_some_permille, "permille", "part of the last ten seconds in which a runnable task waited for a CPU (/proc/pressure/cpu)";
    resident_kb, "kilobytes", "resident memory of the daemon";
}

gauge_table! {
    CPU_GAUGES, CpuGauges, "the current state of a CPU",
    core, "", "index of its core";
    llc, "", "index of its last-level cache";
    node, "", "index of its node";
    capacity, "", "its capacity at its highest frequency, of 1024";
    capacity_now, "", "what cpufreq's limits and cooling leave of its capacity";
    khz, "kilohertz", "its frequency when it was last read; 0: not known";
    min_khz, "kilohertz", "its lowest frequency; 0: not known";
    max_khz, "kilohertz", "its highest frequency; 0: not known";
    threshold_khz, "kilohertz", "the highest frequency that delay_migration takes for low, for arm default; 0: none is";
    busy_permille, "permille", "part of the time in which it was busy, in thousandths";
    idle_mean_us, "microseconds", "its mean idle period; 0: not known";
}

condition_table! {
    no_freq_source, NoFreqSource, "delay_migration is on and does nothing: no source gives frequencies";
    freq_unreadable, FreqUnreadable, "files of frequencies are missing or hold no number";
    freq_shared, FreqShared, "CPUs that share a cache share their frequency too: delay_migration cannot help there";
    capacity_limited, CapacityLimited, "cpufreq's limits or cooling leave a CPU less than its capacity";
    machine_unreadable, MachineUnreadable, "a file of the machine that was read at the load cannot be read now";
    period_late, PeriodIsLate, "a period of the daemon began more than 500 ms late within the last minute";
    period_slow, PeriodIsSlow, "a look at the machine takes more than a second, or did within the last minute";
    throttled, Throttled, "the hardware slowed CPUs down because of heat within the last minute";
    clock_jump, ClockJump, "the wall clock was set within the last minute";
    no_timers, NoTimers, "the kernel allows no BPF timers (PREEMPT_RT): slices end at ticks, no move is delayed";
    quota_ignored, QuotaIgnored, "control groups have a CPU limit (cpu.max), which is not enforced while the scheduler runs";
    groups_refused, GroupsRefused, "control groups have no place in the scheduler's table: they count as the group above them";
    cpus_offline, CpusOffline, "CPUs of the machine are offline";
    memory_limited, MemoryLimited, "the daemon's control group has a memory limit, which the states of all tasks count against";
}

/// One condition, as clients get it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[serde(default)]
#[stat(
    desc = "a condition",
    _om_label = "condition",
    _om_prefix = "roost_condition_"
)]
pub struct ConditionMetrics {
    #[stat(desc = "1 while it lasts")]
    pub active: u64,
    #[stat(desc = "how often it began")]
    pub count: u64,
    #[stat(
        desc = "what was read; what to do is in docs/troubleshooting.md, Conditions",
        _om_skip
    )]
    pub text: String,
}

/// All conditions, by name.
pub type Conditions = BTreeMap<String, ConditionMetrics>;

/// All conditions, none of them active.
pub fn no_conditions() -> Conditions {
    let quiet = |c: &Condition| (c.name().to_string(), ConditionMetrics::default());
    Condition::ALL.iter().map(quiet).collect()
}

/// Sets or clears a condition. Logs its beginning and its end once each.
pub fn set_condition(all: &mut Conditions, which: Condition, text: Option<String>) {
    let state = all.entry(which.name().to_string()).or_default();
    match (&text, state.active) {
        (Some(text), 0) => {
            state.count += 1;
            warn!("{}: {text}", which.name());
        }
        (None, 1) => info!("{} is over", which.name()),
        _ => (),
    }
    state.active = text.is_some().into();
    state.text = text.unwrap_or_default();
}

/// One CPU, as clients get it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[serde(default)]
#[stat(desc = "a CPU", _om_label = "cpu")]
pub struct CpuMetrics {
    #[stat(desc = "its current state")]
    pub gauges: CpuGauges,
    #[stat(desc = "its counters, over all arms", _om_skip)]
    pub counters: CounterFields,
}

/// The answer to target `cpus`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, Stats)]
#[serde(default)]
#[stat(desc = "all CPUs that were online at the load")]
pub struct CpusMetrics {
    #[stat(desc = "1 while the scheduler is loaded; 0 before the first load and during a restart")]
    pub running: u64,
    #[stat(desc = "by CPU number")]
    pub cpus: BTreeMap<u64, CpuMetrics>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_counts_in_its_own_field() {
        let mut events = Events::default();
        events.count(Event::Suspend, 1);
        let before = events.clone();
        events.count(Event::Suspend, 1);
        events.count(Event::Period, 1);
        let json = serde_json::to_value(events.since(&before)).unwrap();
        for row in EVENTS {
            let expected = u64::from(["suspends", "periods"].contains(&row.name));
            assert_eq!(json[row.name], expected, "{}", row.name);
        }
        assert_eq!(events.values().iter().sum::<u64>(), 3);
    }

    #[test]
    fn a_condition_counts_its_beginnings() {
        let mut all = no_conditions();
        let mut say = |text: Option<&str>| {
            set_condition(&mut all, Condition::NoTimers, text.map(str::to_string));
        };
        for text in [None, Some("a"), Some("b"), None, None, Some("c")] {
            say(text);
        }
        let state = &all["no_timers"];
        assert_eq!((state.active, state.count, &*state.text), (1, 2, "c"));
        let others = all.iter().filter(|(name, _)| *name != "no_timers");
        assert!(others.map(|(_, c)| c.count).all(|count| count == 0));
    }

    #[test]
    fn every_row_is_described_under_its_own_name() {
        for table in [EVENTS, GAUGES, CPU_GAUGES] {
            let mut names: Vec<&str> = table.iter().map(|row| row.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), table.len());
            assert!(table.iter().all(|row| !row.help.is_empty()));
        }
        assert!(Condition::ALL.iter().all(|c| !c.help().is_empty()));
    }
}
