// SPDX-License-Identifier: GPL-2.0-only
//! Kernel against kernel: a block is one boot of each variant, in a random order, and each boot has
//! some runs. Their mean is the boot's value: what a boot does to all its runs (layout of memory,
//! order of threads) is then a part of the scatter and not of the difference.

use super::result::{Header, Recorded};
use super::variant::{Scope, Variant};
use crate::machine::host::Host;
use anyhow::{Context, Result, ensure};

/// Separates the name of a variant from the kernel that it needs.
pub const SUFFIX: &str = "@kernel=";

/// The kernel that runs, and which of its boots this is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boot {
    /// As `uname -r`.
    pub kernel: String,
    /// Another one after each boot (/proc/sys/kernel/random/boot_id).
    pub id: String,
}

impl Boot {
    pub fn now(host: &Host) -> Result<Boot> {
        let text = |file: &str| {
            let text = host.proc_text(file);
            text.with_context(|| format!("cannot read /proc/{file}"))
        };
        Ok(Boot {
            kernel: text("sys/kernel/osrelease")?,
            id: text("sys/kernel/random/boot_id")?,
        })
    }
}

/// Fails unless each variant names its kernel if this is a comparison across boots, and none
/// otherwise.
pub fn check(header: &Header, variants: &[Variant]) -> Result<()> {
    let Some(runs) = header.boots else {
        let named = variants.iter().find(|v| v.kernel.is_some());
        ensure!(
            named.is_none(),
            "{}: another kernel is another boot, which needs --across-boots",
            named.map_or("", |v| &v.name)
        );
        return Ok(());
    };
    let unnamed = variants.iter().find(|v| v.kernel.is_none());
    ensure!(
        unnamed.is_none(),
        "{} names no kernel: with --across-boots each variant does, as in eevdf{SUFFIX}7.2.13",
        unnamed.map_or("", |v| &v.name)
    );
    ensure!(runs > 0, "--across-boots 0: each boot has at least one run");
    ensure!(
        header.sides.is_none() && header.scope == Scope::Machine,
        "--across-boots is for the whole machine: it cannot be combined with --concurrent or --scope workload"
    );
    Ok(())
}

/// The kernel that the next run needs, if that is another boot than `now`. None: go on, or there is
/// nothing to run.
pub fn due(recorded: &Recorded, now: &Boot) -> Result<Option<String>> {
    let header = &recorded.header;
    let Some(counted) = header.boots else {
        return Ok(None);
    };
    let number = recorded.runs.len();
    let Some(turn) = header.order().get(number).copied() else {
        return Ok(None);
    };
    let variant = Variant::parse(&header.variants[turn.variant])?;
    let kernel = variant.kernel.context("each variant has its kernel")?;
    let first = number.is_multiple_of(header.warmups + counted);
    let last = recorded.runs.last().and_then(|run| run.boot.as_deref());
    let used = first && last == Some(now.id.as_str());
    Ok((used || kernel != now.kernel).then_some(kernel))
}

/// How many boots have all their runs, and how many there are at most.
pub fn made(recorded: &Recorded) -> Option<(usize, usize)> {
    let header = &recorded.header;
    let each = header.warmups + header.boots?;
    let all = header.rule.plan.max() * header.variants.len();
    Some((recorded.runs.len() / each, all))
}

/// A warning if the runs of one boot were made in several.
pub fn interrupted(recorded: &Recorded) -> Option<String> {
    let header = &recorded.header;
    let each = header.warmups + header.boots?;
    let boots = recorded.runs.chunks(each);
    let mixed = boots.filter(|runs| runs.iter().any(|run| run.boot != runs[0].boot));
    let mixed = mixed.count();
    (mixed > 0)
        .then(|| format!("{mixed} boots were interrupted: their value is of runs in several boots"))
}
