// SPDX-License-Identifier: GPL-2.0-only
//! The part of a look that concerns cpufreq: its driver, settings, limits, and the ranking of
//! cores.

use super::Watch;
use crate::machine::{self, Modes, Policies, Power, Rankings, several};
use crate::model::{LogLimiter, Settled, Sharing, preferred_cores, suppressed_suffix};
use crate::publish::{Capacity, Frequencies};
use crate::wire::stats::host::{Condition, Event};
use log::{debug, info, warn};
use std::time::Duration;

/// The state of cpufreq as far as it is known.
pub(super) struct Known {
    driver: Option<String>,
    pub(super) policies: Policies,
    /// The policies differed at the last look. A driver registers CPU by CPU, so they are read
    /// again.
    settling: bool,
    modes: Modes,
    capacity: Capacity,
    /// The capacity that limits leave each CPU.
    settled: Settled,
    rankings: Rankings,
    driver_log: LogLimiter,
    modes_log: LogLimiter,
    limits_log: LogLimiter,
    unpublished_log: LogLimiter,
}

impl Known {
    /// Before anything was read. `whole`: the capacity of each CPU at its highest frequency, by
    /// number.
    pub(super) fn nothing(whole: Vec<u16>) -> Known {
        Known {
            driver: None,
            policies: Policies::default(),
            settling: false,
            modes: Modes::default(),
            settled: Settled::new(whole.clone()),
            capacity: Capacity::new(&Policies::default(), whole),
            rankings: Rankings::default(),
            driver_log: LogLimiter::default(),
            modes_log: LogLimiter::default(),
            limits_log: LogLimiter::default(),
            unpublished_log: LogLimiter::default(),
        }
    }

    pub(super) fn capacities(&self) -> &[u16] {
        self.settled.capacity()
    }
}

impl Watch {
    /// Called before the load.
    pub(super) fn begin_cpufreq(&mut self) {
        self.read_cpufreq();
        self.set_modes(Modes::read(&self.host, &self.cpufreq.policies, None));
        self.look_at_power();
        // Also where cpufreq is missing, which must be reported too.
        self.follow_frequencies();
        self.look_at_rankings();
    }

    /// True if cpufreq's driver changed, came or went, or if its files have changed since and still
    /// settle.
    pub(super) fn look_at_driver(&mut self, now: Duration) -> bool {
        let driver = machine::driver(&self.host, &self.online);
        if driver == self.cpufreq.driver {
            return self.cpufreq.settling && self.read_anew();
        }
        if let Some(left_out) = self.cpufreq.driver_log.admit(now) {
            let name = |driver: &Option<String>| driver.clone().unwrap_or("none".to_string());
            let (was, is) = (name(&self.cpufreq.driver), name(&driver));
            info!(
                "cpufreq's driver changed from {was} to {is}: limits and frequencies are read again{}",
                suppressed_suffix(left_out)
            );
        }
        self.read_anew();
        true
    }

    /// Governor, EPP, boost: true if one of them was set. On an `idle` machine EPP is not read,
    /// because reading it wakes its CPU.
    pub(super) fn look_at_modes(&mut self, now: Duration, idle: bool) -> bool {
        let known = &self.cpufreq.modes;
        let modes = Modes::read(&self.host, &self.cpufreq.policies, idle.then_some(known));
        if modes == *known {
            return false;
        }
        let (was, is) = (known.text(), modes.text());
        if is != was
            && let Some(left_out) = self.cpufreq.modes_log.admit(now)
        {
            info!(
                "cpufreq changed from {was} to {is}{}",
                suppressed_suffix(left_out)
            );
        }
        self.set_modes(modes);
        self.read_anew()
    }

    /// Has arms follow the machine's power setting. The governor and EPP are as of the last look at
    /// them.
    pub(super) fn look_at_power(&mut self) {
        if self.control.follows_power() {
            let known = &self.cpufreq;
            let (power, why) = Power::read(&self.host, &known.modes, known.driver.as_deref());
            self.control.follow_power(power, &why);
        }
    }

    fn set_modes(&mut self, modes: Modes) {
        self.source.set_governor(&modes.governors());
        self.cpufreq.modes = modes;
    }

