// SPDX-License-Identifier: GPL-2.0-only
//! A scheduler that we started. It is killed when we end, however that happens. The kernel then
//! returns to its own scheduler.

use super::arm;
use super::ground::Ground;
use crate::ab::child::{Failure, WORDS_MAX, Workload, reaped_within, signal_group};
use crate::ab::variant::{Kind, Variant};
use crate::machine::host::Host;
use crate::policy::arms::DEFAULT_ARM;
use crate::util::text::tidy;
use crate::wire::client::ask;
use crate::wire::protocol::Op;
use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::process::Signal;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Error;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Long, since the verifier is slow on a slow machine.
const START_TIME: Duration = Duration::from_secs(120);
pub const END_TIME: Duration = Duration::from_secs(15);
const NAP: Duration = Duration::from_millis(20);
/// Its cgroup below ours.
const CGROUP: &str = "scheduler";

/// The state of sched_ext, from its files in sysfs.
pub struct Attached<'a>(pub &'a Host);

/// Differs if any scheduler was attached meanwhile, also our own after a restart.
#[derive(Clone, Debug, PartialEq)]
pub struct Epoch {
    /// None: the kernel's own scheduler runs.
    pub name: Option<String>,
    /// Number of attachments since boot (sched_ext/enable_seq), if the kernel has it.
    enabled: Option<String>,
}

impl Attached<'_> {
    /// True if the kernel has sched_ext.
    pub fn known(&self) -> bool {
        self.state().is_some()
    }

    fn state(&self) -> Option<String> {
        self.0.kernel_text("sched_ext/state")
    }

    fn enabled(&self) -> bool {
        self.state().is_some_and(|s| s == "enabled")
    }

    fn gone(&self) -> bool {
        self.state().is_none_or(|s| s == "disabled")
    }

    /// Name of the scheduler that is attached or being attached.
    pub fn name(&self) -> Option<String> {
        self.0.attached_ops()
    }

    pub fn epoch(&self) -> Epoch {
        Epoch {
            name: self.name(),
            enabled: self.0.kernel_text("sched_ext/enable_seq"),
        }
    }

    /// Returns when no scheduler is attached. Fails if one still is after `patience`.
    pub fn wait_until_gone(&self, patience: Duration) -> Result<()> {
        let end = Instant::now() + patience;
        while !self.gone() {
            ensure!(
                Instant::now() < end,
                "the scheduler {} is still attached after {} s",
                self.name().unwrap_or_default(),
                patience.as_secs()
            );
            sleep(NAP);
        }
        Ok(())
    }
}

/// The arm of the command, if it has one.
const ARM: &str = "ab";

/// When dropped, it is killed with all that it started.
pub struct Scheduler {
    child: Child,
    ground: Ground,
    /// It is scx_roost and decides in BPF: it can change while it runs, and has arms.
    ours: bool,
    /// The variant of all other tasks; None: the same as the command's.
    others: Option<Variant>,
    /// The name in sched_ext/root/ops.
    name: Option<String>,
    /// It was already ended.
    over: bool,
}

impl Scheduler {
    /// Its process group.
    pub fn group(&self) -> i32 {
        self.child.id() as i32
    }

    /// Starts the scheduler of a variant; None for the kernel's own. `program`: path of scx_roost.
    /// `started` gets its process group.
    pub fn start(
        variant: &Variant,
        others: Option<&Variant>,
        program: &Path,
        ground: &Ground,
        started: &mut dyn FnMut(i32),
    ) -> Result<Option<Scheduler>> {
        let Some(mut command) = command_of(variant, program, &ground.folder) else {
            return Ok(None);
        };
        let scheduler = Scheduler {
            child: spawn(&mut command, ground)?,
            ground: ground.clone(),
            ours: matches!(variant.kind, Kind::Roost(_)),
            others: others.cloned(),
            name: None,
            over: false,
        };
        started(scheduler.group());
        Ok(Some(scheduler))
    }

