// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler that was attached at the start. Its service was stopped, and is started again at
//! the end.

use super::live::{Live, ctl_path};
use super::scheduler::Attached;
use super::service::{Call, Running, Service, own_unit, running};
use crate::machine::Machine;
use crate::machine::host::Host;
use crate::util::refusal::BadConfig;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreviousScheduler {
    /// The name in sched_ext/root/ops.
    pub name: String,
    pub service: Service,
    /// /sys/kernel of the kernel that it schedules for.
    pub kernel: PathBuf,
    /// If it is scx_roost: its control socket, and what `ctl` had set.
    pub live: Option<(PathBuf, Live)>,
}

impl PreviousScheduler {
    /// The scheduler that is attached now; None: the kernel's own. `warn` gets a sentence about
    /// what a restart will lose. Fails if the scheduler could not be started again.
    pub fn found(
        host: &Host,
        call: Call,
        warn: &dyn Fn(&str),
    ) -> Result<Option<PreviousScheduler>> {
        let Some(name) = Attached(host).name() else {
            return Ok(None);
        };
        let running = running(host);
        let service = Service::of(&name, &running, own_unit(host).as_deref(), call)?;
        let live = match ctl_path(&running) {
            // A file of a relative path may be another one here than there.
            Err(e) if e.is::<BadConfig>() && !running.iter().any(Running::names_files_here) => {
                bail!("the attached scheduler could not be started again: {e:#}")
            }
            found => found.and_then(|ctl| ctl.map(asked).transpose()),
        };
        let live = live.unwrap_or_else(|e| {
            warn(&format!(
                "{e:#}: the attached scheduler loses what ctl has set when it is started again"
            ));
            None
        });
        let loses = live.as_ref().and_then(|(_, live)| live.loses());
        loses.into_iter().for_each(warn);
        Ok(Some(PreviousScheduler {
            name,
            service,
            kernel: host.kernel.clone(),
            live,
        }))
    }

    /// Returns when the scheduler is attached and configured as before. Starts its service even if
    /// another scheduler does not detach within `patience`. Fails if it is not attached or not as
    /// before.
    pub fn restore(&self, call: Call, patience: Duration) -> Result<()> {
        self.start(call, patience)?;
        let Some((ctl, live)) = &self.live else {
            return Ok(());
        };
        let machine = Machine::read(Path::new("/sys"));
        let given = machine.and_then(|machine| live.give_back(ctl, machine.cpus.len() as u32));
        given.with_context(|| {
            format!(
                "the scheduler {} is attached again, but without all that ctl had set",
                self.name
            )
        })
    }

    fn start(&self, call: Call, patience: Duration) -> Result<()> {
        let host = Host {
            kernel: self.kernel.clone(),
            ..Host::new(Path::new("/sys"))
        };
        let attached = Attached(&host);
        let is = attached.is(&self.name);
        if is && self.service.stays(call) {
            return Ok(());
        }
        // A running unit is not affected. If its stop is still in progress, it starts again
        // afterwards.
        if is && matches!(self.service, Service::Systemd { .. }) {
            return self.told_to_start(call);
        }
        let gone = attached.wait_until_gone(patience);
        self.told_to_start(call)
            .with_context(|| format!("the scheduler {} was not started again", self.name))?;
        match gone {
            Ok(()) => attached.wait_until(&self.name),
            Err(_) if attached.is(&self.name) => Ok(()),
            Err(e) => bail!(
                "{e:#}; the service of {} was started all the same",
                self.name
            ),
        }
    }
    /// Tries twice: systemctl or busctl may have been killed.
    fn told_to_start(&self, call: Call) -> Result<()> {
        let started = self.service.start(call);
        started.or_else(|_| self.service.start(call))
    }
}

fn asked(ctl: PathBuf) -> Result<(PathBuf, Live)> {
    Ok((ctl.clone(), Live::ask(&ctl)?))
}
