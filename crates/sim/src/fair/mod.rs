// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's fair class (kernel/sched/fair.c), with placement by the policy's own ladder. The
//! presets are patches to the kernel's placement; here they run in the kernel's own queueing and
//! load balancing.
//!
//! `queue` is a CPU's run queue; `eevdf` chooses the next task; `balance` moves tasks between
//! queues, by what `domains` know of looks; `idle` measures idle periods; `levels` says how near
//! CPUs are to each other; `audit` serves `check`.
//!
//! Placement reads idle CPUs, lengths of queues, load and utilisation as the policy keeps them.

mod audit;
mod balance;
mod domains;
mod eevdf;
mod idle;
mod levels;
mod queue;

pub use idle::Ends;
pub use queue::{NICE0, weight_of};

use super::cpus::Cpus;
use super::params::Params;
use super::sched::{Belief, Bounds, Order, Scheduler};
use super::speed::idle_speed;
use super::task::Wake;
use balance::Balance;
use queue::{Entity, Queue};
use scx_roost::bpf::intf::CAPACITY_SCALE;
use scx_roost::native::sys::{self, timer_kind};
use scx_roost::native::{Act, Attr, Kernel, SchedPolicy, TaskId};

pub struct Fair {
    kernel: Kernel,
    cpus: Cpus,
    entities: Vec<Entity>,
    queues: Vec<Queue>,
    balance: Balance,
    /// The slice of a task, ns.
    slice: u64,
    /// The period of the tick, ns.
    tick: u64,
    now: u64,
    /// Runnable tasks that do not run, on all CPUs.
    waiting: usize,
    acts: Vec<Act>,
}

impl Fair {
    /// `tasks`: the most that there can be at once.
    pub fn new(mut kernel: Kernel, tasks: usize, ends: Ends, params: &Params) -> Fair {
        let nr_cpus = kernel.world().nr_cpus();
        let slice = params.ns("base_slice");
        // The kernel has run for long: the last tick of each CPU saw its idle frequency.
        let slow = CAPACITY_SCALE - idle_speed(params);
        (0..nr_cpus).for_each(|cpu| kernel.world_mut().cpu_mut(cpu).slow = slow);
        Fair {
            cpus: Cpus::new(&mut kernel),
            entities: vec![Entity::new(slice); tasks],
            queues: vec![Queue::new(ends); nr_cpus],
            balance: Balance::new(kernel.facts(), params),
            slice,
            tick: params.ns("tick_period"),
            now: 0,
            waiting: 0,
            acts: Vec::new(),
            kernel,
        }
    }

    /// Drops what the last callback asked for: it assumes a kernel that queues as the policy does.
    fn forget_acts(&mut self) {
        self.kernel.acts(&mut self.acts);
        self.acts.clear();
        self.kernel.inserted();
    }

    /// The same, but requests for frequencies are kept. The kernel tells schedutil the utilisation
    /// of its own class too. It does so not only at ticks, in small steps down as well, and with
    /// waiting tasks counted in (kernel: cfs_rq_util_change(), cpu_util_cfs_boost()).
    fn asks_speed(&mut self, orders: &mut Vec<Order>) {
        self.kernel.acts(&mut self.acts);
        orders.extend(self.acts.drain(..).filter_map(|act| match act {
            Act::AskSpeed { cpu, speed } => Some(Order::Speed { cpu, speed }),
            _ => None,
        }));
        self.kernel.inserted();
    }

    fn counts(&mut self, cpu: usize, more: i32) {
        self.cpus.counts(&mut self.kernel, cpu, more);
    }

    /// Makes the CPU pick again.
    fn tell(&mut self, cpu: usize, orders: &mut Vec<Order>) {
        self.queues[cpu].told = true;
        orders.push(Order::Reschedule(cpu));
    }

    // ---- a task's virtual time ----

    /// Charges the running task until now (kernel: update_curr()). True: nothing protects it any
    /// longer, and a task waits.
    fn charge(&mut self, cpu: usize) -> bool {
        let q = &mut self.queues[cpu];
        let ns = (self.now - q.charged) as i64;
        q.charged = self.now;
        let Some(task) = q.current else {
            return false;
        };
        let e = &mut self.entities[task];
        e.vruntime += e.virtual_ns(ns);
        e.ran_at = self.now;
        let over = eevdf::charged(e) || e.vruntime >= e.protected;
        over && !q.waiting.is_empty()
    }

