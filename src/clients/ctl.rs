// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost ctl`: turns its command line into one request to the control socket, and prints the
//! answer.

mod answers;

use crate::machine::groups::group_names;
use crate::machine::host::Host;
use crate::policy::arms::DEFAULT_ARM;
use crate::policy::change::{Change, NO_CHANGE};
use crate::policy::features::TUNABLES;
use crate::policy::rules::Subject;
use crate::util::print;
use crate::util::refusal::{BadUsage, Refused};
use crate::util::whole_file;
use crate::wire::client::{ask, is_absent};
use crate::wire::protocol::Op;
use crate::wire::socket::connect;
use answers::{arms, audit, changed, limits, rules, saved, show};
use anyhow::{Context, Error, Result, anyhow, bail};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Between two attempts to reach a scheduler.
const WAIT_NAP: Duration = Duration::from_millis(50);
const AUDITS: u32 = 5;
const AUDIT_NAP: Duration = Duration::from_millis(20);

#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show the features and tunables of all arms, or of one arm
    Show {
        /// Show this arm only
        #[arg(long, value_name = "NAME")]
        arm: Option<String>,

        /// Show instead how far each CPU's util_est has drifted: a check of the sums that the
        /// scheduler keeps
        #[arg(long, conflicts_with = "arm")]
        audit: bool,

        /// Show instead the groups with a CPU limit (cpu.max): how often and how long each had no
        /// budget left, and how much it used
        #[arg(long, conflicts_with_all = ["arm", "audit"])]
        limits: bool,
    },
    /// Change features and tunables; all changes take effect at once, or none does
    #[command(after_help = tunables())]
    Set(SetArgs),
    /// Reset an arm to the settings it was created with
    Reset {
        /// Arm to reset
        #[arg(long, value_name = "NAME", default_value = DEFAULT_ARM)]
        arm: String,
    },
    /// Write what was changed into a drop-in of the configuration, so that it stays after a restart
    Save {
        /// Folder of the scheduler's configuration, as its --config says [default: /etc/scx_roost]
        #[arg(long, value_name = "PATH")]
        config: Option<PathBuf>,
    },
    /// Return to the configuration files, as they are now; a bad file changes nothing
    Reload,
    /// List, add or delete arms
    Arms {
        #[command(subcommand)]
        verb: Option<ArmsVerb>,
    },
    /// List, add or delete rules, which put tasks on arms
    Rules {
        #[command(subcommand)]
        verb: Option<RulesVerb>,
    },
}

#[derive(Debug, Args)]
pub struct SetArgs {
    /// Arm to change
    #[arg(long, value_name = "NAME", default_value = DEFAULT_ARM)]
    arm: String,

    /// Change to this profile: its features and tunables instead of the current ones
    #[arg(long, value_name = "NAME", conflicts_with = "preset")]
    profile: Option<String>,

    /// Start from this preset's features instead of the current ones
    #[arg(short, long, value_name = "NAME")]
    preset: Option<String>,

    /// Switch features on, with commas or repeated
    #[arg(long, value_name = "FEATURE", value_delimiter = ',')]
    enable: Vec<String>,

    /// Switch features off, with commas or repeated
    #[arg(long, value_name = "FEATURE", value_delimiter = ',')]
    disable: Vec<String>,

