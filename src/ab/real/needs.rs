// SPDX-License-Identifier: GPL-2.0-only
//! Requirements that a machine may lack. They are checked before the first run, which may take an
//! hour.

use crate::ab::child::can_count;
use crate::ab::metric::Measured;
use crate::ab::variant::{Kind, Variant};
use anyhow::{Result, ensure};
use rustix::fs::{OFlags, fcntl_setfl};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The longest line that is read.
const LINE_MAX: u64 = 200;

/// Fails if the program of a scheduler is missing.
pub fn schedulers(variants: &[Variant]) -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    for variant in variants {
        if let Kind::Scx(words) = &variant.kind {
            ensure!(
                is_found(Path::new(&words[0]), &path),
                "variant {}: there is no executable program {}",
                variant.name,
                words[0]
            );
        }
    }
    Ok(())
}

/// True if execvp(3) would find it. `path`: the value of PATH. A name with a slash is a path.
fn is_found(name: &Path, path: &OsStr) -> bool {
    if name.to_string_lossy().contains('/') {
        return is_executable(name);
    }
    std::env::split_paths(path).any(|folder| is_executable(&folder.join(name)))
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
    // SAFETY: plain numbers. The group is its own.
    unsafe { libc::kill(-(asked.id() as i32), libc::SIGKILL) };
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
