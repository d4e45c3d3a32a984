// SPDX-License-Identifier: GPL-2.0-only
//! What the loop looks at while a scheduler is loaded: one `look` finds what has changed, publishes it and tells of it. It has no
//! clock of its own and never naps; how long until the next look is for `model::Pace` to say.

use crate::config::Config;
use crate::control::Control;
use crate::host::Host;
use crate::machine::{
    self, Clocks, Cpu, Machine, Policies, Rankings, parse_cpulist, resident_kb, several,
    waiting_permille,
};
use crate::model::{self, Busy, BusyMeter, Lateness, Seen, Sharing, passed, preferred_cores};
use crate::publish::{Capacity, Frequencies};
use crate::stats::host::{Condition, CpuGauges, Event, Gauges};
use crate::stats::source::CounterSource;
use log::{debug, info, warn};
use std::collections::BTreeMap;
use std::time::Duration;

const ONLINE: &str = "devices/system/cpu/online";
const ODD_STAT: &str = "/proc/stat does not tell the times of CPUs: how busy they are is not known";

/// What may change at any time: limits, the driver of cpufreq, the work.
const OFTEN: Duration = Duration::from_millis(900);
/// What seldom does: rankings, governors.
const SELDOM: Duration = Duration::from_secs(10);
/// How long it is told of what takes no time: that the date was set, that a look was late.
const TOLD: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// It is no longer the machine that the scheduler was loaded for.
    MachineChanged,
    Seen(Seen),
}

/// What outlives a load.
#[derive(Clone, Copy, Default)]
pub struct Past {
    /// Of the last look.
    clocks: Option<Clocks>,
    /// Until when it is told, since boot.
    jump_until: Option<Duration>,
    late_until: Option<Duration>,
}

pub struct Watch<'a> {
    config: &'a Config,
    host: &'a Host,
    control: Control,
    source: CounterSource,
    machine: &'a Machine,
    /// Moves can be delayed, so frequencies matter.
    timers: bool,
    driver: Option<String>,
    policies: Policies,
    capacity: Capacity,
    /// As published last.
    worth: Vec<u16>,
    rankings: Rankings,
    meter: BusyMeter,
    busy: Option<Busy>,
    /// The times of CPUs cannot be read.
    odd_stat: bool,
    past: Past,
    often: Every,
    seldom: Every,
}

