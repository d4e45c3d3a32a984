// SPDX-License-Identifier: GPL-2.0-only
//! The control socket: arms and rules of the running scheduler. They are kept in this process, and
//! given to the loaded scheduler and to each one loaded after a restart. Each request is carried
//! out whole or refused. Changes of requests that arrived together are published together. If that
//! fails, the clients get an error, but the changes are kept and published at a later look.
//!
//! No file is read while the state is locked, because a read may hang: what a path names is looked
//! up before, and samples are read between two holds of the lock.

mod live;
mod plans;
mod sampling;

pub use live::{Audit, Limit, Live, Refused, Ticket};
use plans::Read;
#[cfg(feature = "rustland")]
pub use plans::Reader;
pub use plans::{Origin, Reading};
use sampling::Sampled;

use crate::bpf::intf::policy_image;
use crate::daemon::rule_events::RuleEvents;
use crate::model::LogLimiter;
use crate::policy::arms::Arms;
use crate::policy::differences::differences;
use crate::policy::plan::Plan;
use crate::policy::rules::{Found, Rules, Subject, Subjects, pidfd_of};
use crate::policy::settings::Settings;
use crate::publish::{Frequencies, Scans};
use crate::util::refusal::refuse;
use crate::util::stop::Bell;
use crate::wire::protocol::{Op, Request};
use crate::wire::socket::{Access, Answers, Bound, Client, Purpose, Server, peer_pidfd};
use crate::wire::stats::host::Event;
use crate::wire::stats::snapshot::ArmShown;
use crate::wire::stats::source::CounterSource;
use anyhow::{Context, Result, bail};
use log::debug;
use serde_json::{Value, json};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle; clones share their state.
#[derive(Clone)]
pub struct Control(Arc<Mutex<ControlState>>);

struct ControlState {
    /// What arms and rules began with, or were changed to by reading the files again.
    plan: Plan,
    origin: Origin,
    /// How often reading the files was begun, and the last of these whose plan was taken over.
    readings: u64,
    taken: u64,
    arms: Arms,
    rules: Rules,
    generation: u32,
    nr_cpus: u32,
    /// By CPU number.
    capacity: Vec<u16>,
    /// CPUs that were online at the load and are offline now.
    away: Vec<u16>,
    frequencies: Frequencies,
    scans: Scans,
    /// The thresholds of each arm in the image that was published last.
    thresholds: Vec<Vec<u32>>,
    thresholds_log: LogLimiter,
    sampled: Sampled,
    /// Online CPUs without a frequency in the last sample.
    unread: usize,
    /// CPUs that were silent at the look before.
    silent_before: Vec<usize>,
    source: CounterSource,
    /// Wakes the watch loop after a request changed something.
    bell: Bell,
    /// None while no scheduler is loaded.
    live: Option<Box<dyn Live>>,
    /// Arm default is the only arm, and cannot be changed.
    frozen: bool,
    /// No scheduler will be loaded any more.
    over: bool,
    arms_changed: bool,
    rules_changed: bool,
}

/// Detaches the loaded scheduler when it is dropped.
pub struct Attached(Control);

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.lock().live = None;
    }
}

/// A change that could not be published; why.
#[derive(Debug)]
pub struct Pending(String);

impl std::fmt::Display for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Pending(why) = self;
        write!(
            f,
            "the change is kept, but could not be published yet, which is tried again: {why}"
        )
    }
}

impl std::error::Error for Pending {}

enum Answer {
    /// Answered when the change is live: what it is, in words.
    Changed(Vec<String>),
    Data(Value),
}

const PURPOSE: Purpose = Purpose {
    name: "control",
    served: "another scheduler serves its control socket",
    option: "--ctl-path",
    thread: "ctl",
    access: Access::Owner { group: None },
};

/// Binds the socket of `Control::serve`, without starting a thread. The owner may connect, and
/// `group` if given.
pub fn bind(path: &Path, group: Option<u32>) -> Result<Bound> {
    PURPOSE.for_group(group).bind(path)
}

impl Control {
    /// `everybody`: the settings of arm default. `frozen`: they cannot be changed, and there is no
    /// other arm. Statistics about the arms go to `source`.
    pub fn new(everybody: Settings, frozen: bool, source: CounterSource) -> Control {
        let mut rules = Rules::default();
        rules.arm_added(0);
        let state = ControlState {
            plan: Plan {
                everybody: everybody.clone(),
                ..Plan::default()
            },
            origin: Origin::default(),
            readings: 0,
            taken: 0,
            arms: Arms::new(everybody),
            rules,
            generation: 0,
            nr_cpus: 1,
            capacity: Vec::new(),
            away: Vec::new(),
            frequencies: Frequencies::default(),
            scans: Scans::default(),
            thresholds: Vec::new(),
            thresholds_log: LogLimiter::default(),
            sampled: Sampled::default(),
            unread: 0,
            silent_before: Vec::new(),
            source,
            bell: Bell::default(),
            live: None,
            frozen,
            over: false,
            arms_changed: false,
            rules_changed: false,
        };
        state.show_arms();
        Control(Arc::new(Mutex::new(state)))
    }

