// SPDX-License-Identifier: GPL-2.0-only
//! The selection, and how it moves: along a list, over the arms, or over the CPUs as they are
//! drawn.

use super::state::{State, Typed, View};
use super::topology::Node;
use crate::policy::features::FEATURES;
use crate::wire::stats::{HISTS, ROWS};

/// Lines that PgUp and PgDn move by.
pub const PAGE: isize = 10;
/// More lines than any list has.
pub const ALL: isize = 1 << 20;

/// The selection of each view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chosen {
    /// None: all arms together.
    pub arm: Option<String>,
    pub cpu: Option<u64>,
    /// Index into `ROWS`.
    pub counter: usize,
    /// Index into `FEATURES`.
    pub feature: usize,
    /// Index into `HISTS`.
    pub hist: usize,
    /// First line that view Conditions shows.
    pub line: usize,
}

/// What a click chooses.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    View(View),
    Cpu(u64),
    /// Index into `ROWS`.
    Counter(usize),
    /// None: all arms together.
    Arm(Option<String>),
    /// Index into `FEATURES`, and the arm.
    Feature(usize, String),
}

/// Which counters view Rates shows, and in what order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    /// Also those that have not counted yet.
    pub zeros: bool,
    /// The highest rate first, without groups.
    pub sorted: bool,
    /// Part of the names.
    pub filter: String,
    /// Keys go to the filter.
    pub typing: bool,
}

/// Characters of a filter, at most.
const FILTER_MAX: usize = 32;

/// Position of a CPU in the picture of the machine. In a picture of LLCs or nodes, one CPU
/// represents its LLC or node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
    pub cpu: u64,
}

/// What the last picture showed. Keys move within it.
#[derive(Clone, Debug, Default)]
pub struct Drawn {
    /// The CPUs in view Machine, by line and then by column.
    pub places: Vec<Place>,
    /// What is marked on the screen, by line and column.
    pub marks: Vec<(usize, usize, Target)>,
    /// Largest useful `Chosen::line` of view Conditions: with it the last line is visible.
    pub last_line: usize,
}

impl State {
    /// Makes keys move within this picture from now on.
    pub fn drawn(&mut self, drawn: Drawn) {
        self.drawn = drawn;
    }

    /// Drops a selected arm or CPU that no longer exists.
    pub(super) fn keep_choice(&mut self) {
        let there = |name: &String| self.arms().contains(&name.as_str());
        if !self.chosen.arm.as_ref().is_none_or(there) {
            self.chosen.arm = None;
        }
        let cpus = || {
            let cores = self.nodes.iter().flat_map(Node::cores);
            cores.flat_map(|core| &core.0).map(|(cpu, _)| *cpu)
        };
        if self
            .chosen
            .cpu
            .is_none_or(|chosen| !cpus().any(|cpu| cpu == chosen))
        {
            self.chosen.cpu = cpus().next();
        }
    }

    pub(super) fn vertical(&mut self, by: isize) {
        match self.view {
            View::Machine => self.choose_cpu(by, below),
            View::Overview => (),
            View::Rates => self.choose_counter(by),
            View::Arms => self.choose_arm(by, true),
            View::Latency => self.chosen.hist = moved(self.chosen.hist, by, HISTS.len()),
            View::Features => self.chosen.feature = moved(self.chosen.feature, by, FEATURES.len()),
            View::Conditions => {
                self.chosen.line = moved(self.chosen.line, by, self.drawn.last_line + 1);
            }
        }
    }

    pub(super) fn horizontal(&mut self, by: isize) {
        match self.view {
            View::Machine => self.choose_cpu(by, beside),
            View::Features => self.choose_arm(by, false),
            View::Rates | View::Arms | View::Latency => self.choose_arm(by, true),
            View::Overview | View::Conditions => (),
        }
    }

    /// The counters of view Rates, in the order of the picture.
    pub fn listed(&self) -> Vec<usize> {
        let arm = self.chosen.arm.as_deref();
        let totals = self.sample.as_ref().map(|s| &s.totals);
        let counted = totals.map(|totals| match arm.and_then(|arm| totals.arms.get(arm)) {
            Some(arm) => arm.counters(),
            None => totals.counters(),
        });
        let wanted = |counter: &usize| {
            let counts = counted
                .as_ref()
                .is_some_and(|counted| counted[*counter] > 0);
            (self.list.zeros || counts) && ROWS[*counter].name.contains(&self.list.filter)
        };
        let mut listed: Vec<usize> = (0..ROWS.len()).filter(wanted).collect();
        if let (true, Some(rates)) = (
            self.list.sorted,
            self.rates.as_ref().and_then(|r| r.of(arm)),
        ) {
            let rate = |counter: &usize| rates.counters[*counter];
            listed.sort_by(|a, b| rate(b).total_cmp(&rate(a)));
        }
        listed
    }

