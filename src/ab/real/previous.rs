// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler that was attached at the start. Its service is stopped, and started again at the
//! end. What `ctl` has changed in it, and not saved, would be lost: then it is not stopped.

use super::scheduler::Attached;
use super::service::{Call, Running, Service, own_unit, running};
use crate::cli::{self, Command};
use crate::machine::host::Host;
use crate::policy::arms::DEFAULT_ARM;
use crate::util::refusal::{BadConfig, Refused};
use crate::wire::client::{ask, is_absent};
use crate::wire::protocol::Op;
use crate::wire::socket::connect;
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PreviousScheduler {
    /// The name in sched_ext/root/ops.
    pub name: String,
    pub service: Service,
    /// /sys/kernel of the kernel that it schedules for.
    pub kernel: PathBuf,
}

impl PreviousScheduler {
    /// The scheduler that is attached now; None: the kernel's own. `warn` gets a sentence about
    /// what a restart may lose. Fails if the scheduler could not be started again as it is.
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
        match ctl_path(&running) {
            Ok(None) => (),
            Ok(Some(ctl)) => saved(&ctl, warn)?,
            // A file of a relative path may be another one here than there.
            Err(e) if e.is::<BadConfig>() && !running.iter().any(Running::names_files_here) => {
                bail!("the attached scheduler could not be started again: {e:#}")
            }
            Err(e) => warn(&format!(
                "{e:#}: the attached scheduler loses what ctl has set when it is started again"
            )),
        }
        Ok(Some(PreviousScheduler {
            name,
            service,
            kernel: host.kernel.clone(),
        }))
    }

    /// Returns when the scheduler is attached. Starts its service even if another scheduler does
    /// not detach within `patience`. Fails if it is not attached.
    pub fn restore(&self, call: Call, patience: Duration) -> Result<()> {
        let host = Host {
            kernel: self.kernel.clone(),
            ..Host::new(Path::new("/sys"))
        };
        let attached = Attached(&host);
        // A running unit is not affected. If its stop is still in progress, it starts again
        // afterwards.
        if attached.is(&self.name) {
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

    /// Tries twice: systemctl may have been killed.
    fn told_to_start(&self, call: Call) -> Result<()> {
        let started = self.service.start(call);
        started.or_else(|_| self.service.start(call))
    }
}

/// The control socket of a scx_roost among these processes, from its command line and its
/// configuration files. Fails if a start with them would fail now.
pub fn ctl_path(running: &[Running]) -> Result<Option<PathBuf>> {
    let path = |one: &Running| match cli::parse(one.words.iter()) {
        Ok(Command::Run { config, .. }) => Some(Ok(config.ctl_path)),
        Ok(_) => None,
        Err(e) => Some(Err(e)),
    };
    let ours = running.iter().filter(|one| one.program() == "scx_roost");
    let mut errors = Vec::new();
    for found in ours.filter_map(path) {
        match found {
            Ok(ctl) => return Ok(Some(ctl)),
            Err(e) => errors.push(e),
        }
    }
    errors.into_iter().next().map_or(Ok(None), Err)
}

/// Fails if `ctl` has changed what `ctl save` has not kept, or if the scheduler does not say.
/// `ctl`: its control socket. If nothing listens there, `ctl` can have changed nothing.
pub fn saved(ctl: &Path, warn: &dyn Fn(&str)) -> Result<()> {
    if connect(ctl, PATIENCE).is_err_and(|e| is_absent(e.kind())) {
        return Ok(());
    }
    let errno = |e: &anyhow::Error| e.downcast_ref::<Refused>().map(|refused| refused.0);
    match ask(ctl, &Op::Save {}) {
        Ok(_) => bail!(
            "the attached scheduler has changes of ctl that a restart would lose: save or reset them first, by 'scx_roost ctl save' or by restarting its service"
        ),
        Err(e) if errno(&e) == Some(libc::ENODATA) => (),
        Err(e) if errno(&e) == Some(libc::EOPNOTSUPP) => warn(&format!(
            "the attached scheduler loses what ctl has set when it is started again, and does not say whether there is something: {e:#}"
        )),
        Err(e) => {
            return Err(e.context(
                "the attached scheduler does not say whether ctl has changes that a restart would lose: end it first",
            ));
        }
    }
    let shown = ask(ctl, &Op::Show { arm: None })?;
    let arms = shown["arms"]
        .as_array()
        .context("an answer of the scheduler")?;
    if arms.iter().any(|arm| arm["name"] != DEFAULT_ARM) {
        warn(
            "the attached scheduler has arms: processes put there by `exec` and by rules about processes are not put back when it is started again",
        );
    }
    Ok(())
}
