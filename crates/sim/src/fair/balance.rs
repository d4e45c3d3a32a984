// SPDX-License-Identifier: GPL-2.0-only
//! The load balancer. A waiting task goes to a CPU that becomes idle (newidle), or to one that
//! stays idle (called by the tick of a busy CPU). A running task on a shared core goes to an idle
//! core, after failures (active balance), and from a CPU that is too small for it to a bigger one
//! (misfit). Queues of unequal load are evened out.

use super::Fair;
use super::domains::{Domains, NICE_TRIES};
use super::levels::{LLC, Levels, MACHINE};
use crate::params::Params;
use crate::sched::Order;
use scx_roost::bpf::intf::CAPACITY_SCALE;
use scx_roost::machine::Facts;
use scx_roost::native::{SchedPolicy, TaskId};
use std::cmp::Reverse;
use std::rc::Rc;

/// How often and how far the balancer looks; see params.tsv.
struct Pace {
    /// ns between looks at the cores of an LLC of 8 CPUs; for other LLCs in proportion, as in the
    /// kernel's domains.
    core_interval: u64,
    /// ns between looks at other LLCs, for 64 CPUs; else in proportion.
    llc_interval: u64,
    active_after: u64,
    /// A task is hot for so long after it ran (kernel: sysctl_sched_migration_cost), ns.
    hot: u64,
}

impl Pace {
    fn new(params: &Params) -> Pace {
        let pace = params.part("balance_pace");
        let interval = |name| (params.ns(name) as f64 / pace) as u64;
        Pace {
            core_interval: interval("balance_core_interval"),
            llc_interval: interval("balance_llc_interval"),
            active_after: params.count("balance_active_after"),
            hot: params.ns("migration_cost"),
        }
    }
}

/// The numbers of CPUs for which the intervals are given.
const CORE_CPUS: u64 = 8;
const LLC_CPUS: u64 = 64;
/// Busy CPUs look this many times more rarely (kernel: sd->busy_factor).
const BUSY_FACTOR: u64 = 16;

/// Which groups of CPUs a look compares.
#[derive(Clone, Copy, Debug)]
enum Scope {
    /// The cores of an LLC.
    Llc(usize),
    /// An LLC with the others of its node.
    Node(usize),
    /// A node with the other nodes.
    Machine(usize),
}

impl Scope {
    fn level(self) -> usize {
        match self {
            Scope::Llc(_) => LLC,
            Scope::Node(_) => LLC + 1,
            Scope::Machine(_) => MACHINE,
        }
    }
}

/// The looks of one group.
struct Look {
    scope: Scope,
    every: u64,
    next: u64,
    next_busy: u64,
    failed: u64,
    /// Looks of busy CPUs in a row that found only hot tasks.
    failed_hot: u32,
}

pub struct Balance {
    pub(super) levels: Rc<Levels>,
    pub(super) domains: Domains,
    looks: Vec<Look>,
    /// When the first look is due.
    due: u64,
    pace: Pace,
}

impl Balance {
    /// A task is hot for this long after it ran, ns.
    pub fn hot(&self) -> u64 {
        self.pace.hot
    }

    pub fn new(facts: &Facts, params: &Params) -> Balance {
        let (levels, pace) = (Rc::new(Levels::new(facts)), Pace::new(params));
        let every = |interval: u64, cpus: usize, of: u64| interval * cpus as u64 / of;
        let mut looks = Vec::new();
        let mut add = |scope, every: u64, at: usize, of: usize| {
            // Groups look at different times.
            let first = every / of as u64 * at as u64;
            looks.push(Look {
                scope,
                every,
                next: first,
                next_busy: first,
                failed: 0,
                failed_hot: 0,
            });
        };
        for (llc, cpus) in levels.llcs.iter().enumerate() {
            let (of, node) = (levels.llcs.len(), levels.node[cpus[0]]);
            let own = every(pace.core_interval, cpus.len(), CORE_CPUS);
            add(Scope::Llc(llc), own, llc, of);
            if levels.node_llcs[node].len() > 1 {
                let node = every(pace.llc_interval, levels.nodes[node].len(), LLC_CPUS);
                add(Scope::Node(llc), node, llc, of);
            }
        }
        if levels.nodes.len() > 1 {
            let all = every(pace.llc_interval, levels.all.len(), LLC_CPUS);
            let of = levels.nodes.len();
            (0..of).for_each(|node| add(Scope::Machine(node), all, node, of));
        }
        let due = looks.iter().map(|l| l.next).min().unwrap_or(u64::MAX);
        Balance {
            domains: Domains::new(&levels, params, facts.cpus.len()),
            levels,
            looks,
            due,
            pace,
        }
    }
}

