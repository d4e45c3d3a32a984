// SPDX-License-Identifier: GPL-2.0-only
//! The control socket: arms and rules of the running scheduler. They live here, in the process; a loaded scheduler is
//! told of them, and so is the next one after a restart. Each request is carried out whole or not at all; those that
//! arrived together are published together.

use crate::arms::{Arms, Change, Settings};
use crate::bpf::intf::policy_image;
use crate::features::bits;
use crate::machine::FreqFiles;
use crate::model::FreqRule;
use crate::publish::{Frequencies, Reading, Scans};
use crate::rules::{Found, Rules, Table, Whom, pidfd_of};
use crate::socket::{Access, Client, Purpose, Server, refuse};
use crate::stats::source::{ArmShown, CounterSource};
use anyhow::{Context, Result, bail};
use log::warn;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Error;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a request is, in its "args"; its "req" is "ctl".
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// Of all arms without a name.
    Show {
        arm: Option<String>,
    },
    Set {
        arm: String,
        change: Change,
    },
    Reset {
        arm: String,
    },
    ArmAdd {
        arm: String,
        preset: Option<String>,
    },
    ArmDel {
        arm: String,
    },
    /// Do the sums that the scheduler keeps hold what they should?
    Audit {},
    Rules {},
    RuleAdd {
        whom: Whom,
        arm: String,
    },
    RuleDel {
        whom: Whom,
    },
    /// Whoever asks is to be on this arm, and what it starts.
    Exec {
        arm: String,
    },
}

#[derive(Serialize, Deserialize)]
pub struct Request {
    pub req: String,
    #[serde(default)]
    pub args: Value,
}

/// A loaded scheduler, or a test's own.
pub trait Live: Send {
    /// Makes the image live; the answer is its generation, which is greater than that of the image and of the one before.
    fn publish(&mut self, image: &policy_image) -> Result<u32>;
    fn set_rules(&mut self, table: &Table) -> Result<()>;
    /// How fast ticks found each of the first `nr_cpus` CPUs, of CAPACITY_SCALE.
    fn speeds(&self, nr_cpus: usize) -> Vec<u32>;
    /// The frequency of each CPU by number, in kHz, as it was `age` ago.
    fn set_frequencies(&mut self, khz: &[Option<u32>], age: Duration);
    /// The mean idle period of each of the first `nr_cpus` CPUs, in ns; `every`: as ended by whatever arrives.
    fn idle_means(&self, nr_cpus: usize, every: bool) -> Vec<u64>;
    /// How many CPUs of each LLC a scan is worth, which counts for so long.
    fn set_scans(&mut self, worth: &[u32], counts_ms: u32);
    /// Each thread of the process, which then asks anew.
    fn tell(&mut self, process: BorrowedFd, ticket: Ticket) -> Result<()>;
    fn audit(&mut self) -> Result<Audit>;
}

/// Of util_est, which each CPU sums up over the tasks that it counts (src/bpf/audit.bpf.h). Who comes or goes meanwhile may be
/// missed or counted twice.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Audit {
    pub tasks: u64,
    /// Those that some CPU counts.
    pub joined: u64,
    /// Of all CPUs.
    pub util_est: u64,
    /// By how much the CPUs' sums are not what their tasks gave, without sign.
    pub util_drift: u64,
    /// Of the CPUs where that is not 0, by number.
    pub drift_of_cpu: BTreeMap<usize, i64>,
}

/// What a process is told; the first counts more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ticket {
    Exec(u32),
    Pid(u32),
}

/// A shared handle.
#[derive(Clone)]
pub struct Control(Arc<Mutex<State>>);

struct State {
    arms: Arms,
    rules: Rules,
    generation: u32,
    nr_cpus: u32,
    /// Of each CPU by number.
    capacity: Vec<u16>,
    frequencies: Frequencies,
    scans: Scans,
    /// Those in the image that was published last, of each arm.
    thresholds: Vec<Vec<u32>>,
    /// How often frequencies were read while an arm wanted them.
    samples: u32,
    source: CounterSource,
    /// None while no scheduler is loaded.
    live: Option<Box<dyn Live>>,
    /// Arm default is all there is, and stays as it is.
    frozen: bool,
    arms_changed: bool,
    rules_changed: bool,
}

/// After so many samples it would be known if ticks see frequencies.
const SAMPLES_TO_KNOW: u32 = 50;
/// What is low is learnt anew after each so many.
const SAMPLES_TO_LEARN: u32 = 50;

/// The thresholds of each arm.
fn rows(image: &policy_image) -> Vec<Vec<u32>> {
    image.threshold.iter().map(|row| row.to_vec()).collect()
}

/// The loaded scheduler is no longer told when this is dropped.
pub struct Attached(Control);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.lock().live = None;
    }
}

