// SPDX-License-Identifier: GPL-2.0-only
//! The end of select_idle_sibling(), from the recently used CPU on: the search around the target,
//! select_idle_capacity(), and the answer when nothing is idle.

use super::spread::MIGRATION_COST;
use super::{Decision, How, Ladder, MSEC};

impl Ladder<'_> {
    pub(super) fn search(&self, target: usize) -> Decision {
        let (now, w) = (self.now, self.w);
        if let Some(recent) = self.recent(target)
            && let Some(d) = if w.features.recent_core {
                self.beside(recent, "fits_recent")
            } else {
                self.known(recent, "sis_recent", "fits_recent")
            }
        {
            return d;
        }
        if now.machine.asym() {
            return match self.capacity(target) {
                Some(c) => self.taken(c, "sis_capacity"),
                // The search by capacity has its own fallback.
                None => self.stay(target, "sis_none"),
            };
        }
        let llc = now.llc(target);
        let has_core = now.has_idle_core(llc);
        if now.machine.smt() && !has_core && now.share_cache(w.prev, target) {
            let sibling = now
                .other_threads(w.prev)
                .iter()
                .find(|&&s| self.ok(s) && self.free(s));
            if let Some(&s) = sibling {
                return self.taken(s, "sis_smt");
            }
        }
        if let Some((c, rung)) = self.select_idle_cpu(target, has_core) {
            return match rung {
                "sis_core" => self.core_taken(c, rung),
                _ => self.taken(c, rung),
            };
        }
        if w.features.wide_idle && now.machine.nr_llcs() > 1 {
            return self.wide(target);
        }
        self.nothing(target)
    }

    /// Nothing is idle. SELECT_BIAS_PREV prefers the previous CPU if it shares the target's cache.
    fn nothing(&self, target: usize) -> Decision {
        let prev = self.w.prev;
        let stays = self.ok(prev) && prev != target && self.now.share_cache(prev, target);
        if self.w.features.bias_prev && stays {
            return self.stay(prev, "bias_prev_last");
        }
        self.stay(target, "sis_none")
    }

    pub(super) fn stay(&self, cpu: usize, rung: &'static str) -> Decision {
        Decision {
            how: How::Busy,
            ..self.at(cpu, rung)
        }
    }

    /// Where a walk begins. Ours: for an offline target, at the first CPU of the first LLC.
    fn place(&self, target: usize) -> usize {
        if self.now.online(target) {
            target
        } else {
            self.now.llc_cpus(0)[0]
        }
    }

    /// The CPUs of the target's LLC that the task may use, starting after the target and wrapping
    /// around.
    fn walk(&self, target: usize) -> impl Iterator<Item = usize> {
        let cpus = self.now.llc_cpus(self.now.llc(target));
        let from = self.place(target);
        let (before, after) = cpus.split_at(cpus.partition_point(|&c| c <= from));
        after.iter().chain(before).copied().filter(|&c| self.ok(c))
    }

    /// Ours: a budget computed more than 20 ms ago limits nothing.
    pub(super) fn budget(&self, llc: usize) -> usize {
        let now = &self.now.llcs[llc];
        if now.age > 20 * MSEC {
            return self.now.llc_cpus(llc).len();
        }
        now.budget
    }

    /// SIS_PROP: "if (!--nr) return -1", where no idle core is expected. Ours: userspace computes
    /// this budget (src/model/idle.rs), it may be unknown or expired, and it applies in addition to
    /// nr_idle_scan.
    fn worth(&self, llc: usize) -> usize {
        let now = &self.now.llcs[llc];
        let features = &self.w.features;
        let on = features.avg_idle && features.avg_idle_scan;
        let known = now.worth > 0 && now.worth_left_ms >= 0;
        if on && known { now.worth } else { usize::MAX }
    }

    fn select_idle_cpu(&self, target: usize, has_core: bool) -> Option<(usize, &'static str)> {
        let budget = if self.w.features.sis_util {
            self.budget(self.now.llc(target))
        } else {
            usize::MAX
        };
        if budget == 0 {
            return None;
        }
        let cpu = |walked: usize| self.walk(target).take(walked).find(|&c| self.free(c));
        if !has_core {
            let walked = budget.min(self.worth(self.now.llc(target)));
            return cpu(walked).map(|c| (c, "sis_cpu"));
        }
        // Ours: if no idle core may be used, the first free CPU by number. The kernel goes core by
        // core.
        let core = self.walk(target).find(|&c| self.idle_core(c));
        core.map(|c| (c, "sis_core"))
            .or_else(|| cpu(usize::MAX).map(|c| (c, "sis_cpu")))
    }

    /// select_idle_capacity(). Ours: LLC by LLC instead of by number, and without a budget.
    fn capacity(&self, target: usize) -> Option<usize> {
        let now = self.now;
        let nr_llcs = now.machine.nr_llcs();
        let has_core = (0..nr_llcs).any(|l| now.has_idle_core(l));
        let mut best: Option<(i32, u64, usize)> = None;
        let home = now.llc(target);
        for i in 0..nr_llcs {
            let cpus = now.llc_cpus((home + i) % nr_llcs);
            let (before, from) =
                cpus.split_at(cpus.partition_point(|&c| i == 0 && c < self.place(target)));
            for &c in from.iter().chain(before) {
                if !self.ok(c) || !self.free(c) {
                    continue;
                }
                let quiet = !has_core || now.other_threads(c).iter().all(|&s| now.idle(s));
                if self.fits(c) && quiet {
                    return Some(c);
                }
                // An idle core that is too small beats a big enough CPU beside a busy sibling.
                let rank = match (quiet, self.fits(c)) {
                    (true, _) => 0,
                    (false, true) => 1,
                    (false, false) => 2,
                };
                let capacity = self.capacity_of(c);
                if best.is_none_or(|(r, cap, _)| rank < r || (rank == r && capacity > cap)) {
                    best = Some((rank, capacity, c));
                }
            }
        }
        best.map(|(_, _, c)| c)
    }

    /// wide_idle, ours: the other LLCs of the node in order, then those of other nodes. In each, an
    /// idle core before an idle thread. A task with known bursts shorter than the migration cost
    /// stays on its node.
    fn wide(&self, target: usize) -> Decision {
        let machine = self.now.machine;
        let node = if self.now.online(target) {
            machine.cpus[target].node
        } else {
            0
        };
        for near in [true, false] {
            for llc in 0..machine.nr_llcs() {
                let cpus = self.now.llc_cpus(llc);
                let brief = self.w.task.burst > 0 && self.w.task.burst < MIGRATION_COST;
                let far = machine.cpus[cpus[0]].node != node;
                if far && (near || brief) || llc == self.now.llc(target) {
                    continue;
                }
                let usable = || cpus.iter().copied().filter(|&c| self.ok(c));
                let rung = if near { "wide_node" } else { "wide_machine" };
                if let Some(c) = usable().find(|&c| machine.smt() && self.idle_core(c)) {
                    return self.core_taken(c, rung);
                }
                if let Some(c) = usable().find(|&c| self.free(c)) {
                    return self.taken(c, rung);
                }
            }
        }
        self.nothing(target)
    }
}
