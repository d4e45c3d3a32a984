// SPDX-License-Identifier: GPL-2.0-only
//! Checks whether this machine can run scx_roost, what is missing, and what will not work. The
//! command prints every check. A start makes the same checks, fails at the first failure and logs
//! the warnings.

mod bandwidth;
mod btf;
mod domains;
mod kernel;
pub mod outlook;

pub use bandwidth::QuotaWalk;

use crate::doctor::outlook::Outlook;
use crate::machine::cpufreq::CpuFreq;
use crate::machine::host::Host;
use crate::machine::picture;
use crate::machine::{self, Machine, several};
use crate::wire::stats::host::Condition;
use crate::wire::stats::source::CounterSource;
use anyhow::{Result, bail};
use log::{info, warn};
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// Items of a check that a line of the log or a condition lists, at most.
const ITEMS_SHOWN: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// It can run, but something will not work.
    Warn,
    /// It cannot run.
    Fail,
}

#[derive(Clone, Debug, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub verdict: Verdict,
    pub found: String,
    /// Advice on what to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<String>,
    /// The condition of a warning in the statistics.
    #[serde(skip)]
    pub condition: Option<Condition>,
}

impl Check {
    fn new(
        name: &'static str,
        verdict: Verdict,
        found: impl Into<String>,
        fix: Option<&str>,
    ) -> Check {
        Check {
            name,
            verdict,
            found: found.into(),
            fix: fix.map(str::to_string),
            items: Vec::new(),
            condition: None,
        }
    }

    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check::new(name, Verdict::Ok, found, None)
    }

    fn warn(name: &'static str, found: impl Into<String>, fix: &str) -> Check {
        Check::new(name, Verdict::Warn, found, Some(fix))
    }

    /// Marks a warning that lasts as long as the scheduler runs.
    fn lasting(self, condition: Condition) -> Check {
        Check {
            condition: Some(condition),
            ..self
        }
    }

    fn fail(name: &'static str, found: impl Into<String>, fix: &str) -> Check {
        Check::new(name, Verdict::Fail, found, Some(fix))
    }

    /// One line with the first items.
    fn reported(&self) -> String {
        let shown = self.items.len().min(ITEMS_SHOWN);
        let more = match self.items.len() - shown {
            0 => String::new(),
            n => format!("; and {n} more"),
        };
        let items = listed(&self.items[..shown], "; ", "");
        format!("{}{items}{more}", self.sentence())
    }

    fn sentence(&self) -> String {
        match &self.fix {
            Some(fix) => format!("{}: {fix}", self.found),
            None => self.found.clone(),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Nothing failed.
    pub runnable: bool,
    pub checks: Vec<Check>,
}

/// All checks; first those without which the others mean little.
pub fn examine(host: &Host) -> Report {
    examine_for(host, false)
}

/// `ignore_cpu_max`: groups may lose their CPU limits.
fn examine_for(host: &Host, ignore_cpu_max: bool) -> Report {
    let mut checks = vec![
        machine(host),
        kernel::release(host),
        kernel::sched_ext(host),
    ];
    checks.extend(
        [btf::present(host), btf::usable(host)]
            .into_iter()
            .flatten(),
    );
    checks.extend([kernel::isolation(host)]);
    checks.extend(kernel::lockdown(host));
    checks.extend([
        kernel::jit(host),
        kernel::tracer(host),
        kernel::privileges(host),
        kernel::attached(host),
        kernel::realtime(host),
        cpufreq(host),
    ]);
    checks.extend(model(host));
    checks.push(bandwidth::check(host, ignore_cpu_max));
    Report {
        runnable: checks.iter().all(|c| c.verdict != Verdict::Fail),
        checks,
    }
}

/// The last check, where the others found nothing: what the kernel said to the programs, or why it
/// was not asked.
pub fn loads(loaded: Result<Result<Duration>>) -> Check {
    let said = match loaded {
        Ok(said) => said,
        Err(e) => return Check::new("load", Verdict::Fail, format!("{e:#}"), None),
    };
    match said {
        Ok(took) => Check::ok(
            "load",
            format!(
                "the kernel takes the scheduler's programs ({} ms; nothing was attached)",
                took.as_millis()
            ),
        ),
        Err(e) => Check::fail(
            "load",
            format!(
                "the kernel refuses the scheduler's programs: {}",
                e.root_cause()
            ),
            "docs/troubleshooting.md, 'It does not start', says what to send",
        ),
    }
}

/// The checks before a start. The first failure becomes an error; warnings become conditions or go
/// to the log.
pub fn check_start(host: &Host, source: &CounterSource, ignore_cpu_max: bool) -> Result<()> {
    let report = examine_for(host, ignore_cpu_max);
    let prevents = |c: &&Check| {
        c.verdict == Verdict::Fail || (c.name == "attached" && c.verdict != Verdict::Ok)
    };
    if let Some(failed) = report.checks.iter().find(prevents) {
        bail!("{} (all checks: scx_roost doctor)", failed.reported());
    }
    let kernel = report.checks.iter().find(|c| c.name == "kernel");
    kernel.inspect(|kernel| info!("{}", kernel.found));
    for check in report.checks.iter().filter(|c| c.verdict == Verdict::Warn) {
        let text = check.reported();
        match check.condition {
            Some(condition) => source.set_condition(condition, Some(text)),
            None => warn!("{text}"),
        }
    }
    Ok(())
}

fn machine(host: &Host) -> Check {
    match Machine::read(&host.sys).and_then(|m| m.facts().map(|_| m)) {
        Ok(machine) if machine.doubts.is_empty() => {
            Check::ok("machine", picture::summary(&machine))
        }
        Ok(machine) => {
            let fix = "its files leave a doubt; report this with a copy of them";
            let check = Check::warn("machine", picture::summary(&machine), fix);
            Check {
                items: machine.doubts,
                ..check
            }
        }
        Err(e) => Check::fail("machine", format!("{e:#}"), machine::advice(&e)),
    }
}

fn cpufreq(host: &Host) -> Check {
    Check::ok("cpufreq", CpuFreq::read(host).describe())
}

/// Checks of the machine as it was read, and of what the model concludes about it. delay_migration
/// needs frequencies.
fn model(host: &Host) -> Vec<Check> {
    let Ok(machine) = Machine::read(&host.sys) else {
        return Vec::new();
    };
    let model = Outlook::read(host, &machine);
    let shared = model.sharing.condition().map(|text| format!("; {text}"));
    let found = model.source() + &shared.unwrap_or_default();
    let limits = model.limited.clone();
    let mut checks = Vec::from_iter(domains::check(host, &machine));
    checks.extend([
        Check::ok("frequencies", found),
        Check::ok(
            "limits",
            limits.unwrap_or("no CPU is limited by cpufreq".into()),
        ),
        Check::ok("preferred", model.preference()),
    ]);
    if let Some(odd) = several(&model.unreadable) {
        let fix = "their values count as unknown; report this with a copy of the files";
        checks.push(Check::warn("files", odd, fix));
    }
    checks
}

impl Report {
    pub fn add(&mut self, check: Check) {
        self.runnable &= check.verdict != Verdict::Fail;
        self.checks.push(check);
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let mark = match check.verdict {
                Verdict::Ok => "ok  ",
                Verdict::Warn => "WARN",
                Verdict::Fail => "FAIL",
            };
            let _ = writeln!(text, "{mark}  {:<11} {}", check.name, check.sentence());
            text += &listed(&check.items, "                    ", "\n");
        }
        text += if self.runnable {
            "scx_roost can run on this machine.\n"
        } else {
            "scx_roost cannot run on this machine as it is: see FAIL above.\n"
        };
        text
    }
}

/// At most 20 items, each between `before` and `after`.
fn listed(items: &[String], before: &str, after: &str) -> String {
    const MOST: usize = 20;
    let mut text: String = items
        .iter()
        .take(MOST)
        .map(|i| format!("{before}{i}{after}"))
        .collect();
    if items.len() > MOST {
        let _ = write!(text, "{before}and {} more{after}", items.len() - MOST);
    }
    text
}