enum Answer {
    /// It is told when the change is live.
    Changed,
    Data(Value),
}

/// uapi: getsockopt() for a pidfd of who connected.
const SO_PEERPIDFD: i32 = 77;

const PURPOSE: Purpose = Purpose {
    name: "control",
    served: "another scheduler is controlled",
    option: "--ctl-path",
    thread: "ctl",
    access: Access::Owner { group: None },
};

impl Control {
    /// Arm default is as `everybody` says; `frozen`: for good, and alone. What is shown of the arms goes to `source`.
    pub fn new(everybody: Settings, frozen: bool, source: CounterSource) -> Control {
        let mut rules = Rules::default();
        rules.arm_added(0);
        let state = State {
            arms: Arms::new(everybody),
            rules,
            generation: 0,
            nr_cpus: 1,
            capacity: Vec::new(),
            frequencies: Frequencies::default(),
            scans: Scans::default(),
            thresholds: Vec::new(),
            samples: 0,
            source,
            live: None,
            frozen,
            arms_changed: false,
            rules_changed: false,
        };
        state.show_arms();
        Control(Arc::new(Mutex::new(state)))
    }

    /// Serves until the returned value is dropped. The owner may connect, and `group` if there is one.
    pub fn launch(&self, path: &Path, group: Option<u32>) -> Result<Server> {
        let control = self.clone();
        let purpose = Purpose {
            access: Access::Owner { group },
            ..PURPOSE
        };
        Server::launch(path, purpose, move |stream| {
            Ok(Box::new(Peer {
                control: control.clone(),
                pidfd: peer_pidfd(stream)?,
            }))
        })
    }

    /// What the next scheduler begins with.
    pub fn image(&self, nr_cpus: u32, capacity: Vec<u16>) -> policy_image {
        let mut state = self.lock();
        state.nr_cpus = nr_cpus;
        state.capacity = capacity;
        state.image()
    }

    /// Publishes what CPUs are worth now; true if that has changed.
    pub fn set_capacity(&self, capacity: Vec<u16>) -> Result<bool> {
        let mut state = self.lock();
        if state.capacity == capacity {
            return Ok(false);
        }
        state.capacity = capacity;
        state.arms_changed = true;
        state.flush()?;
        Ok(true)
    }

    /// Where the frequencies of the next scheduler's CPUs come from.
    pub fn set_frequencies(&self, frequencies: Frequencies) {
        let mut state = self.lock();
        let old = std::mem::replace(&mut state.frequencies, frequencies);
        state.samples = 0;
        state.show_frequencies();
        // Nobody waits for us while its files are closed.
        drop(state);
        drop(old);
    }

    /// The caches of the next scheduler's machine.
    pub fn set_scans(&self, scans: Scans) {
        self.lock().scans = scans;
    }

    /// Some arm delays moves to slow CPUs, or bounds its scans.
    pub fn wants_samples(&self) -> bool {
        let state = self.lock();
        state.wants_frequencies() || state.arms.want_scans()
    }

    /// To be called again and again: reads idle periods, if an arm wants them, and tells what a scan is worth.
    pub fn sample_idle(&self) {
        self.lock().sample_idle();
    }

    /// To be called again and again: reads frequencies by `read`, if an arm wants them, and learns what is low.
    pub fn sample(&self, read: impl FnOnce(&FreqFiles) -> Vec<Option<u32>>) -> Result<()> {
        let state = self.lock();
        if state.live.is_none() || !state.wants_frequencies() {
            return Ok(());
        }
        let files = state.frequencies.files();
        // Nobody waits for us while we read: a file may hang.
        drop(state);
        let read = files.map(|files| Reading::new(files, read));
        let nothing_known = self.lock().sample(read.as_ref())?;
        if nothing_known {
            warn!(
                "delay_migration does nothing: no frequency of a CPU is known (see --freq-source)"
            );
        }
        Ok(())
    }

    /// What arm default is now.
    pub fn everybody(&self) -> Settings {
        self.lock().arms.everybody().settings.clone()
    }

    /// A scheduler was loaded with `image`. It is to be unloaded only after the returned value is dropped.
    #[must_use = "without it nothing is told to the scheduler"]
    pub fn attach(&self, live: Box<dyn Live>, image: &policy_image) -> Result<Attached> {
        let mut state = self.lock();
        state.live = Some(live);
        state.arms_changed = state.generation != image.generation;
        state.rules_changed = true;
        let attached = Attached(self.clone());
        let flushed = state.flush();
        // Before `attached` takes it in an error's case.
        drop(state);
        flushed.map(|()| attached)
    }

