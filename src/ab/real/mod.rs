// SPDX-License-Identifier: GPL-2.0-only
//! The real machine: starts and stops schedulers, and restores the initial state.

pub mod arm;
mod conditions;
mod counts;
pub mod ground;
pub mod guardian;
pub mod needs;
mod scheduler;

pub use conditions::facts;

use super::boot::Boot;
use super::cgroup::Cgroup;
use super::child::{self, Failure, Sample, Workload};
use super::cpus::{self, Cpus};
use super::hooks::Hooks;
use super::machine::{Machine, Taken};
use super::metric::Measured;
use super::variant::{Kind, Scope, Variant};
use crate::machine::Machine as Topology;
use crate::machine::host::Host;
use crate::util::lock::Lock;
use crate::util::user::is_root;
use anyhow::{Context, Result, anyhow, bail, ensure};
use conditions::Conditions;
use counts::Counts;
use ground::Ground;
use guardian::{Guardian, Word};
use scheduler::{Attached, Epoch, Scheduler};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// Pause between a switch and the next run.
const SETTLE: Duration = Duration::from_millis(300);
/// Time for --cleanup after Ctrl-C.
const HURRIED: Duration = Duration::from_secs(60);
/// The command's cgroup below ours.
const CGROUP: &str = "command";

/// What a `Real` needs from its caller.
pub struct Means<'a> {
    pub host: Host,
    /// Path of scx_roost, for schedulers and for the guardian.
    pub program: PathBuf,
    pub stopped: &'a dyn Fn() -> bool,
    /// Gets sentences about limitations.
    pub warn: &'a dyn Fn(&str),
}

pub struct Real<'a> {
    means: Means<'a>,
    scope: Scope,
    /// The variant of all other tasks; None: the same as the command's.
    others: Option<Variant>,
    workload: Workload,
    /// The measured metrics that were asked for.
    asked: Vec<Measured>,
    hooks: Hooks,
    /// True from the begin of --setup until --cleanup.
    set_up: bool,
    /// The CPUs to which a variant keeps the command, by name.
    cpus: BTreeMap<String, Vec<u16>>,
    alone: Option<Lock>,
    ground: Option<Ground>,
    scheduler: Option<Scheduler>,
    guardian: Option<Guardian>,
}

impl<'a> Real<'a> {
    pub fn new(means: Means<'a>, scope: Scope, workload: Workload) -> Real<'a> {
        Real {
            means,
            scope,
            others: None,
            workload,
            asked: Vec::new(),
            hooks: Hooks::default(),
            set_up: false,
            cpus: BTreeMap::new(),
            alone: None,
            ground: None,
            scheduler: None,
            guardian: None,
        }
    }

    /// Metrics that were asked for. `begin` fails if one of them cannot be measured.
    pub fn measuring(self, asked: Vec<Measured>) -> Real<'a> {
        Real { asked, ..self }
    }

