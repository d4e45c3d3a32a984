// SPDX-License-Identifier: GPL-2.0-only
//! `scx_roost record`: records what the scheduler of this machine does, with an instance of ftrace
//! that nobody else uses and that is removed on every path.

use super::{Recording, SYS, TEXT};
use crate::machine::{copy_machine, cpulist_text, parse_cpulist};
use crate::sim::Model;
use crate::sim::command::row;
use crate::sim::trace::{self, Pictures};
use crate::util::parse::seconds;
use crate::util::stop::Stop;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
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
const OURS: &str = "scx_roost_";
/// How much the picture shows, ns.
const WINDOW: u64 = 20_000_000;
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Seconds to record (0.1 to 3600) [default: 2, or until COMMAND ends]
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    seconds: Option<Duration>,

    /// Folder to write: sched.txt (the events), sys (the machine), picture.svg and trace.json (the
    /// first 20 ms)
    #[arg(short, long, value_name = "DIR", default_value = "recording")]
    output: PathBuf,

    /// Memory for the events of each CPU, in kB
    #[arg(long, value_name = "KB", default_value_t = 8192, value_parser = clap::value_parser!(u64).range(64..=1_048_576))]
    buffer_kb: u64,

    /// Run this command, and record until it ends
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
}

/// Records until the time is over, the command ends, or `stop`. Errors: it needs root and tracefs;
/// events were lost; the folder exists or cannot be written.
pub fn record(args: &RecordArgs, stop: &Stop) -> Result<Record> {
    let folder = &args.output;
    // An empty one is what a recorder leaves that was killed.
    let _ = fs::remove_dir(folder);
    ensure!(
        !folder.exists(),
        "{} exists: name another folder with -o, or remove it",
        folder.display()
    );
    let tracefs = tracefs()?;
    let made = Made::create(folder)?;
    let instance = Instance::create(&tracefs)?;
    instance.set("trace_clock", "mono")?;
    instance.set("options/overwrite", "0")?;
    instance.set("buffer_size_kb", &args.buffer_kb.to_string())?;
    for event in EVENTS {
        instance.set(&format!("events/sched/{event}/enable"), "1")?;
    }
    let mut child = None;
    instance.set("tracing_on", "1")?;
    if let Some((program, words)) = args.command.split_first() {
        let started = Command::new(program).args(words).spawn();
        child = Some(started.with_context(|| format!("cannot start {program}"))?);
    }
    waits(args, child.as_mut(), stop)?;
    instance.set("tracing_on", "0")?;
    // Read while the tasks are there.
    let head = head();
    let written = instance.complete().and_then(|()| {
        let written = write(&instance, &head, folder);
        written.with_context(|| format!("cannot write {}", folder.display()))
    });
    // The kernel's buffers do not wait for the command.
    drop(instance);
    if let Some(child) = child {
        ends(child, stop)?;
    }
    written?;
    let model = Model::read(&folder.join(SYS))?;
    let record = show(folder, &model)?;
    made.keep()?;
    Ok(record)
}

/// Waits for the command, which goes on after the recording. It is ended by what ends us.
fn ends(mut child: Child, stop: &Stop) -> Result<()> {
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if !stop.sleep(LOOK) {
            // SAFETY: plain numbers; a child of ours that is not reaped.
            unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
            break child.wait()?;
        }
    };
    if !status.success() {
        eprintln!("scx_roost: the command ended with {status}");
    }
    Ok(())
}

/// The folder of a recording. Until it is kept nobody else may enter it, so nobody can have root
/// write through a link; and dropping it removes it.
struct Made<'a>(Option<&'a Path>);