impl Fair {
    /// The tick of a busy CPU (kernel: sched_balance_trigger(), nohz_balancer_kick()).
    pub(super) fn balance(&mut self, cpu: usize, orders: &mut Vec<Order>) {
        if self.waiting > 0 && self.cpus.nr_running[cpu] > 1 {
            self.call_idle(cpu, orders);
        }
        if self.now < self.balance.due {
            return;
        }
        for at in 0..self.balance.looks.len() {
            if self.balance.looks[at].next <= self.now {
                self.look(at, orders);
            }
        }
        let next = self.balance.looks.iter().map(|l| l.next).min();
        self.balance.due = next.unwrap_or(u64::MAX);
    }

    // ---- waiting tasks ----

    /// The CPU has nothing to run: pulls a waiting task, near before far (kernel:
    /// sched_balance_newidle()).
    pub(super) fn pull(&mut self, cpu: usize, orders: &mut Vec<Order>) -> Option<TaskId> {
        if self.waiting == 0 {
            return None;
        }
        let (found, ns) = self.looks_around(cpu);
        if ns > 0 {
            orders.push(Order::Looks { cpu, ns });
        }
        let (from, task) = found?;
        self.queues[cpu].idle.forgets();
        self.moves(from, task, cpu, orders);
        Some(task)
    }

    /// Looks in one domain after the other, as far as its average idle period pays for the looks.
    /// Returns the CPU and the task that it takes, and the ns that the looks took.
    fn looks_around(&mut self, cpu: usize) -> (Option<(usize, TaskId)>, u64) {
        let mut ns = 0;
        for level in 0..=MACHINE {
            let Some(cost) = self.balance.domains.cost(cpu, level) else {
                continue;
            };
            if !self.queues[cpu].idle.affords(ns + cost) {
                break;
            }
            ns += cost;
            let hot_too = self.balance.domains.hot_too(cpu, level);
            let found = self.found_by(cpu, level, hot_too);
            if found.is_some() || self.found_by(cpu, level, true).is_none() {
                self.balance.domains.succeeds(cpu, level);
            }
            if found.is_some() {
                return (found, ns);
            }
        }
        (None, ns)
    }

    /// The longest queue of the domain with a task that may move, and that task.
    fn found_by(&self, cpu: usize, level: usize, hot_too: bool) -> Option<(usize, TaskId)> {
        let around = self.balance.levels.around(cpu)[level].iter();
        let movable = |&&from: &&usize| self.movable(from, cpu, hot_too).is_some();
        let from = around.filter(movable).copied().reduce(|a, b| {
            let longer = self.cpus.nr_running[b] > self.cpus.nr_running[a];
            if longer { b } else { a }
        })?;
        Some((from, self.movable(from, cpu, hot_too)?))
    }

    /// The first task in the CPU's queue that may move. It waits behind another task, and only for
    /// its turn (kernel: can_migrate_task()).
    fn movable(&self, from: usize, to: usize, hot_too: bool) -> Option<TaskId> {
        if from == to || self.cpus.nr_running[from] < 2 {
            return None;
        }
        let waiting = self.queues[from].waiting.iter();
        let mut able = waiting.filter(|&&task| {
            let e = &self.entities[task];
            !e.delayed
                && (hot_too || !self.hot(task, from, to))
                && self.kernel.allowed(task, to)
                && self.kernel.state(task).delay_at <= self.now
        });
        able.next().copied()
    }

