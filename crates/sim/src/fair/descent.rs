// SPDX-License-Identifier: GPL-2.0-only
//! Where forks and execs go: down from the machine by nodes, LLCs, cores and threads. Each step
//! takes the idlest group, unless the local one is about as idle (kernel:
//! sched_balance_find_dst_cpu(), before 6.10 find_idlest_cpu(), as of 5.9). The policy's own fork.h
//! takes the first idle core; this takes the core that was used least, and so the slowest.

use super::Fair;
use crate::sched::Wake;
use scx_roost::native::{SchedPolicy, TaskId};
use std::cmp::Ordering;

/// Kernel: NICE_0_LOAD, scaled down.
const NICE0_LOAD: u64 = 1024;
/// Kernel: sd_init(), between the threads of a core.
const THREADS_PCT: u64 = 110;
/// Kernel: NUMA_IMBALANCE_MIN.
const NODES_APART: usize = 2;

/// How idle a group is (kernel: enum group_type).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Spare,
    Busy,
    Overloaded,
}

/// The figures of a group of CPUs that are compared (kernel: struct sg_lb_stats).
#[derive(Clone, Copy, Debug)]
struct Group {
    kind: Kind,
    cpus: usize,
    idle: usize,
    /// Runnable tasks.
    running: usize,
    util: u64,
    /// In proportion to capacity.
    load: u64,
}

impl Group {
    /// Less means idler (kernel: update_pick_idlest()).
    fn compare(&self, other: &Group) -> Ordering {
        let within = match self.kind {
            Kind::Spare => (other.idle.cmp(&self.idle)).then(self.util.cmp(&other.util)),
            _ => self.load.cmp(&other.load),
        };
        self.kind.cmp(&other.kind).then(within)
    }
}

/// The level at which groups are compared.
struct Domain {
    nodes: bool,
    /// Kernel: sd->imbalance_pct.
    pct: u64,
}

impl Fair {
    /// The CPU for a new task, or for a running one that execs. `here`: where it is forked, or
    /// runs.
    pub(super) fn descends(&mut self, here: usize, task: TaskId, exec: bool) -> usize {
        let levels = self.balance.levels.clone();
        let own = exec.then_some(here);
        let mut cpu = here;
        for domain in 0..4 {
            let groups = &levels.groups(cpu)[domain];
            if groups.len() < 2 {
                continue;
            }
            let pct = u64::from(self.kernel.world().tunables().imbalance_pct);
            let of = Domain {
                nodes: domain == 0,
                pct: if domain == 3 { THREADS_PCT } else { pct },
            };
            if let Some(group) = self.idlest(&of, groups, cpu, task, own) {
                cpu = self.idlest_cpu(groups[group], task);
            }
        }
        if !self.kernel.allowed(task, cpu) {
            return self.kernel.cpu_of(task);
        }
        let current = self.cpus.current[here];
        let idle = self.cpus.idle(cpu);
        self.kernel.descended(here, current, task, cpu, idle)
    }

    /// The group that the task goes to. None: it stays in the group of `cpu` (kernel:
    /// find_idlest_group()).
    fn idlest(
        &mut self,
        domain: &Domain,
        groups: &[&[usize]],
        cpu: usize,
        task: TaskId,
        own: Option<usize>,
    ) -> Option<usize> {
        let at = groups.iter().position(|cpus| cpus.contains(&cpu))?;
        let local = self.group(groups[at], task, own, domain.pct);
        let mut best: Option<(usize, Group)> = None;
        // In a ring that begins behind the CPU's own group.
        for group in (1..groups.len()).map(|n| (at + n) % groups.len()) {
            let Some(other) = self.group(groups[group], task, own, domain.pct) else {
                continue;
            };
            if best.is_none_or(|(_, best)| other.compare(&best).is_lt()) {
                best = Some((group, other));
            }
        }
        let (group, idlest) = best?;
        let stays = local.is_some_and(|local| self.stays_local(domain, &local, &idlest));
        (!stays).then_some(group)
    }

    fn stays_local(&self, domain: &Domain, local: &Group, idlest: &Group) -> bool {
        if local.kind != idlest.kind {
            return local.kind < idlest.kind;
        }
        if local.kind == Kind::Spare {
            return domain.nodes && self.node_tolerates(local, idlest) || local.idle >= idlest.idle;
        }
        let imbalance = NICE0_LOAD * (domain.pct - 100) / 100;
        domain.nodes && idlest.load + imbalance >= local.load
            || idlest.load >= local.load + imbalance
            || 100 * local.load <= domain.pct * idlest.load
    }

    /// True if the local node keeps the task. It does while it runs few tasks (kernel:
    /// sd->imb_numa_nr, one for each LLC, or an eighth of the CPUs of a node that is one LLC).
    fn node_tolerates(&self, local: &Group, idlest: &Group) -> bool {
        let llcs = self.balance.levels.node_llcs.iter().map(Vec::len).max();
        let few = match llcs.unwrap_or(1) {
            0 | 1 => local.cpus / 8,
            llcs => llcs,
        };
        local.running < few.max(1) && idlest.idle <= local.idle + NODES_APART
    }