impl Made<'_> {
    fn create(folder: &Path) -> Result<Made<'_>> {
        let told = || format!("cannot create {}", folder.display());
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).with_context(told)?;
        }
        let made = DirBuilder::new().mode(0o700).create(folder);
        made.with_context(told)?;
        Ok(Made(Some(folder)))
    }

    fn keep(mut self) -> Result<()> {
        let Some(folder) = self.0.take() else {
            return Ok(());
        };
        let open = Permissions::from_mode(0o755);
        fs::set_permissions(folder, open)
            .with_context(|| format!("cannot open {} to others", folder.display()))
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        if let Some(folder) = self.0 {
            let _ = fs::remove_dir_all(folder);
        }
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
fn show(folder: &Path, model: &Model) -> Result<Record> {
    let recording = Recording::read(&folder.join(TEXT), model, 0)?;
    let (seen, measured) = recording.trace(model, WINDOW)?;
    let seen = [(seen, measured)];
    let title = format!("recorded in {}", folder.display());
    let files = Pictures {
        trace: Some(folder.join("trace.json")),
        svg: Some(folder.join("picture.svg")),
        window: WINDOW,
    };
    trace::draw(&files, model, &title, &seen)?;
    let row = row("recorded", &[recording.measured], None, false);
    Ok(Record {
        folder: folder.to_path_buf(),
        seconds: recording.ns as f64 / 1e9,
        events: recording.text.events.len(),
        tasks: recording.load.groups.len(),
        shared_percent: row.shared_percent,
        moves: row.moves,
        far_moves: row.far_moves,
        wakeup_p50_us: row.wakeup_p50_us,
        wakeup_p99_us: row.wakeup_p99_us,
    })
}

impl Record {
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
    let online = text("devices/system/cpu/online");
    let online = parse_cpulist(online.trim()).unwrap_or_default();
    let tasks = fs::read_dir("/proc").into_iter().flatten().flatten();
    let threads = tasks.flat_map(|task| fs::read_dir(task.path().join("task")).into_iter());
    for thread in threads.flatten().flatten() {
        head += &affinity(&thread.path(), &online).unwrap_or_default();
    }
    head
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

// ---- ftrace ----

/// Where tracefs is. Errors say how to get it.
fn tracefs() -> Result<PathBuf> {
    let places = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
    for place in places.map(PathBuf::from) {
        match fs::metadata(place.join("instances")) {
            Ok(_) => return Ok(place),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                bail!("reading {} needs root: use sudo", place.display())
            }
            Err(_) => {}
        }
    }
    bail!(
        "there is no tracefs at {}: mount -t tracefs tracefs {0}, on a kernel with CONFIG_FTRACE",
        places[0]
    )
}

/// An instance of ftrace. Dropping it removes it.
struct Instance {
    dir: PathBuf,
}

impl Instance {
    fn create(tracefs: &Path) -> Result<Instance> {
        let instances = tracefs.join("instances");
        remove_stale(&instances);
        let dir = instances.join(format!("{OURS}{}", std::process::id()));
        fs::create_dir(&dir).with_context(|| match nix::unistd::geteuid().is_root() {
            true => format!("cannot create {}", dir.display()),
            false => format!("cannot create {}: this needs root; use sudo", dir.display()),
        })?;
        let instance = Instance { dir };
        instance.set("tracing_on", "0")?;
        Ok(instance)
    }

    fn set(&self, file: &str, text: &str) -> Result<()> {
        let path = self.dir.join(file);
        fs::write(&path, text)
            .with_context(|| format!("cannot write '{text}' to {}", path.display()))
    }

    /// Errors: a buffer was full.
    fn complete(&self) -> Result<()> {
        let mut lost = Vec::new();
        for entry in fs::read_dir(self.dir.join("per_cpu"))? {
            let entry = entry?;
            let stats = fs::read_to_string(entry.path().join("stats"))?;
            let count = |key: &str| -> u64 {
                let line = stats.lines().find_map(|l| l.strip_prefix(key));
                line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
            };
            let events = count("overrun:") + count("dropped events:");
            if events > 0 {
                let cpu = entry.file_name().to_string_lossy().into_owned();
                lost.push(format!("{cpu} {events}"));
            }
        }
        ensure!(
            lost.is_empty(),
            "events were lost ({}), so what the tasks did is not known: record for a shorter time, \
             or with a larger --buffer-kb",
            lost.join(", ")
        );
        Ok(())
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // A kernel that refuses this refuses the removal as well, and says so.
        let _ = self.set("tracing_on", "0");
        let _ = self.set("events/enable", "0");
        if let Err(e) = fs::remove_dir(&self.dir) {
            eprintln!("scx_roost: cannot remove {}: {e}", self.dir.display());
        }
    }
}

/// Removes instances whose recorder was killed.
fn remove_stale(instances: &Path) {
    for entry in fs::read_dir(instances).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let dead = |pid: &str| !Path::new("/proc").join(pid).exists();
        if name.strip_prefix(OURS).is_some_and(dead) {
            let _ = fs::write(entry.path().join("events/enable"), "0");
            let _ = fs::remove_dir(entry.path());
        }
    }
}
