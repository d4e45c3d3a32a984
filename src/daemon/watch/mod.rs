// SPDX-License-Identifier: GPL-2.0-only
//! What the watch loop does while a scheduler is loaded: one `look` finds what has changed,
//! publishes it and reports it. It has no clock and never naps; `model::Pace` decides how long
//! until the next look.

mod cpufreq;
mod rules;

use crate::bpf::intf::MAX_CGROUPS;
use crate::daemon::control::{Control, Refused};
use crate::doctor::QuotaWalk;
use crate::machine::groups::group_names;
use crate::machine::host::Host;
use crate::machine::own_group::own_limit;
use crate::machine::{
    self, Clocks, Cpu, FreqSource, Machine, Throttled, Throttles, parse_cpulist, resident_kb,
    waiting_permille,
};
use crate::model::{
    self, Busy, BusyMeter, Lateness, LogLimiter, Saturation, Seen, passed, suppressed_suffix,
};
use crate::policy::config::Config;
use crate::util::text::count;
use crate::wire::stats::host::{Condition, CpuGauges, Event, Gauges};
use crate::wire::stats::source::CounterSource;
use cpufreq::Known;
use log::{info, warn};
use rules::RuleListener;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const ONLINE: &str = "devices/system/cpu/online";
const ODD_STAT: &str = "/proc/stat has no CPU times: utilisation of the CPUs is unknown";

/// For what may change at any time: limits, cpufreq's driver, load.
const OFTEN: Duration = Duration::from_millis(900);
/// For what seldom changes: rankings, governors, throttle counts.
const SELDOM: Duration = Duration::from_secs(10);
/// For the power setting, while an arm follows it.
const POWER: Duration = Duration::from_secs(3);
/// For what needs a walk through all cgroups. One was made before the start.
const RARELY: Duration = Duration::from_secs(600);
/// Cgroups visited to find the name of one.
const GROUPS_MAX: usize = 10_000;
/// Cgroups visited in one look; the next looks continue the walk.
const GROUPS: usize = 2000;
/// A look that takes longer is slow: a file does not answer.
pub const LOOK_SLOW: Duration = Duration::from_secs(1);
/// How long a momentary event stays reported: the date was set, a look was late or slow, a CPU was
/// too hot.
const TOLD: Duration = Duration::from_secs(60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    /// No longer the machine that the scheduler was loaded for.
    MachineChanged,
    Seen(Seen),
}

/// What outlives a load.
#[derive(Clone, Copy, Default)]
pub struct Past {
    /// As of the last look.
    clocks: Option<Clocks>,
    /// Until when the event is reported, since boot.
    jump_until: Option<Duration>,
    late_until: Option<Duration>,
    slow_until: Option<Duration>,
    hot_until: Option<Duration>,
}

impl Past {
    /// After a load that ended while a look hung: that is reported like a slow look.
    pub fn left_behind(self, now: &Clocks) -> Past {
        Past {
            slow_until: Some(now.boot + TOLD),
            ..self
        }
    }
}

/// Borrows nothing: its thread may outlive the load when a file does not answer.
pub struct Watch {
    freq_source: FreqSource,
    /// No CPU limit of a group is enforced.
    limits_lost: bool,
    /// The process's own group pays for the memory of the BPF half (`RootPays`).
    pays: bool,
    freq_period: Duration,
    host: Host,
    control: Control,
    source: CounterSource,
    /// As it was at the load.
    machine: Machine,
    /// Its CPUs that are online now.
    online: Vec<u16>,
    /// Moves can be delayed, so frequencies matter.
    timers: bool,
    cpufreq: Known,
    listener: RuleListener,
    unpublished_log: LogLimiter,
    throttles: Throttles,
    meter: BusyMeter,
    busy: Option<Busy>,
    saturation: Saturation,
    /// The times of CPUs cannot be read.
    odd_stat: bool,
    waiting_permille: u64,
    resident_kb: u64,
    /// The walk through all cgroups that is under way.
    quotas: Option<QuotaWalk>,
    /// The groups without a place, as of the last look.
    refused: Option<Refused>,
    past: Past,
    left_behind: Arc<AtomicBool>,
    often: Every,
    power: Every,
    seldom: Every,
    rarely: Every,
}

