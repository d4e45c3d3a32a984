// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost record`: records what the scheduler of this machine does.

use super::instance::{Instance, tracefs};
use super::{Recording, SYS, TEXT};
use crate::machine::{copy_machine, cpulist_text, parse_cpulist};
use crate::sim::Model;
use crate::sim::command::row;
use crate::sim::trace::{self, Pictures};
use crate::util::parse::seconds;
use crate::util::stderr::say;
use crate::util::stop::Stop;
use crate::util::user::{User, give_back_folder};
use anyhow::{Context, Result, ensure};
use clap::Args;
use rustix::fs::{FlockOperation, flock};
use serde::Serialize;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

pub const EXAMPLES: &str = "\
Examples:
  sudo scx_roost record --seconds 5                      what runs now
  sudo scx_roost record -o build -- make -j8             a command, until it ends
  scx_roost sim --replay recording --variant eevdf --variant roost --svg why.svg";

const SYSFS: &str = "/sys";
const EVENTS: [&str; 6] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup",
    "sched_wakeup_new",
    "sched_process_fork",
    "sched_process_exec",
];
/// How much the picture shows, ns.
const WINDOW: u64 = 20_000_000;
const LOOK: Duration = Duration::from_millis(20);
/// Time for a command that is asked to end.
const END_TIME: Duration = Duration::from_secs(5);
/// Memory for the events of a CPU, and of all CPUs, if none is asked for. That of all is also
/// bounded by a part of what is available.
const BUFFER_KB: u64 = 8192;
const LEAST_KB: u64 = 64;
const ALL_KB: u64 = 1 << 20;
const PART: u64 = 8;

#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Seconds to record (0.1 to 3600) [default: 2, or until COMMAND ends]
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Folder to write: sched.txt (the events), sys (the machine), picture.svg and trace.json (the
    /// first 20 ms)
    #[arg(short, long, value_name = "DIR", default_value = "recording")]
    output: PathBuf,

    /// Memory for the events of each CPU, in kB [default: 8192, or less on machines of many CPUs:
    /// all have 1 GB and an eighth of the available memory at most]
    #[arg(long, value_name = "KB", value_parser = clap::value_parser!(u64).range(LEAST_KB..=1_048_576))]
    buffer_kb: Option<u64>,

    /// Run the command as this user, with the user's groups and home [default: the user who called
    /// sudo, doas or pkexec, otherwise the current user]
    #[arg(long, value_name = "NAME", requires = "command")]
    user: Option<String>,

    /// Run this command, and record until it ends; its exit status is passed on
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What was recorded.
#[derive(Debug, Serialize)]
pub struct Record {
    pub folder: PathBuf,
    pub seconds: f64,
    pub events: usize,
    pub tasks: usize,
    /// As in a row of `sim`.
    pub shared_percent: f64,
    pub moves: f64,
    pub far_moves: f64,
    pub wakeup_p50_us: f64,
    pub wakeup_p99_us: f64,
    /// Of the command; of one that a signal ended, 128 and the signal's number.
    pub exit_status: Option<u8>,
}

/// Records until the time is over, the command ends, or `stop`. Errors: it needs root and tracefs;
/// events were lost; the folder exists or cannot be written.
pub fn record(args: &RecordArgs, stop: &Stop) -> Result<Record> {
    let folder = &args.output;
    let user = User::of(args.user.as_deref())?;
    let tracefs = tracefs()?;
    // An empty one is what a recorder leaves that was killed.
    if File::open(folder).is_ok_and(|of_another| locks(&of_another)) {
        let _ = fs::remove_dir(folder);
    }
    ensure!(
        !folder.exists(),
        "{} exists: name another folder with -o, or remove it",
        folder.display()
    );
    let made = Made::create(folder)?;
    let instance = Instance::create(&tracefs)?;
    instance.set("trace_clock", "mono")?;
    instance.set("options/overwrite", "0")?;
    let buffer_kb = buffer_kb(args.buffer_kb, online().len() as u64, available_kb())?;
    instance.set("buffer_size_kb", &buffer_kb.to_string())?;
    for event in EVENTS {
        instance.set(&format!("events/sched/{event}/enable"), "1")?;
    }
    let mut child = None;
    instance.set("tracing_on", "1")?;
    if let Some((program, words)) = args.command.split_first() {
        let mut command = Command::new(program);
        if let Some(user) = &user {
            user.takes(&mut command);
        }
        let started = command.args(words).spawn();
        child = Some(started.with_context(|| format!("cannot start {program}"))?);
    }
    waits(args, child.as_mut(), stop)?;
    instance.set("tracing_on", "0")?;
    // Read while the tasks are there.
    let head = head();
    let written = instance.complete().and_then(|()| {
        let written = write(&instance, &head, &made.path());
        written.with_context(|| format!("cannot write {}", folder.display()))
    });
    // The kernel's buffers do not wait for the command.
    drop(instance);
    let exit_status = child.map(|child| ends(child, stop)).transpose()?;
    written?;
    let model = Model::read(&made.path().join(SYS))?;
    let mut record = show(&made, &model)?;
    record.exit_status = exit_status;
    made.keep()?;
    Ok(record)
}

/// kB for each of so many CPUs.
fn buffer_kb(asked: Option<u64>, cpus: u64, available: u64) -> Result<u64> {
    let cpus = cpus.max(1);
    let most = ALL_KB.min(available / PART) / cpus;
    let kb = asked.unwrap_or(most.clamp(LEAST_KB, BUFFER_KB));
    ensure!(
        kb <= available / 2 / cpus,
        "buffers of {kb} kB for {cpus} CPUs take more than half of the {} MB of memory that are \
         available: give a smaller --buffer-kb",
        available >> 10
    );
    Ok(kb)
}

/// Memory that programs can get without swapping, kB.
fn available_kb() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("MemAvailable:"));
    let kb = line.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse().ok());
    kb.unwrap_or(u64::MAX)
}

