// SPDX-License-Identifier: GPL-2.0-only
//! One run: load, attach, look, unload. A loop does this again when a CPU comes online that was
//! offline at the load, or when the machine has changed otherwise.

use crate::bpf::exit::Exit;
use crate::bpf::intf::{policy_image, tunables};
use crate::daemon::control::Control;
use crate::daemon::load::{Instance, load_object};
use crate::daemon::looks::Looks;
use crate::daemon::urgent::Urgent;
use crate::daemon::watch::{Past, Watch};
use crate::machine::cpufreq::{self, CpuFreq};
use crate::machine::host::Host;
use crate::machine::own_group::RootPays;
use crate::machine::picture;
use crate::machine::{Machine, read_machine};
use crate::policy::config::Config;
use crate::publish::Scans;
use crate::util::stop::Stop;
use crate::wire::stats::host::Event;
use crate::wire::stats::source::{CounterSource, Running};
use anyhow::{Result, bail};
use libbpf_rs::OpenObject;
use log::info;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

/// Why the scheduler is no longer loaded.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Ended {
    /// The run goes on: a CPU came online, or the machine has changed otherwise. The scheduler is
    /// loaded again.
    pub restarts: bool,
    /// What failed. None: it was stopped, or it restarts.
    pub error: Option<String>,
}

type OnAttached = Box<dyn FnMut(u64) + Send>;
type OnEnded = Box<dyn FnMut(&Ended) + Send>;

/// What a run calls when its scheduler was attached, and when it is no longer loaded.
#[derive(Default)]
pub struct Observer {
    pub attached: Option<OnAttached>,
    pub ended: Option<OnEnded>,
    attached_notified: bool,
}

impl Observer {
    fn notify_attached(&mut self, restarts: u64) {
        self.attached_notified = true;
        if let Some(call) = &mut self.attached {
            call(restarts);
        }
    }

    /// Does nothing if it was not attached.
    fn notify_ended(&mut self, restarts: bool, error: Option<&anyhow::Error>) {
        if let (true, Some(call)) = (std::mem::take(&mut self.attached_notified), &mut self.ended) {
            call(&Ended {
                restarts,
                error: error.map(|e| format!("{e:#}")),
            });
        }
    }
}

enum End {
    Kernel(Exit),
    MachineChanged,
}

pub struct Runner {
    config: Config,
    host: Host,
    source: CounterSource,
    control: Control,
    /// The map of tasks that were put on an arm. It outlives a load.
    members: Option<OwnedFd>,
    stop: Stop,
    observer: Observer,
    restarts: u64,
    past: Past,
}

impl Runner {
    pub fn new(
        config: Config,
        host: Host,
        source: CounterSource,
        control: Control,
        observer: Observer,
        stop: Stop,
    ) -> Runner {
        Runner {
            config,
            host,
            source,
            control,
            members: None,
            stop,
            observer,
            restarts: 0,
            past: Past::default(),
        }
    }

    pub fn run(mut self) -> Result<()> {
        while !self.stop.stopped() {
            let end = self.run_once();
            let again = match &end {
                _ if self.stop.stopped() => false,
                Ok(End::Kernel(exit)) => exit.restarts,
                Ok(End::MachineChanged) => true,
                Err(_) => false,
            };
            self.observer.notify_ended(again, end.as_ref().err());
            match end? {
                _ if !again => return Ok(()),
                End::Kernel(_) => {
                    info!("restarting: a CPU came online that was offline at the load");
                }
                End::MachineChanged => {
                    info!("the machine has changed since this scheduler was loaded: restarting");
                }
            }
            self.restarts += 1;
            self.source.event(Event::MachineChanged);
        }
        Ok(())
    }

    fn announce(&self, policy: &policy_image, tun: &tunables, machine: &Machine, begin: Instant) {
        let everybody = self.control.everybody();
        info!(
            "scx_roost runs: {} ({}), slice {} us, cpuperf {}; {}; loaded in {} ms",
            everybody.shown_as(machine.cpus.len() as u32),
            everybody.features,
            policy.arm[0].task.slice_ns / 1000,
            cpufreq::mode_name(tun.cpuperf),
            picture::summary(machine),
            begin.elapsed().as_millis()
        );
        if self.restarts == 0 {
            info!(
                "watch it: scx_roost monitor; change it: scx_roost ctl; stop it: scx_roost stop, or \
                 Ctrl-C here"
            );
        }
    }

