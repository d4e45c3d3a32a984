// SPDX-License-Identifier: GPL-2.0-only
//! The selection, and how it moves: along a list, over the arms, or over the CPUs as they are
//! drawn.

use super::state::{CpuPosition, MonitorState, View};
use super::topology::Node;
use crate::wire::stats::ROWS;

impl MonitorState {
    /// Makes keys move within this picture from now on.
    pub fn drawn(&mut self, places: Vec<CpuPosition>) {
        self.places = places;
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
            View::Overview => (),
            View::Machine => self.choose_cpu(by, below),
            View::Rates => self.choose_counter(by),
            View::Arms => self.choose_arm(by),
        }
    }

    pub(super) fn horizontal(&mut self, by: isize) {
        match self.view {
            View::Overview => (),
            View::Machine => self.choose_cpu(by, beside),
            View::Rates | View::Arms => self.choose_arm(by),
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
            self.zeros || counts
        };
        (0..ROWS.len()).filter(wanted).collect()
    }

    fn choose_counter(&mut self, by: isize) {
        let listed = self.listed();
        let here = listed.iter().position(|c| *c == self.counter());
        let there = moved(here.unwrap_or(0), by, listed.len());
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

    /// Moves by `by` steps, or until there is nothing more in that direction.
    fn choose_cpu(
        &mut self,
        by: isize,
        step: fn(&[CpuPosition], CpuPosition, bool) -> Option<CpuPosition>,
    ) {
        let chosen = |p: &&CpuPosition| Some(p.cpu) == self.chosen.cpu;
        let Some(mut place) = self.places.iter().find(chosen).copied() else {
            return;
        };
        for _ in 0..by.unsigned_abs() {
            match step(&self.places, place, by > 0) {
                Some(next) => place = next,
                None => break,
            }
        }
        self.chosen.cpu = Some(place.cpu);
    }

    /// "All arms together" can be chosen too, before the first arm.
    fn choose_arm(&mut self, by: isize) {
        let arms = self.arms().into_iter().map(|arm| Some(arm.to_string()));
        let arms: Vec<Option<String>> = std::iter::once(None).chain(arms).collect();
        let here = arms.iter().position(|arm| *arm == self.chosen.arm);
        let there = moved(here.unwrap_or(0), by, arms.len());
        self.chosen.arm = arms.get(there).cloned().flatten();
    }
}

/// The next place on the same line.
fn beside(places: &[CpuPosition], from: CpuPosition, forward: bool) -> Option<CpuPosition> {
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
fn below(places: &[CpuPosition], from: CpuPosition, forward: bool) -> Option<CpuPosition> {
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