impl Watch {
    /// Made before the load: what is read here goes into the first policy. `past` comes from the
    /// previous load.
    pub fn new(
        config: &Config,
        host: &Host,
        control: &Control,
        source: &CounterSource,
        machine: &Machine,
        timers: bool,
        past: Past,
    ) -> Watch {
        let mut watch = Watch {
            freq_source: config.freq_source.clone(),
            limits_lost: config.ignore_cpu_max || !host.limits_hold(),
            pays: false,
            freq_period: config.freq_period,
            host: host.clone(),
            control: control.clone(),
            source: source.clone(),
            machine: machine.clone(),
            online: machine.online(),
            timers,
            cpufreq: Known::nothing(machine.capacities()),
            listener: RuleListener::default(),
            unpublished_log: LogLimiter::default(),
            throttles: Throttles::read(host, &machine.online()),
            meter: BusyMeter::default(),
            busy: None,
            saturation: Saturation::default(),
            odd_stat: false,
            waiting_permille: 0,
            resident_kb: 0,
            quotas: None,
            refused: None,
            past,
            left_behind: Arc::default(),
            often: Every::new(OFTEN),
            power: Every::new(POWER),
            seldom: Every::new(SELDOM),
            rarely: Every::after(RARELY),
        };
        watch.begin_cpufreq();
        source.set_condition(Condition::CpusOffline, offline(host, &machine.online()));
        control.set_away(Vec::new());
        watch.report_cpus();
        watch
    }

    /// The process's own group pays for the memory of the BPF half.
    pub fn pays_itself(self) -> Watch {
        Watch { pays: true, ..self }
    }

    /// To hand to the next load.
    pub fn past(&self) -> Past {
        self.past
    }

    /// The current capacity of each CPU, by number.
    pub fn capacities(&self) -> Vec<u16> {
        self.cpufreq.capacities().to_vec()
    }

    /// Set when nothing waits any more for a look that hangs. Another load may have begun then,
    /// which this look must not disturb.
    pub fn left_behind(&self) -> Arc<AtomicBool> {
        self.left_behind.clone()
    }

    fn is_left_behind(&self) -> bool {
        self.left_behind.load(Ordering::Acquire)
    }

    /// `idle`: the machine has been idle for some looks, so what would wake CPUs is postponed.
    pub fn look(&mut self, now: Clocks, idle: bool) -> Looked {
        self.source.event(Event::Period);
        let mut changed = self.look_at_clocks(now);
        if let Some(online) = self.online_now()
            && online != self.online
        {
            if !self.knows(&online) {
                return Looked::MachineChanged;
            }
            self.follow_online(online);
            changed = true;
        }
        self.control.judge_unread();
        self.publish_policy(now.monotonic);
        changed |= self.look_at_rules(now.monotonic);
        if self.often.due(now.monotonic) {
            changed |= self.look_at_driver(now.monotonic) | self.look_at_limits(now.monotonic);
            self.look_at_load();
            self.report_cpus();
            self.log_frequencies();
        }
        if self.seldom.due(now.monotonic) {
            changed |= self.look_at_modes(now.monotonic, idle);
            self.look_at_rankings();
            self.look_at_own_limit();
            self.look_at_heat(&now);
            self.look_at_groups();
        }
        if self.power.due(now.monotonic) {
            self.look_at_power();
        }
        if self.rarely.due(now.monotonic) {
            let tree = self.host.cgroup.as_deref().filter(|_| self.limits_lost);
            self.quotas = tree.map(QuotaWalk::new);
        }
        self.look_at_quotas();
        Looked::Seen(Seen {
            changed,
            busy: self.busy.as_ref().map(Busy::of_one),
        })
    }

    /// Called when a look begins at `now`. `late`: by how much it is late, if it is.
    pub fn begun(&mut self, late: Option<Lateness>, now: &Clocks) {
        if let Some(late) = late {
            self.source.event(Event::PeriodLate);
            self.source.events(Event::PeriodSkipped, late.skipped);
            self.past.late_until = Some(now.boot + TOLD);
            let text = format!(
                "a look at the machine began {} ms late: the daemon was stopped, or had to wait for a CPU",
                late.by.as_millis()
            );
            self.source
                .set_condition(Condition::PeriodIsLate, Some(text));
        } else if over(&mut self.past.late_until, now) {
            self.source.set_condition(Condition::PeriodIsLate, None);
        }
    }

