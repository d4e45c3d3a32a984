// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler that was attached at the start: its service was stopped, and it is to be attached again in the end.

use super::live::{Live, ctl_path};
use super::scheduler::Attached;
use super::service::{Call, Service, own_unit, running};
use crate::host::Host;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Former {
    /// As the kernel calls it.
    pub name: String,
    pub service: Service,
    /// /sys/kernel, of which it schedules the tasks.
    pub kernel: PathBuf,
    /// Its control socket, if it is one of ours, and what was set by it.
    pub live: Option<(PathBuf, Live)>,
}

impl Former {
    /// That is attached now; None where it is the kernel's own. `warn` is told what it will not have when it is started again. Errors: it could
    /// not be started again.
    pub fn found(host: &Host, call: Call, warn: &dyn Fn(&str)) -> Result<Option<Former>> {
        let Some(name) = Attached(host).name() else {
            return Ok(None);
        };
        let running = running(host);
        let service = Service::of(&name, &running, own_unit(host).as_deref(), call)?;
        let live = ctl_path(&running).map(|ctl| (Live::ask(&ctl), ctl));
        if let Some((Err(e), _)) = &live {
            warn(&format!(
                "{e:#}: what ctl has set of the attached scheduler is gone when it is started again"
            ));
        }
        let live = live.and_then(|(live, ctl)| Some((ctl, live.ok()?)));
        let loses = live.as_ref().and_then(|(_, live)| live.loses());
        loses.into_iter().for_each(warn);
        Ok(Some(Former {
            name,
            service,
            kernel: host.kernel.clone(),
            live,
        }))
    }

    /// Comes back when it is attached, and as it was. Its service is told to start even where another scheduler does not go away. Errors: it is
    /// not attached, or not as it was.
    pub fn restore(&self, call: Call) -> Result<()> {
        self.start(call)?;
        let Some((ctl, live)) = &self.live else {
            return Ok(());
        };
        live.give_back(ctl).with_context(|| {
            format!(
                "the scheduler {} is attached again, without all that ctl had set of it",
                self.name
            )
        })
    }

    fn start(&self, call: Call) -> Result<()> {
        let host = Host {
            kernel: self.kernel.clone(),
            ..Host::new(Path::new("/sys"))
        };
        let attached = Attached(&host);
        let is = attached.is(&self.name);
        if is && self.service.stays(call) {
            return Ok(());
        }
        // A unit that runs stays as it is, and one of which the stop is still on its way comes back behind it.
        if is && matches!(self.service, Service::Systemd { .. }) {
            return self.told_to_start(call);
        }
        let gone = attached.wait_until_gone();
        self.told_to_start(call)
            .with_context(|| format!("the scheduler {} is not started again", self.name))?;
        match gone {
            Ok(()) => attached.wait_until(&self.name),
            Err(_) if attached.is(&self.name) => Ok(()),
            Err(e) => bail!(
                "{e:#}; the service of {} was told to start all the same",
                self.name
            ),
        }
    }
    /// Twice, if need be: who was told may have been killed.
    fn told_to_start(&self, call: Call) -> Result<()> {
        let started = self.service.start(call);
        started.or_else(|_| self.service.start(call))
    }
}
