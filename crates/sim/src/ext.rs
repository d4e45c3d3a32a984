// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's sched_ext core around the callbacks of a scheduler (kernel/sched/ext:
//! select_task_rq_scx(), do_enqueue_task(), balance_one(), put_prev_task_scx()), with the policy
//! behind it. As of Linux 7.2, with the flags that main.bpf.c asks for: ENQ_LAST, ENQ_EXITING,
//! ALLOW_QUEUED_WAKEUP. ENQ_MIGRATION_DISABLED has no effect here: no task disables migration.

mod audit;

use super::cpus::Cpus;
use super::sched::{Belief, Bounds, Order, Scheduler};
use super::task::Wake;
use scx_roost::native::sys::{self, timer_kind};
use scx_roost::native::{Act, Attr, Insert, Kernel, TaskId, To};

// Flag bits. Their types in C have several widths.
const IMMED: u64 = sys::IMMED;
const LAST: u64 = sys::ENQ_LAST;
const PLACED: u64 = sys::ENQ_PLACED;
const PREEMPT: u64 = sys::ENQ_PREEMPT;
const REENQ: u64 = sys::ENQ_REENQ;
const WAKEUP: u64 = sys::ENQ_WAKEUP as u64;
const KICK_IDLE: u64 = sys::KICK_IDLE as u64;
const KICK_PREEMPT: u64 = sys::KICK_PREEMPT as u64;

/// Kernel: SCX_SLICE_DFL, ns.
const SLICE_DEFAULT: u64 = 20_000_000;

/// The policy in the modelled sched_ext core.
pub struct Ext {
    kernel: Kernel,
    cpus: Cpus,
    /// For a task between placement and arrival: where select_cpu inserted it.
    placed: Vec<Option<Insert>>,
    /// Whether select_cpu was called for the task's last wakeup.
    asked: Vec<bool>,
    acts: Vec<Act>,
}

impl Ext {
    pub fn new(mut kernel: Kernel, tasks: usize) -> Ext {
        Ext {
            cpus: Cpus::new(&mut kernel),
            kernel,
            placed: vec![None; tasks],
            asked: vec![false; tasks],
            acts: Vec::new(),
        }
    }

    fn view(&mut self, cpu: usize) {
        self.cpus.view(&mut self.kernel, cpu);
    }

    fn counts(&mut self, cpu: usize, more: i32) {
        self.cpus.counts(&mut self.kernel, cpu, more);
    }

    /// Carries out what the last callback requested, except an insertion.
    fn act(&mut self, orders: &mut Vec<Order>) {
        let mut acts = std::mem::take(&mut self.acts);
        self.kernel.acts(&mut acts);
        for act in acts.drain(..) {
            match act {
                Act::Moved { task: _, from, cpu } => {
                    if from != cpu {
                        self.counts(from, -1);
                        self.counts(cpu, 1);
                    }
                    self.view(cpu);
                    orders.push(Order::Reschedule(cpu));
                }
                Act::Kick { cpu, flags } => self.kick(cpu, flags, orders),
                Act::Timer { which, cpu, ns } => orders.push(Order::Timer { which, cpu, ns }),
                Act::AskSpeed { cpu, speed } => orders.push(Order::Speed { cpu, speed }),
            }
        }
        self.acts = acts;
    }

    fn kick(&mut self, cpu: usize, flags: u64, orders: &mut Vec<Order>) {
        if flags & KICK_IDLE != 0 && self.cpus.current[cpu].is_some() {
            return;
        }
        if flags & KICK_PREEMPT != 0
            && let Some(task) = self.cpus.current[cpu]
        {
            self.kernel.set_slice(task, 0);
        }
        orders.push(Order::Reschedule(cpu));
    }

    /// True if CPU `here` leaves the wakeup to `cpu`, which is in another LLC or has nothing else
    /// to run (kernel: ttwu_queue_cond()). The task itself counts there already. The mark that
    /// select_cpu was called is then lost; forks never have it (kernel: wake_up_new_task()).
    fn told(&self, here: usize, cpu: usize) -> bool {
        let llc = |cpu: usize| self.kernel.facts().cpus[cpu].llc;
        here != cpu && (llc(here) != llc(cpu) || self.cpus.nr_running[cpu] == 1)
    }