    fn choose_counter(&mut self, by: isize) {
        let listed = self.listed();
        let here = listed.iter().position(|c| *c == self.chosen.counter);
        let there = match here {
            Some(here) => moved(here, by, listed.len()),
            None => 0,
        };
        self.chosen.counter = listed.get(there).copied().unwrap_or(self.chosen.counter);
    }

    /// The counter that is chosen, or the first one if that is not in the list.
    pub fn counter(&self) -> usize {
        let listed = self.listed();
        match listed.contains(&self.chosen.counter) {
            true => self.chosen.counter,
            false => listed.first().copied().unwrap_or(self.chosen.counter),
        }
    }

    /// Does what a click there asks for.
    pub(super) fn click(&mut self, column: usize, line: usize) {
        let marks = self.drawn.marks.iter();
        let mut marks = marks.filter(|(l, c, _)| *l == line && *c <= column);
        match marks.next_back().map(|(_, _, target)| target.clone()) {
            Some(Target::View(view)) => self.go(view),
            Some(Target::Cpu(cpu)) => {
                self.chosen.cpu = Some(cpu);
                self.go(View::Machine);
            }
            Some(Target::Counter(counter)) => {
                self.chosen.counter = counter;
                self.go(View::Rates);
            }
            Some(Target::Arm(arm)) => self.chosen.arm = arm,
            Some(Target::Feature(feature, arm)) => {
                self.chosen.feature = feature;
                self.chosen.arm = Some(arm);
            }
            None => (),
        }
    }

    pub(super) fn filter(&mut self, typed: Typed) {
        let filter = &mut self.list.filter;
        match typed {
            Typed::Begin => {
                self.list.typing = true;
                self.go(View::Rates);
            }
            Typed::Char(c) if filter.len() < FILTER_MAX && c.is_ascii_graphic() => filter.push(c),
            Typed::Char(_) => (),
            Typed::Rubout => drop(filter.pop()),
            Typed::Done => self.list.typing = false,
            Typed::Clear => {
                filter.clear();
                self.list.typing = false;
            }
        }
    }

    /// Moves by `by` steps, or until there is nothing more in that direction.
    fn choose_cpu(&mut self, by: isize, step: fn(&[Place], Place, bool) -> Option<Place>) {
        let chosen = |p: &&Place| Some(p.cpu) == self.chosen.cpu;
        let Some(mut place) = self.drawn.places.iter().find(chosen).copied() else {
            return;
        };
        for _ in 0..by.unsigned_abs() {
            match step(&self.drawn.places, place, by > 0) {
                Some(next) => place = next,
                None => break,
            }
        }
        self.chosen.cpu = Some(place.cpu);
    }

    /// `all`: "all arms together" can be chosen too, before the first arm.
    fn choose_arm(&mut self, by: isize, all: bool) {
        let arms: Vec<Option<String>> = self.arms().iter().map(|a| Some(a.to_string())).collect();
        let arms = if all {
            [vec![None], arms].concat()
        } else {
            arms
        };
        let chosen = match all {
            true => self.chosen.arm.clone(),
            false => Some(self.one_arm().to_string()),
        };
        let here = arms.iter().position(|arm| *arm == chosen).unwrap_or(0);
        if let Some(arm) = arms.get(moved(here, by, arms.len())) {
            self.chosen.arm = arm.clone();
        }
    }
}

/// The next place on the same line.
fn beside(places: &[Place], from: Place, forward: bool) -> Option<Place> {
    let line = places.iter().filter(|p| p.line == from.line).copied();
    match forward {
        true => line
            .filter(|p| p.column > from.column)
            .min_by_key(|p| p.column),
        false => line
            .filter(|p| p.column < from.column)
            .max_by_key(|p| p.column),
    }
}

/// The nearest place on the next line that has any.
fn below(places: &[Place], from: Place, forward: bool) -> Option<Place> {
    let lines = places.iter().map(|p| p.line);
    let line = match forward {
        true => lines.filter(|l| *l > from.line).min(),
        false => lines.filter(|l| *l < from.line).max(),
    };
    let there = places.iter().filter(|p| Some(p.line) == line).copied();
    there.min_by_key(|p| p.column.abs_diff(from.column))
}

/// Moves an index and keeps it below `len`.
fn moved(index: usize, by: isize, len: usize) -> usize {
    let last = len.saturating_sub(1);
    index.min(last).saturating_add_signed(by).min(last)
}