    /// Returns when it is attached and configured as the variant.
    pub fn wait_until_ready(
        &mut self,
        variant: &Variant,
        attached: &Attached,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let end = Instant::now() + START_TIME;
        while !(attached.enabled() && self.answers()) {
            if stopped() {
                return Err(Failure::Stopped);
            }
            if let Some(status) = self.ended()? {
                let words = self.last_words();
                return Err(anyhow!("it ended before it was attached ({status}): {words}").into());
            }
            if Instant::now() >= end {
                let (limit, words) = (START_TIME.as_secs(), self.last_words());
                return Err(anyhow!("it was not attached within {limit} s: {words}").into());
            }
            sleep(NAP);
        }
        self.name = attached.name();
        if let Some(others) = self.others.clone() {
            self.set(DEFAULT_ARM, &others)?;
            ask(&self.ctl(), &arm::made(ARM))?;
        }
        self.become_variant(variant)?;
        Ok(())
    }

    fn ended(&mut self) -> Result<Option<std::process::ExitStatus>> {
        self.child.try_wait().context("cannot watch the scheduler")
    }

    fn answers(&self) -> bool {
        !self.ours || ask(&self.ctl(), &Op::Rules {}).is_ok()
    }

    /// Puts a command on this arm. `exec` runs as root, which may request that, and then becomes
    /// the command's user.
    pub fn puts_on(&self, arm: &str, program: &Path, workload: &mut Workload) {
        let (path, user) = (self.ctl(), workload.user.take());
        let exec = ["exec", "--arm", arm, "--ctl-path"].map(OsStr::new);
        let user = match &user {
            Some(user) => vec![OsStr::new("--user"), user.name()],
            None => vec![OsStr::new("--as-root")],
        };
        let words = [program.as_os_str()].into_iter().chain(exec);
        let words = words.chain([path.as_os_str()]).chain(user);
        let words = words.chain([OsStr::new("--")]);
        let before: Vec<OsString> = words.map(OsStr::to_os_string).collect();
        workload.command.splice(0..0, before);
    }

    /// The command's arm, whose counters are used; None: it is on the arm of all tasks.
    pub fn own_arm(&self) -> Option<&'static str> {
        self.others.as_ref().map(|_| ARM)
    }

    fn ctl(&self) -> PathBuf {
        self.ground.folder.join("ctl")
    }

    /// The statistics socket, if it is scx_roost and decides in BPF. Decisions in Rust have one
    /// too, whose counters are not compared.
    pub fn stats(&self) -> Option<PathBuf> {
        self.ours.then(|| self.ground.folder.join("stats"))
    }

    /// Changes it while it runs. False: it cannot become this variant.
    pub fn become_variant(&mut self, variant: &Variant) -> Result<bool> {
        match self.ours {
            true => self.set(self.own_arm().unwrap_or(DEFAULT_ARM), variant),
            false => Ok(false),
        }
    }

    fn set(&self, arm: &str, variant: &Variant) -> Result<bool> {
        let Some(ops) = arm::becomes(arm, variant) else {
            return Ok(false);
        };
        for op in &ops {
            ask(&self.ctl(), op)?;
        }
        Ok(true)
    }

    /// Fails unless it still runs and is the one that is attached.
    pub fn check(&mut self, attached: &Attached) -> Result<()> {
        if let Some(status) = self.ended()? {
            bail!("the scheduler ended ({status}): {}", self.last_words());
        }
        ensure!(
            attached.enabled(),
            "the scheduler is no longer attached: {}",
            self.last_words()
        );
        let name = attached.name();
        ensure!(
            name == self.name,
            "the scheduler {} is attached instead of the one that was started",
            name.unwrap_or_default()
        );
        Ok(())
    }

    /// Returns when the kernel's own scheduler runs again.
    pub fn stop(mut self, attached: &Attached) -> Result<()> {
        let end = Instant::now() + END_TIME;
        // To its whole group: a wrapper may not forward the signal.
        self.signal(Signal::INT);
        while self.ended()?.is_none() && Instant::now() < end {
            sleep(NAP);
        }
        let ended = self.end();
        drop(self);
        ended.and(attached.wait_until_gone(END_TIME))
    }

    /// Kills it with all that it started. Fails if it does not end although it was killed.
    fn end(&mut self) -> Result<()> {
        if self.over {
            return Ok(());
        }
        self.over = true;
        self.signal(Signal::KILL);
        let ended = reaped_within(self.group(), END_TIME);
        if let Some(cgroup) = &self.ground.cgroup {
            // A process that does not end is reported when the ground is cleared.
            let _ = cgroup.end_child(CGROUP);
        }
        ensure!(
            ended,
            "the scheduler, process {}, was killed and does not exit",
            self.group()
        );
        Ok(())
    }

    /// If the leader already ended, that was too recently for its number to be reused.
    fn signal(&self, signal: Signal) {
        signal_group(self.group(), signal);
    }

    fn last_words(&self) -> String {
        let text = fs::read_to_string(log(&self.ground.folder)).unwrap_or_default();
        let last = text.lines().rev().find(|l| !l.trim().is_empty());
        last.map_or("it printed nothing".to_string(), |l| {
            format!("its last output: {}", tidy(l.trim(), WORDS_MAX))
        })
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        // An error is only reported by an explicit `stop`.
        let _ = self.end();
    }
}

