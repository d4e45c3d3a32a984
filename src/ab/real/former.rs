// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler that was attached at the start: its service was stopped, and it is to be attached again in the end.

use super::scheduler::Attached;
use super::service::{Call, Service};
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
}

impl Former {
    /// That is attached now; None where it is the kernel's own. Errors: it could not be started again.
    pub fn found(host: &Host, call: Call) -> Result<Option<Former>> {
        let former = |name: String| {
            Ok(Former {
                service: Service::of(&name, host, call)?,
                name,
                kernel: host.kernel.clone(),
            })
        };
        Attached(host).name().map(former).transpose()
    }

    /// Comes back when it is attached. Its service is told to start even where another scheduler does not go away. Errors: it is not attached.
    pub fn restore(&self, call: Call) -> Result<()> {
        let host = Host {
            kernel: self.kernel.clone(),
            ..Host::new(Path::new("/sys"))
        };
        let attached = Attached(&host);
        if attached.is(&self.name) {
            // A unit that runs stays as it is, and one of which the stop is still on its way comes back behind it.
            return match self.service {
                Service::Systemd { .. } => self.service.start(call),
                Service::Loader { .. } => Ok(()),
            };
        }
        let gone = attached.wait_until_gone();
        self.service
            .start(call)
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
}
