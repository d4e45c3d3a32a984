// SPDX-License-Identifier: GPL-2.0-only
//! What the model concludes about an idle machine, read once. `topology` shows it, and `doctor`
//! takes sentences from it.

use crate::machine::host::Host;
use crate::machine::picture::wrap;
use crate::machine::{
    FreqFiles, IdleState, Limits, Machine, Policies, Rankings, cpulist_text, idle_states, names,
};
use crate::model::{FreqRule, Learner, Sharing, capacities, limited, preferred_cores};
use crate::util::text::count;
use serde::Serialize;
use std::collections::BTreeMap;

/// The items shown of a long list.
const MOST: usize = 16;

#[derive(Clone, Debug, Serialize)]
pub struct Outlook {
    /// The file of cpufreq that has frequencies; None: only ticks may see them.
    pub freq_source: Option<String>,
    pub drivers: Vec<String>,
    pub governors: Vec<String>,
    pub epp: Vec<String>,
    pub ranges: Vec<Range>,
    pub sharing: Sharing,
    /// What cpufreq's limits take from the capacity of CPUs.
    pub limited: Option<String>,
    /// The first CPU of each core, the most preferred core first.
    pub preferred: Vec<u16>,
    /// Of the first CPU.
    pub idle_states: Vec<IdleState>,
    /// Sentences about unusable files.
    pub unreadable: Vec<String>,
}

/// CPUs of one kind, in kHz.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Range {
    pub max_khz: u32,
    pub min_khz: u32,
    pub base_khz: Option<u32>,
    /// What delay_migration considers slow until it has learnt more; 0: nothing.
    pub threshold_khz: u32,
    pub cpus: Vec<u16>,
}

impl Outlook {
    pub fn read(host: &Host, machine: &Machine) -> Outlook {
        let nr_cpu_ids = usize::from(machine.nr_cpu_ids);
        let policies = Policies::read(host, nr_cpu_ids);
        let each = || policies.cpus.iter().flatten();
        let whole = machine.capacities();
        let limits = Limits::new(&policies).read(host);
        let rankings = Rankings::read(host, nr_cpu_ids);
        Outlook {
            freq_source: FreqFiles::of_cpufreq(host, nr_cpu_ids).map(|files| files.name),
            drivers: names(each().filter_map(|p| p.driver.as_ref())),
            governors: names(each().filter_map(|p| p.governor.as_ref())),
            epp: names(each().filter_map(|p| p.epp.as_ref())),
            ranges: ranges(machine, &policies),
            sharing: Sharing::new(machine, &policies),
            limited: limited(&whole, &capacities(&whole, &limits)),
            preferred: preferred_cores(machine, &rankings),
            idle_states: idle_states(host, machine.cpus.first().map_or(0, |cpu| cpu.id)),
            unreadable: policies.odd,
        }
    }

    /// Lines below the picture of the machine, at most 100 columns wide.
    pub fn text(&self) -> String {
        let mut text = line("frequencies", &[self.source(), self.managed()].join("; "));
        for range in &self.ranges {
            text += &line("range", &range.text());
        }
        text += &line("shared", &self.shared());
        text += &line("limits", self.limited.as_deref().unwrap_or("none"));
        text += &line("preferred", &self.preference());
        text += &line("idle states", &self.states());
        for odd in self.unreadable.iter().take(MOST) {
            text += &line("unreadable", odd);
        }
        text
    }

    /// A sentence about the source of frequencies.
    pub fn source(&self) -> String {
        match &self.freq_source {
            Some(file) => format!("{file}, or what ticks see if they see any"),
            None => "only what ticks see, if they do; delay_migration needs the files".to_string(),
        }
    }

    fn managed(&self) -> String {
        let named = |what: &str, names: &[String]| match names {
            [] => format!("no {what}"),
            names => format!("{what} {}", names.join(" ")),
        };
        let mut all = vec![
            named("driver", &self.drivers),
            named("governor", &self.governors),
        ];
        if !self.epp.is_empty() {
            all.push(named("EPP", &self.epp));
        }
        all.join(", ")
    }

    pub fn shared(&self) -> String {
        self.sharing.condition().unwrap_or_else(|| {
            format!(
                "{}, no cache of several cores has only one",
                count(self.sharing.domains, "frequency domain")
            )
        })
    }

    pub fn preference(&self) -> String {
        if self.preferred.is_empty() {
            return "none: the firmware prefers no core".to_string();
        }
        let first = self.preferred.iter().take(MOST).map(u16::to_string);
        let first = first.collect::<Vec<_>>().join(" ");
        match self.preferred.len().saturating_sub(MOST) {
            0 => first,
            more => format!("{first} and {more} more"),
        }
    }

    fn states(&self) -> String {
        if self.idle_states.is_empty() {
            return "none known".to_string();
        }
        let state = |s: &IdleState| {
            let off = if s.disabled { " (off)" } else { "" };
            format!("{} {}{off}", s.name, s.exit_latency_us)
        };
        let states = self.idle_states.iter().map(state);
        states.collect::<Vec<_>>().join(", ") + " us exit latency"
    }
}

impl Range {
    fn text(&self) -> String {
        let mhz = |khz: u32| khz / 1000;
        let base = self.base_khz.map(|khz| format!(", base {}", mhz(khz)));
        let low = match self.threshold_khz {
            0 => "none is low".to_string(),
            khz => format!("low up to {}", mhz(khz)),
        };
        format!(
            "{}-{} MHz{}, {low}: CPUs {}",
            mhz(self.min_khz),
            mhz(self.max_khz),
            base.unwrap_or_default(),
            cpulist_text(&self.cpus)
        )
    }
}

/// The fastest first.
fn ranges(machine: &Machine, policies: &Policies) -> Vec<Range> {
    let thresholds = Learner::new(policies).thresholds(FreqRule::Auto);
    let mut ranges: BTreeMap<_, Vec<u16>> = BTreeMap::new();
    for cpu in &machine.cpus {
        let id = usize::from(cpu.id);
        let Some(policy) = policies.of(id) else {
            continue;
        };
        let (Some(min), Some(max)) = (policy.min_khz, policy.max_khz) else {
            continue;
        };
        let kind = (max, min, policy.base_khz, thresholds[id]);
        ranges.entry(kind).or_default().push(cpu.id);
    }
    let range = |((max_khz, min_khz, base_khz, threshold_khz), cpus)| Range {
        max_khz,
        min_khz,
        base_khz,
        threshold_khz,
        cpus,
    };
    ranges.into_iter().rev().map(range).collect()
}

fn line(label: &str, text: &str) -> String {
    let words = text.split(' ').map(str::to_string);
    wrap(&format!("{label:<11}"), words)
}