    /// What is done around the runs.
    pub fn hooked(self, hooks: Hooks) -> Real<'a> {
        Real { hooks, ..self }
    }

    fn attached(&self) -> Attached<'_> {
        Attached(&self.means.host)
    }

    fn refuse_what_cannot_be(&self, variants: &[Variant]) -> Result<()> {
        let wants_scx = variants.iter().any(|v| v.kind != Kind::Eevdf);
        ensure!(
            self.attached().known() || !wants_scx,
            "this kernel has no sched_ext, which all variants except eevdf need: see 'scx_roost doctor'"
        );
        let root = is_root();
        ensure!(
            root || !wants_scx,
            "only root can load schedulers: run this as root or with sudo"
        );
        needs::schedulers(variants)?;
        needs::metrics(&self.asked)
    }

    /// Whatever `restore` must undo is recorded before it is done.
    fn prepare(&mut self) -> Result<()> {
        let host = &self.means.host;
        let alone = self.alone.insert(ground::alone(host)?);
        child::become_subreaper()?;
        child::outlast_ctrl_z();
        if let Some(name) = Attached(host).name() {
            bail!(
                "the sched_ext scheduler '{name}' is attached: end it first, {}, and start it again afterwards",
                how_to_end(&name)
            );
        }
        let guardian = Guardian::start(&self.means.program, alone)?;
        let guardian = self.guardian.insert(guardian);
        let (mut ground, unnamed) = Ground::named(host);
        guardian.say(Word::Owns(ground.clone()))?;
        let made = ground.make();
        self.ground = Some(ground);
        if let Some(why) = unnamed.or(made?) {
            (self.means.warn)(&format!(
                "{why}: if this process is killed, children of the command in other process groups keep running"
            ));
        }
        Ok(())
    }

    /// Fails unless the attached scheduler is still the one that was started.
    fn check(&mut self) -> Result<()> {
        let attached = Attached(&self.means.host);
        match &mut self.scheduler {
            Some(scheduler) => scheduler.check(&attached),
            None => match attached.name() {
                None => Ok(()),
                Some(name) => bail!("the scheduler {name} was attached in the meantime"),
            },
        }
    }

    fn start(&mut self, variant: &Variant) -> Result<(), Failure> {
        let ground = self.ground.as_ref().context("a comparison has begun")?;
        let guardian = &mut self.guardian;
        let program = &self.means.program;
        let started = Scheduler::start(
            variant,
            self.others.as_ref(),
            program,
            ground,
            &mut |group| {
                guardian
                    .iter_mut()
                    .for_each(|g| g.tell(Word::Schedules(group)));
            },
        );
        self.scheduler = started?;
        match &mut self.scheduler {
            Some(scheduler) => {
                let attached = Attached(&self.means.host);
                scheduler.wait_until_ready(variant, &attached, self.means.stopped)
            }
            None => Ok(()),
        }
    }

    fn stop(&mut self) -> Result<()> {
        let Some(scheduler) = self.scheduler.take() else {
            return Ok(());
        };
        let stopped = scheduler.stop(&self.attached());
        if let Some(guardian) = &mut self.guardian {
            guardian.tell(Word::ScheduledOut);
        }
        stopped
    }

    /// Determines the CPUs of variants that restrict the command. Fails if it cannot be kept there.
    fn place(&mut self, variants: &[Variant]) -> Result<()> {
        for variant in variants.iter().filter(|v| v.cpus != Cpus::All) {
            let machine = Topology::read(&self.means.host.sys)?;
            let cpus = variant.cpus.on(&machine);
            let cpus = cpus.with_context(|| format!("variant {}", variant.name))?;
            if cpus.len() == machine.cpus.len() {
                (self.means.warn)(&format!(
                    "{} restricts the command to all CPUs, which is no restriction",
                    variant.name
                ));
            }
            cpus::check(&cpus)?;
            self.cpus.insert(variant.name.clone(), cpus);
        }
        Ok(())
    }

    /// Runs the command of this option, as the command's user. `heeds`: the user's stop ends it.
    fn hook(&mut self, option: &str, command: Option<String>, heeds: bool) -> Result<(), Failure> {
        let Some(command) = command else {
            return Ok(());
        };
        let hook = Workload {
            command: ["sh", "-c", &command].map(Into::into).to_vec(),
            cpus: Vec::new(),
            ..self.workload.clone()
        };
        match self.sample(&hook, heeds) {
            Ok(_) => Ok(()),
            Err(Failure::Stopped) => Err(Failure::Stopped),
            Err(failure) => Err(anyhow!("{option} '{command}': {failure}").into()),
        }
    }

    /// Once before all runs.
    fn set_up(&mut self) -> Result<()> {
        self.set_up = true;
        match self.hook("--setup", self.hooks.setup.clone(), true) {
            Ok(()) => Ok(()),
            Err(Failure::Other(e)) => Err(e),
            Err(failure) => Err(anyhow!("--setup: {failure}")),
        }
    }

    /// Once after all runs, if they were set up. If the user has stopped them, it has little time;
    /// otherwise the user's stop ends it. The results are good even if it fails.
    fn clean_up(&mut self) {
        if !std::mem::take(&mut self.set_up) {
            return;
        }
        let hurried = (self.means.stopped)();
        if hurried {
            self.workload.timeout = self.workload.timeout.min(HURRIED);
        }
        if let Err(failure) = self.hook("--cleanup", self.hooks.cleanup.clone(), !hurried) {
            (self.means.warn)(&format!("{failure}"));
        }
    }

    /// `heeds`: the user's stop ends it.
    fn sample(&mut self, workload: &Workload, heeds: bool) -> Result<Sample, Failure> {
        let cgroup = self.ground.as_ref().and_then(|g| g.cgroup.as_ref());
        let cgroup = cgroup.map(|c| c.child(CGROUP)).transpose()?;
        // The guardian gets messages about runs, and is checked while they last.
        let (guardian, means) = (RefCell::new(&mut self.guardian), &self.means);
        let stopped = || {
            // If there cannot be a new guardian, the next switch fails.
            let _ = guarded(&mut guardian.borrow_mut(), means.warn);
            heeds && (means.stopped)()
        };
        let mut started = |group| {
            let mut guardian = guardian.borrow_mut();
            guardian.iter_mut().for_each(|g| g.tell(Word::Runs(group)));
        };
        let helper = || guardian.borrow().as_ref().map(Guardian::pid);
        let sample = child::run(workload, cgroup.as_ref(), &helper, &stopped, &mut started);
        if let Some(guardian) = &mut self.guardian {
            guardian.tell(Word::Ended);
        }
        cgroup.iter().for_each(Cgroup::remove);
        sample
    }

    /// Runs the command and measures. `arm`: the one that it is on, whose counters are its own;
    /// None: that of all tasks.
    fn measured(&mut self, arm: Option<&str>) -> Result<Taken, Failure> {
        let mut command = self.workload.clone();
        if let (Some(scheduler), Some(arm)) = (&self.scheduler, arm) {
            scheduler.puts_on(arm, &self.means.program, &mut command);
        }
        let epoch = self.attached().epoch();
        let before = self.counts(arm)?;
        let conditions = Conditions::before(&self.means.host);
        let sample = self.sample(&command, true);
        let own_s = sample.as_ref().map_or(0.0, Sample::cpu_s);
        let seen = conditions.after(&self.means.host, own_s);
        // Check the scheduler first: the command may have failed because the scheduler did.
        if !matches!(sample, Err(Failure::Stopped)) {
            self.check()
                .and_then(|()| same(&epoch, &self.attached().epoch()))
                .context("while the command ran")?;
        }
        let mut taken = Taken {
            sample: sample?,
            counters: BTreeMap::new(),
            seen,
        };
        if let Some((before, after)) = before.zip(self.counts(arm)?) {
            let grown = after.since(&before);
            taken.sample.values.extend(grown.quantiles());
            taken.counters = grown.counters();
        }
        Ok(taken)
    }

    /// The counters of an arm. None: the scheduler is not scx_roost.
    fn counts(&self, arm: Option<&str>) -> Result<Option<Counts>> {
        let stats = self.scheduler.as_ref().and_then(Scheduler::stats);
        stats.map(|path| Counts::ask(&path, arm)).transpose()
    }
}