    /// True if the task ran there so recently that its caches are warm (kernel: task_hot()).
    /// Between threads of a core no task is hot.
    fn hot(&self, task: TaskId, from: usize, to: usize) -> bool {
        let e = &self.entities[task];
        let lately = e.ran_at > 0 && self.now - e.ran_at < self.balance.pace.hot;
        let near = self.balance.levels.threads(from).contains(&to);
        lately && !near && e.policy != SchedPolicy::Idle
    }

    /// A task waits on this busy CPU. An idle CPU takes it, an idle core before a thread, near
    /// before far.
    pub(super) fn call_idle(&mut self, cpu: usize, orders: &mut Vec<Order>) {
        let Some((to, task)) = self.helper(cpu) else {
            self.looks_at_all(orders);
            return;
        };
        let level = self.balance.levels.apart(cpu, to);
        let by = self.looks_for(to, level);
        self.balance.domains.succeeds(by, level);
        self.sends(cpu, task, to, orders);
    }

    /// The idle CPU that helps this one, and the task that it takes.
    fn helper(&self, cpu: usize) -> Option<(usize, TaskId)> {
        let levels = &self.balance.levels;
        let domains = &self.balance.domains;
        let takes = |to: usize| {
            let hot_too = || {
                let level = levels.apart(cpu, to);
                let by = self.looks_for(to, level);
                domains.hot_too(by, level) && domains.due(by, level, self.now)
            };
            let cold = self.movable(cpu, to, false);
            cold.or_else(|| self.movable(cpu, to, true).filter(|_| hot_too()))
        };
        let helps = |&to: &usize| self.cpus.idle(to) && takes(to).is_some();
        let near = |cpus: &[usize]| {
            let whole = cpus.iter().find(|&&to| self.idle_core(to) && helps(&to));
            whole.or_else(|| cpus.iter().find(|&to| helps(to))).copied()
        };
        let around = levels.around(cpu);
        let to = around[LLC..].iter().find_map(|cpus| near(cpus))?;
        Some((to, takes(to)?))
    }

    /// The CPUs that are the group of this one in its domain (kernel: sd->groups).
    fn own_group(&self, cpu: usize, level: usize) -> &[usize] {
        match level {
            0 => &[],
            _ => self.balance.levels.around(cpu)[level - 1],
        }
    }

    /// The one CPU of the idle one's group that looks in the domain: the first of an idle core,
    /// or else the first (kernel: should_we_balance()).
    pub(super) fn looks_for(&self, idle: usize, level: usize) -> usize {
        let group = self.own_group(idle, level).iter().copied();
        let mut cpus = group.filter(|&cpu| self.cpus.idle(cpu));
        let first = cpus.clone().next();
        let whole = cpus.find(|&cpu| self.idle_core(cpu));
        whole.or(first).unwrap_or(idle)
    }

    /// No idle CPU helps the one that ticks. In each domain whose look is due, a task of any queue
    /// there moves to the group that looks. If all that could are hot, the look fails; after enough
    /// failures it takes one of these. If none could move, or none waits, or another CPU of the
    /// group is the one that looks, that ends a row of failures (kernel: sched_balance_rq(),
    /// out_balanced, out_all_pinned: it leaves a queue out whose tasks are all pinned, and takes
    /// the next).
    fn looks_at_all(&mut self, orders: &mut Vec<Order>) {
        let levels = Rc::clone(&self.balance.levels);
        for &by in &levels.all {
            for level in LLC..=MACHINE {
                let due = self.balance.domains.due(by, level, self.now);
                if due && self.cpus.idle(by) {
                    self.looks_once(by, level, orders);
                }
            }
        }
    }

