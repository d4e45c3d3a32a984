// SPDX-License-Identifier: GPL-2.0-only
//! Rules: which tasks are on which arm, by cgroup, by name, by process. `Table` is the form that
//! the BPF half reads (struct arm_rules in src/bpf/intf.h).

use crate::bpf::intf::{
    COMM_LEN, MAX_ARMS, MAX_CGROUP_RULES, MAX_COMM_RULES, MAX_TICKETS, comm_rule, ticket,
};
use crate::util::escape;
use crate::util::refusal::refuse;
use anyhow::{Context, Result, bail};
use libc::{EEXIST, ENOENT, ENOSPC};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::Metadata;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The table of tickets also has those of arms. Half of the other places stay free, so that
/// `new_ticket` finds one soon.
const MAX_PID_RULES: usize = (MAX_TICKETS - MAX_ARMS) as usize / 2;

/// The subjects of rules that may come or go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subjects {
    /// The folders of cgroups.
    pub folders: Vec<PathBuf>,
    /// The tickets of processes.
    pub tickets: Vec<u32>,
}

impl Subjects {
    pub fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.tickets.is_empty()
    }
}

/// The subject of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subject {
    /// The tasks of a cgroup of the default hierarchy and of its descendants. The deepest matching
    /// cgroup wins.
    Cgroup(PathBuf),
    /// Tasks of this name; * and ? as in a shell. The first matching rule wins.
    Comm(String),
    /// A process, and those that it forks from now on.
    Pid(u32),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Subject::Cgroup(path) => {
                write!(f, "--cgroup {}", escape::line(&path.to_string_lossy()))
            }
            Subject::Comm(glob) => write!(f, "--comm {}", escape::line(glob)),
            Subject::Pid(pid) => write!(f, "--pid {pid}"),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Rule {
    pub subject: Subject,
    /// The slot of its arm.
    pub slot: usize,
    means: Means,
}

#[derive(Clone, Debug)]
enum Means {
    Cgroup(Found),
    Comm,
    /// The process, and its ticket.
    Pid(Arc<OwnedFd>, u32),
}

/// A cgroup that was looked up. The rules are not locked during the lookup: a path given by a
/// client may hang.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The resolved path of its folder. It has no link and is on cgroup2, so looking there again
    /// does not hang.
    folder: PathBuf,
    /// None: the cgroup is gone.
    id: Option<u64>,
}

impl Found {
    pub fn look_up(path: &Path) -> Result<Found> {
        let found = path.canonicalize().map_err(Into::into).and_then(|folder| {
            if !on_cgroup2(&folder)? {
                bail!("it is not on cgroup2");
            }
            Ok(Found { folder, id: None }.again())
        });
        found.with_context(|| {
            format!(
                "no cgroup {}: give the path of its folder, below the mount point of cgroup2",
                path.display()
            )
        })
    }

    /// A cgroup that is not looked up, as if it were gone.
    pub fn absent(path: &Path) -> Found {
        Found {
            folder: path.to_path_buf(),
            id: None,
        }
    }

    /// A cgroup that may not exist yet. Its nearest folder above that does is looked up.
    pub fn planned(path: &Path) -> Result<Found> {
        check_cgroup(path)?;
        let there = path.ancestors().find(|above| above.is_dir());
        let there = there.unwrap_or(Path::new("/"));
        let above = Found::look_up(there).with_context(|| format!("cgroup {}", path.display()))?;
        let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
        Ok(Found::absent(&above.folder.join(rest)).again())
    }

    /// Looks the cgroup up again. On the default hierarchy the inode number of a folder is the id
    /// of its cgroup.
    pub fn again(self) -> Found {
        let folder = std::fs::metadata(&self.folder).ok();
        Found {
            id: folder.filter(Metadata::is_dir).map(|f| f.ino()),
            ..self
        }
    }
}

/// The rules as the BPF half reads them.
#[derive(Clone, Default)]
pub struct Table {
    pub cgroups: BTreeMap<u64, u32>,
    pub comms: Vec<comm_rule>,
    pub tickets: Vec<ticket>,
}

#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// The ticket of `exec` for each slot in use.
    arms: BTreeMap<usize, u32>,
    last_ticket: u32,
}

