// SPDX-License-Identifier: GPL-2.0-only
//! The note of the last run, beside the statistics socket. The program `scx_roost` writes it at the
//! start and replaces it at the end. Nothing can be written after kill -9, so a note without an end
//! whose process is gone is that of a run that was killed or crashed.

use crate::util::text::tidy;
use crate::util::{journal, plain_file, wall_clock, whole_file};
use log::warn;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Permissions};
use std::io::Result;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const NAME: &str = "scx_roost.run";
/// An exporter without rights reads it, whatever the umask is.
const MODE: u32 = 0o644;
/// Characters of a text: another user may have written the file.
const TEXT_MAX: usize = 600;

const KILLED: &str = "it was killed (kill -9, out of memory) or it crashed: its process is gone";
const ENDED_PAGE: &str = "docs/troubleshooting.md#it-ended";
const NOT_STARTED_PAGE: &str = "docs/troubleshooting.md#it-does-not-start";

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Somebody sent a signal that asks for it.
    Signal,
    /// Another program replaced it or asked it to leave.
    Replaced,
    /// It could not be started.
    NotStarted,
    /// It failed, or the kernel ended it with an error.
    Error,
    /// Its process is gone and has written nothing.
    Killed,
}

impl Cause {
    fn is_failure(self) -> bool {
        !matches!(self, Cause::Signal | Cause::Replaced)
    }

    /// The page of the documents that says what to do.
    fn page(self) -> Option<&'static str> {
        match self {
            Cause::Signal | Cause::Replaced => None,
            Cause::NotStarted => Some(NOT_STARTED_PAGE),
            Cause::Error | Cause::Killed => Some(ENDED_PAGE),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct End {
    time_s: u64,
    cause: Cause,
    why: String,
}

/// The file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    process: String,
    start_time_s: u64,
    log: String,
    /// None: it runs, or it was killed.
    end: Option<End>,
}

impl Run {
    fn begins() -> Run {
        Run {
            process: process(std::process::id()).unwrap_or_default(),
            start_time_s: wall_clock::now_s(),
            log: log(),
            end: None,
        }
    }

    fn ends(self, cause: Cause, why: &str) -> Run {
        let end = End {
            time_s: wall_clock::now_s(),
            cause,
            why: why.to_string(),
        };
        Run {
            end: Some(end),
            ..self
        }
    }

    fn read(stats: &Path) -> Option<Run> {
        let text = plain_file::text(&path(stats)).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn write(&self, stats: &Path) -> Result<()> {
        let text = serde_json::to_string(self)? + "\n";
        let mode = |file: &File| file.set_permissions(Permissions::from_mode(MODE));
        whole_file::replace(&path(stats), &text, mode)
    }

    fn still_runs(&self) -> bool {
        let pid = self.process.split(' ').nth(1);
        let pid = pid.and_then(|pid| pid.parse().ok());
        self.end.is_none() && pid.is_some_and(|pid| process(pid).as_ref() == Some(&self.process))
    }
}

/// The note of this process's run. A failure to write it is one warning and changes nothing else.
pub struct Note {
    stats: PathBuf,
    run: Run,
    is_written: bool,
}

impl Note {
    /// The run begins, with its statistics at `stats`.
    pub fn begin(stats: &Path) -> Note {
        let run = Run::begins();
        let written = run.write(stats).inspect_err(|e| {
            let path = path(stats);
            warn!(
                "cannot write {}: {e}: 'scx_roost status' will not know how this run has ended",
                path.display()
            );
        });
        Note {
            stats: stats.to_path_buf(),
            run,
            is_written: written.is_ok(),
        }
    }

