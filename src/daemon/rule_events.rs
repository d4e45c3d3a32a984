// SPDX-License-Identifier: GPL-2.0-only
//! Rings when a cgroup of a rule comes or goes (inotify), or a process of a rule ends (pidfd). So
//! this is noticed before the next look. Looks are needed all the same: inotify does not report a
//! cgroup folder that goes together with its parent. The first event ends the listener; the look
//! that follows starts a new one.

use crate::policy::rules::Subjects;
use crate::util::stop::Bell;
use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
use std::ffi::OsString;
use std::fs::Metadata;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// Listens until it has rung, or is dropped.
pub struct RuleEvents {
    subjects: Subjects,
    places: Vec<WatchPoint>,
    rung: Arc<AtomicBool>,
    end: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

/// Where a folder's coming or going can be observed: its nearest existing ancestor, and the name to
/// look for there.
#[derive(Clone, Debug, PartialEq)]
struct WatchPoint {
    above: PathBuf,
    /// Device and inode: another folder with the same path has no listener. cgroup2 does not report
    /// that the folder itself goes (IN_DELETE_SELF).
    inode: (u64, u64),
    name: OsString,
}

impl WatchPoint {
    fn of(folder: &Path) -> Option<WatchPoint> {
        let is_folder = |path: &'_ Path| Some(path.metadata().ok()?).filter(Metadata::is_dir);
        let mut all = folder.ancestors().skip(1);
        let (above, meta) = all.find_map(|path| Some((path, is_folder(path)?)))?;
        let name = folder.strip_prefix(above).ok()?.iter().next()?;
        Some(WatchPoint {
            above: above.to_path_buf(),
            inode: (meta.dev(), meta.ino()),
            name: name.to_os_string(),
        })
    }
}

impl RuleEvents {
    /// `processes`: a pidfd of each.
    pub fn listen(subjects: Subjects, processes: Vec<OwnedFd>, bell: Bell) -> Result<RuleEvents> {
        let tell = "cannot watch for new and removed cgroups";
        let places: Vec<WatchPoint> = places(&subjects);
        let inotify =
            Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).context(tell)?;
        let watch = |place: &WatchPoint| {
            let wd = inotify.add_watch(&place.above, looked_for())?;
            Ok((wd, place.name.clone()))
        };
        let watched: Result<Vec<_>, Errno> = places.iter().map(watch).collect();
        let watched = watched.context(tell)?;
        let (end, ended) = UnixStream::pair()?;
        let rung = Arc::new(AtomicBool::new(false));
        let ring = rung.clone();
        let run = move || {
            if happened(&inotify, &watched, &processes, &ended) {
                ring.store(true, Ordering::Release);
                bell.ring();
            }
        };
        let thread = Builder::new().name("rules".to_string()).spawn(run);
        Ok(RuleEvents {
            subjects,
            places,
            rung,
            end: Some(end),
            thread: Some(thread.context(tell)?),
        })
    }

    /// It would ring for an event of these subjects.
    pub fn is_listening_to(&self, subjects: &Subjects) -> bool {
        let silent = !self.rung.load(Ordering::Acquire);
        silent && self.subjects == *subjects && self.places == places(subjects)
    }
}

impl Drop for RuleEvents {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn places(subjects: &Subjects) -> Vec<WatchPoint> {
    subjects
        .folders
        .iter()
        .filter_map(|f| WatchPoint::of(f))
        .collect()
}

fn looked_for() -> AddWatchFlags {
    AddWatchFlags::IN_CREATE
        | AddWatchFlags::IN_DELETE
        | AddWatchFlags::IN_DELETE_SELF
        | AddWatchFlags::IN_ONLYDIR
}

/// Waits until something happened; false: it must end.
fn happened(
    inotify: &Inotify,
    watched: &[(WatchDescriptor, OsString)],
    processes: &[OwnedFd],
    ended: &UnixStream,
) -> bool {
    let fds = [ended.as_fd(), inotify.as_fd()].into_iter();
    let fds = fds.chain(processes.iter().map(AsFd::as_fd));
    let mut fds: Vec<PollFd> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    loop {
        match poll(&mut fds, PollTimeout::NONE) {
            Err(Errno::EINTR) => continue,
            Err(_) => return true,
            Ok(_) => (),
        }
        let ready = |fd: &PollFd| fd.any().unwrap_or(true);
        if ready(&fds[0]) {
            return false;
        }
        if fds[2..].iter().any(ready) {
            return true;
        }
        match inotify.read_events() {
            Ok(events) if !events.iter().any(|e| of_interest(e, watched)) => (),
            Err(Errno::EAGAIN | Errno::EINTR) => (),
            _ => return true,
        }
    }
}

/// Other names in the same folder are ignored.
fn of_interest(event: &InotifyEvent, watched: &[(WatchDescriptor, OsString)]) -> bool {
    let ours = |(wd, name): &(WatchDescriptor, OsString)| {
        *wd == event.wd && event.name.as_ref().is_none_or(|n| n == name)
    };
    event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) || watched.iter().any(ours)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::rules::pidfd_of;
    use crate::util::stop::{Woken, stopper};
    use std::fs;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    const PATIENCE: Duration = Duration::from_secs(20);
    const SILENCE: Duration = Duration::from_millis(200);