impl Rules {
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// How many rules put tasks on the arm in this slot.
    pub fn of_arm(&self, slot: usize) -> usize {
        self.rules.iter().filter(|r| r.slot == slot).count()
    }

    pub fn arm_added(&mut self, slot: usize) {
        let ticket = self.new_ticket();
        self.arms.insert(slot, ticket);
    }

    /// Tasks that were started on the arm are on it no longer.
    pub fn arm_deleted(&mut self, slot: usize) {
        self.arms.remove(&slot);
    }

    /// The ticket of tasks that are started on this arm with `exec`.
    pub fn ticket_of_arm(&self, slot: usize) -> Result<u32> {
        self.arms.get(&slot).copied().context("an arm has a ticket")
    }

    pub fn add_cgroup(&mut self, path: &Path, found: Found, slot: usize) -> Result<()> {
        let path = path.to_path_buf();
        self.add(Subject::Cgroup(path), slot, Means::Cgroup(found))
    }

    /// The cgroups of rules, to be looked up again.
    pub fn cgroups(&self) -> Vec<Found> {
        let found = self.rules.iter().filter_map(|r| match &r.means {
            Means::Cgroup(found) => Some(found.clone()),
            _ => None,
        });
        found.collect()
    }

    pub fn add_comm(&mut self, glob: &str, slot: usize) -> Result<()> {
        check_comm(glob)?;
        self.add(Subject::Comm(glob.to_string()), slot, Means::Comm)
    }

    /// Returns the ticket for the process.
    pub fn add_pid(&mut self, pid: u32, pidfd: OwnedFd, slot: usize) -> Result<u32> {
        let ticket = self.new_ticket();
        self.add(Subject::Pid(pid), slot, Means::Pid(Arc::new(pidfd), ticket))?;
        Ok(ticket)
    }

    pub fn delete(&mut self, subject: &Subject) -> Result<()> {
        let Some(at) = self.rules.iter().position(|r| r.subject == *subject) else {
            let text = format!("no rule {subject}: 'scx_roost ctl rules' lists them");
            return Err(refuse(ENOENT, text));
        };
        self.rules.remove(at);
        Ok(())
    }

    /// Drops all rules but those about processes whose slot `stays`.
    pub fn keep_processes(&mut self, stays: impl Fn(usize) -> bool) {
        let kept = |r: &Rule| matches!(r.subject, Subject::Pid(_)) && stays(r.slot);
        self.rules.retain(kept);
    }

    /// Takes over what was found of `cgroups()`, and drops the rules of processes that ended. True
    /// if that changed something.
    pub fn refresh(&mut self, cgroups: &[Found]) -> bool {
        let before = self.rules.len();
        self.rules.retain(|r| match &r.means {
            Means::Pid(pidfd, _) => !ended(pidfd),
            _ => true,
        });
        let mut changed = self.rules.len() != before;
        for rule in &mut self.rules {
            if let Means::Cgroup(found) = &mut rule.means
                && let Some(now) = cgroups.iter().find(|c| c.folder == found.folder)
                && now != found
            {
                *found = now.clone();
                changed = true;
            }
        }
        changed
    }

    /// The cgroups and processes of rules, which may end or be created again.
    pub fn subjects(&self) -> Subjects {
        let mut subjects = Subjects::default();
        for rule in &self.rules {
            match &rule.means {
                Means::Cgroup(found) => subjects.folders.push(found.folder.clone()),
                Means::Pid(_, ticket) => subjects.tickets.push(*ticket),
                Means::Comm => (),
            }
        }
        subjects
    }

    /// A pidfd of each process that has a rule. It becomes readable when the process ends.
    pub fn processes(&self) -> Result<Vec<OwnedFd>> {
        let pidfds = self.rules.iter().filter_map(|r| match &r.means {
            Means::Pid(pidfd, _) => Some(pidfd.try_clone()),
            _ => None,
        });
        Ok(pidfds.collect::<std::io::Result<_>>()?)
    }