    /// As `serve`, at a new socket. The owner may connect, and `group` if given.
    #[cfg(feature = "internals")]
    pub fn launch(&self, path: &Path, group: Option<u32>) -> Result<Server> {
        self.serve(bind(path, group)?)
    }

    /// Serves until the returned value is dropped.
    pub fn serve(&self, bound: Bound) -> Result<Server> {
        let control = self.clone();
        bound.serve(move |stream| control.client(stream))
    }

    /// The handler of requests of the process at the other end of `stream`.
    pub fn client(&self, stream: &UnixStream) -> Result<Box<dyn Client>> {
        Ok(Box::new(Peer {
            control: self.clone(),
            pidfd: peer_pidfd(stream)?,
        }))
    }

    /// Carries out a request of this process.
    pub fn request(&self, op: Op) -> Result<Value> {
        let peer = Peer {
            control: self.clone(),
            pidfd: pidfd_of(std::process::id())?,
        };
        let answer = peer.apply(vec![peer.asked(op)]).pop();
        answer.context("a request has an answer")?
    }

    /// The image that the next scheduler starts with.
    pub fn image(&self, nr_cpus: u32, capacity: Vec<u16>) -> policy_image {
        let mut state = self.lock();
        state.nr_cpus = nr_cpus;
        state.capacity = capacity;
        // What differs from a preset depends on the number of CPUs.
        state.show_arms();
        let image = state.image();
        state.thresholds = sampling::rows(&image);
        image
    }

    /// Publishes the current capacity of each CPU; true if it has changed. After an error the old
    /// capacities stay in force, and the caller should try again.
    pub fn set_capacity(&self, capacity: Vec<u16>) -> Result<bool> {
        let mut state = self.lock();
        if state.capacity == capacity {
            return Ok(false);
        }
        let old = std::mem::replace(&mut state.capacity, capacity);
        state.arms_changed = true;
        if let Err(e) = state.flush_policy() {
            state.capacity = old;
            return Err(e);
        }
        state.source.event(Event::CapacitiesChanged);
        Ok(true)
    }

    /// To be called after the last run: requests no longer wait for a scheduler.
    pub fn close(&self) {
        self.lock().over = true;
    }

    /// Publishes changes whose publication failed. Called at each look.
    pub fn publish(&self) -> Result<()> {
        self.lock().flush_policy()
    }

    /// Rings when a client has changed arms or rules.
    pub fn bell(&self) -> Bell {
        self.lock().bell.clone()
    }

    /// The current settings of arm default.
    pub fn everybody(&self) -> Settings {
        self.lock().arms.everybody().settings.clone()
    }

    /// To be called when a scheduler was loaded with `image`. Unload it only after the returned
    /// value is dropped.
    #[must_use = "the scheduler receives changes only while this value exists"]
    pub fn attach(&self, live: Box<dyn Live>, image: &policy_image) -> Result<Attached> {
        let mut state = self.lock();
        state.live = Some(live);
        state.arms_changed = state.generation != image.generation;
        state.rules_changed = true;
        let attached = Attached(self.clone());
        let flushed = state.flush();
        // Unlocked before `attached`, which locks it, is dropped after an error.
        drop(state);
        flushed.map(|()| attached)
    }

    /// The cgroups and processes of rules, which may come and go.
    pub fn subjects(&self) -> Subjects {
        self.lock().rules.subjects()
    }

    /// Listens for events of the current subjects of rules. They ring the bell, once.
    pub fn listen(&self) -> Result<RuleEvents> {
        let state = self.lock();
        let (subjects, bell) = (state.rules.subjects(), state.bell.clone());
        let processes = state.rules.processes()?;
        drop(state);
        RuleEvents::listen(subjects, processes, bell)
    }

    /// No scheduler is loaded, or the kernel has ended it.
    pub fn ended(&self) -> bool {
        self.lock().live.as_ref().is_none_or(|live| live.ended())
    }

    /// Follows cgroups that were created again and processes that ended. True if that changed
    /// something. Called at each look.
    pub fn refresh(&self) -> Result<bool> {
        let paths = self.lock().rules.cgroups();
        // Unlocked during file system access.
        let found = paths.into_iter().map(Found::again).collect::<Vec<_>>();
        let mut state = self.lock();
        let changed = state.rules.refresh(&found);
        state.rules_changed |= changed;
        // Rules put tasks on arms, so arms are published first.
        if !state.arms_changed {
            state.flush_rules()?;
        }
        Ok(changed)
    }

