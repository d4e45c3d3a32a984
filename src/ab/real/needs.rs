// SPDX-License-Identifier: GPL-2.0-only
//! Requirements that a machine may lack. They are checked before the first run, which may take an
//! hour.

use crate::ab::child::can_count;
use crate::ab::child::signal_group;
use crate::ab::metric::Measured;
use crate::ab::variant::{Kind, Variant};
use crate::util::wall_clock::date;
use anyhow::{Result, ensure};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The longest line that is read.
const LINE_MAX: u64 = 200;

/// Fails if the program of a scheduler is missing.
pub fn schedulers(variants: &[Variant]) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for variant in variants {
        if let Kind::Scx(words) = &variant.kind {
            ensure!(
                found(Path::new(&words[0]), &path).is_some(),
                "variant {}: there is no executable program {}",
                variant.name,
                words[0]
            );
        }
    }
    Ok(())
}

/// What execvp(3) would find. `path`: the value of PATH. A name with a slash is a path.
fn found(name: &Path, path: &OsStr) -> Option<PathBuf> {
    let here = name.to_string_lossy().contains('/');
    let here = here.then(|| name.to_path_buf());
    let folders = std::env::split_paths(path).filter(|_| here.is_none());
    let mut all = here
        .iter()
        .cloned()
        .chain(folders.map(|folder| folder.join(name)));
    all.find(|file| is_executable(file))
}

/// The file of a command, as a fact with its name: what it is must not change during a comparison.
/// Its version is not asked for, since a program may do anything when it is run.
pub fn program(command: &[OsString]) -> Option<(String, String)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let file = found(Path::new(command.first()?), &path)?;
    let meta = file.metadata().ok()?;
    let made = meta.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    let (file, bytes, made) = (file.display(), meta.len(), date(made.as_secs()));
    Some((
        "program".to_string(),
        format!("{file}, {bytes} bytes, of {made}"),
    ))
}

fn is_executable(file: &Path) -> bool {
    let meta = std::fs::metadata(file);
    meta.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// How long `--version` of a scheduler may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The first line that each other scheduler prints for --version, by the name of its variant. Only
/// programs named scx_... are asked: a script may start its scheduler whatever it is told.
pub fn versions(variants: &[Variant]) -> BTreeMap<String, String> {
    let version = |variant: &Variant| match &variant.kind {
        Kind::Scx(words) if is_scheduler(&words[0]) => {
            Some((variant.name.clone(), version(&words[0])?))
        }
        _ => None,
    };
    variants.iter().filter_map(version).collect()
}

fn is_scheduler(program: &str) -> bool {
    let name = Path::new(program).file_name().unwrap_or_default();
    name.to_string_lossy().starts_with("scx_")
}

/// None: it prints none, fails, or does not end.
fn version(program: &str) -> Option<String> {
    let mut asked = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let stdout = asked.stdout.take()?;
    let begin = Instant::now();
    let mut ended = None;
    while ended.is_none() && begin.elapsed() <= PATIENCE {
        sleep(PATIENCE / 200);
        ended = asked.try_wait().ok()?;
    }
    // Also what it has left behind.
    signal_group(asked.id() as i32, Signal::KILL);
    let _ = asked.wait();
    ended.filter(ExitStatus::success)?;
    // What it has left behind may have left the group, and keep the pipe open.
    fcntl_setfl(&stdout, OFlags::NONBLOCK).ok()?;
    let mut line = String::new();
    let read = BufReader::new(stdout.take(LINE_MAX)).read_line(&mut line);
    let line = line.lines().next()?.trim();
    (read.is_ok() && !line.is_empty()).then(|| line.to_string())
}

/// Fails if a metric cannot be measured here.
pub fn metrics(asked: &[Measured]) -> Result<()> {
    ensure!(
        !asked.contains(&Measured::Migrations) || can_count(),
        "migrations cannot be measured here, because the kernel does not allow counting them (perf_event_open): leave them out"
    );
    Ok(())
}
