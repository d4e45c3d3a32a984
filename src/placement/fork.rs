// SPDX-License-Identifier: GPL-2.0-only
//! fork: the kernel's sched_balance_find_dst_cpu() and sched_balance_find_dst_group(), level by
//! level: nodes, LLCs, cores, threads. Where the LLC has an idle CPU, the choice is among those.

use super::topology::NICE0;
use super::{Decision, How, Ladder};
use std::cmp::Ordering;

/// struct sg_lb_stats
#[derive(Clone, Copy, Default)]
struct Group {
    idle: usize,
    allowed: usize,
    cpus: usize,
    nr_running: usize,
    load: u128,
    util: u128,
    capacity: u128,
}

/// enum group_type, as far as the policy tells them apart.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    HasSpare,
    FullyBusy,
    Overloaded,
}

impl Group {
    fn add(self, other: Group) -> Group {
        Group {
            idle: self.idle + other.idle,
            allowed: self.allowed + other.allowed,
            cpus: self.cpus + other.cpus,
            nr_running: self.nr_running + other.nr_running,
            load: self.load + other.load,
            util: self.util + other.util,
            capacity: self.capacity + other.capacity,
        }
    }

    /// group_has_capacity(), group_is_overloaded(). Ours: their time of waiting is not looked at,
    /// and all levels use the margin of an LLC.
    fn kind(&self, pct: u128) -> Kind {
        if self.idle > 0 || self.capacity * 100 > self.util * pct {
            Kind::HasSpare
        } else if self.nr_running > self.cpus {
            Kind::Overloaded
        } else {
            Kind::FullyBusy
        }
    }

    /// avg_load
    fn mean_load(&self) -> u128 {
        self.load * 1024 / self.capacity
    }

    /// update_pick_idlest()
    fn idler_than(&self, other: &Group, pct: u128) -> bool {
        match self.kind(pct).cmp(&other.kind(pct)) {
            Ordering::Less => return true,
            Ordering::Greater => return false,
            Ordering::Equal => {}
        }
        match self.kind(pct) {
            Kind::HasSpare if self.idle == other.idle => self.util < other.util,
            Kind::HasSpare => self.idle > other.idle,
            Kind::FullyBusy | Kind::Overloaded => self.mean_load() < other.mean_load(),
        }
    }
}

