// SPDX-License-Identifier: GPL-2.0-only
//! Requirements that a machine may lack. They are checked before the first run, which may take an
//! hour.

use crate::ab::child::{Energy, can_count};
use crate::ab::metric::{Measured, row_of};
use crate::ab::programs::program;
use crate::ab::variant::{Kind, Variant};
use anyhow::{Context, Result, ensure};
use std::path::Path;

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