    /// Asks enqueue where the runnable task goes, and puts it there.
    fn enqueue(&mut self, cpu: usize, task: TaskId, flags: u64, orders: &mut Vec<Order>) {
        let current = self.cpus.current[cpu];
        self.kernel.enqueue(cpu, current, task, flags);
        let insert = self.kernel.inserted();
        let insert = insert.expect("enqueue says where a task goes");
        assert_eq!(insert.task, task, "enqueue inserts the task at hand");
        self.insert(cpu, insert, orders);
        self.act(orders);
    }

    fn insert(&mut self, cpu: usize, insert: Insert, orders: &mut Vec<Order>) {
        let Insert { task, to, .. } = insert;
        self.kernel.set_slice(task, insert.slice.max(1));
        let to = match to {
            To::Queue(of, key) => {
                self.kernel.queue(task, of, key);
                return;
            }
            To::Local => cpu,
            To::LocalOn(other) => other,
        };
        let busy = self.cpus.current[to].is_some() || !self.kernel.local(to).is_empty();
        if insert.flags & IMMED != 0 && busy {
            self.enqueue(cpu, task, REENQ, orders);
            return;
        }
        if to != cpu {
            self.kernel.set_cpu(task, to);
            self.counts(cpu, -1);
            self.counts(to, 1);
        }
        if insert.flags & PREEMPT != 0 {
            self.kernel.local(to).push_front(task);
            if let Some(current) = self.cpus.current[to] {
                self.kernel.set_slice(current, 0);
            }
            orders.push(Order::Reschedule(to));
        } else {
            self.kernel.local(to).push_back(task);
        }
        self.view(to);
        if self.cpus.current[to].is_none() {
            orders.push(Order::Reschedule(to));
        }
    }

    /// The task leaves the CPU's run queue.
    fn dequeue(&mut self, cpu: usize, task: TaskId, sleeps: bool) {
        self.kernel.set_runnable(task, false, sleeps);
        self.kernel.stopping(cpu, task, false);
        self.counts(cpu, -1);
    }

    /// Takes the running task out and puts it in again; it runs on. Only the slice that enqueue
    /// gives it counts, not the queue (kernel: set_next_task_scx()).
    fn put_in_again(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.kernel.stopping(cpu, task, false);
        self.act(orders);
        self.kernel.enqueue(cpu, Some(task), task, 0);
        if let Some(insert) = self.kernel.inserted() {
            self.kernel.set_slice(task, insert.slice.max(1));
        }
        self.act(orders);
        self.kernel.running(cpu, task);
        self.act(orders);
    }

    /// Fills the local queue by dispatch. True: the previous task goes on.
    fn balance(&mut self, cpu: usize, prev: Option<TaskId>, orders: &mut Vec<Order>) -> bool {
        let goes_on = |ext: &Ext| prev.is_some_and(|p| ext.kernel.slice(p) > 0);
        if goes_on(self) {
            return true;
        }
        if !self.kernel.local(cpu).is_empty() {
            return false;
        }
        self.kernel.dispatch(cpu, prev);
        self.act(orders);
        goes_on(self)
    }

    /// The previous task, which could run on, gives way to `next`.
    fn put(&mut self, cpu: usize, prev: TaskId, next: Option<TaskId>, orders: &mut Vec<Order>) {
        self.kernel.stopping(cpu, prev, true);
        self.act(orders);
        if self.kernel.slice(prev) > 0 {
            self.kernel.local(cpu).push_front(prev);
            self.view(cpu);
        } else {
            let last = if next.is_none() { LAST } else { 0 };
            self.enqueue(cpu, prev, last, orders);
        }
    }
}

impl Scheduler for Ext {
    fn kernel(&mut self) -> Option<&mut Kernel> {
        Some(&mut self.kernel)
    }

    fn preempts_kernel(&self) -> bool {
        true
    }

    fn set_now(&mut self, now: u64) {
        self.kernel.set_now(now);
    }

    fn begin(&mut self, task: TaskId, mask: usize, cpu: usize) {
        self.kernel.begin(task, mask, cpu);
    }

    fn set_attr(&mut self, task: TaskId, attr: &Attr) {
        self.kernel.set_attr(task, attr);
    }