/// The command that ends a scheduler, by the name of its operations.
fn how_to_end(name: &str) -> &'static str {
    match name.split('_').next() {
        Some("roost") => "by 'scx_roost stop'",
        _ => "by 'systemctl stop' of its service, 'scxctl stop', or Ctrl-C where it runs",
    }
}

/// Fails if no guardian runs and a new one cannot be started.
fn guarded(guardian: &mut Option<Guardian>, warn: &dyn Fn(&str)) -> Result<()> {
    let lost = guardian.as_mut().map(Guardian::look).transpose()?;
    lost.flatten().iter().for_each(|lost| warn(lost));
    Ok(())
}

/// Fails unless one scheduler was attached during the whole run.
fn same(before: &Epoch, after: &Epoch) -> Result<()> {
    let name = |epoch: &Epoch| epoch.name.clone().unwrap_or("the kernel's own".to_string());
    ensure!(
        before == after,
        "schedulers were attached again ({} before, {} after): CPUs came or went, the machine was suspended, or another program starts schedulers",
        name(before),
        name(after)
    );
    Ok(())
}

impl Machine for Real<'_> {
    fn begin(&mut self, variants: &[Variant]) -> Result<()> {
        self.refuse_what_cannot_be(variants)?;
        self.place(variants)?;
        let own_arm = self.scope == Scope::Workload;
        self.others = variants.first().filter(|_| own_arm).cloned();
        let begun = self.prepare().and_then(|()| self.set_up());
        match (begun, self.guardian.is_some()) {
            (Err(e), true) => match self.restore() {
                Ok(()) => Err(e),
                Err(r) => Err(e.context(format!("the machine was not restored: {r:#}"))),
            },
            (prepared, _) => prepared,
        }
    }

    fn boot(&self) -> Result<Boot> {
        Boot::now(&self.means.host, facts(&self.means.host))
    }

    fn switch(&mut self, variant: &Variant) -> Result<(), Failure> {
        guarded(&mut self.guardian, self.means.warn)?;
        let kept = self.scheduler.as_mut().map(|s| s.become_variant(variant));
        if !kept.transpose()?.unwrap_or(false) {
            self.stop()?;
            self.start(variant).map_err(|failure| match failure {
                Failure::Other(e) => e.context(format!("variant {}", variant.name)).into(),
                other => other,
            })?;
        }
        let cpus = self.cpus.get(&variant.name).cloned();
        self.workload.cpus = cpus.unwrap_or_default();
        sleep(SETTLE);
        Ok(self.check()?)
    }

    fn run(&mut self) -> Result<Taken, Failure> {
        self.hook("--prepare", self.hooks.prepare.clone(), true)?;
        self.measured(self.scheduler.as_ref().and_then(Scheduler::own_arm))
    }

    fn restore(&mut self) -> Result<()> {
        let stopped = self.stop();
        // Afterwards: nothing of the machine waits for a command of the user.
        self.clean_up();
        let cleared = self.ground.take().map_or(Ok(()), |ground| ground.clear());
        let wrong: Vec<String> = [stopped, cleared]
            .into_iter()
            .filter_map(|r| Some(format!("{:#}", r.err()?)))
            .collect();
        ensure!(wrong.is_empty(), "{}", wrong.join("; "));
        // The guardian retries what we could not restore.
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
        self.alone = None;
        Ok(())
    }
}