    pub fn table(&self) -> Table {
        let mut table = Table::default();
        let good = |(slot, id): (&usize, &u32)| ticket {
            id: *id,
            arm: *slot as u32,
        };
        table.tickets.extend(self.arms.iter().map(good));
        for rule in &self.rules {
            let arm = rule.slot as u32;
            match (&rule.subject, &rule.means) {
                (_, Means::Cgroup(Found { id: Some(id), .. })) => {
                    table.cgroups.insert(*id, arm);
                }
                (Subject::Comm(glob), _) => table.comms.push(comm_rule {
                    glob: padded(glob),
                    arm,
                }),
                (_, Means::Pid(_, id)) => table.tickets.push(ticket { id: *id, arm }),
                _ => (),
            }
        }
        table
    }

    fn add(&mut self, subject: Subject, slot: usize, means: Means) -> Result<()> {
        if let Some(old) = self.rules.iter().find(|r| r.subject == subject) {
            let text = format!("rule {} exists already: delete it first", old.subject);
            return Err(refuse(EEXIST, text));
        }
        let (kind, max) = match &subject {
            Subject::Cgroup(_) => ("--cgroup", MAX_CGROUP_RULES as usize),
            Subject::Comm(_) => ("--comm", MAX_COMM_RULES as usize),
            Subject::Pid(_) => ("--pid", MAX_PID_RULES),
        };
        let same =
            |r: &&Rule| std::mem::discriminant(&r.subject) == std::mem::discriminant(&subject);
        if self.rules.iter().filter(same).count() >= max {
            let text =
                format!("there are {max} rules {kind}, the most that are possible: delete one");
            return Err(refuse(ENOSPC, text));
        }
        self.rules.push(Rule {
            subject,
            slot,
            means,
        });
        Ok(())
    }

    /// A ticket that was never used and whose place in the BPF half's table is free.
    fn new_ticket(&mut self) -> u32 {
        let pids = self.rules.iter().filter_map(|r| match r.means {
            Means::Pid(_, id) => Some(id),
            _ => None,
        });
        let taken: Vec<u32> = self.arms.values().copied().chain(pids).collect();
        loop {
            self.last_ticket = self.last_ticket.wrapping_add(1).max(1);
            let place = self.last_ticket % MAX_TICKETS;
            if taken.iter().all(|id| id % MAX_TICKETS != place) {
                return self.last_ticket;
            }
        }
    }
}

/// Fails if no cgroup has this path, whatever there is on this machine.
fn check_cgroup(path: &Path) -> Result<()> {
    let plain = |part: Component| matches!(part, Component::RootDir | Component::Normal(_));
    let whole = path.is_absolute() && path.components().all(plain);
    if !whole || path.as_os_str().as_encoded_bytes().contains(&0) {
        bail!(
            "cgroup {}: expected a path from / on, without '..', such as \
             /sys/fs/cgroup/system.slice/build.service",
            path.display()
        );
    }
    Ok(())
}

fn check_comm(glob: &str) -> Result<()> {
    let max = COMM_LEN as usize - 1;
    if glob.is_empty() || glob.len() > max || glob.contains('\0') {
        bail!("name '{glob}': a pattern has 1 to {max} bytes, as the kernel's names of tasks have");
    }
    Ok(())
}

impl Subject {
    /// Fails if no rule can be about this, whatever there is on this machine.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Subject::Cgroup(path) => check_cgroup(path),
            Subject::Comm(glob) => check_comm(glob),
            Subject::Pid(_) => Ok(()),
        }
    }
}

fn padded(glob: &str) -> [std::ffi::c_char; COMM_LEN as usize] {
    let mut text = [0; COMM_LEN as usize];
    for (to, from) in text.iter_mut().zip(glob.bytes()) {
        *to = from as _;
    }
    text
}

fn on_cgroup2(path: &Path) -> Result<bool> {
    let fs = rustix::fs::statfs(path).map_err(std::io::Error::from)?;
    Ok(fs.f_type == libc::CGROUP2_SUPER_MAGIC)
}

/// A pidfd of the process. Refused (ESRCH): there is no such process, or it is only a thread. Other
/// errors are the daemon's, as when it has too many open files.
pub fn pidfd_of(pid: u32) -> Result<OwnedFd> {
    let known = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let opened = known.map_or(Err(Errno::SRCH), |pid| pidfd_open(pid, PidfdFlags::empty()));
    opened.map_err(|e| match e {
        Errno::SRCH | Errno::INVAL | Errno::NOENT => refuse(
            libc::ESRCH,
            format!("no process {pid}: give the number of a process, not of one of its threads"),
        ),
        other => refuse(
            other.raw_os_error(),
            format!("the daemon cannot open process {pid}: {other}"),
        ),
    })
}