    fn lock(&self) -> MutexGuard<'_, ControlState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ControlState {
    fn image(&self) -> policy_image {
        let mut image = policy_image {
            generation: self.generation,
            ..self.arms.image(self.nr_cpus, &self.capacity)
        };
        self.frequencies.fill(&mut image, &self.arms.freq_rules());
        image
    }

    /// Publishes all changes.
    fn flush(&mut self) -> Result<()> {
        self.flush_policy()?;
        self.flush_rules()
    }

    fn flush_policy(&mut self) -> Result<()> {
        if self.arms_changed {
            let image = self.image();
            self.thresholds = sampling::rows(&image);
            self.generation = match &mut self.live {
                Some(live) => {
                    let generation = live.publish(&image)?;
                    self.source.event(Event::PolicyPublished);
                    debug!("policy {generation} is in force");
                    generation
                }
                None => self.generation.wrapping_add(1),
            };
            self.show_arms();
            self.arms_changed = false;
        }
        Ok(())
    }

    fn flush_rules(&mut self) -> Result<()> {
        if self.rules_changed {
            if let Some(live) = &mut self.live {
                live.set_rules(&self.rules.table())?;
            }
            self.rules_changed = false;
        }
        Ok(())
    }

    fn show_arms(&self) {
        let shown = |(slot, arm): (usize, &crate::policy::arms::Arm)| ArmShown {
            slot,
            name: arm.name.clone(),
            profile: arm.settings.profile(),
            preset: arm.settings.variant(self.nr_cpus),
            features: arm.settings.features.to_string(),
        };
        self.source.set_arms(self.arms.iter().map(shown).collect());
    }

    fn apply(&mut self, asked: Asked, peer: BorrowedFd) -> Result<Answer> {
        let (arms, rules) = (self.arms.clone(), self.rules.clone());
        let data = self.carry_out(asked, peer)?;
        let (old, new) = ((&arms, &rules), (&self.arms, &self.rules));
        let changes = || Answer::Changed(differences(old, new, self.nr_cpus));
        Ok(data.map_or_else(changes, Answer::Data))
    }