    fn looks_once(&mut self, by: usize, level: usize, orders: &mut Vec<Order>) {
        let looks = self.looks_for(by, level) == by;
        let found = |hot_too| looks.then(|| self.could_move(by, level, hot_too)).flatten();
        let hot_too = self.balance.domains.hot_too(by, level);
        let takes = found(false).or_else(|| found(true).filter(|_| hot_too));
        let fails = takes.is_none() && found(true).is_some();
        self.balance.domains.looked(by, level, self.now, fails);
        if let Some((from, task, to)) = takes {
            self.sends(from, task, to, orders);
        }
    }

    /// A task that waits anywhere in the domain and may use an idle CPU of the CPU's group: its
    /// queue, the task, and that CPU.
    fn could_move(&self, by: usize, level: usize, hot_too: bool) -> Option<(usize, TaskId, usize)> {
        let group = self.own_group(by, level);
        let to = || group.iter().copied().filter(|&to| self.cpus.idle(to));
        let around = self.balance.levels.around(by)[level].iter().copied();
        let mut from = around.filter(|&from| self.cpus.nr_running[from] > 1);
        from.find_map(|from| to().find_map(|to| Some((from, self.movable(from, to, hot_too)?, to))))
    }

    // ---- running tasks ----

    fn idle_core(&self, cpu: usize) -> bool {
        let threads = self.balance.levels.threads(cpu);
        threads.iter().all(|&t| self.cpus.idle(t))
    }

    fn busy(&self, cpus: &[usize]) -> usize {
        cpus.iter()
            .filter(|&&c| self.queues[c].current.is_some())
            .count()
    }

    /// One look: after enough failures, moves a running task from a shared core to an idle core of
    /// the group.
    fn look(&mut self, at: usize, orders: &mut Vec<Order>) {
        let look = &mut self.balance.looks[at];
        look.next = self.now + look.every;
        let scope = look.scope;
        if let Some((from, to)) = self.misfit_for(scope) {
            self.queues[from].push = Some(to);
            self.tell(from, orders);
            return;
        }
        let Some(push) = self.push_for(scope) else {
            self.balance.looks[at].failed = 0;
            self.look_busy(at, orders);
            return;
        };
        let look = &mut self.balance.looks[at];
        look.failed += 1;
        if look.failed < self.balance.pace.active_after {
            return;
        }
        look.failed = 0;
        let (from, to) = push;
        self.queues[from].push = Some(to);
        self.tell(from, orders);
    }

    /// The CPU whose running task should move, and the CPU that it should go to.
    fn push_for(&self, scope: Scope) -> Option<(usize, usize)> {
        let levels = &self.balance.levels;
        let own: &[usize] = match scope {
            Scope::Llc(llc) | Scope::Node(llc) => &levels.llcs[llc],
            Scope::Machine(node) => &levels.nodes[node],
        };
        let cores = || own.iter().copied().filter(|&c| self.idle_core(c));
        cores().next()?;
        let from = self.busiest(scope, own)?;
        let shares = |cpu: usize| {
            let threads = levels.threads(cpu);
            self.queues[cpu].current.is_some() && self.busy(threads) > 1
        };
        let mut shared = from.iter().copied().filter(|&c| shares(c));
        shared.find_map(|from| {
            let task = self.queues[from].current?;
            let to = cores().find(|&to| self.kernel.allowed(task, to))?;
            Some((from, to))
        })
    }

    /// A CPU that is too small for its running task, and an idle one of the group that is bigger.
    /// This needs no failures (kernel: update_misfit_status(), migrate_misfit).
    fn misfit_for(&self, scope: Scope) -> Option<(usize, usize)> {
        if self.kernel.facts().machine.asym == 0 {
            return None;
        }
        let (own, around) = self.scope_cpus(scope);
        let capacity = |cpu: usize| u64::from(self.kernel.facts().cpus[cpu].capacity);
        around.iter().find_map(|&from| {
            let task = self.queues[from].current?;
            let state = self.kernel.state(task);
            let util = u64::from(state.util_est.max(state.util_avg));
            // Kernel: max_allowed_capacity, fits_capacity(), capacity_greater().
            let biggest = capacity(from) == u64::from(CAPACITY_SCALE);
            if biggest || util * 1280 < capacity(from) * 1024 {
                return None;
            }
            let better = |&to: &usize| {
                capacity(to) * 1024 > capacity(from) * 1078
                    && self.idle_core(to)
                    && self.kernel.allowed(task, to)
            };
            Some((from, own.iter().copied().find(better)?))
        })
    }