/// Waits for the command, which goes on after the recording. It is ended by what ends us.
fn ends(mut child: Child, stop: &Stop) -> Result<u8> {
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if !stop.sleep(LOOK) {
            break ended(child)?;
        }
    };
    if !status.success() {
        say!("scx_roost: the command ended with {status}");
    }
    let by_signal = || 128 + status.signal().unwrap_or(0);
    Ok(status.code().unwrap_or_else(by_signal) as u8)
}

/// Asks the command to end, then makes it.
fn ended(mut child: Child) -> Result<ExitStatus> {
    // SAFETY: plain numbers; a child of ours that is not reaped.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let begin = Instant::now();
    while begin.elapsed() < END_TIME {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(LOOK);
    }
    child.kill()?;
    Ok(child.wait()?)
}

/// True if no other recorder has it.
fn locks(folder: &File) -> bool {
    flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// The folder of a recording, held open: whatever others make of its name, root writes here. Until
/// it is kept nobody else may enter it; dropping it removes it.
struct Made<'a> {
    name: &'a Path,
    folder: File,
    kept: bool,
}

impl Made<'_> {
    fn create(name: &Path) -> Result<Made<'_>> {
        let told = || format!("cannot create {}", name.display());
        if let Some(parent) = name.parent() {
            fs::create_dir_all(parent).with_context(told)?;
        }
        let made = DirBuilder::new().mode(0o700).create(name);
        made.with_context(told)?;
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = OpenOptions::new().read(true).custom_flags(flags).open(name);
        let folder = folder.with_context(told)?;
        let meta = folder.metadata().with_context(told)?;
        let own = meta.uid() == nix::unistd::geteuid().as_raw() && meta.mode() & 0o777 == 0o700;
        ensure!(own, "{} was replaced as it was created", name.display());
        // Held until it is written: another recorder leaves it alone.
        ensure!(locks(&folder), "{} is another recorder's", name.display());
        let kept = false;
        Ok(Made { name, folder, kept })
    }

    /// Leads to this folder, whatever has its name now.
    fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd()))
    }

    /// Under sudo it is the invoking user's from now on.
    fn keep(mut self) -> Result<()> {
        give_back_folder(&self.folder, &self.path(), self.name);
        let open = self.folder.set_permissions(Permissions::from_mode(0o755));
        open.with_context(|| format!("cannot open {} to others", self.name.display()))?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        for entry in fs::read_dir(self.path()).into_iter().flatten().flatten() {
            let _ = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => fs::remove_dir_all(entry.path()),
                false => fs::remove_file(entry.path()),
            };
        }
        let _ = fs::remove_dir(self.name);
    }
}

/// Waits for the end of the recording.
fn waits(args: &RecordArgs, mut child: Option<&mut Child>, stop: &Stop) -> Result<()> {
    let begin = Instant::now();
    let time = match (args.seconds, &child) {
        (None, Some(_)) => Duration::MAX,
        (seconds, _) => seconds.unwrap_or(Duration::from_secs(2)),
    };
    loop {
        let Some(left) = time.checked_sub(begin.elapsed()).filter(|d| !d.is_zero()) else {
            return Ok(());
        };
        // Looks disturb what is recorded, so there are none without a command.
        let nap = match child {
            Some(_) => left.min(LOOK),
            None => left,
        };
        if !stop.sleep(nap) {
            return Ok(());
        }
        if let Some(child) = &mut child
            && child.try_wait()?.is_some()
        {
            return Ok(());
        }
    }
}

fn write(instance: &Instance, head: &str, folder: &Path) -> Result<()> {
    let mut out = BufWriter::new(File::create(folder.join(TEXT))?);
    out.write_all(head.as_bytes())?;
    io::copy(&mut File::open(instance.dir.join("trace"))?, &mut out)?;
    out.flush()?;
    copy_machine(Path::new(SYSFS), &folder.join(SYS))
}

