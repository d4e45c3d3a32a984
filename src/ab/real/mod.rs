// SPDX-License-Identifier: GPL-2.0-only
//! The machine that this runs on: schedulers that are started and stopped, and the state in which it was found.

pub mod arm;
mod conditions;
mod counts;
pub mod former;
pub mod ground;
pub mod guardian;
mod scheduler;
pub mod service;

pub use conditions::facts;

use super::cgroup::Cgroup;
use super::child::{self, Failure, Sample, Workload};
use super::machine::{Machine, Taken};
use super::metric::Measured;
use super::variant::{Kind, Scope, Variant};
use crate::host::Host;
use anyhow::{Context, Result, bail, ensure};
use conditions::Conditions;
use counts::Counts;
use former::Former;
use ground::Ground;
use guardian::{Guardian, Word};
use scheduler::{Attached, Epoch, Scheduler};
use service::Call;
use std::fs::File;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// Between a switch and the run behind it.
const SETTLE: Duration = Duration::from_millis(300);
/// The command's cgroup below ours.
const CGROUP: &str = "command";

/// What a `Real` is given.
pub struct Means<'a> {
    pub host: Host,
    /// scx_roost, for schedulers and for the process that outlives us.
    pub program: PathBuf,
    /// For services.
    pub call: Call<'a>,
    pub stopped: &'a dyn Fn() -> bool,
    /// Is told what will be less good than it could be.
    pub warn: &'a dyn Fn(&str),
}

pub struct Real<'a> {
    means: Means<'a>,
    scope: Scope,
    /// That all but the command are on; None: they are where it is.
    others: Option<Variant>,
    workload: Workload,
    alone: Option<File>,
    ground: Option<Ground>,
    scheduler: Option<Scheduler>,
    /// That was attached at the start, and is to be again.
    former: Option<Former>,
    guardian: Option<Guardian>,
}

impl<'a> Real<'a> {
    pub fn new(means: Means<'a>, scope: Scope, workload: Workload) -> Real<'a> {
        Real {
            means,
            scope,
            others: None,
            workload,
            alone: None,
            ground: None,
            scheduler: None,
            former: None,
            guardian: None,
        }
    }

    fn attached(&self) -> Attached<'_> {
        Attached(&self.means.host)
    }

    fn refuse_what_cannot_be(&self, variants: &[Variant]) -> Result<()> {
        let wants_scx = variants.iter().any(|v| v.kind != Kind::Eevdf);
        ensure!(
            self.attached().known() || !wants_scx,
            "this kernel has no sched_ext, which all variants but eevdf need: 'scx_roost doctor' says more"
        );
        // SAFETY: a plain call.
        let root = unsafe { libc::geteuid() } == 0;
        ensure!(
            root || !wants_scx,
            "schedulers are loaded by root: run it as root or with sudo"
        );
        Ok(())
    }

    /// All that `restore` undoes is noted before it is done.
    fn prepare(&mut self) -> Result<()> {
        let host = &self.means.host;
        let alone = self.alone.insert(ground::alone(host)?);
        child::become_subreaper()?;
        let former = Former::found(host, self.means.call)?;
        let (ground, why) = Ground::new(host)?;
        if let Some(why) = why {
            (self.means.warn)(&format!(
                "{why}: when this process is killed, what the command has put into other process groups goes on"
            ));
        }
        self.ground = Some(ground.clone());
        let guardian = Guardian::start(&self.means.program, alone)?;
        let guardian = self.guardian.insert(guardian);
        guardian.say(&Word::Owns(ground))?;
        if let Some(former) = former {
            guardian.say(&Word::Restores(former.clone()))?;
            self.former.insert(former).service.stop(self.means.call)?;
            self.attached().wait_until_gone()?;
        }
        Ok(())
    }

