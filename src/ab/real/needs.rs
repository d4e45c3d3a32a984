// SPDX-License-Identifier: GPL-2.0-only
//! Requirements that a machine may lack. They are checked before the first run, which may take an
//! hour.

use crate::ab::child::{Energy, Migrations};
use crate::ab::metric::Measured;
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

/// `copies`: number of copies at once. Fails if a metric cannot be measured here.
pub fn metrics(asked: &[Measured], powercap: &Path, copies: usize) -> Result<()> {
    if asked.contains(&Measured::Energy) {
        ensure!(
            copies == 1,
            "energy is measured for the whole machine, not for one of two copies: leave it out"
        );
        ensure!(
            Energy::new(powercap).is_some(),
            "energy cannot be measured here, because {} has no readable counter of a package: leave it out",
            powercap.display()
        );
    }
    ensure!(
        !asked.contains(&Measured::Migrations) || Migrations::of_children().is_some(),
        "migrations cannot be measured here, because the kernel does not allow counting them (perf_event_open): leave it out"
    );
    Ok(())
}