    fn about(folder: &Path) -> Subjects {
        Subjects {
            folders: vec![folder.to_path_buf()],
            tickets: Vec::new(),
        }
    }

    #[test]
    fn a_folder_that_comes_or_goes_rings_and_others_do_not() {
        let (_stopper, stop) = stopper();
        let (dir, bell) = (tempfile::tempdir().unwrap(), Bell::default());
        let folder = dir.path().join("a/b");
        let subjects = about(&folder);
        let listen = || RuleEvents::listen(subjects.clone(), Vec::new(), bell.clone()).unwrap();
        let rung = |time| stop.sleep_or(&bell, time) == Woken::Rung;
        let (made, gone) = (true, false);
        let steps = [("a", made), ("a/b", made), ("a/b", gone), ("a", gone)];
        for (path, step) in steps {
            let events = listen();
            assert!(
                events.is_listening_to(&subjects) && !events.is_listening_to(&Subjects::default())
            );
            let other = dir.path().join(path).with_file_name("other");
            fs::create_dir(&other).unwrap();
            fs::remove_dir(&other).unwrap();
            assert!(
                !rung(SILENCE) && events.is_listening_to(&subjects),
                "{path}"
            );
            let path = dir.path().join(path);
            let done = if step == made {
                fs::create_dir(&path)
            } else {
                fs::remove_dir(&path)
            };
            done.unwrap();
            assert!(
                rung(PATIENCE) && !events.is_listening_to(&subjects),
                "{path:?}"
            );
        }
    }

    /// The same situation as with a cgroup2 folder, whose own removal is not reported.
    #[test]
    fn a_folder_above_that_is_another_one_is_not_heard() {
        let dir = tempfile::tempdir().unwrap();
        let (above, away) = (dir.path().join("a"), dir.path().join("away"));
        fs::create_dir(&above).unwrap();
        let subjects = about(&above.join("b"));
        let bell = Bell::default();
        let events = RuleEvents::listen(subjects.clone(), Vec::new(), bell.clone()).unwrap();
        assert!(events.is_listening_to(&subjects));
        // Renames are not listened for.
        fs::rename(&above, &away).unwrap();
        fs::create_dir(&above).unwrap();
        assert!(!events.is_listening_to(&subjects));
        let anew = RuleEvents::listen(subjects.clone(), Vec::new(), bell).unwrap();
        assert!(anew.is_listening_to(&subjects));
    }

    #[test]
    fn a_process_that_ends_rings() {
        let (_stopper, stop) = stopper();
        let bell = Bell::default();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let subjects = Subjects {
            tickets: vec![7],
            ..Subjects::default()
        };
        let pidfd = pidfd_of(child.id()).unwrap();
        let events = RuleEvents::listen(subjects.clone(), vec![pidfd], bell.clone()).unwrap();
        assert_eq!(stop.sleep_or(&bell, SILENCE), Woken::InTime);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(stop.sleep_or(&bell, PATIENCE), Woken::Rung);
        assert!(!events.is_listening_to(&subjects));
    }

    #[test]
    fn who_listens_can_stop() {
        let dir = tempfile::tempdir().unwrap();
        let events = RuleEvents::listen(about(&dir.path().join("a")), Vec::new(), Bell::default());
        drop(events.unwrap());
    }
}
