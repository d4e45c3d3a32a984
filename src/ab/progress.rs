// SPDX-License-Identifier: GPL-2.0-only
//! Progress: the current run, and an estimate of the time left.

use super::run::Progress;
use std::time::{Duration, Instant};

/// Characters of a bar.
const BAR: usize = 20;

pub struct Shown {
    begin: Instant,
    /// Runs that existed before the resume.
    done: usize,
    /// The step of a search. Empty: a comparison of its own.
    step: &'static str,
    /// Some line was printed.
    begun: bool,
    /// The turn that was printed last.
    shown: Option<usize>,
}

impl Shown {
    pub fn new(done: usize, step: &'static str) -> Shown {
        Shown {
            begin: Instant::now(),
            done,
            step,
            begun: false,
            shown: None,
        }
    }

    /// A line for each run.
    pub fn run(&self, now: &Progress) -> String {
        let uncounted = if now.turn.is_none() {
            " (does not count)"
        } else {
            ""
        };
        let step = match self.step {
            "" => String::new(),
            step => format!("{step}: "),
        };
        format!(
            "{step}{} run {} of at most {}: {}{uncounted}{}",
            bar(now.number, now.all),
            now.number + 1,
            now.all,
            now.variant,
            self.left(now, self.begin.elapsed())
        )
    }

    /// The line of the first run, and of the first one of each turn. None: it is another run.
    pub fn turn(&mut self, now: &Progress) -> Option<String> {
        let first = !std::mem::replace(&mut self.begun, true);
        let next = now.turn.is_some() && now.turn != self.shown;
        self.shown = now.turn.or(self.shown);
        (first || next).then(|| self.run(now))
    }

    /// Estimate of the time left. `elapsed`: time since the first run that was made here.
    pub fn left(&self, now: &Progress, elapsed: Duration) -> String {
        let made = now.number - self.done;
        if made == 0 {
            return String::new();
        }
        let each = elapsed.as_secs_f64() / made as f64;
        let left = time(each * (now.all - now.number) as f64);
        format!(", at most {left} left")
    }
}

/// The part that is done, in characters that every terminal has.
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
