// SPDX-License-Identifier: GPL-2.0-only
//! Kernel against kernel: a turn is a boot, and each boot has some runs. Their geometric mean is
//! the boot's value: what a boot does to all its runs (layout of memory, order of threads) is then
//! a part of the scatter and not of the difference.

use super::boot::{Asked, Boot};
use super::design::Turn;
use super::result::{Header, Recorded, ResultFile};
use super::variant::Variant;
use crate::machine::host::Host;
use crate::util::stderr::say;
use anyhow::{Context, Result, ensure};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// Fails if a kernel was asked for (--next-boot) and another one came up: asking again would boot
/// without end.
pub fn came_up(recorded: &Recorded, now: &Boot) -> Result<()> {
    let Some(asked) = &recorded.asked else {
        return Ok(());
    };
    ensure!(
        asked.in_boot == now.now.id || asked.asked_kernel == now.kernel,
        "kernel {} was to be booted, and {} came up: its name must be what 'uname -r' prints, and the boot loader must obey --next-boot; boot it by hand and continue with --resume",
        asked.asked_kernel,
        now.kernel
    );
    Ok(())
}

/// The kernel that the next run needs, if that is another boot than `now`. None: go on, or there is
/// nothing to run. `order`: of all runs.
pub fn due(recorded: &Recorded, order: &[Turn], now: &Boot) -> Result<Option<String>> {
    let header = &recorded.header;
    let Some(counted) = header.boots else {
        return Ok(None);
    };
    let number = recorded.runs.len();
    let Some(turn) = order.get(number) else {
        return Ok(None);
    };
    let variant = Variant::parse(&header.variants[turn.variant])?;
    let kernel = variant.kernel.context("each variant has its kernel")?;
    let first = number.is_multiple_of(header.warmups + counted);
    let last = recorded.runs.last().and_then(|run| run.boot.as_ref());
    let used = first && last.is_some_and(|boot| boot.id == now.now.id);
    Ok((used || kernel != now.kernel).then_some(kernel))
}

/// The warm-ups of a boot that was interrupted before run `number`: they are made again. None: a
/// boot begins with this run.
pub fn warmed_again(header: &Header, number: usize) -> Option<Range<usize>> {
    let each = header.warmups + header.boots?;
    let begin = number / each * each;
    (number > begin).then_some(begin..begin + header.warmups)
}

/// Says which kernel is due, and boots it if there is a command for that. `result`: the file, which
/// notes what was asked for.
pub fn boot_next(
    recorded: &Recorded,
    result: &Path,
    kernel: &str,
    command: Option<&str>,
) -> Result<()> {
    let (made, all) = made(recorded).unwrap_or_default();
    let done = format!("{made} of at most {all} boots are made");
    let Some(command) = command else {
        say!("{done}: boot {kernel}, then give the same command with --resume");
        return Ok(());
    };
    say!("{done}: booting {kernel}");
    let now = Boot::now(&Host::new(Path::new("/sys")), BTreeMap::new())?;
    let (mut file, _) = ResultFile::resume(result, &recorded.header)?;
    file.append(&Asked {
        asked_kernel: kernel.to_string(),
        in_boot: now.now.id,
    })?;
    drop(file);
    let command = command.replace("{kernel}", kernel);
    let status = Command::new("sh").args(["-c", &command]).status();
    let status = status.context("cannot run sh")?;
    ensure!(
        status.success(),
        "--next-boot '{command}' failed ({status}): boot {kernel} by hand, then give the same command with --resume"
    );
    Ok(())
}

/// How many boots have all their runs, and how many there are at most.
pub fn made(recorded: &Recorded) -> Option<(usize, usize)> {
    let header = &recorded.header;
    let each = header.warmups + header.boots?;
    let all = header.design().turns(header.rule.plan.max());
    Some((recorded.runs.len() / each, all))
}

/// A warning if runs that count of one boot were made in several.
pub fn interrupted(recorded: &Recorded) -> Option<String> {
    let header = &recorded.header;
    let each = header.warmups + header.boots?;
    let boots = recorded.runs.chunks(each);
    let mixed = boots.filter(|runs| {
        let mut counted = runs.iter().filter(|run| run.turn.is_some());
        let first = counted.next();
        counted.any(|run| Some(&run.boot) != first.map(|run| &run.boot))
    });
    let mixed = mixed.count();
    let were = match mixed {
        0 => return None,
        1 => "1 boot was".to_string(),
        n => format!("{n} boots were"),
    };
    Some(format!(
        "{were} interrupted: the value is of runs in several boots"
    ))
}