    fn charge_and_tell(&mut self, cpu: usize, orders: &mut Vec<Order>) {
        if self.charge(cpu) {
            self.tell(cpu, orders);
        }
    }

    // ---- joining and leaving a queue ----

    /// The runnable task joins the queue of its CPU, and waits there.
    fn join(&mut self, task: TaskId, arrival: sys::arrival, orders: &mut Vec<Order>) {
        let cpu = self.kernel.cpu_of(task);
        self.charge_and_tell(cpu, orders);
        let wakes = arrival == sys::ARRIVAL_WAKEUP;
        self.queues[cpu].idle.comes(wakes, self.now);
        eevdf::place(&self.queues[cpu], &mut self.entities, task);
        self.queues[cpu].waiting.push(task);
        self.waiting += 1;
        self.kernel.joins(task, arrival);
        self.counts(cpu, 1);
        self.forget_acts();
    }

    /// Takes a waiting task, which is charged already, out of the CPU's queue. Its relative place
    /// is kept.
    fn take(&mut self, cpu: usize, task: TaskId) {
        self.leave(cpu, task);
        self.queues[cpu].remove(task);
        self.waiting -= 1;
        self.counts(cpu, -1);
    }

    /// Saves the task's relative place while it still is in the queue.
    fn leave(&mut self, cpu: usize, task: TaskId) {
        let q = &mut self.queues[cpu];
        eevdf::leave(q, &mut self.entities, task, self.tick);
    }

    /// Moves a waiting task to another CPU.
    fn moves(&mut self, from: usize, task: TaskId, to: usize, orders: &mut Vec<Order>) {
        self.charge_and_tell(from, orders);
        self.take(from, task);
        self.goes(task, to);
        self.join(task, sys::ARRIVAL_STEAL, orders);
    }

    /// The task has left its queue for that of another CPU.
    fn goes(&mut self, task: TaskId, to: usize) {
        let e = &mut self.entities[task];
        e.deadline -= e.vruntime;
        e.relative = true;
        e.ran_at = 0;
        self.kernel.set_cpu(task, to);
    }

    /// Moves a waiting task, and runs it there at once if it may preempt.
    fn sends(&mut self, from: usize, task: TaskId, to: usize, orders: &mut Vec<Order>) {
        self.moves(from, task, to, orders);
        self.check_preempt(to, task, false, orders);
    }

    /// The task has joined the queue: preempts the running one if it may (kernel:
    /// wakeup_preempt()). `fork`: it is new.
    fn check_preempt(&mut self, cpu: usize, task: TaskId, fork: bool, orders: &mut Vec<Order>) {
        let q = &mut self.queues[cpu];
        let Some(current) = q.current else {
            orders.push(Order::Reschedule(cpu));
            return;
        };
        let policy = |task: TaskId| self.entities[task].policy;
        let goes_first = match (policy(current), policy(task)) {
            (SchedPolicy::Idle, SchedPolicy::Other | SchedPolicy::Batch) => true,
            (_, SchedPolicy::Batch | SchedPolicy::Idle) => false,
            _ => eevdf::preempts(q, &mut self.entities, current, task, fork),
        };
        eevdf::protects_less(q, &mut self.entities, current, goes_first);
        if goes_first && !q.told {
            self.tell(cpu, orders);
        }
    }

    // ---- delayed dequeue ----

    /// True if the task sleeps while it owes time and is not alone. It stays queued until it is
    /// picked: then it owes nothing.
    fn stays(&self, cpu: usize, task: TaskId) -> bool {
        let q = &self.queues[cpu];
        q.len() > 1 && !eevdf::eligible(q, &self.entities, task)
    }

    /// The task is woken while it still is queued, and goes on there (kernel:
    /// requeue_delayed_entity()).
    fn requeue(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.charge_and_tell(cpu, orders);
        let q = &mut self.queues[cpu];
        if eevdf::keep_lag(q, &mut self.entities, task, self.tick) {
            q.remove(task);
            eevdf::place(q, &mut self.entities, task);
            q.waiting.push(task);
        }
        self.entities[task].delayed = false;
        self.waiting += 1;
        self.kernel.joins(task, sys::ARRIVAL_WAKEUP);
        self.counts(cpu, 1);
        self.forget_acts();
    }

    /// A delayed task leaves its queue.
    fn gone(&mut self, cpu: usize, task: TaskId) {
        self.leave(cpu, task);
        self.entities[task].delayed = false;
        self.queues[cpu].remove(task);
    }

    // ---- picking ----

