// SPDX-License-Identifier: GPL-2.0-only
//! Requirements that a machine may lack. They are checked before the first run, which may take an
//! hour.

use crate::ab::child::{Energy, can_count};
use crate::ab::metric::{Measured, row_of};
use crate::ab::programs::program;
use crate::ab::variant::{Kind, Variant};
use anyhow::{Context, Result, ensure};
use rustix::fs::{OFlags, fcntl_setfl};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
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
            let found = program(Path::new(&words[0]), &path);
            found.with_context(|| {
                format!(
                    "variant {}: there is no executable program {}",
                    variant.name, words[0]
                )
            })?;
        }
    }
    Ok(())
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
pub fn metrics(asked: &[Measured], powercap: &Path) -> Result<()> {
    ensure!(
        !asked.contains(&Measured::Energy) || Energy::new(powercap).is_some(),
        "energy cannot be measured here, because {} has no readable counter of a package: leave it out",
        powercap.display()
    );
    let uncounted = asked.iter().find(|measured| !can_count(**measured));
    ensure!(
        uncounted.is_none(),
        "{} cannot be measured here: the kernel does not allow counting it, or the machine has no such counter (perf_event_open): leave it out",
        uncounted.map_or("", |measured| row_of(*measured).name)
    );
    Ok(())
}
