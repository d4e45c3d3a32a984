// SPDX-License-Identifier: GPL-2.0-only
//! Progress: the current run, and an estimate of the time left.

use super::run::Progress;
use super::tasks::Task;
use std::time::{Duration, Instant};

/// A workload within its suite, or a round within its search.
#[derive(Clone, Debug)]
pub struct Among {
    /// "suite" or "search".
    pub whole: &'static str,
    pub name: String,
    /// From 1.
    pub number: usize,
    pub of: usize,
    /// Runs of those after it, at most.
    pub behind: usize,
    pub begin: Instant,
}

impl Among {
    /// `left`: most runs that each task lacks.
    pub fn new(tasks: &[Task], at: usize, left: &[usize], begin: Instant) -> Among {
        Among {
            whole: "suite",
            name: tasks[at]
                .item
                .as_ref()
                .map_or(String::new(), |i| i.name.clone()),
            number: at + 1,
            of: tasks.len(),
            behind: left[at + 1..].iter().sum(),
            begin,
        }
    }

    /// `rounds`: names, with the most runs that each can have.
    pub fn round(rounds: &[(String, usize)], name: &str, begin: Instant) -> Option<Among> {
        let at = rounds.iter().position(|(round, _)| round == name)?;
        Some(Among {
            whole: "search",
            name: name.to_string(),
            number: at + 1,
            of: rounds.len(),
            behind: rounds[at + 1..].iter().map(|(_, runs)| runs).sum(),
            begin,
        })
    }
}

/// The cost of a search, printed before it. The time of one run is not known yet. `done`: runs that
/// were already made.
pub fn outlook(changes: usize, rounds: &[(String, usize)], done: usize) -> String {
    let all: usize = rounds.iter().map(|(_, runs)| runs).sum();
    let made = match done {
        0 => String::new(),
        done => format!(", {done} of them done"),
    };
    let left = time(all.saturating_sub(done) as f64);
    format!(
        "{changes} changes, {} rounds and at most {all} runs{made}: {left} per second that a run takes, and the time for switching",
        rounds.len()
    )
}

/// Signs of a bar.
const BAR: usize = 20;

pub struct Shown {
    begin: Instant,
    /// Runs that existed before the resume.
    done: usize,
    among: Option<Among>,
    /// Some line was printed.
    begun: bool,
    /// The block that was printed last.
    shown: Option<usize>,
}

impl Shown {
    pub fn new(done: usize, among: Option<Among>) -> Shown {
        Shown {
            begin: Instant::now(),
            done,
            among,
            begun: false,
            shown: None,
        }
    }

    /// A line for each run.
    pub fn run(&self, now: &Progress) -> String {
        let uncounted = if now.block.is_none() {
            " (does not count)"
        } else {
            ""
        };
        format!(
            "{}{} run {} of at most {}: {}{uncounted}{}",
            self.whose(),
            bar(now.number, now.all),
            now.number + 1,
            now.all,
            now.variant,
            self.left(now, self.begin.elapsed())
        )
    }

    /// The line of the first run of each block, and of the first one before all blocks. None: it is
    /// another run.
    pub fn block(&mut self, now: &Progress) -> Option<String> {
        let first = !std::mem::replace(&mut self.begun, true);
        let next = now.block.is_some() && now.block != self.shown;
        self.shown = now.block.or(self.shown);
        (first || next).then(|| self.run(now))
    }

    fn whose(&self) -> String {
        self.among.as_ref().map_or(String::new(), |among| {
            format!("{} ({} of {}): ", among.name, among.number, among.of)
        })
    }

    /// Estimate of the time left. `elapsed`: time since the first run that was made here. Runs of
    /// later workloads are assumed to take as long.
    pub fn left(&self, now: &Progress, elapsed: Duration) -> String {
        let made = now.number - self.done;
        if made == 0 {
            return String::new();
        }
        let each = elapsed.as_secs_f64() / made as f64;
        let of = |runs: usize| time(each * runs as f64);
        let here = now.all - now.number;
        let suite = self.among.as_ref().map_or(String::new(), |among| {
            format!(
                ", the {} {} so far and about {} more",
                among.whole,
                time(among.begin.elapsed().as_secs_f64()),
                of(here + among.behind)
            )
        });
        format!(", at most {} left{suite}", of(here))
    }
}

/// The part that is done, in signs that every terminal has.
fn bar(done: usize, all: usize) -> String {
    let full = BAR * done / all.max(1);
    format!("[{}{}]", "#".repeat(full), "-".repeat(BAR - full))
}

/// Such as '42 s', '12 min' or '3:05 h'.
pub fn time(secs: f64) -> String {
    let minutes = (secs / 60.0).round() as u64;
    match secs {
        s if s < 120.0 => format!("{s:.0} s"),
        _ if minutes < 60 => format!("{minutes} min"),
        _ => format!("{}:{:02} h", minutes / 60, minutes % 60),
    }
}