    fn choose(&mut self, cpu: usize) -> Option<TaskId> {
        loop {
            let q = &self.queues[cpu];
            let task = eevdf::pick(q, &self.entities, true)?;
            if !self.entities[task].delayed {
                return Some(task);
            }
            self.gone(cpu, task);
        }
    }

    /// Sends the running task where balance wants it, if it still can go there.
    fn pushed(&mut self, cpu: usize, orders: &mut Vec<Order>) {
        let Some(to) = self.queues[cpu].push.take() else {
            return;
        };
        let Some(task) = self.queues[cpu].current else {
            return;
        };
        if !self.cpus.idle(to) || !self.kernel.allowed(task, to) {
            return;
        }
        self.gives_way(cpu, task);
        self.sends(cpu, task, to, orders);
    }

    /// The running task waits from now on.
    fn gives_way(&mut self, cpu: usize, task: TaskId) {
        self.kernel.stopping(cpu, task, true);
        let q = &mut self.queues[cpu];
        q.current = None;
        q.waiting.push(task);
        self.waiting += 1;
        self.forget_acts();
    }

    fn begins_to_run(&mut self, cpu: usize, task: TaskId) {
        let q = &mut self.queues[cpu];
        q.remove(task);
        q.current = Some(task);
        self.waiting -= 1;
        eevdf::protect(q, &mut self.entities, task);
        let e = &mut self.entities[task];
        e.ran_at = self.now;
        self.cpus.current[cpu] = Some(task);
        self.cpus.view(&mut self.kernel, cpu);
        self.kernel.running(cpu, task);
        self.forget_acts();
    }

    /// Nothing runs on the CPU.
    fn idles(&mut self, cpu: usize) {
        self.cpus.current[cpu] = None;
        self.queues[cpu].idle.begins(self.now);
        self.cpus.view(&mut self.kernel, cpu);
        self.kernel.idles(cpu);
    }

    /// The running task stops being runnable.
    fn stops(&mut self, cpu: usize, task: TaskId, sleeps: bool) {
        self.charge(cpu);
        let stays = sleeps && self.stays(cpu, task);
        self.leave(cpu, task);
        let q = &mut self.queues[cpu];
        q.current = None;
        if stays {
            q.waiting.push(task);
            self.entities[task].delayed = true;
        }
        self.kernel.set_runnable(task, false, sleeps);
        self.kernel.stopping(cpu, task, false);
        self.counts(cpu, -1);
        self.forget_acts();
    }

    // ---- delayed migration ----

    /// Tasks whose delay is over go where they were placed. The others keep waiting.
    fn delays_end(&mut self, cpu: usize, orders: &mut Vec<Order>) {
        let at = |fair: &Fair, task: TaskId| fair.kernel.state(task).delay_at;
        for task in self.queues[cpu].waiting.clone() {
            if !(1..=self.now).contains(&at(self, task)) {
                continue;
            }
            if let Some(to) = self.kernel.delay_over(task) {
                self.sends(cpu, task, to, orders);
            }
        }
        let waiting = self.queues[cpu].waiting.iter();
        let next = waiting.map(|&t| at(self, t)).filter(|&at| at > 0).min();
        if let Some(next) = next {
            self.start_delay(cpu, next, orders);
        }
    }

    fn start_delay(&self, cpu: usize, at: u64, orders: &mut Vec<Order>) {
        orders.push(Order::Timer {
            which: sys::TIMER_DELAY,
            cpu,
            ns: at.saturating_sub(self.now),
        });
    }
}

impl Scheduler for Fair {
    fn kernel(&mut self) -> Option<&mut Kernel> {
        Some(&mut self.kernel)
    }

    fn first_speed(&self) -> Option<u32> {
        None
    }

    fn set_now(&mut self, now: u64) {
        self.now = now;
        self.kernel.set_now(now);
    }

    fn begin(&mut self, task: TaskId, mask: usize, cpu: usize) {
        self.kernel.begin(task, mask, cpu);
        self.entities[task] = Entity::new(self.slice);
    }

    fn set_attr(&mut self, task: TaskId, attr: &Attr) {
        self.charge(self.kernel.cpu_of(task));
        self.kernel.set_attr(task, attr);
        let e = &mut self.entities[task];
        e.policy = attr.policy;
        e.reweighs(queue::weight_of(attr));
        e.slice = attr.slice_ns.unwrap_or(self.slice) as i64;
    }

