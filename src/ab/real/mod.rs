// SPDX-License-Identifier: GPL-2.0-only
//! The machine that this runs on: schedulers that are started and stopped, and the state in which it was found.

mod conditions;
mod counts;
pub mod guardian;
mod scheduler;
pub mod service;

pub use conditions::facts;

use super::child::{self, Failure, Workload};
use super::machine::{Machine, Taken};
use super::metric::Measured;
use super::variant::{Kind, Variant};
use crate::host::Host;
use anyhow::{Context, Result, bail, ensure};
use conditions::Conditions;
use counts::Counts;
use guardian::Guardian;
use scheduler::{Attached, Scheduler};
use service::Service;
use std::thread::sleep;
use std::time::Duration;

/// Between a switch and the run behind it.
const SETTLE: Duration = Duration::from_millis(300);

pub struct Real<'a> {
    host: Host,
    workload: Workload,
    stopped: &'a dyn Fn() -> bool,
    scheduler: Option<Scheduler>,
    /// That was attached at the start, and is to be again.
    service: Option<Service>,
    guardian: Option<Guardian>,
}

impl<'a> Real<'a> {
    pub fn new(host: Host, workload: Workload, stopped: &'a dyn Fn() -> bool) -> Real<'a> {
        Real {
            host,
            workload,
            stopped,
            scheduler: None,
            service: None,
            guardian: None,
        }
    }

    fn attached(&self) -> Attached<'_> {
        Attached(&self.host)
    }

    /// Is still what the variant says?
    fn check(&mut self) -> Result<()> {
        match &mut self.scheduler {
            Some(scheduler) => scheduler.check(&Attached(&self.host)),
            None => {
                let name = self.attached().name();
                ensure!(
                    name.is_none(),
                    "the scheduler {} was attached meanwhile",
                    name.unwrap_or_default()
                );
                Ok(())
            }
        }
    }

    fn measured(&mut self) -> Result<Taken, Failure> {
        let before = self.counts()?;
        let conditions = Conditions::before(&self.host);
        let mut guardian = self.guardian.as_mut();
        let sample = child::run(&self.workload, self.stopped, &mut |pid| {
            guardian.iter_mut().for_each(|g| g.runs(pid));
        });
        if let Some(guardian) = &mut self.guardian {
            guardian.ended();
        }
        let seen = conditions.after(&self.host);
        let mut sample = sample?;
        self.check()
            .context("the scheduler went away while the command ran")?;
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
        match self.scheduler.as_ref().and_then(Scheduler::stats) {
            Some(path) => Counts::ask(&path).map(Some),
            None => Ok(None),
        }
    }
}

impl Machine for Real<'_> {
    fn begin(&mut self, variants: &[Variant]) -> Result<()> {
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
        child::become_subreaper()?;
        let found = self.attached().name();
        let service = found
            .map(|name| Service::of(&name, &service::call))
            .transpose()?;
        let mut guardian = Guardian::start()?;
        if let Some(service) = &service {
            guardian.restores(service)?;
            service.stop(&service::call)?;
            self.attached().wait_until_gone()?;
        }
        (self.guardian, self.service) = (Some(guardian), service);
        Ok(())
    }

    fn switch(&mut self, variant: &Variant) -> Result<()> {
        let kept = self.scheduler.as_mut().map(|s| s.become_variant(variant));
        if !kept.transpose()?.unwrap_or(false) {
            if let Some(scheduler) = self.scheduler.take() {
                scheduler.stop(&self.attached())?;
            }
            let started = Scheduler::start(variant, &self.attached(), self.stopped);
            self.scheduler = started.with_context(|| format!("variant {}", variant.name))?;
        }
        sleep(SETTLE);
        self.check()
    }

    fn run(&mut self) -> Result<Taken, Failure> {
        self.measured()
    }

    fn restore(&mut self) -> Result<()> {
        let stopped = match self.scheduler.take() {
            Some(scheduler) => scheduler.stop(&self.attached()),
            None => Ok(()),
        };
        let started = match self.service.take() {
            Some(service) => service.start(&service::call),
            None => Ok(()),
        };
        if stopped.is_err() || started.is_err() {
            bail!(
                "{}",
                [stopped, started]
                    .into_iter()
                    .filter_map(|r| Some(format!("{:#}", r.err()?)))
                    .collect::<Vec<_>>()
                    .join("; ")
            );
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
        Ok(())
    }
}

/// What only a scheduler of ours can tell.
pub const OF_ROOST: [Measured; 2] = [Measured::WakeupP50, Measured::WakeupP99];