    /// True if what was read differs from what is known.
    pub(super) fn read_anew(&mut self) -> bool {
        let before = self.cpufreq.policies.clone();
        self.read_cpufreq();
        if !self.cpufreq.policies.same_frequencies(&before) {
            self.follow_frequencies();
            self.set_modes(Modes::read(&self.host, &self.cpufreq.policies, None));
        }
        self.cpufreq.policies != before
    }

    fn read_cpufreq(&mut self) {
        let policies = Policies::read(&self.host, self.nr_cpu_ids());
        let cpufreq = &mut self.cpufreq;
        cpufreq.settling = policies != cpufreq.policies;
        cpufreq.driver = machine::driver(&self.host, &self.online);
        if !cpufreq.settling {
            return;
        }
        if let Some(odd) = several(&policies.odd).filter(|_| policies.odd != cpufreq.policies.odd) {
            (0..policies.odd.len()).for_each(|_| self.source.event(Event::ReadFailed));
            warn!("{odd}; its value counts as unknown, see 'scx_roost topology'");
        }
        let same_frequencies = policies.same_frequencies(&cpufreq.policies);
        cpufreq.policies = policies;
        cpufreq.capacity.follow(&cpufreq.policies);
        // Settled limits say nothing about another driver. Governor and EPP change no limit, so
        // they are ignored.
        if !same_frequencies {
            cpufreq.settled = Settled::new(cpufreq.capacity.now(&self.host));
        }
    }

    fn follow_frequencies(&self) {
        if self.is_left_behind() {
            return;
        }
        // Without timers no move can be delayed, so frequencies are not needed.
        let frequencies = match self.timers {
            true => Frequencies::new(
                &self.host,
                &self.freq_source,
                &self.cpufreq.policies,
                self.freq_period,
            ),
            false => Frequencies::default(),
        };
        self.control.set_frequencies(frequencies);
    }

    /// True if other capacities were published, or could not be.
    pub(super) fn look_at_limits(&mut self, now: Duration) -> bool {
        let capacities = self.cpufreq.capacity.now(&self.host);
        self.cpufreq.settled.look(capacities);
        let capacities = self.cpufreq.capacities().to_vec();
        let limited = self.cpufreq.capacity.limited(&capacities);
        let published = self.control.set_capacity(capacities);
        match &published {
            Ok(false) => (),
            Ok(true) => {
                if let Some(left_out) = self.cpufreq.limits_log.admit(now) {
                    let text = limited.as_deref().unwrap_or("cpufreq limits no CPU");
                    info!(
                        "capacities are published: {text}{}",
                        suppressed_suffix(left_out)
                    );
                }
            }
            Err(e) => {
                if let Some(left_out) = self.cpufreq.unpublished_log.admit(now) {
                    let left_out = suppressed_suffix(left_out);
                    warn!("cannot follow cpufreq's new limits yet: {e:#}{left_out}");
                }
            }
        }
        self.source
            .set_condition(Condition::CapacityLimited, limited);
        published.unwrap_or(true)
    }

    /// These conditions matter only while an arm delays moves.
    pub(super) fn log_frequencies(&self) {
        let wanted = self.control.wants_frequencies();
        let shared = Sharing::new(&self.machine, &self.cpufreq.policies).condition();
        self.source
            .set_condition(Condition::FreqShared, shared.filter(|_| wanted));
        if !wanted {
            self.source.set_condition(Condition::NoFreqSource, None);
            self.source.set_condition(Condition::FreqUnreadable, None);
        }
    }

    pub(super) fn look_at_rankings(&mut self) {
        let rankings = Rankings::read(&self.host, self.nr_cpu_ids());
        if rankings != self.cpufreq.rankings {
            let cores = preferred_cores(&self.machine, &rankings);
            let first = cores.iter().take(8).map(u16::to_string);
            let first = first.collect::<Vec<_>>().join(" ");
            debug!(
                "preferred cores, best first: {first} ({} in all)",
                cores.len()
            );
            self.cpufreq.rankings = rankings;
        }
    }

    fn nr_cpu_ids(&self) -> usize {
        self.machine.nr_cpu_ids.into()
    }
}