    fn set_affinity(&mut self, task: TaskId, mask: usize, orders: &mut Vec<Order>) -> bool {
        self.kernel.set_affinity(task, mask);
        let cpu = self.kernel.cpu_of(task);
        let to = self.kernel.usable(task, cpu);
        if to != cpu && self.entities[task].delayed {
            self.charge_and_tell(cpu, orders);
            self.gone(cpu, task);
        }
        if to == cpu || !self.kernel.runnable(task) {
            return false;
        }
        let ran = self.queues[cpu].current == Some(task);
        if ran {
            self.charge(cpu);
            self.gives_way(cpu, task);
            self.cpus.current[cpu] = None;
        }
        self.sends(cpu, task, to, orders);
        ran
    }

    fn place(&mut self, wake: Wake, task: TaskId, _orders: &mut Vec<Order>) -> usize {
        let was = self.kernel.cpu_of(task);
        // A task that still is queued goes on there (kernel: ttwu_runnable()).
        if self.entities[task].delayed {
            return was;
        }
        let mut cpu = was;
        if !self.kernel.pinned(task) {
            let current = self.cpus.current[wake.cpu];
            cpu = self
                .kernel
                .select_cpu(wake.cpu, current, task, wake.flags());
            self.forget_acts();
        }
        cpu = self.kernel.usable(task, cpu);
        if cpu != was {
            // A task that changed its CPU is not hot (kernel: ENQUEUE_MIGRATED).
            self.entities[task].ran_at = 0;
        }
        self.kernel.set_cpu(task, cpu);
        cpu
    }

    fn arrive(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>) {
        let cpu = self.kernel.cpu_of(task);
        self.kernel.set_runnable(task, true, false);
        if self.entities[task].delayed {
            self.requeue(cpu, task, orders);
        } else {
            let arrival = match wake.fork {
                true => sys::ARRIVAL_FORK,
                false => sys::ARRIVAL_WAKEUP,
            };
            self.join(task, arrival, orders);
        }
        // Until its delayed move, a task competes like any other on its CPU, which may be idle by
        // now.
        self.check_preempt(cpu, task, wake.fork, orders);
        let delay_at = self.kernel.state(task).delay_at;
        if delay_at > 0 {
            self.start_delay(cpu, delay_at, orders);
        }
    }

    fn ran(&mut self, task: TaskId, ns: u64) {
        self.kernel.ran(task, ns);
    }

    fn yields(&mut self, cpu: usize, task: TaskId, _orders: &mut Vec<Order>) {
        self.charge(cpu);
        self.kernel.yields(cpu, task);
        self.forget_acts();
        eevdf::yields(&self.queues[cpu], &mut self.entities, task);
    }

    fn sleeps(&mut self, cpu: usize, task: TaskId, _orders: &mut Vec<Order>) {
        self.stops(cpu, task, true);
    }

    fn ends(&mut self, cpu: usize, task: TaskId, _orders: &mut Vec<Order>) {
        self.stops(cpu, task, false);
        self.kernel.disable(cpu, task);
        self.forget_acts();
    }

    fn pick(&mut self, cpu: usize, orders: &mut Vec<Order>) -> Option<TaskId> {
        self.charge(cpu);
        self.pushed(cpu, orders);
        self.queues[cpu].told = false;
        let next = match self.choose(cpu) {
            None => self.pull(cpu, orders),
            next => next,
        };
        let before = self.queues[cpu].current;
        if next.is_some() && next == before {
            return next;
        }
        if let Some(before) = before {
            self.gives_way(cpu, before);
        }
        match next {
            Some(next) => self.begins_to_run(cpu, next),
            None => self.idles(cpu),
        }
        next
    }

    fn tick(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        let over = self.charge(cpu);
        self.kernel.tick_signals(cpu, task);
        self.asks_speed(orders);
        if over {
            self.tell(cpu, orders);
        }
        self.balance(cpu, orders);
    }

    fn counters(&self) -> Vec<u64> {
        let world = self.kernel.world();
        (0..sys::ROOST_NR_STATS).map(|s| world.count(s)).collect()
    }

    fn belief(&self) -> Option<&dyn Belief> {
        Some(self)
    }

    fn bounds(&self) -> Bounds {
        self.keeps_to()
    }

    fn timer(&mut self, cpu: usize, which: timer_kind, orders: &mut Vec<Order>) {
        if which == sys::TIMER_DELAY {
            self.delays_end(cpu, orders);
        }
    }
}

#[cfg(test)]
mod tests;