    /// Called when a look that took this long ended at `now`.
    pub fn ended(&mut self, took: Duration, now: &Clocks) {
        if took > LOOK_SLOW {
            self.source.event(Event::PeriodSlow);
            self.past.slow_until = Some(now.boot + TOLD);
            let text = format!(
                "a look at the machine took {} ms: reading a file took long, or the daemon got no CPU",
                took.as_millis()
            );
            self.source
                .set_condition(Condition::PeriodIsSlow, Some(text));
        } else if over(&mut self.past.slow_until, now) {
            self.source.set_condition(Condition::PeriodIsSlow, None);
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
                "the wall clock was set by {:+} s: timestamps of other programs jump, scheduling is not affected",
                ms as f64 / 1000.0
            );
            self.source.set_condition(Condition::ClockJump, Some(text));
        } else if over(&mut self.past.jump_until, &now) {
            self.source.set_condition(Condition::ClockJump, None);
        }
        passed != model::Passed::default()
    }

    /// Online CPUs. None: the kernel's list cannot be parsed.
    fn online_now(&self) -> Option<Vec<u16>> {
        let text = self.host.sys_text(ONLINE).unwrap_or_default();
        let online = parse_cpulist(&text).ok().filter(|cpus| !cpus.is_empty());
        let odd = match &online {
            None => Some(format!(
                "{ONLINE} reads {text:?}, expected a list of CPUs: hotplug of CPUs is not noticed"
            )),
            Some(_) => self.odd_stat.then(|| ODD_STAT.to_string()),
        };
        self.source.set_condition(Condition::MachineUnreadable, odd);
        online
    }

    /// The topology of these CPUs was known at the load.
    fn knows(&self, online: &[u16]) -> bool {
        let known = self.machine.online();
        online.iter().all(|cpu| known.contains(cpu))
    }

    /// The kernel itself reports hotplug to the BPF half (policy/hotplug.h).
    fn follow_online(&mut self, online: Vec<u16>) {
        let gone = without(&self.online, &online);
        let back = without(&online, &self.online);
        for (cpus, what) in [(gone, "offline"), (back, "online again")] {
            if !cpus.is_empty() {
                info!("{} {what}: {}", count(cpus.len(), "CPU"), cpus.join(" "));
            }
        }
        let offline = offline(&self.host, &online);
        self.source.set_condition(Condition::CpusOffline, offline);
        let at_load = self.machine.online().into_iter();
        let away = at_load.filter(|cpu| !online.contains(cpu)).collect();
        self.control.set_away(away);
        self.online = online;
        self.read_anew();
    }

    /// Retries a publication that failed. Without a failure every change is live already.
    fn publish_policy(&mut self, now: Duration) {
        if let Err(e) = self.control.publish()
            && let Some(left_out) = self.unpublished_log.admit(now)
        {
            let left_out = suppressed_suffix(left_out);
            warn!("cannot update the running policy, the next look tries again: {e:#}{left_out}");
        }
    }

    /// There was none at the load.
    fn look_at_own_limit(&self) {
        let text = self.pays.then(|| own_limit(&self.host)).flatten();
        self.source.set_condition(Condition::MemoryLimited, text);
    }

    fn look_at_heat(&mut self, now: &Clocks) {
        if let Some(hot) = self.throttled() {
            self.past.hot_until = Some(now.boot + TOLD);
            self.source
                .set_condition(Condition::Throttled, Some(too_hot(&hot)));
        } else if over(&mut self.past.hot_until, now) {
            self.source.set_condition(Condition::Throttled, None);
        }
    }

    /// CPUs that were slowed down since the last look at this.
    fn throttled(&mut self) -> Option<Throttled> {
        if !self.throttles.known() {
            return None;
        }
        let throttles = Throttles::read(&self.host, &self.machine.online());
        let hot = throttles.since(&self.throttles);
        self.throttles.follow(throttles);
        hot
    }

    /// The walk for the name is made only after a change: it is long where groups are many.
    fn look_at_groups(&mut self) {
        let refused = self.control.groups_refused();
        if self.refused.replace(refused) == Some(refused) {
            return;
        }
        let root = self.host.cgroup.as_deref().filter(|_| refused.count > 0);
        let text = root.map(|root| {
            let ids = [refused.last].into();
            let last = match group_names(root, &ids, GROUPS_MAX).remove(&refused.last) {
                Some(name) => format!("the last is {name}"),
                None => "the last was not found, or is removed".to_string(),
            };
            format!(
                "{} without a place in the scheduler's table of {MAX_CGROUPS}: for their tasks hold \
                 cpu.weight and cpu.max of the group above; {last}",
                count(refused.count as usize, "control group"),
            )
        });
        if !self.is_left_behind() {
            self.source.set_condition(Condition::GroupsRefused, text);
        }
    }

    fn look_at_quotas(&mut self) {
        let over = |walk: &mut QuotaWalk| walk.go_on(GROUPS);
        if let Some(walk) = self.quotas.take_if(over) {
            self.source
                .set_condition(Condition::QuotaIgnored, walk.reported());
        }
    }

    fn look_at_load(&mut self) {
        let times = machine::cpu_times(&self.host);
        self.odd_stat = times.is_none();
        match times {
            Some(times) => self.busy = self.meter.look(times).or(self.busy.take()),
            None => self.busy = None,
        }
        let busy = self.busy.as_ref();
        self.saturation.look(busy.map(|busy| busy.machine));
        self.waiting_permille = waiting_permille(&self.host).unwrap_or(0);
        self.resident_kb = resident_kb(&self.host).unwrap_or(0);
    }

    /// Sets the gauges as of the last look; `period` is the time until the next one.
    pub fn set_gauges(&self, period: Duration) {
        let busy = self.busy.as_ref().map_or(0, |busy| busy.machine);
        self.source.set_gauges(Gauges {
            period_ms: period.as_millis() as u64,
            cpus_online: self.online.len() as u64,
            busy_permille: busy.into(),
            saturated: self.saturation.saturated().into(),
            psi_cpu_some_permille: self.waiting_permille,
            resident_kb: self.resident_kb,
        });
    }

    fn report_cpus(&self) {
        let (live, capacities) = (self.control.cpu_gauges(), self.cpufreq.capacities());
        let number = |of: &[Option<u32>], cpu: usize| of.get(cpu).copied().flatten().unwrap_or(0);
        let busy = |cpu: u16| {
            let cpus = &self.busy.as_ref()?.cpus;
            let at = cpus.binary_search_by_key(&cpu, |(cpu, _)| *cpu).ok()?;
            Some(cpus[at].1)
        };
        let gauges = |cpu: &Cpu| {
            let id = usize::from(cpu.id);
            let policy = self.cpufreq.policies.of(id);
            CpuGauges {
                core: cpu.core.into(),
                llc: cpu.llc.into(),
                node: cpu.node.into(),
                capacity: cpu.capacity.into(),
                capacity_now: capacities.get(id).copied().unwrap_or(cpu.capacity).into(),
                khz: number(&live.khz, id).into(),
                min_khz: policy.and_then(|p| p.min_khz).unwrap_or(0).into(),
                max_khz: policy.and_then(|p| p.max_khz).unwrap_or(0).into(),
                threshold_khz: live.threshold_khz.get(id).copied().unwrap_or(0).into(),
                busy_permille: busy(cpu.id).unwrap_or(0).into(),
                idle_mean_us: live.idle_ns.get(id).copied().unwrap_or(0) / 1000,
            }
        };
        let online = |cpu: &&Cpu| self.online.contains(&cpu.id);
        let cpus = self.machine.cpus.iter().filter(online);
        let cpus = cpus.map(|cpu| (usize::from(cpu.id), gauges(cpu)));
        let cpus = cpus.collect::<BTreeMap<_, _>>();
        self.source.set_cpus(cpus, live.khz_at);
    }
}

