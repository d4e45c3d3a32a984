// SPDX-License-Identifier: GPL-2.0-only
//! Requirements that a machine may lack. They are checked before the first run, which may take an
//! hour.

use crate::ab::child::{Energy, can_count};
use crate::ab::metric::{Measured, row_of};
use crate::ab::programs::program;
use crate::ab::variant::{Kind, Variant};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
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

/// The first line that each other scheduler prints for --version, by the name of its variant.
pub fn versions(variants: &[Variant]) -> BTreeMap<String, String> {
    let version = |variant: &Variant| match &variant.kind {
        Kind::Scx(words) => Some((variant.name.clone(), version(&words[0])?)),
        _ => None,
    };
    variants.iter().filter_map(version).collect()
}

/// None: it prints none, or does not end.
fn version(program: &str) -> Option<String> {
    let mut asked = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let begin = Instant::now();
    while asked.try_wait().ok()?.is_none() {
        if begin.elapsed() > PATIENCE {
            let _ = asked.kill();
            let _ = asked.wait();
            return None;
        }
        sleep(PATIENCE / 200);
    }
    let mut line = String::new();
    BufReader::new(asked.stdout?.take(LINE_MAX))
        .read_line(&mut line)
        .ok()?;
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_string())
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