    /// Set a tunable, such as slice-us=1500; may be repeated
    #[arg(long, value_name = "TUNABLE=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

#[derive(Debug, Subcommand)]
pub enum ArmsVerb {
    /// List the arms
    List,
    /// Add an arm with a profile or a preset, or with the current settings of arm default
    Add {
        /// Name of the new arm
        name: String,

        /// Profile of the new arm
        #[arg(long, value_name = "NAME", conflicts_with = "preset")]
        profile: Option<String>,

        /// Preset of the new arm
        #[arg(short, long, value_name = "NAME")]
        preset: Option<String>,
    },
    /// Delete an arm; its tasks go where other rules put them, or to arm default
    Del {
        /// Name of the arm
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum RulesVerb {
    /// List the rules
    List,
    /// Put tasks on an arm
    Add {
        #[command(flatten)]
        subject: WhomArgs,

        /// Arm for these tasks
        #[arg(long, value_name = "NAME")]
        arm: String,
    },
    /// Delete a rule
    Del {
        #[command(flatten)]
        subject: WhomArgs,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct WhomArgs {
    /// Tasks in this cgroup and in the cgroups below it; the deepest matching rule applies
    #[arg(long, value_name = "PATH")]
    cgroup: Option<PathBuf>,

    /// Tasks with this name; * and ? match as in a shell; the first matching rule applies
    #[arg(long, value_name = "GLOB")]
    comm: Option<String>,

    /// This process while it runs, and the processes that it forks from now on
    #[arg(long, value_name = "N")]
    pid: Option<u32>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    let pair = pair.ok_or_else(|| "expected a tunable, = and its value".to_string())?;
    Ok((pair.0.to_string(), pair.1.to_string()))
}

impl WhomArgs {
    fn subject(self) -> Result<Subject> {
        Ok(match (self.cgroup, self.comm, self.pid) {
            (Some(path), _, _) => Subject::Cgroup(
                std::path::absolute(&path)
                    .with_context(|| format!("cannot resolve the path {}", path.display()))?,
            ),
            (_, Some(glob), _) => Subject::Comm(glob),
            (_, _, Some(pid)) => Subject::Pid(pid),
            _ => bail!("expected --cgroup, --comm or --pid"),
        })
    }
}

impl Verb {
    /// The value of --config.
    pub fn config(&self) -> Option<PathBuf> {
        match self {
            Verb::Save { config } => config.clone(),
            _ => None,
        }
    }
}

/// Prints an answer as text.
pub type AsText = fn(&Value) -> String;

/// All of them.
#[cfg(feature = "internals")]
pub const AS_TEXT: [AsText; 7] = [show, arms, rules, limits, audit, changed, saved];

/// The request for a command, and the printer of its answer.
fn question(verb: Verb) -> Result<(Op, AsText)> {
    Ok(match verb {
        Verb::Show { audit: true, .. } => (Op::Audit {}, audit),
        Verb::Show { limits: true, .. } => (Op::Limits {}, limits),
        Verb::Show { arm, .. } => (Op::Show { arm }, show),
        Verb::Set(args) => (set(args)?, changed),
        Verb::Reset { arm } => (Op::Reset { arm }, changed),
        Verb::Save { .. } => (Op::Save {}, saved),
        Verb::Reload => (Op::Reload {}, changed),
        Verb::Arms { verb } => match verb {
            None | Some(ArmsVerb::List) => (Op::Show { arm: None }, arms),
            Some(ArmsVerb::Add {
                name: arm,
                profile,
                preset,
            }) => {
                let op = Op::ArmAdd {
                    arm,
                    preset,
                    profile,
                };
                (op, changed)
            }
            Some(ArmsVerb::Del { name: arm }) => (Op::ArmDel { arm }, changed),
        },
        Verb::Rules { verb } => match verb {
            None | Some(RulesVerb::List) => (Op::Rules {}, rules),
            Some(RulesVerb::Add { subject, arm }) => {
                let subject = subject.subject()?;
                (Op::RuleAdd { subject, arm }, changed)
            }
            Some(RulesVerb::Del { subject }) => (
                Op::RuleDel {
                    subject: subject.subject()?,
                },
                changed,
            ),
        },
    })
}

fn usage(text: String) -> Error {
    BadUsage(anyhow!(text)).into()
}

fn set(args: SetArgs) -> Result<Op> {
    let mut change = Change {
        profile: args.profile,
        preset: args.preset,
        enable: args.enable,
        disable: args.disable,
        ..Change::default()
    };
    for (name, value) in args.set {
        if change.set.insert(name.clone(), value.into()).is_some() {
            return Err(usage(format!("tunable '{name}' is set twice: set it once")));
        }
    }
    if change == Change::default() {
        return Err(usage(NO_CHANGE.to_string()));
    }
    let arm = args.arm;
    Ok(Op::Set { arm, change })
}

/// Checks the file and the text of `ctl save`, and returns the file.
pub type Checked<'a> = &'a dyn Fn(&Path, &str) -> Result<PathBuf>;

pub fn run(path: &Path, verb: Verb, wait: Duration, json: bool, saved: Checked) -> Result<()> {
    let (op, as_text) = question(verb)?;
    let end = Instant::now() + wait;
    wait_for_it(path, end);
    let answer = when_loaded(end, || match op {
        Op::Audit {} => ask_for_audit(path),
        Op::Limits {} => ask(path, &op).map(named),
        Op::Save {} => save(path, ask(path, &op)?, saved),
        _ => ask(path, &op),
    })?;
    if json {
        print::json(&answer)?;
    } else {
        print::text(&as_text(&answer))?;
    }
    Ok(())
}

/// Waits until something listens, or `end`. If nothing does, the request afterwards fails.
fn wait_for_it(path: &Path, end: Instant) {
    let absent = || connect(path, WAIT_NAP).is_err_and(|e| is_absent(e.kind()));
    while Instant::now() < end && absent() {
        sleep(WAIT_NAP);
    }
}

/// Repeats the request while the answer is that the scheduler is being loaded.
fn when_loaded(end: Instant, request: impl Fn() -> Result<Value>) -> Result<Value> {
    loop {
        match request() {
            Err(e) if Instant::now() < end && is_being_loaded(&e) => sleep(WAIT_NAP),
            answer => return answer,
        }
    }
}

fn is_being_loaded(e: &anyhow::Error) -> bool {
    e.downcast_ref::<Refused>()
        .is_some_and(|e| e.0 == libc::EAGAIN)
}

/// `ask`, repeated for `wait` while the scheduler is being loaded.
pub fn ask_when_loaded(path: &Path, op: &Op, wait: Duration) -> Result<Value> {
    when_loaded(Instant::now() + wait, || ask(path, op))
}

/// The best of a few answers: a task that comes or goes during the audit distorts it.
fn ask_for_audit(path: &Path) -> Result<Value> {
    let drift = |answer: &Value| answer["util_drift"].as_u64();
    let mut best = ask(path, &Op::Audit {})?;
    for _ in 1..AUDITS {
        if drift(&best) == Some(0) {
            break;
        }
        sleep(AUDIT_NAP);
        let next = ask(path, &Op::Audit {})?;
        if drift(&next) < drift(&best) {
            best = next;
        }
    }
    Ok(best)
}

/// Writes the text that the scheduler has made and checked, and has it read: later changes are then
/// counted from it on. The daemon has no right to write files. The answer does not decide the file:
/// it has to be ours.
fn save(path: &Path, answer: Value, saved: Checked) -> Result<Value> {
    let (Some(name), Some(text)) = (answer["file"].as_str(), answer["text"].as_str()) else {
        bail!("expected a file from the scheduler, which may be of another version: restart it");
    };
    let file = saved(Path::new(name), text)?;
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::PermissionDenied => anyhow!("cannot write {name}: run this as root"),
        _ => anyhow!("cannot write {name}: {e}"),
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mode = |file: &fs::File| file.set_permissions(fs::Permissions::from_mode(0o644));
    whole_file::replace(&file, text, mode).map_err(failed)?;
    ask(path, &Op::Reload {})
        .with_context(|| format!("{name} is written, but not in force yet"))?;
    Ok(answer)
}

/// Replaces the groups' inodes by names. The folders are searched here, not in the scheduler, where
/// clients would wait for it. A group that is not found keeps its number.
fn named(mut answer: Value) -> Value {
    let groups = answer.as_array_mut().into_iter().flatten();
    let groups: Vec<&mut Value> = groups.filter_map(|row| row.get_mut("cgroup")).collect();
    let ids = groups.iter().filter_map(|id| id.as_u64()).collect();
    let root = Host::new(Path::new("/sys")).cgroup;
    let mut names = root.map_or_else(BTreeMap::new, |root| group_names(&root, &ids, usize::MAX));
    for group in groups {
        let id = group.as_u64().unwrap_or_default();
        let name = names.remove(&id);
        *group = json!(name.unwrap_or_else(|| format!("cgroup {id}")));
    }
    answer
}

/// The text below the options of `ctl set`.
fn tunables() -> String {
    let mut text = "Tunables:\n".to_string();
    for t in TUNABLES {
        let place = if t.machine_wide {
            ", on arm default only"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "  {:<18} {}{}{place}: {}",
            t.name,
            t.possible(),
            t.unit_after(" "),
            t.helped()
        );
    }
    text + "\nFeatures and presets: scx_roost features, scx_roost presets"
}

/// The text below the options of `ctl`.
pub const EXAMPLES: &str = "Examples:
  scx_roost ctl show                                     the settings of all arms
  scx_roost ctl set --disable sync_local --set slice-us=1500
                                                         for all tasks, at once
  scx_roost ctl arms add games --preset mainline         a second policy beside the first
  scx_roost ctl set --arm games --enable prev_core       change that arm only
  scx_roost ctl rules add --comm 'Game*' --arm games     put tasks with such a name on it
  scx_roost ctl rules add --cgroup /sys/fs/cgroup/user.slice --arm games
  scx_roost ctl reset                                    arm default as it was at the start
  scx_roost ctl set --profile gaming                     change to a profile
  sudo scx_roost ctl save                                keep all of this after a restart
  scx_roost ctl show --audit                             check the sums of the CPUs
  scx_roost ctl show --limits                            groups with a CPU limit
  scx_roost ctl --wait 60 arms add games                 wait up to 60 s for the scheduler to start

Exit status: 0 on success; 1 if the request was refused, and then nothing changed, or if the
scheduler could not publish the change yet, and says so.";

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;

    #[test]
    fn waiting_ends_when_a_scheduler_answers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ctl");
        let begin = Instant::now();
        wait_for_it(&path, begin);
        assert!(begin.elapsed() < WAIT_NAP);
        wait_for_it(&path, begin + Duration::from_millis(200));
        assert!(begin.elapsed() >= Duration::from_millis(200));
        // A socket left by the previous scheduler.
        drop(UnixListener::bind(&path).unwrap());
        let comes = std::thread::scope(|scope| {
            let waits = scope.spawn(|| wait_for_it(&path, begin + Duration::from_secs(60)));
            sleep(Duration::from_millis(300));
            let waited = !waits.is_finished();
            std::fs::remove_file(&path).unwrap();
            let _listener = UnixListener::bind(&path).unwrap();
            waits.join().unwrap();
            waited
        });
        assert!(comes && begin.elapsed() < Duration::from_secs(30));
    }

    /// Answers `times` requests with `errno`, and the next one with 0.
    fn refuses(listener: &UnixListener, times: usize, errno: i32) {
        for left in (0..=times).rev() {
            let (mut stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let errno = if left > 0 { errno } else { 0 };
            let answer = json!({"errno": errno, "args": {"resp": "no"}});
            writeln!(stream, "{answer}").unwrap();
            if errno != libc::EAGAIN {
                return;
            }
        }
    }

    #[test]
    fn waiting_asks_again_while_the_scheduler_is_being_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ctl");
        let listener = UnixListener::bind(&path).unwrap();
        let asked = |times, errno, wait: u64| {
            std::thread::scope(|scope| {
                scope.spawn(|| refuses(&listener, times, errno));
                ask_when_loaded(&path, &Op::Rules {}, Duration::from_secs(wait)).is_ok()
            })
        };
        assert!(asked(2, libc::EAGAIN, 60));
        assert!(!asked(1, libc::EINVAL, 60));
        assert!(asked(0, 0, 0));
    }
}