fn log(folder: &Path) -> PathBuf {
    folder.join("log")
}

/// None: the kernel's own scheduler.
fn command_of(variant: &Variant, program: &Path, folder: &Path) -> Option<Command> {
    let (mut command, words) = match &variant.kind {
        Kind::Eevdf => return None,
        Kind::Roost(_) => (roost(program, folder), &[][..]),
        Kind::Rust(options) => (roost(program, folder), &options[..]),
        Kind::Scx(words) => (Command::new(&words[0]), &words[1..]),
    };
    command.args(words);
    Some(command)
}

/// scx_roost with its own sockets, and without the configuration of the machine: a variant is what
/// its name says.
fn roost(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["--config", "none"]);
    command.arg("--stats-path").arg(folder.join("stats"));
    command.arg("--ctl-path").arg(folder.join("ctl"));
    command
}

/// In its own process group: on Ctrl-C we end it in order.
fn spawn(command: &mut Command, ground: &Ground) -> Result<Child> {
    let log = File::create(log(&ground.folder)).context("cannot write the scheduler's log")?;
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    if let Some(cgroup) = &ground.cgroup {
        cgroup.child(CGROUP)?.adopt(command)?;
    }
    // SAFETY: between fork and exec it makes two system calls with plain numbers.
    unsafe {
        command.pre_exec(|| {
            // If a script runs us in the background, SIGINT is ignored, and a child that is a shell
            // could not undo that.
            libc::signal(libc::SIGINT, libc::SIG_DFL);
            match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(Error::last_os_error()),
            }
        })
    };
    let program = command.get_program().to_string_lossy().into_owned();
    command
        .spawn()
        .with_context(|| format!("cannot run {program}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// /run/scx/root is for the scheduler of the machine.
    #[test]
    fn each_scheduler_of_ours_has_its_own_sockets_and_no_configuration() {
        let of = |kind: Kind| {
            let variant = Variant {
                kind,
                ..Variant::parse("mainline").unwrap()
            };
            let command = command_of(&variant, Path::new("roost"), Path::new("/f"))?;
            let words = command.get_args().map(|word| word.to_string_lossy());
            Some(words.collect::<Vec<_>>().join(" "))
        };
        let words = |line: &str| line.split(' ').map(str::to_string).collect();
        let own = "--config none --stats-path /f/stats --ctl-path /f/ctl";
        let mainline = Variant::parse("mainline").unwrap().kind;
        assert_eq!(of(mainline).as_deref(), Some(own));
        let rust = of(Kind::Rust(words("--backend rust")));
        assert_eq!(rust, Some(format!("{own} --backend rust")));
        let other = of(Kind::Scx(words("scx_lavd --autopower")));
        assert_eq!(other.as_deref(), Some("--autopower"));
        assert_eq!(of(Kind::Eevdf), None);
    }
}