    /// The CPUs of a group, and those that it looks at.
    fn scope_cpus(&self, scope: Scope) -> (&[usize], &[usize]) {
        let levels = &self.balance.levels;
        match scope {
            Scope::Llc(llc) => (&levels.llcs[llc], &levels.llcs[llc]),
            Scope::Node(llc) => {
                let node = levels.node[levels.llcs[llc][0]];
                (&levels.llcs[llc], &levels.nodes[node])
            }
            Scope::Machine(node) => (&levels.nodes[node], &levels.all),
        }
    }

    /// The CPUs whose tasks a group looks at: its own within an LLC; else those of the busiest
    /// other group, if that has enough more busy CPUs.
    fn busiest(&self, scope: Scope, own: &[usize]) -> Option<&[usize]> {
        let levels = &self.balance.levels;
        let (others, more): (Vec<&[usize]>, usize) = match scope {
            Scope::Llc(llc) => return Some(&levels.llcs[llc]),
            Scope::Node(llc) => {
                let node = levels.node[levels.llcs[llc][0]];
                let llcs = levels.node_llcs[node].iter();
                (llcs.map(|&l| levels.llcs[l].as_slice()).collect(), 1)
            }
            // A small imbalance between nodes is left (kernel: adjust_numa_imbalance()).
            Scope::Machine(_) => (levels.nodes.iter().map(Vec::as_slice).collect(), 2),
        };
        let most = others
            .into_iter()
            .rev()
            .max_by_key(|cpus| self.busy(cpus))?;
        (self.busy(most) > self.busy(own) + more).then_some(most)
    }

    // ---- busy queues ----

    /// The heaviest queue around gives the lightest of the group a task, if that evens them out.
    /// Busy CPUs look more rarely.
    fn look_busy(&mut self, at: usize, orders: &mut Vec<Order>) {
        let look = &mut self.balance.looks[at];
        if self.waiting == 0 || self.now < look.next_busy {
            return;
        }
        look.next_busy = self.now + look.every.saturating_mul(BUSY_FACTOR);
        let (scope, failed) = (look.scope, look.failed_hot);
        let evens = self.evens(scope, failed);
        let only_hot = evens.is_none() && self.evens(scope, u32::MAX).is_some();
        self.balance.looks[at].failed_hot = if only_hot { failed + 1 } else { 0 };
        if let Some((from, task, to)) = evens {
            self.sends(from, task, to, orders);
        }
    }

    /// Which task moves, from which queue and to which, to make them more even.
    fn evens(&self, scope: Scope, failed: u32) -> Option<(usize, TaskId, usize)> {
        let (own, around) = self.scope_cpus(scope);
        let hot_too = failed > NICE_TRIES[scope.level()];
        let load = |cpu: usize| self.queues[cpu].load(&self.entities);
        let mut from: Vec<usize> = around
            .iter()
            .copied()
            .filter(|&c| self.cpus.nr_running[c] > 1)
            .collect();
        from.sort_by_key(|&cpu| Reverse(load(cpu)));
        from.into_iter().find_map(|from| {
            let mut to: Vec<usize> = own
                .iter()
                .copied()
                .filter(|&to| load(to) < load(from))
                .collect();
            to.sort_by_key(|&cpu| load(cpu));
            let (to, task) = to
                .into_iter()
                .find_map(|to| Some((to, self.movable(from, to, hot_too)?)))?;
            (load(from) - load(to) > self.entities[task].weight).then_some((from, task, to))
        })
    }
}