    /// Is still what the variant says?
    fn check(&mut self) -> Result<()> {
        let attached = Attached(&self.means.host);
        match &mut self.scheduler {
            Some(scheduler) => scheduler.check(&attached),
            None => match attached.name() {
                None => Ok(()),
                Some(name) => bail!("the scheduler {name} was attached meanwhile"),
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
                    .for_each(|g| g.tell(&Word::Schedules(group)));
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
            guardian.tell(&Word::ScheduledOut);
        }
        stopped
    }

    /// One run of the command alone.
    fn sample(&mut self) -> Result<Sample, Failure> {
        let cgroup = self.ground.as_ref().and_then(|g| g.cgroup.as_ref());
        let cgroup = cgroup.map(|c| c.child(CGROUP)).transpose()?;
        let mut workload = self.workload.clone();
        if let Some(scheduler) = &self.scheduler {
            let before = scheduler.puts_on_arm(&self.means.program);
            workload.command.splice(0..0, before);
        }
        let guardian = &mut self.guardian;
        let sample = child::run(
            &workload,
            cgroup.as_ref(),
            self.means.stopped,
            &mut |group| {
                guardian.iter_mut().for_each(|g| g.tell(&Word::Runs(group)));
            },
        );
        if let Some(guardian) = &mut self.guardian {
            guardian.tell(&Word::Ended);
        }
        cgroup.iter().for_each(Cgroup::remove);
        sample
    }

    fn measured(&mut self) -> Result<Taken, Failure> {
        let epoch = self.attached().epoch();
        let before = self.counts()?;
        let conditions = Conditions::before(&self.means.host);
        let sample = self.sample();
        let seen = conditions.after(&self.means.host);
        // Before the command is blamed: it may have failed because its scheduler did.
        if !matches!(sample, Err(Failure::Stopped)) {
            self.check()
                .and_then(|()| same(&epoch, &self.attached().epoch()))
                .context("while the command ran")?;
        }
        let mut sample = sample?;
        let mut taken = Taken {
            seen,
            ..Taken::default()
        };
        if let (Some(before), Some(after)) = (before, self.counts()?) {
            let wakeups = after.since(&before);
            sample.values.extend(wakeups.quantiles());
            taken.counters = wakeups.counters();
        }
        taken.sample = sample;
        Ok(taken)
    }

    /// Of a scheduler of ours.
    fn counts(&self) -> Result<Option<Counts>> {
        let Some(scheduler) = &self.scheduler else {
            return Ok(None);
        };
        let stats = scheduler.stats();
        let counts = stats.map(|path| Counts::ask(&path, scheduler.counted_arm()));
        counts.transpose()
    }
}

/// The run was under one scheduler from its begin to its end.
fn same(before: &Epoch, after: &Epoch) -> Result<()> {
    let name = |epoch: &Epoch| epoch.name.clone().unwrap_or("the kernel's own".to_string());
    ensure!(
        before == after,
        "schedulers were attached anew ({} before, {} behind): CPUs that came or went, a suspend, or somebody who starts schedulers",
        name(before),
        name(after)
    );
    Ok(())
}

impl Machine for Real<'_> {
    fn begin(&mut self, variants: &[Variant]) -> Result<()> {
        self.refuse_what_cannot_be(variants)?;
        let own_arm = self.scope == Scope::Workload;
        self.others = variants.first().filter(|_| own_arm).cloned();
        match (self.prepare(), self.ground.is_some()) {
            (Err(e), true) => match self.restore() {
                Ok(()) => Err(e),
                Err(r) => Err(e.context(format!("the machine is not as it was: {r:#}"))),
            },
            (prepared, _) => prepared,
        }
    }

    fn switch(&mut self, variant: &Variant) -> Result<(), Failure> {
        let kept = self.scheduler.as_mut().map(|s| s.become_variant(variant));
        if !kept.transpose()?.unwrap_or(false) {
            self.stop()?;
            self.start(variant).map_err(|failure| match failure {
                Failure::Other(e) => e.context(format!("variant {}", variant.name)).into(),
                other => other,
            })?;
        }
        sleep(SETTLE);
        Ok(self.check()?)
    }

    fn run(&mut self) -> Result<Taken, Failure> {
        self.measured()
    }

    fn restore(&mut self) -> Result<()> {
        let stopped = self.stop();
        let started = match &self.former {
            Some(former) => former.restore(self.means.call),
            None => Ok(()),
        };
        let cleared = self.ground.take().map_or(Ok(()), |ground| ground.clear());
        let wrong: Vec<String> = [stopped, started, cleared]
            .into_iter()
            .filter_map(|r| Some(format!("{:#}", r.err()?)))
            .collect();
        ensure!(wrong.is_empty(), "{}", wrong.join("; "));
        // It tries once more what we could not.
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
        self.former = None;
        self.alone = None;
        Ok(())
    }
}

/// What only a scheduler of ours can tell.
pub const OF_ROOST: [Measured; 2] = [Measured::WakeupP50, Measured::WakeupP99];