    /// To be called now and then: cgroups may have been made anew, processes may have ended.
    pub fn refresh(&self) -> Result<()> {
        let paths = self.lock().rules.cgroups();
        // Nobody waits for us while we look.
        let found = paths.into_iter().map(Found::again).collect::<Vec<_>>();
        let mut state = self.lock();
        state.rules_changed |= state.rules.refresh(&found);
        state.flush()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn image(&self) -> policy_image {
        let mut image = policy_image {
            generation: self.generation,
            ..self.arms.image(self.nr_cpus, &self.capacity)
        };
        self.frequencies.fill(&mut image, &self.arms.freq_rules());
        image
    }

    fn wants_frequencies(&self) -> bool {
        let rules = self.arms.freq_rules();
        rules.iter().any(|rule| *rule != FreqRule::Off)
    }

    fn sample_idle(&mut self) {
        let everybody = self.arms.everybody().settings.features;
        let Some(live) = self.live.as_mut().filter(|_| self.arms.want_scans()) else {
            return;
        };
        let every = everybody.has(bits::avg_idle_every);
        let means = live.idle_means(self.capacity.len(), every);
        live.set_scans(&self.scans.worth(&means), self.scans.counts_ms);
    }

    /// True once, when it is clear that no source tells anything.
    fn sample(&mut self, read: Option<&Reading>) -> Result<bool> {
        let Some(live) = &mut self.live else {
            return Ok(false);
        };
        let source = self.frequencies.name().to_string();
        let speeds = live.speeds(self.capacity.len());
        if let Some(khz) = self.frequencies.sample(&speeds, read) {
            live.set_frequencies(khz, read.map_or(Duration::ZERO, Reading::age));
        }
        self.samples = self.samples.wrapping_add(1);
        let switched = source != self.frequencies.name();
        if switched {
            self.show_frequencies();
        }
        if switched || self.samples.is_multiple_of(SAMPLES_TO_LEARN) {
            self.frequencies.learn();
            let image = self.image();
            self.arms_changed |= self.thresholds != rows(&image);
        }
        self.flush()?;
        Ok(self.samples == SAMPLES_TO_KNOW && !self.frequencies.known())
    }

    fn show_frequencies(&self) {
        self.source.set_freq_source(self.frequencies.name());
    }

    /// Publishes what was changed.
    fn flush(&mut self) -> Result<()> {
        if self.arms_changed {
            let image = self.image();
            self.thresholds = rows(&image);
            self.generation = match &mut self.live {
                Some(live) => live.publish(&image)?,
                None => self.generation.wrapping_add(1),
            };
            self.show_arms();
            self.arms_changed = false;
        }
        if self.rules_changed {
            if let Some(live) = &mut self.live {
                live.set_rules(&self.rules.table())?;
            }
            self.rules_changed = false;
        }
        Ok(())
    }

    fn show_arms(&self) {
        let shown = |(slot, arm): (usize, &crate::arms::Arm)| ArmShown {
            slot,
            name: arm.name.clone(),
            preset: arm.settings.preset.clone(),
            features: arm.settings.features.to_string(),
        };
        self.source.set_arms(self.arms.iter().map(shown).collect());
    }

    fn apply(&mut self, asked: Asked, peer: BorrowedFd) -> Result<Answer> {
        let reads = matches!(asked.op, Op::Show { .. } | Op::Audit {} | Op::Rules {});
        if self.frozen && !reads {
            let text = "the scheduler runs with --freeze, so that nothing can be changed: start it without";
            return Err(refuse(libc::EROFS, text));
        }
        match asked.op {
            Op::Show { arm } => return self.show(arm.as_deref()).map(Answer::Data),
            Op::Audit {} => return Ok(Answer::Data(json!(self.loaded()?.audit()?))),
            Op::Rules {} => return Ok(Answer::Data(self.show_rules())),
            Op::Set { arm, change } => self.arms.change(&arm, &change)?,
            Op::Reset { arm } => self.arms.reset(&arm)?,
            Op::ArmAdd { arm, preset } => {
                let slot = self.arms.add(&arm, preset.as_deref())?;
                self.rules.arm_added(slot);
                self.rules_changed = true;
            }
            Op::ArmDel { arm } => self.delete_arm(&arm)?,
            Op::RuleAdd { whom, arm } => return self.add_rule(whom, &arm, asked.cgroup),
            Op::RuleDel { whom } => {
                self.rules.delete(&whom)?;
                self.rules_changed = true;
                return Ok(Answer::Changed);
            }
            Op::Exec { arm } => {
                let ticket = self.rules.ticket_of_arm(self.arms.slot(&arm)?)?;
                self.loaded()?.tell(peer, Ticket::Exec(ticket))?;
                return Ok(Answer::Changed);
            }
        }
        self.arms_changed = true;
        Ok(Answer::Changed)
    }

    fn delete_arm(&mut self, name: &str) -> Result<()> {
        let slot = self.arms.slot(name)?;
        let rules = self.rules.of_arm(slot);
        if rules > 0 {
            let text = format!("arm '{name}' has {rules} rules: delete them first");
            return Err(refuse(libc::EBUSY, text));
        }
        self.arms.delete(name)?;
        self.rules.arm_deleted(slot);
        self.rules_changed = true;
        Ok(())
    }

    fn add_rule(&mut self, whom: Whom, arm: &str, cgroup: Option<Found>) -> Result<Answer> {
        let slot = self.arms.slot(arm)?;
        match &whom {
            Whom::Cgroup(path) => {
                let found = cgroup.context("a cgroup is looked up first")?;
                self.rules.add_cgroup(path, found, slot)?;
            }
            Whom::Comm(glob) => self.rules.add_comm(glob, slot)?,
            Whom::Pid(pid) => {
                let pidfd = pidfd_of(*pid)?;
                let ticket = self.rules.add_pid(*pid, pidfd.try_clone()?, slot)?;
                let live = self.loaded();
                if let Err(e) = live.and_then(|l| l.tell(pidfd.as_fd(), Ticket::Pid(ticket))) {
                    self.rules.delete(&whom)?;
                    return Err(e);
                }
            }
        }
        self.rules_changed = true;
        Ok(Answer::Changed)
    }

    fn loaded(&mut self) -> Result<&mut Box<dyn Live>> {
        let text = "the scheduler is being loaded: try again in a second";
        let live = self.live.as_mut();
        live.ok_or_else(|| refuse(libc::EAGAIN, text))
    }

    fn show(&mut self, name: Option<&str>) -> Result<Value> {
        self.flush()?;
        let wanted = name.map(|name| self.arms.slot(name)).transpose()?;
        let shown = |(slot, arm): (usize, &crate::arms::Arm)| {
            let mut value = arm.describe(slot == 0, self.nr_cpus);
            value["rules"] = self.rules.of_arm(slot).into();
            value
        };
        let arms = self.arms.iter();
        let arms = arms.filter(|(slot, _)| wanted.is_none_or(|w| w == *slot));
        let arms: Vec<Value> = arms.map(shown).collect();
        Ok(json!({"generation": self.generation, "frozen": self.frozen, "arms": arms}))
    }

    fn show_rules(&self) -> Value {
        let rule = |rule: &crate::rules::Rule| {
            let arm = self.arms.get(rule.slot).map(|arm| arm.name.as_str());
            json!({"whom": rule.whom, "arm": arm})
        };
        self.rules.iter().map(rule).collect()
    }
}

/// One client.
struct Peer {
    control: Control,
    pidfd: OwnedFd,
}

impl Client for Peer {
    fn requests(&mut self, lines: &[Vec<u8>]) -> Vec<Result<Value>> {
        let asked: Vec<Result<Asked>> = lines.iter().map(|line| parse(line)).collect();
        let mut state = self.control.lock();
        let mut answer = |asked: Result<Asked>| state.apply(asked?, self.pidfd.as_fd());
        let answers: Vec<Result<Answer>> = asked.into_iter().map(&mut answer).collect();
        let flushed = state.flush();
        let generation = json!({"generation": state.generation});
        let told = |answer: Result<Answer>| match (answer?, &flushed) {
            (Answer::Data(value), _) => Ok(value),
            (Answer::Changed, Ok(())) => Ok(generation.clone()),
            (Answer::Changed, Err(e)) => bail!("{e:#}"),
        };
        answers.into_iter().map(told).collect()
    }
}

/// A request, and what had to be looked up for it: that may take long, and is done while others are served.
struct Asked {
    op: Op,
    cgroup: Option<Found>,
}

fn parse(line: &[u8]) -> Result<Asked> {
    let request: Request = serde_json::from_slice(line).context("a request is a line of JSON")?;
    if request.req != "ctl" {
        bail!("unknown request '{}': expected is ctl", request.req);
    }
    let op = serde_json::from_value(request.args);
    let op = op.context("a request's args do not say what to do")?;
    let cgroup = match &op {
        Op::RuleAdd {
            whom: Whom::Cgroup(path),
            ..
        } => Some(Found::look_up(path)?),
        _ => None,
    };
    Ok(Asked { op, cgroup })
}

/// The process at the other end. Unlike its number this cannot become another process's.
fn peer_pidfd(stream: &UnixStream) -> Result<OwnedFd> {
    let mut fd: i32 = -1;
    let mut len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel writes one number of this length; the descriptor is ours then.
    unsafe {
        let at = (&raw mut fd).cast();
        let socket = stream.as_raw_fd();
        if libc::getsockopt(socket, libc::SOL_SOCKET, SO_PEERPIDFD, at, &mut len) < 0 {
            return Err(Error::last_os_error()).context("cannot tell who connected");
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}