/// Those of `cpus` that are not among `others`.
fn without(cpus: &[u16], others: &[u16]) -> Vec<String> {
    let left = cpus.iter().filter(|cpu| !others.contains(cpu));
    left.map(u16::to_string).collect()
}

/// A sentence about CPUs that are present and offline.
fn offline(host: &Host, online: &[u16]) -> Option<String> {
    let present = parse_cpulist(&host.sys_text("devices/system/cpu/present")?).ok()?;
    let gone = without(&present, online);
    let smt = host.sys_text("devices/system/cpu/smt/control");
    (!gone.is_empty()).then(|| {
        format!(
            "{} of {} CPUs are offline (the first is {}): nothing runs there until {}",
            gone.len(),
            present.len(),
            gone[0],
            remedy(smt.as_deref())
        )
    })
}

/// The kernel keeps the second threads of cores offline while SMT is off.
fn remedy(smt: Option<&str>) -> &'static str {
    match smt {
        Some("off") => {
            "SMT is switched on again: write 'on' to /sys/devices/system/cpu/smt/control"
        }
        Some("forceoff") => {
            "the machine is booted without 'nosmt=force', which disables SMT for good"
        }
        _ => "1 is written to its file 'online' in /sys",
    }
}

fn too_hot(hot: &Throttled) -> String {
    format!(
        "the hardware throttled {} because of heat, CPU {} first (thermal_throttle): improve the cooling",
        count(hot.cpus, "CPU"),
        hot.first
    )
}

/// True once, when that time has come.
fn over(until: &mut Option<Duration>, now: &Clocks) -> bool {
    until.take_if(|until| now.boot >= *until).is_some()
}

/// Something to be repeated after this much time.
struct Every {
    period: Duration,
    next: Option<Duration>,
    /// Due at the first call.
    at_once: bool,
}

impl Every {
    fn new(period: Duration) -> Every {
        Every {
            period,
            next: None,
            at_once: true,
        }
    }

    /// Due for the first time after one period.
    fn after(period: Duration) -> Every {
        Every {
            at_once: false,
            ..Every::new(period)
        }
    }

    fn due(&mut self, now: Duration) -> bool {
        let due = self.next.map_or(self.at_once, |next| now >= next);
        if due || self.next.is_none() {
            self.next = Some(now + self.period);
        }
        due
    }
}