    /// The figures of a group. None: the task may use none of its CPUs. `own`: the CPU where the
    /// task itself runs, which does not count.
    fn group(
        &mut self,
        cpus: &[usize],
        task: TaskId,
        own: Option<usize>,
        pct: u64,
    ) -> Option<Group> {
        if !cpus.iter().any(|&cpu| self.kernel.allowed(task, cpu)) {
            return None;
        }
        let (mut idle, mut running, mut util, mut load, mut capacity) = (0, 0, 0, 0, 0);
        for &cpu in cpus {
            let own = own == Some(cpu);
            let tasks = self.cpus.nr_running[cpu] as usize - usize::from(own);
            idle += usize::from(tasks == 0);
            running += tasks;
            let world = self.kernel.world_mut();
            let (mut cpu_util, mut cpu_load) =
                (world.cpu_util(cpu, self.now), world.cpu_load(cpu, self.now));
            if own {
                cpu_util = cpu_util.saturating_sub(self.kernel.state(task).util_avg.into());
                cpu_load = cpu_load.saturating_sub(self.entities[task].weight as u64);
            }
            util += cpu_util;
            load += cpu_load;
            capacity += u64::from(self.kernel.facts().cpus[cpu].capacity);
        }
        let kind = match running.cmp(&cpus.len()) {
            Ordering::Less => Kind::Spare,
            _ if capacity * 100 > util * pct => Kind::Spare,
            Ordering::Greater if capacity * 100 < util * pct => Kind::Overloaded,
            _ => Kind::Busy,
        };
        Some(Group {
            kind,
            cpus: cpus.len(),
            idle,
            running,
            util,
            load: load * NICE0_LOAD / capacity,
        })
    }

    /// The ladder's choice for a task that wakes. It sees a CPU that runs only SCHED_IDLE tasks as
    /// free if they are not more than one; in the kernel their number does not matter
    /// (sched_idle_cpu()).
    pub(super) fn selects(&mut self, wake: Wake, current: Option<TaskId>, task: TaskId) -> usize {
        let flags = wake.flags();
        if !self.any_sched_idle || !self.takes_sched_idle(task) {
            return self.kernel.select_cpu(wake.cpu, current, task, flags);
        }
        let many = |&cpu: &usize| {
            let asks = wake.sync && cpu == wake.cpu;
            !asks && self.cpus.nr_running[cpu] > 1 && self.sched_idle(cpu)
        };
        let many: Vec<usize> = (0..self.queues.len()).filter(many).collect();
        for &cpu in &many {
            self.kernel.view(cpu).0.nr_running = 1;
        }
        let own = std::mem::take(&mut self.kernel.state_mut(task).sched_idle);
        let to = self.kernel.select_cpu(wake.cpu, current, task, flags);
        self.kernel.state_mut(task).sched_idle = own;
        for &cpu in &many {
            self.kernel.view(cpu).0.nr_running = self.cpus.nr_running[cpu];
        }
        to
    }

    /// True if a CPU that runs only SCHED_IDLE counts as free for the task.
    fn takes_sched_idle(&self, task: TaskId) -> bool {
        self.entities[task].policy != SchedPolicy::Idle
    }

    /// True if the CPU runs only SCHED_IDLE tasks (kernel: sched_idle_cpu()).
    fn sched_idle(&self, cpu: usize) -> bool {
        let idle = |task: TaskId| self.entities[task].policy == SchedPolicy::Idle;
        self.cpus.nr_running[cpu] > 0 && self.queues[cpu].all().all(idle)
    }

    /// The CPU of a group: the first that runs only SCHED_IDLE, if the task takes such a CPU; else
    /// the one that went idle last, since it sleeps least deeply; else the least loaded (kernel:
    /// find_idlest_group_cpu()).
    pub(super) fn idlest_cpu(&mut self, cpus: &[usize], task: TaskId) -> usize {
        let may = |cpu: &&usize| self.kernel.allowed(task, **cpu);
        let allowed: Vec<usize> = cpus.iter().filter(may).copied().collect();
        if self.takes_sched_idle(task)
            && let Some(&cpu) = allowed.iter().find(|&&cpu| self.sched_idle(cpu))
        {
            return cpu;
        }
        let idle = allowed.iter().rev().filter(|&&cpu| self.cpus.idle(cpu));
        if let Some(&cpu) = idle.max_by_key(|&&cpu| self.queues[cpu].idle.since()) {
            return cpu;
        }
        let now = self.now;
        let world = self.kernel.world_mut();
        let least = allowed.iter().min_by_key(|&&cpu| world.cpu_load(cpu, now));
        *least.expect("the task may use some CPU of the group")
    }
}
