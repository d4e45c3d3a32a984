// SPDX-License-Identifier: GPL-2.0-only
//! fork: the kernel's sched_balance_find_dst_cpu() and sched_balance_find_dst_group() on two levels, nodes and LLCs,
//! and the choice of the CPU in the LLC.

use super::{Decision, Ladder};

/// struct sg_lb_stats
#[derive(Clone, Copy, Default)]
struct Group {
    idle: usize,
    allowed: usize,
    cpus: usize,
    load: u128,
}

impl Group {
    fn add(self, other: Group) -> Group {
        Group {
            idle: self.idle + other.idle,
            allowed: self.allowed + other.allowed,
            cpus: self.cpus + other.cpus,
            load: self.load + other.load,
        }
    }

    /// update_pick_idlest(). Ours: of equals the first, where the kernel compares utilisation.
    fn idler_than(&self, other: &Group) -> bool {
        if self.idle > 0 || other.idle > 0 {
            return self.idle > other.idle;
        }
        self.load * (other.cpus as u128) < other.load * (self.cpus as u128)
    }
}

impl Ladder<'_> {
    pub(super) fn fork(&self) -> Decision {
        let llc = self.fork_llc(self.fork_node());
        let decision = match self.fork_cpu(llc) {
            Some(c) if self.free(c) => self.at(c, "fork_idle"),
            Some(c) => Decision {
                idle: false,
                ..self.at(c, "fork_busy")
            },
            None => Decision {
                idle: false,
                ..self.at(self.w.prev, "fork_busy")
            },
        };
        // dup_task_struct(), as far as the parent is known; wake_up_new_task().
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

    /// What the task could use of an LLC; nothing if it may run on none of its CPUs.
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
            load: self.now.llcs[llc].load.into(),
        }
    }

    /// sched_balance_find_dst_group(): does the idlest other group win over the local one?
    fn push(&self, local: &Group, idlest: &Group) -> bool {
        if idlest.allowed == 0 {
            return false;
        }
        if local.allowed == 0 {
            return true;
        }
        if local.idle > 0 || idlest.idle > 0 {
            return idlest.idle > local.idle;
        }
        100 * local.load * (idlest.cpus as u128)
            > u128::from(self.now.imbalance_pct) * idlest.load * (local.cpus as u128)
    }

    fn idlest(groups: &[(usize, Group)], local: usize) -> Option<(usize, Group)> {
        let mut best: Option<(usize, Group)> = None;
        for &(id, group) in groups
            .iter()
            .filter(|(id, g)| *id != local && g.allowed > 0)
        {
            if best.is_none_or(|(_, b)| group.idler_than(&b)) {
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
        let groups: Vec<(usize, Group)> = (0..machine.nr_nodes())
            .map(|n| {
                (
                    n,
                    llcs_of(n)
                        .map(|l| self.llc_group(l))
                        .fold(Group::default(), Group::add),
                )
            })
            .collect();
        let local = groups[local_id].1;
        let Some((id, idlest)) = Self::idlest(&groups, local_id) else {
            return local_id;
        };
        // adjust_numa_imbalance(): up to imb_numa_nr tasks, a difference of two idle CPUs is no reason to leave.
        let llcs = llcs_of(local_id).count();
        let imb_numa_nr = (if llcs > 1 { llcs } else { local.cpus / 8 })
            .max(1)
            .min(local.allowed);
        let running = local.allowed - local.idle;
        if local.idle > 0 && running < imb_numa_nr && idlest.idle <= local.idle + 2 {
            return local_id;
        }
        if self.push(&local, &idlest) {
            id
        } else {
            local_id
        }
    }

    fn fork_llc(&self, node: usize) -> usize {
        let machine = self.now.machine;
        let local_id = machine.cpus[self.w.this].llc;
        let groups: Vec<(usize, Group)> = (0..machine.nr_llcs())
            .filter(|&l| machine.cpus[self.now.llc_cpus(l)[0]].node == node)
            .map(|l| (l, self.llc_group(l)))
            .collect();
        let local = groups
            .iter()
            .find(|(id, _)| *id == local_id)
            .map_or(Group::default(), |g| g.1);
        match Self::idlest(&groups, local_id) {
            Some((id, idlest)) if self.push(&local, &idlest) => id,
            _ if local.allowed > 0 => local_id,
            _ => groups[0].0,
        }
    }

    /// A wholly idle core, the parent's idle sibling, any free CPU, the least loaded one: what the kernel's descent
    /// through the LLC and its cores comes to. Ours: of equals the next one after the parent.
    fn fork_cpu(&self, llc: usize) -> Option<usize> {
        let now = self.now;
        let local = now.machine.cpus[self.w.this].llc == llc;
        let cpus = now.llc_cpus(llc);
        let (before, after) = cpus.split_at(cpus.partition_point(|&c| local && c <= self.w.this));
        let mut walk = after.iter().chain(before).copied().filter(|&c| self.ok(c));
        if now.machine.smt() {
            if let Some(c) = walk.clone().find(|&c| now.core_idle(c)) {
                return Some(c);
            }
            let mut siblings = now.other_threads(self.w.this).iter().copied();
            if let Some(s) = siblings.find(|&s| self.ok(s) && self.free(s))
                && local
            {
                return Some(s);
            }
        }
        let load = |&c: &usize| now.cpus[c].load * 1024 / u64::from(now.machine.cpus[c].capacity);
        walk.find(|&c| self.free(c)).or_else(|| {
            cpus.iter()
                .copied()
                .filter(|&c| self.ok(c))
                .min_by_key(load)
        })
    }
}