impl<'a> Watch<'a> {
    /// Before the load: what is read here goes into the first policy. `past`: of the load before.
    pub fn new(
        config: &'a Config,
        host: &'a Host,
        control: &Control,
        source: &CounterSource,
        machine: &'a Machine,
        timers: bool,
        past: Past,
    ) -> Watch<'a> {
        let mut watch = Watch {
            config,
            host,
            control: control.clone(),
            source: source.clone(),
            machine,
            timers,
            driver: None,
            policies: Policies::default(),
            capacity: Capacity::new(&Policies::default(), machine.capacities()),
            worth: Vec::new(),
            rankings: Rankings::default(),
            meter: BusyMeter::default(),
            busy: None,
            odd_stat: false,
            past,
            often: Every::new(OFTEN),
            seldom: Every::new(SELDOM),
        };
        watch.read_cpufreq();
        watch.worth = watch.capacity.now(host);
        watch.look_seldom();
        source.set_condition(Condition::CpusOffline, offline(host, machine));
        watch.tell_cpus();
        watch
    }

    /// For the next.
    pub fn past(&self) -> Past {
        self.past
    }

    /// What CPUs are worth now, by number.
    pub fn worth(&self) -> Vec<u16> {
        self.worth.clone()
    }

    pub fn look(&mut self, now: Clocks) -> Looked {
        self.source.event(Event::Period);
        let mut changed = self.look_at_clocks(now);
        if self.online_changed() {
            return Looked::MachineChanged;
        }
        changed |= self.look_at_rules();
        if self.often.due(now.monotonic) {
            changed |= self.look_at_driver() | self.look_at_limits();
            self.look_at_load();
            self.tell_cpus();
            self.tell_of_frequencies();
        }
        if self.seldom.due(now.monotonic) {
            self.look_seldom();
        }
        Looked::Seen(Seen {
            changed,
            busy: self.busy.as_ref().map(Busy::of_one),
        })
    }

    /// How late a look begins at `now`, if it does.
    pub fn begun(&mut self, late: Option<Lateness>, now: &Clocks) {
        if let Some(late) = late {
            self.source.event(Event::PeriodLate);
            (0..late.skipped).for_each(|_| self.source.event(Event::PeriodSkipped));
            self.past.late_until = Some(now.boot + TOLD);
            let text = format!(
                "a look at the machine began {} ms late: the daemon was stopped, or waited for a CPU",
                late.by.as_millis()
            );
            self.source
                .set_condition(Condition::PeriodIsLate, Some(text));
        } else if over(&mut self.past.late_until, now) {
            self.source.set_condition(Condition::PeriodIsLate, None);
        }
    }

    fn look_at_clocks(&mut self, now: Clocks) -> bool {
        let then = self.past.clocks.replace(now).unwrap_or(now);
        let passed = passed(&then, &now);
        if let Some(time) = passed.suspended {
            self.source.event(Event::Suspend);
            info!("the machine was suspended for {} s", time.as_secs());
        }
        if let Some(ms) = passed.jumped_ms {
            self.source.event(Event::ClockJump);
            self.past.jump_until = Some(now.boot + TOLD);
            let text = format!(
                "the date was set by {:+} s: what others log and measure by it jumps, scheduling does not",
                ms as f64 / 1000.0
            );
            self.source.set_condition(Condition::ClockJump, Some(text));
        } else if over(&mut self.past.jump_until, &now) {
            self.source.set_condition(Condition::ClockJump, None);
        }
        passed != model::Passed::default()
    }

    /// The kernel tells of hotplug before /sys does, so the machine may have been read a moment too early.
    fn online_changed(&self) -> bool {
        let text = self.host.sys_text(ONLINE).unwrap_or_default();
        let online = parse_cpulist(&text).ok().filter(|cpus| !cpus.is_empty());
        let odd = match &online {
            None => Some(format!(
                "{ONLINE} reads {text:?}, a list of CPUs is expected: CPUs that come or go are not seen"
            )),
            Some(_) => self.odd_stat.then(|| ODD_STAT.to_string()),
        };
        self.source.set_condition(Condition::MachineUnreadable, odd);
        online.is_some_and(|cpus| cpus != self.machine.online())
    }

    /// True while there are rules about what may end by itself.
    fn look_at_rules(&self) -> bool {
        self.control.refresh().unwrap_or_else(|e| {
            warn!("rules are not up to date: {e:#}");
            true
        })
    }

    /// True if cpufreq has another driver, or none any more, or one at last.
    fn look_at_driver(&mut self) -> bool {
        let driver = machine::driver(self.host, &self.machine.online());
        if driver == self.driver {
            return false;
        }
        let name = |driver: &Option<String>| driver.clone().unwrap_or("none".to_string());
        let (was, is) = (name(&self.driver), name(&driver));
        info!("cpufreq's driver is {is}, it was {was}: limits and frequencies are read anew");
        self.read_cpufreq();
        true
    }

    fn read_cpufreq(&mut self) {
        let nr_cpu_ids = usize::from(self.machine.nr_cpu_ids);
        self.driver = machine::driver(self.host, &self.machine.online());
        self.policies = Policies::read(self.host, nr_cpu_ids);
        let odd = several(&self.policies.odd);
        if let Some(odd) = &odd {
            (0..self.policies.odd.len()).for_each(|_| self.source.event(Event::ReadFailed));
            warn!("{odd}");
        }
        self.capacity.follow(&self.policies);
        let (asked, period) = (&self.config.freq_source, self.config.freq_period);
        // Without timers no move can be delayed, so nobody has to know.
        let frequencies = match self.timers {
            true => Frequencies::new(self.host, asked, &self.policies, period),
            false => Frequencies::default(),
        };
        self.control.set_frequencies(frequencies);
    }

    fn look_at_limits(&mut self) -> bool {
        let worth = self.capacity.now(self.host);
        let changed = match self.control.set_capacity(worth.clone()) {
            Ok(changed) => changed,
            Err(e) => {
                warn!("the new limits of cpufreq are not followed: {e:#}");
                true
            }
        };
        if changed {
            debug!("cpufreq's limits have changed");
        }
        self.worth = worth;
        self.source.set_condition(
            Condition::CapacityLimited,
            self.capacity.limited(&self.worth),
        );
        changed
    }

    fn look_at_load(&mut self) {
        let times = machine::cpu_times(self.host);
        self.odd_stat = times.is_none();
        match times {
            Some(times) => self.busy = self.meter.look(times).or(self.busy.take()),
            None => self.busy = None,
        }
    }

    /// Only who delays moves wants to know.
    fn tell_of_frequencies(&self) {
        let wanted = self.control.wants_frequencies();
        let shared = Sharing::new(self.machine, &self.policies).condition();
        self.source
            .set_condition(Condition::FreqShared, shared.filter(|_| wanted));
        if !wanted {
            self.source.set_condition(Condition::NoFreqSource, None);
            self.source.set_condition(Condition::FreqUnreadable, None);
        }
    }

    fn look_seldom(&mut self) {
        let rankings = Rankings::read(self.host, self.machine.nr_cpu_ids.into());
        if rankings != self.rankings {
            let cores = preferred_cores(self.machine, &rankings);
            let first = cores.iter().take(8).map(u16::to_string);
            let first = first.collect::<Vec<_>>().join(" ");
            debug!(
                "preferred cores, the best first: {first} ({} in all)",
                cores.len()
            );
            self.rankings = rankings;
        }
    }

    /// The machine as it is now; `period` is the time until the next look.
    pub fn tell(&self, period: Duration) {
        let busy = self.busy.as_ref().map_or(0, |busy| busy.machine);
        self.source.set_gauges(Gauges {
            period_ms: period.as_millis() as u64,
            cpus_online: self.machine.cpus.len() as u64,
            busy_permille: busy.into(),
            psi_cpu_some_permille: waiting_permille(self.host).unwrap_or(0),
            resident_kb: resident_kb(self.host).unwrap_or(0),
        });
    }

    fn tell_cpus(&self) {
        let live = self.control.cpu_gauges();
        let number = |of: &[Option<u32>], cpu: usize| of.get(cpu).copied().flatten().unwrap_or(0);
        let busy = |cpu: u16| {
            let cpus = &self.busy.as_ref()?.cpus;
            let at = cpus.binary_search_by_key(&cpu, |(cpu, _)| *cpu).ok()?;
            Some(cpus[at].1)
        };
        let gauges = |cpu: &Cpu| {
            let id = usize::from(cpu.id);
            let policy = self.policies.of(id);
            CpuGauges {
                core: cpu.core.into(),
                llc: cpu.llc.into(),
                node: cpu.node.into(),
                capacity: cpu.capacity.into(),
                capacity_now: self.worth.get(id).copied().unwrap_or(cpu.capacity).into(),
                khz: number(&live.khz, id).into(),
                min_khz: policy.and_then(|p| p.min_khz).unwrap_or(0).into(),
                max_khz: policy.and_then(|p| p.max_khz).unwrap_or(0).into(),
                threshold_khz: live.threshold_khz.get(id).copied().unwrap_or(0).into(),
                busy_permille: busy(cpu.id).unwrap_or(0).into(),
                idle_mean_us: live.idle_ns.get(id).copied().unwrap_or(0) / 1000,
            }
        };
        let cpus = self.machine.cpus.iter();
        let cpus = cpus.map(|cpu| (usize::from(cpu.id), gauges(cpu)));
        self.source.set_cpus(cpus.collect::<BTreeMap<_, _>>());
    }
}

/// CPUs that are there and offline.
fn offline(host: &Host, machine: &Machine) -> Option<String> {
    let present = parse_cpulist(&host.sys_text("devices/system/cpu/present")?).ok()?;
    let online = machine.online();
    let gone = present.iter().filter(|cpu| !online.contains(cpu));
    let gone: Vec<String> = gone.map(u16::to_string).collect();
    (!gone.is_empty()).then(|| {
        format!(
            "of {} CPUs {} are offline (the first is {}): nothing runs there until somebody writes 1 to its 'online' in /sys",
            present.len(),
            gone.len(),
            gone[0]
        )
    })
}

/// True once, when that time has come.
fn over(until: &mut Option<Duration>, now: &Clocks) -> bool {
    until.take_if(|until| now.boot >= *until).is_some()
}

/// Something that is to be done again when so much time has passed.
struct Every {
    period: Duration,
    next: Option<Duration>,
}

impl Every {
    fn new(period: Duration) -> Every {
        Every { period, next: None }
    }

    fn due(&mut self, now: Duration) -> bool {
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.next = Some(now + self.period);
        true
    }
}