    /// None: it changes something.
    fn carry_out(&mut self, asked: Asked, peer: BorrowedFd) -> Result<Option<Value>> {
        let may = asked.op.lists() || matches!(asked.op, Op::Reload {});
        if self.frozen && !may {
            return Err(frozen());
        }
        match asked.op {
            Op::Show { arm } => return self.show(arm.as_deref()).map(Some),
            Op::Audit {} => return Ok(Some(json!(self.loaded()?.audit()?))),
            Op::Limits {} => return Ok(Some(json!(self.loaded()?.limits()))),
            Op::Rules {} => return Ok(Some(self.show_rules())),
            Op::Save {} => return asked.saved.context("it is made before").map(Some),
            Op::Reload {} => {
                let read = asked.read.context("the files are read before")?;
                self.read_again(&read)?;
                return Ok(None);
            }
            Op::Set { arm, change } => self.arms.change(&arm, &change)?,
            Op::Reset { arm } => self.arms.reset(&arm)?,
            Op::ArmAdd {
                arm,
                preset,
                profile,
            } => {
                let slot = self.arms.add(&arm, preset.as_deref(), profile.as_deref())?;
                self.rules.arm_added(slot);
                self.rules_changed = true;
            }
            Op::ArmDel { arm } => self.delete_arm(&arm)?,
            Op::RuleAdd { subject, arm } => {
                self.add_rule(subject, &arm, asked.cgroup)?;
                return Ok(None);
            }
            Op::RuleDel { subject } => {
                self.rules.delete(&subject)?;
                self.rules_changed = true;
                return Ok(None);
            }
            Op::Exec { arm } => {
                let ticket = self.rules.ticket_of_arm(self.arms.slot(&arm)?)?;
                self.loaded()?.assign(peer, Ticket::Exec(ticket))?;
                return Ok(None);
            }
        }
        self.arms_changed = true;
        Ok(None)
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

    fn add_rule(&mut self, subject: Subject, arm: &str, cgroup: Option<Found>) -> Result<()> {
        let slot = self.arms.slot(arm)?;
        match &subject {
            Subject::Cgroup(path) => {
                let found = cgroup.context("the cgroup is looked up before")?;
                self.rules.add_cgroup(path, found, slot)?;
            }
            Subject::Comm(glob) => self.rules.add_comm(glob, slot)?,
            Subject::Pid(pid) => {
                let pidfd = pidfd_of(*pid)?;
                let ticket = self.rules.add_pid(*pid, pidfd.try_clone()?, slot)?;
                let live = self.loaded();
                if let Err(e) = live.and_then(|l| l.assign(pidfd.as_fd(), Ticket::Pid(ticket))) {
                    self.rules.delete(&subject)?;
                    return Err(e);
                }
            }
        }
        self.rules_changed = true;
        Ok(())
    }

    fn loaded(&mut self) -> Result<&mut Box<dyn Live>> {
        let text = match self.over {
            true => "the scheduler has ended",
            false => "the scheduler is being loaded: try again in a second",
        };
        let live = self.live.as_mut();
        live.ok_or_else(|| refuse(libc::EAGAIN, text))
    }

    fn show(&mut self, name: Option<&str>) -> Result<Value> {
        self.flush()?;
        let wanted = name.map(|name| self.arms.slot(name)).transpose()?;
        let shown = |(slot, arm): (usize, &crate::policy::arms::Arm)| {
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
        let rule = |rule: &crate::policy::rules::Rule| {
            let arm = self.arms.get(rule.slot).map(|arm| arm.name.as_str());
            json!({"subject": rule.subject, "arm": arm})
        };
        self.rules.iter().map(rule).collect()
    }
}

fn frozen() -> anyhow::Error {
    let text = match cfg!(feature = "rustland") {
        true => "the scheduler runs with --freeze or --backend rust and accepts no change",
        false => "the scheduler runs with --freeze and accepts no change: start it without",
    };
    refuse(libc::EROFS, text)
}

/// One client of the socket.
struct Peer {
    control: Control,
    pidfd: OwnedFd,
}

impl Client for Peer {
    fn requests(&mut self, lines: &[Vec<u8>], answers: &mut Answers) -> Result<()> {
        let mut together = Vec::new();
        for line in lines {
            let asked = self.parse(line);
            let lists = asked.as_ref().is_ok_and(|asked| asked.op.lists());
            together.push(asked);
            // All lists together could exceed the memory.
            if lists {
                self.answer(std::mem::take(&mut together), answers)?;
            }
        }
        self.answer(together, answers)
    }
}

impl Peer {
    fn answer(&self, asked: Vec<Result<Asked>>, answers: &mut Answers) -> Result<()> {
        let answered = self.apply(asked).into_iter();
        let mut texts = answered.map(|answer| answer.map(|value| value.to_string()));
        texts.try_for_each(answers)
    }

    /// Applies all requests, then publishes their changes.
    fn apply(&self, asked: Vec<Result<Asked>>) -> Vec<Result<Value>> {
        let mut state = self.control.lock();
        let mut answer = |asked: Result<Asked>| state.apply(asked?, self.pidfd.as_fd());
        let answers: Vec<Result<Answer>> = asked.into_iter().map(&mut answer).collect();
        if state.arms_changed || state.rules_changed {
            state.bell.ring();
        }
        let flushed = state.flush();
        let generation = state.generation;
        let answered = |answer: Result<Answer>| match (answer?, &flushed) {
            (Answer::Data(value), _) => Ok(value),
            (Answer::Changed(changes), Ok(())) => {
                Ok(json!({"generation": generation, "changes": changes}))
            }
            (Answer::Changed(_), Err(e)) => bail!(Pending(format!("{e:#}"))),
        };
        answers.into_iter().map(answered).collect()
    }
}

/// A request, with the cgroup that it names or the files that it has read. That may take long, so
/// it is done before the state is locked.
struct Asked {
    op: Op,
    cgroup: Option<Found>,
    read: Option<Read>,
    saved: Option<Value>,
}

impl Peer {
    fn parse(&self, line: &[u8]) -> Result<Asked> {
        let request: Request =
            serde_json::from_slice(line).context("expected a request, a line of JSON")?;
        if request.req != "ctl" {
            bail!("unknown request '{}': expected ctl", request.req);
        }
        let op = serde_json::from_value(request.args);
        self.asked(op.context("the request's args name no known operation")?)
    }

    fn asked(&self, op: Op) -> Result<Asked> {
        let cgroup = match &op {
            Op::RuleAdd {
                subject: Subject::Cgroup(path),
                ..
            } => Some(Found::look_up(path)?),
            _ => None,
        };
        let read = match &op {
            Op::Reload {} => Some(self.control.read_plan()?),
            _ => None,
        };
        let saved = match &op {
            Op::Save {} => Some(self.control.saved()?),
            _ => None,
        };
        Ok(Asked {
            op,
            cgroup,
            read,
            saved,
        })
    }
}