/// A pidfd is readable when its process has ended.
fn ended(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn rules() -> Rules {
        let mut rules = Rules::default();
        rules.arm_added(0);
        rules.arm_added(3);
        rules
    }

    /// A folder that stands for a cgroup.
    fn found(folder: &Path) -> Found {
        let folder = folder.to_path_buf();
        Found { folder, id: None }.again()
    }

    fn refresh(rules: &mut Rules) -> bool {
        let cgroups: Vec<Found> = rules.cgroups().into_iter().map(Found::again).collect();
        rules.refresh(&cgroups)
    }

    #[test]
    fn the_table_holds_every_rule() {
        let (mut rules, dir) = (rules(), tempfile::tempdir().unwrap());
        rules.add_cgroup(dir.path(), found(dir.path()), 3).unwrap();
        rules.add_comm("fire*", 3).unwrap();
        let table = rules.table();
        let id = std::fs::metadata(dir.path()).unwrap().ino();
        assert_eq!(table.cgroups, BTreeMap::from([(id, 3)]));
        assert_eq!(table.comms.len(), 1);
        assert_eq!(table.comms[0].glob[..6], [102, 105, 114, 101, 42, 0]);
        assert_eq!(table.tickets.len(), 2);
        assert_eq!(rules.of_arm(3), 2);
    }

    #[test]
    fn a_recreated_cgroup_is_found_again() {
        let (mut rules, dir) = (rules(), tempfile::tempdir().unwrap());
        let path = dir.path().join("a");
        std::fs::create_dir(&path).unwrap();
        rules.add_cgroup(&path, found(&path), 3).unwrap();
        assert!(!refresh(&mut rules));
        std::fs::remove_dir(&path).unwrap();
        assert!(refresh(&mut rules) && rules.table().cgroups.is_empty());
        std::fs::create_dir(&path).unwrap();
        assert!(refresh(&mut rules) && rules.table().cgroups.len() == 1);
    }

    #[test]
    fn a_rule_ends_with_its_process() {
        let mut rules = rules();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let ticket = rules
            .add_pid(child.id(), pidfd_of(child.id()).unwrap(), 3)
            .unwrap();
        assert!(!refresh(&mut rules));
        assert!(
            rules
                .table()
                .tickets
                .iter()
                .any(|t| t.id == ticket && t.arm == 3)
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(refresh(&mut rules));
        assert_eq!((rules.table().tickets.len(), rules.of_arm(3)), (2, 0));
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        let mut rules = rules();
        let refused = |result: Result<()>, part: &str| {
            let error = format!("{:#}", result.unwrap_err());
            assert!(error.contains(part), "{error}");
        };
        let looked_up = |path| Found::look_up(Path::new(path)).map(drop);
        refused(looked_up("/nowhere"), "no cgroup /nowhere: give");
        refused(looked_up("/tmp"), "it is not on cgroup2");
        refused(rules.add_comm("", 3), "1 to 15 bytes");
        refused(rules.add_comm("0123456789abcdef", 3), "1 to 15 bytes");
        rules.add_comm("a*", 3).unwrap();
        refused(rules.add_comm("a*", 0), "rule --comm a* exists already");
        refused(rules.delete(&Subject::Pid(1)), "no rule --pid 1");
        for i in 1..MAX_COMM_RULES {
            rules.add_comm(&format!("n{i}"), 3).unwrap();
        }
        refused(rules.add_comm("more", 3), "there are 64 rules --comm");
        rules.delete(&Subject::Comm("a*".into())).unwrap();
        rules.add_comm("more", 3).unwrap();
    }

    #[test]
    fn tickets_never_share_a_place() {
        let mut rules = rules();
        for _ in 0..3 * MAX_TICKETS {
            rules.arm_deleted(3);
            rules.arm_added(3);
            let tickets = rules.table().tickets;
            assert_ne!(tickets[0].id % MAX_TICKETS, tickets[1].id % MAX_TICKETS);
        }
    }
}