    /// The run ends.
    pub fn end(self, cause: Cause, why: &str) {
        // Another run may have begun since the kernel's own scheduler is back. A start that was
        // refused because this run was there has a note if this one has none.
        let refused = |run: &Run| {
            run.end
                .as_ref()
                .is_some_and(|e| e.cause == Cause::NotStarted)
        };
        let other = |run: &Run| run.process != self.run.process && !refused(run);
        if Run::read(&self.stats).as_ref().is_some_and(other) {
            return;
        }
        let written = self.run.ends(cause, why).write(&self.stats);
        if let (Err(e), true) = (written, self.is_written) {
            let path = path(&self.stats);
            // It would say that the process was killed. A full disk does not prevent this.
            let _ = whole_file::remove(&path);
            warn!(
                "cannot write how this run has ended to {}: {e}",
                path.display()
            );
        }
    }
}

/// Notes a start that failed, unless a run goes on. The error is printed anyway, so a failure to
/// write is not.
pub fn not_started(stats: &Path, why: &str) {
    if !Run::read(stats).is_some_and(|run| run.still_runs()) {
        // A start that is refused early has made no socket, and so no folder.
        let _ = stats.parent().map(fs::create_dir_all);
        let _ = Run::begins().ends(Cause::NotStarted, why).write(stats);
    }
}

/// How the last run has ended.
#[derive(Debug, PartialEq, Serialize)]
pub struct Last {
    pub cause: Cause,
    /// It did not end on request.
    pub failed: bool,
    pub why: String,
    pub start_time_s: u64,
    /// None: it was killed, so nobody knows.
    pub end_time_s: Option<u64>,
    /// What to read about it.
    pub page: Option<&'static str>,
    /// Where its log is: a command, a file, or another stream.
    pub log: String,
}

/// How the last run with its statistics at `stats` has ended. None: it goes on, or nothing is
/// known.
pub fn last(stats: &Path) -> Option<Last> {
    let run = Run::read(stats).filter(|run| !run.still_runs())?;
    let (cause, why, end_time_s) = match run.end {
        Some(end) => (end.cause, end.why, Some(end.time_s)),
        None => (Cause::Killed, KILLED.to_string(), None),
    };
    Some(Last {
        cause,
        failed: cause.is_failure(),
        why: tidy(&why, TEXT_MAX),
        start_time_s: run.start_time_s,
        end_time_s,
        page: cause.page(),
        log: tidy(&run.log, TEXT_MAX),
    })
}

fn path(stats: &Path) -> PathBuf {
    stats.with_file_name(NAME)
}

/// A boot, a process of it and when that began: no other process has the same. None: there is no
/// such process, or it has ended and its parent has not noticed yet.
fn process(pid: u32) -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may have blanks and parentheses in it.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let (state, start) = (fields.first()?, fields.get(19)?);
    (*state != "Z").then(|| format!("{} {pid} {start}", boot.trim()))
}

/// Where the messages of this process go.
fn log() -> String {
    if journal::reads_stderr() {
        return journal::command();
    }
    match fs::read_link("/proc/self/fd/2") {
        Ok(file) if file.is_absolute() => file.display().to_string(),
        _ => "what reads its stderr, a pipe".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn folder() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let stats = folder.path().join("stats");
        (folder, stats)
    }

    /// As if this process were another one, which is gone.
    fn killed(stats: &Path) {
        let mut run = Run::read(stats).unwrap();
        run.process.push('0');
        run.write(stats).unwrap();
    }

    #[test]
    fn an_end_is_known_and_a_run_that_goes_on_has_none() {
        let (_folder, stats) = folder();
        assert_eq!(last(&stats), None);
        let note = Note::begin(&stats);
        assert_eq!(last(&stats), None);
        let mode = fs::metadata(path(&stats)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        note.end(Cause::Signal, "ended by SIGINT");
        let clean = last(&stats).unwrap();
        assert_eq!((clean.failed, &*clean.why), (false, "ended by SIGINT"));
        assert!(clean.end_time_s >= Some(clean.start_time_s) && clean.page.is_none());
        Note::begin(&stats).end(Cause::Error, "EXIT: stall\x1b[2J");
        let failed = last(&stats).unwrap();
        assert_eq!((failed.failed, &*failed.why), (true, "EXIT: stall?[2J"));
        assert_eq!(failed.page, Some(ENDED_PAGE));
    }

    #[test]
    fn a_run_without_an_end_whose_process_is_gone_was_killed() {
        let (_folder, stats) = folder();
        let _note = Note::begin(&stats);
        killed(&stats);
        let last = last(&stats).unwrap();
        assert_eq!((last.cause, last.end_time_s), (Cause::Killed, None));
        assert!(last.failed && last.start_time_s > 0);
    }

    #[test]
    fn a_process_that_ended_is_gone_before_its_parent_notices() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let begin = std::time::Instant::now();
        while process(child.id()).is_some() {
            assert!(begin.elapsed().as_secs() < 20);
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(process(std::process::id()).is_some());
    }

    #[test]
    fn a_start_that_failed_does_not_replace_a_run_that_goes_on() {
        let (_folder, stats) = folder();
        let _note = Note::begin(&stats);
        not_started(&stats, "no");
        assert_eq!(last(&stats), None);
        killed(&stats);
        not_started(&stats, "no");
        let last = last(&stats).unwrap();
        assert_eq!((last.cause, &*last.why), (Cause::NotStarted, "no"));
        assert_eq!(last.page, Some(NOT_STARTED_PAGE));
    }

    #[test]
    fn a_start_that_is_refused_early_is_noted_too() {
        let (folder, _) = folder();
        let stats = folder.path().join("a/b/stats");
        not_started(&stats, "no");
        assert_eq!(last(&stats).unwrap().why, "no");
    }

    /// This process has no note, as on a full disk; another one was refused because of it.
    #[test]
    fn a_refused_start_does_not_hide_how_the_run_ended() {
        let (_folder, stats) = folder();
        let note = Note::begin(&stats);
        fs::remove_file(path(&stats)).unwrap();
        not_started(&stats, "no");
        killed(&stats);
        note.end(Cause::Error, "EXIT: stall");
        assert_eq!(last(&stats).unwrap().why, "EXIT: stall");
    }

    /// A link of another user must not lead the write elsewhere.
    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let (folder, stats) = folder();
        let target = folder.path().join("target");
        fs::write(&target, "precious").unwrap();
        symlink(&target, path(&stats)).unwrap();
        Note::begin(&stats).end(Cause::Signal, "");
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
        assert!(fs::symlink_metadata(path(&stats)).unwrap().is_file());
    }

    #[test]
    fn a_note_that_cannot_be_written_changes_nothing() {
        let stats = Path::new("/dev/null/stats");
        Note::begin(stats).end(Cause::Signal, "");
        not_started(stats, "");
        assert_eq!(last(stats), None);
        // The end alone cannot be written: nothing is better than a lie.
        let (folder, stats) = folder();
        let note = Note::begin(&stats);
        let temporary = format!(".{NAME}.{}", std::process::id());
        fs::create_dir(folder.path().join(temporary)).unwrap();
        note.end(Cause::Signal, "");
        assert!(!path(&stats).exists());
    }

    #[test]
    fn what_is_no_note_is_none() {
        let (_folder, stats) = folder();
        for text in ["", "{}", "oom-kill", "\u{0}"] {
            fs::write(path(&stats), text).unwrap();
            assert_eq!(last(&stats), None, "{text}");
        }
    }
}