    /// Kernel: __sched_setscheduler() takes the task out and puts it in again where it was.
    fn change_attr(&mut self, task: TaskId, attr: &Attr, orders: &mut Vec<Order>) -> bool {
        let cpu = self.kernel.cpu_of(task);
        if !self.kernel.runnable(task) {
            self.kernel.set_attr(task, attr);
        } else if self.cpus.current[cpu] == Some(task) {
            self.kernel.stopping(cpu, task, false);
            self.kernel.set_attr(task, attr);
            self.kernel.running(cpu, task);
        } else {
            self.kernel.unqueue(task);
            self.view(cpu);
            self.kernel.set_attr(task, attr);
            self.enqueue(cpu, task, 0, orders);
        }
        self.act(orders);
        true
    }

    /// Kernel: __do_set_cpus_allowed() takes the task out and puts it in again on its CPU;
    /// affine_move_task() moves it. A waiting task is put in once here, on its new CPU.
    fn set_affinity(&mut self, task: TaskId, mask: usize, orders: &mut Vec<Order>) -> bool {
        self.kernel.set_affinity(task, mask);
        if !self.kernel.runnable(task) {
            return false;
        }
        let cpu = self.kernel.cpu_of(task);
        let ran = self.cpus.current[cpu] == Some(task);
        if ran {
            self.put_in_again(cpu, task, orders);
        }
        let to = self.kernel.usable(task, cpu);
        if ran && to == cpu {
            return false;
        }
        if ran {
            self.kernel.stopping(cpu, task, true);
            self.cpus.current[cpu] = None;
        } else {
            self.kernel.unqueue(task);
            self.view(cpu);
        }
        self.act(orders);
        if to != cpu {
            self.kernel.set_cpu(task, to);
            self.counts(cpu, -1);
            self.counts(to, 1);
        }
        self.enqueue(to, task, 0, orders);
        ran
    }

    fn place(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>) -> usize {
        self.asked[task] = !self.kernel.pinned(task);
        let mut cpu = self.kernel.cpu_of(task);
        if self.asked[task] {
            let current = self.cpus.current[wake.cpu];
            cpu = self
                .kernel
                .select_cpu(wake.cpu, current, task, wake.flags());
            self.placed[task] = self.kernel.inserted();
            self.act(orders);
        }
        cpu = self.kernel.usable(task, cpu);
        self.kernel.set_cpu(task, cpu);
        cpu
    }

    fn arrive(&mut self, wake: Wake, task: TaskId, orders: &mut Vec<Order>) {
        let cpu = self.kernel.cpu_of(task);
        self.kernel.set_runnable(task, true, false);
        self.counts(cpu, 1);
        match self.placed[task].take() {
            Some(insert) => self.insert(cpu, insert, orders),
            None => {
                let wakeup = if wake.fork { 0 } else { WAKEUP };
                let marked = self.asked[task] && !wake.fork && !self.told(wake.cpu, cpu);
                let placed = if marked { PLACED } else { 0 };
                self.enqueue(cpu, task, wakeup | placed, orders);
            }
        }
        if self.cpus.current[cpu].is_none() {
            orders.push(Order::Reschedule(cpu));
        }
    }

    fn ran(&mut self, task: TaskId, ns: u64) {
        self.kernel.ran(task, ns);
    }

    fn yields(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.kernel.yields(cpu, task);
        self.act(orders);
    }

    fn sleeps(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.dequeue(cpu, task, true);
        self.act(orders);
    }

    fn ends(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.dequeue(cpu, task, false);
        self.kernel.disable(cpu, task);
        self.act(orders);
    }

    fn pick(&mut self, cpu: usize, orders: &mut Vec<Order>) -> Option<TaskId> {
        let current = self.cpus.current[cpu];
        let prev = current.filter(|&task| self.kernel.runnable(task));
        if self.balance(cpu, prev, orders) {
            return prev;
        }
        let next = self.kernel.local(cpu).pop_front();
        if let Some(prev) = prev {
            self.put(cpu, prev, next, orders);
        }
        self.cpus.current[cpu] = next;
        self.view(cpu);
        if let Some(next) = next {
            if self.kernel.slice(next) == 0 {
                self.kernel.set_slice(next, SLICE_DEFAULT);
            }
            self.kernel.running(cpu, next);
            self.act(orders);
        }
        next
    }

    fn tick(&mut self, cpu: usize, task: TaskId, orders: &mut Vec<Order>) {
        self.kernel.tick(cpu, task);
        self.act(orders);
        if self.kernel.slice(task) == 0 {
            orders.push(Order::Reschedule(cpu));
        }
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
        let current = self.cpus.current[cpu];
        self.kernel.timer(which, cpu, current);
        self.act(orders);
    }
}