/// Reads what was written, and draws it.
fn show(made: &Made, model: &Model) -> Result<Record> {
    let (at, name) = (made.path(), made.name.display());
    let text = BufReader::new(File::open(at.join(TEXT))?);
    let recording = Recording::parse(text, model, 0);
    let recording =
        recording.with_context(|| format!("what was recorded cannot be read: {TEXT}"))?;
    let (seen, measured) = recording.trace(model, WINDOW)?;
    let seen = [(seen, measured)];
    let title = format!("recorded in {name}");
    let files = Pictures {
        trace: Some(at.join("trace.json")),
        svg: Some(at.join("picture.svg")),
        window: WINDOW,
    };
    trace::draw(&files, model, &title, &seen)?;
    let row = row("recorded", &[recording.measured], None, false);
    Ok(Record {
        folder: made.name.to_path_buf(),
        seconds: recording.ns as f64 / 1e9,
        events: recording.text.events.len(),
        tasks: recording.load.groups.len(),
        shared_percent: row.shared_percent,
        moves: row.moves,
        far_moves: row.far_moves,
        wakeup_p50_us: row.wakeup_p50_us,
        wakeup_p99_us: row.wakeup_p99_us,
        exit_status: None,
    })
}

impl Record {
    /// That of the command.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.exit_status.unwrap_or(0))
    }

    pub fn text(&self) -> String {
        let folder = self.folder.display();
        format!(
            "{folder}: {} events of {} tasks in {:.2} s\n\
             wakeup to running {:.1} us (p50), {:.1} us (p99); moves a second {:.0}, to other caches {:.0}; \
             {:.1} % of the CPU time on shared cores\n\
             scx_roost sim --replay {folder} replays it; {folder}/picture.svg shows its beginning\n",
            self.events,
            self.tasks,
            self.seconds,
            self.wakeup_p50_us,
            self.wakeup_p99_us,
            self.moves,
            self.far_moves,
            self.shared_percent,
        )
    }
}

// ---- what the events do not say ----

/// The scheduler, and the CPUs of the tasks that may not use all of them.
fn head() -> String {
    let text = |path: &str| fs::read_to_string(Path::new(SYSFS).join(path)).unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut head = format!("# recorded by scx_roost on Linux {}\n", kernel.trim());
    let scheduler = match text("kernel/sched_ext/state").trim() {
        "enabled" => text("kernel/sched_ext/root/ops"),
        _ => "the kernel's own".to_string(),
    };
    head += &format!("# scheduler: {}\n", scheduler.trim());
    let online = online();
    let tasks = fs::read_dir("/proc").into_iter().flatten().flatten();
    let threads = tasks.flat_map(|task| fs::read_dir(task.path().join("task")).into_iter());
    for thread in threads.flatten().flatten() {
        head += &affinity(&thread.path(), &online).unwrap_or_default();
    }
    head
}

fn online() -> Vec<u16> {
    let text = fs::read_to_string(Path::new(SYSFS).join("devices/system/cpu/online"));
    parse_cpulist(text.unwrap_or_default().trim()).unwrap_or_default()
}

/// None: the thread may use all CPUs, or is gone.
fn affinity(thread: &Path, online: &[u16]) -> Option<String> {
    let status = fs::read_to_string(thread.join("status")).ok()?;
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    let mut cpus = parse_cpulist(list.trim()).ok()?;
    cpus.retain(|cpu| online.contains(cpu));
    let thread = thread.file_name()?.to_str()?;
    let some = !cpus.is_empty() && cpus != online;
    some.then(|| format!("# cpus of {thread}: {}\n", cpulist_text(&cpus)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::Stdio;

    const GB: u64 = 1 << 20;

    #[test]
    fn buffers_leave_memory_to_others() {
        for (asked, cpus, available, kb) in [
            (None, 8, 16 * GB, 8192),
            (None, 128, 256 * GB, 8192),
            (None, 1024, 1024 * GB, 1024),
            // An eighth of 2 GB.
            (None, 64, 2 * GB, 4096),
            (None, 64, GB / 64, LEAST_KB),
            (Some(65536), 64, 16 * GB, 65536),
            (None, 8, u64::MAX, 8192),
        ] {
            let got = buffer_kb(asked, cpus, available).unwrap();
            assert_eq!(got, kb, "{asked:?} {cpus} {available}");
        }
        let error = buffer_kb(Some(65536), 64, 4 * GB).unwrap_err().to_string();
        let told = "buffers of 65536 kB for 64 CPUs take more than half of the 4096 MB";
        assert!(error.starts_with(told), "{error}");
        assert!(buffer_kb(None, 1024, GB / 16).is_err());
    }

    /// Another user may write to the parent and rename the folder.
    #[test]
    fn what_replaces_the_folder_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let name = at("new");
        let made = Made::create(&name).unwrap();
        fs::rename(&name, at("moved")).unwrap();
        fs::create_dir(at("other")).unwrap();
        std::os::unix::fs::symlink(at("other"), &name).unwrap();
        fs::write(made.path().join(TEXT), "x").unwrap();
        fs::create_dir(made.path().join(SYS)).unwrap();
        assert!(at("moved").join(TEXT).exists());
        drop(made);
        assert_eq!(fs::read_dir(at("other")).unwrap().count(), 0);
        assert_eq!(fs::read_dir(at("moved")).unwrap().count(), 0);
    }

    #[test]
    fn a_command_that_ignores_the_request_is_killed() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; echo; exec sleep 60"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = [0];
        child.stdout.take().unwrap().read_exact(&mut ready).unwrap();
        let status = ended(child).unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL));
    }
}