impl Ladder<'_> {
    pub(super) fn fork(&self) -> Decision {
        let decision = match self.pack() {
            Some(c) => self.taken(c, "fork_pack"),
            None => self.fork_by_load(),
        };
        // dup_task_struct(), as far as the parent is known, and wake_up_new_task().
        Decision {
            recent: Some(self.w.prev),
            wakee: if self.w.waker.ours {
                self.w.waker.waker
            } else {
                self.w.task.waker
            },
            ..decision
        }
    }

    fn fork_by_load(&self) -> Decision {
        match self.fork_cpu(self.fork_llc(self.fork_node())) {
            // An idle core was the first choice.
            Some(c) if self.now.machine.smt() && self.idle_core(c) => {
                self.core_taken(c, "fork_idle")
            }
            Some(c) if self.free(c) => self.taken(c, "fork_idle"),
            Some(c) => Decision {
                how: How::Busy,
                ..self.at(c, "fork_busy")
            },
            None => Decision {
                how: How::Busy,
                ..self.at(self.w.prev, "fork_busy")
            },
        }
    }

    /// The CPUs of an LLC that the task may use, summed up; empty if there are none.
    fn llc_group(&self, llc: usize) -> Group {
        let cpus = self.now.llc_cpus(llc);
        let allowed = cpus.iter().filter(|&&c| self.ok(c)).count();
        if allowed == 0 {
            return Group::default();
        }
        Group {
            idle: cpus
                .iter()
                .filter(|&&c| self.ok(c) && self.now.counts_as_idle(c))
                .count(),
            allowed,
            cpus: cpus.len(),
            nr_running: self.now.llcs[llc].nr_running,
            load: self.now.llcs[llc].load.into(),
            util: self.now.llcs[llc].util.into(),
            capacity: cpus
                .iter()
                .map(|&c| u128::from(self.now.machine.cpus[c].capacity))
                .sum(),
        }
    }

    /// sched_balance_find_dst_group(): is the idlest other group better than the local one? Of two
    /// equally idle other groups the first is taken.
    fn push(&self, local: &Group, idlest: &Group, pct: u128, between_nodes: bool) -> bool {
        if idlest.allowed == 0 {
            return false;
        }
        if local.allowed == 0 {
            return true;
        }
        let usual = u128::from(self.now.imbalance_pct);
        match local.kind(usual).cmp(&idlest.kind(usual)) {
            Ordering::Less => return false,
            Ordering::Greater => return true,
            Ordering::Equal => {}
        }
        if local.kind(usual) == Kind::HasSpare {
            return idlest.idle > local.idle;
        }
        let imbalance = u128::from(NICE0) * (pct - 100) / 100;
        let (local, idlest) = (local.mean_load(), idlest.mean_load());
        if between_nodes && idlest + imbalance >= local {
            return false;
        }
        idlest < local + imbalance && 100 * local > pct * idlest
    }

    fn idlest(
        &self,
        groups: impl Iterator<Item = (usize, Group)>,
        local: usize,
    ) -> Option<(usize, Group)> {
        let mut best: Option<(usize, Group)> = None;
        for (id, group) in groups.filter(|(id, g)| *id != local && g.allowed > 0) {
            if best.is_none_or(|(_, b)| group.idler_than(&b, self.now.imbalance_pct.into())) {
                best = Some((id, group));
            }
        }
        best
    }

    fn fork_node(&self) -> usize {
        let machine = self.now.machine;
        let local_id = machine.cpus[self.w.this].node;
        let llcs_of = |node: usize| {
            (0..machine.nr_llcs())
                .filter(move |&l| machine.cpus[self.now.llc_cpus(l)[0]].node == node)
        };
        let group = |n: usize| {
            llcs_of(n)
                .map(|l| self.llc_group(l))
                .fold(Group::default(), Group::add)
        };
        let groups = (0..machine.nr_nodes()).map(|n| (n, group(n)));
        let local = group(local_id);
        let Some((id, idlest)) = self.idlest(groups, local_id) else {
            return local_id;
        };
        // adjust_numa_imbalance(): with fewer than imb_numa_nr tasks, two more idle CPUs elsewhere
        // are no reason to leave.
        let llcs = llcs_of(local_id).count();
        let cpus = llcs_of(local_id).map(|l| self.now.llc_cpus(l).len());
        let imb_numa_nr = (if llcs > 1 {
            llcs
        } else {
            cpus.sum::<usize>() / 8
        })
        .max(1)
        .min(local.allowed);
        let running = local.allowed - local.idle;
        if local.idle > 0 && running < imb_numa_nr && idlest.idle <= local.idle + 2 {
            return local_id;
        }
        if self.push(&local, &idlest, self.now.imbalance_pct.into(), true) {
            id
        } else {
            local_id
        }
    }

    fn fork_llc(&self, node: usize) -> usize {
        let machine = self.now.machine;
        let local_id = machine.cpus[self.w.this].llc;
        let mut llcs =
            (0..machine.nr_llcs()).filter(|&l| machine.cpus[self.now.llc_cpus(l)[0]].node == node);
        let groups = llcs.clone().map(|l| (l, self.llc_group(l)));
        let local = match llcs.clone().any(|l| l == local_id) {
            true => self.llc_group(local_id),
            false => Group::default(),
        };
        match self.idlest(groups, local_id) {
            Some((id, idlest))
                if self.push(&local, &idlest, self.now.imbalance_pct.into(), false) =>
            {
                id
            }
            _ if local.allowed > 0 => local_id,
            _ => llcs.next().unwrap_or(local_id),
        }
    }

    /// An idle core, the parent's idle sibling, then any free CPU: this is the result of the
    /// kernel's descent through the LLC and its cores, if these are equal. Ours: of equal CPUs, the
    /// next after the parent's.
    fn fork_cpu(&self, llc: usize) -> Option<usize> {
        let now = self.now;
        let local = now.machine.cpus[self.w.this].llc == llc;
        let cpus = now.llc_cpus(llc);
        if now.machine.asym()
            && cpus.iter().any(|&c| now.counts_as_idle(c))
            && let Some(c) = self.descent(llc, local)
            && self.free(c)
        {
            return Some(c);
        }
        let (before, after) = cpus.split_at(cpus.partition_point(|&c| local && c <= self.w.this));
        let mut walk = after.iter().chain(before).copied().filter(|&c| self.ok(c));
        if now.machine.smt() {
            if let Some(c) = walk.clone().find(|&c| self.idle_core(c)) {
                return Some(c);
            }
            let mut siblings = now.other_threads(self.w.this).iter().copied();
            if let Some(s) = siblings.find(|&s| self.ok(s) && self.free(s))
                && local
            {
                return Some(s);
            }
        }
        walk.find(|&c| self.free(c))
            .or_else(|| self.descent(llc, local))
    }

    /// From the parent's CPU, or the least loaded one of another LLC, moves to the least loaded
    /// thread of the idlest core if that core wins, then to the idlest thread if that wins.
    fn descent(&self, llc: usize, local: bool) -> Option<usize> {
        let mut cpu = if local {
            self.w.this
        } else {
            self.least(self.now.llc_cpus(llc).iter().copied())?
        };
        let pct = self.now.imbalance_pct.into();
        let cores = self.now.llc_cpus(llc).iter();
        let cores = cores
            .map(|&c| self.first_thread(c))
            .map(|first| (first, self.cpus_group(self.core(first))));
        if let Some((core, idlest)) = self.idlest(cores, self.first_thread(cpu))
            && self.push(&self.cpus_group(self.core(cpu)), &idlest, pct, false)
        {
            cpu = self.least(self.core(core))?;
        }
        let threads = self.now.other_threads(cpu).iter();
        let threads = threads.map(|&c| (c, self.cpus_group([c].into_iter())));
        match self.idlest(threads, cpu) {
            Some((c, idlest))
                if self.push(&self.cpus_group([cpu].into_iter()), &idlest, 110, false) =>
            {
                Some(c)
            }
            _ => Some(cpu).filter(|&c| self.ok(c)),
        }
    }

    /// The least loaded of these CPUs that the task may use; of equals the first.
    fn least(&self, cpus: impl Iterator<Item = usize>) -> Option<usize> {
        cpus.filter(|&c| self.ok(c))
            .min_by_key(|&c| (!self.seen_idle(c), self.now.cpus[c].load))
    }

    /// The threads of a core, in order of number.
    fn core(&self, cpu: usize) -> impl Iterator<Item = usize> {
        let others = self.now.other_threads(cpu);
        let (before, after) = others.split_at(others.partition_point(|&c| c < cpu));
        before
            .iter()
            .copied()
            .chain([cpu])
            .chain(after.iter().copied())
    }

    /// Ours: a claimed CPU is not idle; where CPUs are equal, an idle one is taken before.
    fn seen_idle(&self, c: usize) -> bool {
        self.now.machine.asym() && self.idle_unclaimed(c)
    }

    /// These CPUs, as far as the task may use them, summed up.
    fn cpus_group(&self, cpus: impl Iterator<Item = usize>) -> Group {
        let usable = cpus.filter(|&c| self.ok(c));
        usable.fold(Group::default(), |group, c| {
            let capacity = u64::from(self.now.machine.cpus[c].capacity);
            let util = (self.now.cpus[c].util * capacity / 1024).max(self.now.cpus[c].est);
            group.add(Group {
                idle: self.seen_idle(c).into(),
                allowed: 1,
                cpus: 1,
                nr_running: self.now.cpus[c].nr_running as usize,
                load: self.now.cpus[c].load.into(),
                util: util.min(capacity).into(),
                capacity: capacity.into(),
            })
        })
    }
}