    /// Loads, watches and unloads the scheduler once.
    fn run_once(&mut self) -> Result<End> {
        let begin = Instant::now();
        let root_pays = RootPays::begin(&self.host)?;
        let urgent = Urgent::begin();
        let (machine, hotplug_seq) = read_machine(&self.host, self.restarts > 0)?;
        let cpufreq = CpuFreq::read(&self.host);
        let tun = self.config.tunables_on(&self.host, &cpufreq);
        let facts = machine.facts()?;
        let timers = tun.timers != 0;
        let (host, control, source) = (&self.host, &self.control, &self.source);
        let past = self.past;
        let watch = Watch::new(&self.config, host, control, source, &machine, timers, past);
        let watch = match root_pays.for_good {
            true => watch,
            false => watch.pays_itself(),
        };
        let scans = Scans::new(&facts.llcs, &facts.llc_cpus, self.config.freq_period);
        self.control.set_scans(scans);
        let policy = self
            .control
            .image(machine.cpus.len() as u32, watch.capacities());
        let mut object = MaybeUninit::<OpenObject>::uninit();
        let mut scheduler = Instance::new(load_object(
            &self.config,
            &facts,
            &tun,
            &policy,
            hotplug_seq,
            self.members.as_ref().map(OwnedFd::as_fd),
            &mut object,
        )?);
        self.members = Some(scheduler.members()?);
        let told = self.control.attach(Box::new(scheduler.live()?), &policy)?;
        scheduler.attach()?;
        drop(urgent);
        drop(root_pays);
        let counters = scheduler.counters()?;
        let counting = self.source.attach(Box::new(counters), self.describe(&tun));
        self.announce(&policy, &tun, &machine, begin);
        let looks = Looks::start(watch, control, source, self.config.freq_period)?;
        self.observer.notify_attached(self.restarts);
        let over = looks.wait(&self.stop)?;
        drop(counting);
        drop(told);
        let exit = scheduler.unload()?;
        self.past = over.past;
        if over.left_behind && exit.restarts && !self.stop.stopped() {
            // Reading the machine again would wait for the same file, and nothing could interrupt
            // that.
            bail!(
                "the machine has changed and cannot be read again, because reading a file in /sys or /proc does not return: find that file, then start scx_roost again"
            );
        }
        Ok(if over.machine_changed && !exit.restarts {
            End::MachineChanged
        } else {
            End::Kernel(exit)
        })
    }

    fn describe(&self, tun: &tunables) -> Running {
        Running {
            cpuperf: cpufreq::mode_name(tun.cpuperf).to_string(),
            restarts: self.restarts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn an_end_is_reported_once_after_each_attach() {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let (one, two) = (told.clone(), told.clone());
        let mut observer = Observer {
            attached: Some(Box::new(move |restarts| {
                one.lock().unwrap().push(format!("attached {restarts}"));
            })),
            ended: Some(Box::new(move |ended| {
                two.lock()
                    .unwrap()
                    .push(format!("{} {:?}", ended.restarts, ended.error));
            })),
            ..Observer::default()
        };
        // It failed before it was attached.
        observer.notify_ended(false, Some(&anyhow::anyhow!("no")));
        observer.notify_attached(0);
        observer.notify_ended(true, None);
        observer.notify_ended(true, None);
        observer.notify_attached(1);
        let error = anyhow::anyhow!("EXIT").context("it ended");
        observer.notify_ended(false, Some(&error));
        let said = [
            "attached 0",
            "true None",
            "attached 1",
            "false Some(\"it ended: EXIT\")",
        ];
        assert_eq!(*told.lock().unwrap(), said);
        let mut silent = Observer::default();
        silent.notify_attached(0);
        silent.notify_ended(false, None);
    }
}
