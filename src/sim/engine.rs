// SPDX-License-Identifier: GPL-2.0-only
//! The event loop. It handles the event that is due next and reschedules whatever that changes. A
//! segment of a task's work ends when its work is done at the CPU's speed. Each change of speed
//! accounts for the work done so far and reschedules the end.

mod end;
mod faults;
mod forks;
mod hotplug;
mod pace;

use super::Rng;
use super::caches::Caches;
use super::clock::Clock;
use super::cost::{Costs, Move};
use super::cstates::Cstates;
use super::daemon::Daemon;
use super::machines::Hardware;
use super::measure::Measured;
use super::sched::{Order, Scheduler, Wake};
use super::speed::{Cores, FULL};
use super::task::{State, Task, Then};
use super::wait::{Came, Wait};
use super::watch::{Sight, Stop, Watch, What};
use crate::bpf::intf::CAPACITY_SCALE;
use crate::machine::Facts;
use crate::native::TaskId;
use crate::native::sys::{TIMER_SLICE, timer_kind};
use anyhow::Result;

/// Events of a CPU.
#[derive(Clone, Copy)]
enum On {
    /// The segment of the running task ends.
    Segment,
    /// The CPU picks its next task.
    Pick,
    Tick,
    Slice,
    Delay,
}
const ON_CPU: usize = 5;
/// Events of a task: it arrives at its CPU; its sleep ends.
const ON_TASK: usize = 2;

struct Cpu {
    running: Option<TaskId>,
    /// The CPU's time is accounted for up to this, ns.
    settled: u64,
    rate: u64,
    idle_since: u64,
}

/// The `anew` of `Engine::run`. Its argument: the CPUs that are away.
pub type Anew<'a, S> = dyn Fn(&[usize]) -> Result<(S, Daemon)> + 'a;

/// A machine, a load and a scheduler.
pub struct Engine<S, W = ()> {
    pub clock: Clock,
    pub sched: S,
    pub watch: W,
    pub measured: Measured,
    pub(super) tasks: Vec<Task>,
    pub(super) wait: Wait,
    facts: Facts,
    costs: Costs,
    cores: Cores,
    caches: Caches,
    cstates: Cstates,
    daemon: Daemon,
    cpus: Vec<Cpu>,
    orders: Vec<Order>,
    /// CPUs that are away (hotplug), and what earlier schedulers of this run counted.
    away: Vec<usize>,
    counted: Vec<u64>,
    /// Random numbers for faults.
    chance: Rng,
    /// Numbers of tasks that have ended, for reuse.
    free: Vec<TaskId>,
    /// Tasks of the workload that have not ended, and those of them that only another task can
    /// wake.
    alive: usize,
    stuck: usize,
    /// A task was forked while all task numbers were in use.
    full: bool,
    /// A task that loops through its program without work.
    circles: Option<TaskId>,
}

impl<S: Scheduler, W: Watch> Engine<S, W> {
    pub fn new(
        hardware: Hardware,
        daemon: Daemon,
        wait: Wait,
        sched: S,
        watch: W,
        tasks: usize,
    ) -> Engine<S, W> {
        let Hardware {
            facts,
            costs,
            cores,
            caches,
            cstates,
        } = hardware;
        let cpus = facts.cpus.len();
        let slots = cpus * ON_CPU + tasks * ON_TASK + 6;
        let cpu = || Cpu {
            running: None,
            settled: 0,
            rate: FULL,
            idle_since: 0,
        };
        Engine {
            clock: Clock::new(slots),
            sched,
            watch,
            measured: Measured::new(&wait.load),
            tasks: Vec::with_capacity(tasks),
            cpus: (0..cpus).map(|_| cpu()).collect(),
            facts,
            costs,
            cores,
            caches,
            cstates,
            daemon,
            chance: Rng::stream(wait.seed, 1),
            wait,
            orders: Vec::new(),
            away: Vec::new(),
            counted: Vec::new(),
            free: Vec::new(),
            alive: 0,
            stuck: 0,
            full: false,
            circles: None,
        }
    }

    fn slot(&self, cpu: usize, on: On) -> usize {
        cpu * ON_CPU + on as usize
    }

    fn arrival(&self, task: TaskId) -> usize {
        self.cpus.len() * ON_CPU + task * ON_TASK
    }

    fn sleep(&self, task: TaskId) -> usize {
        self.arrival(task) + 1
    }

    /// The slot for steps of frequencies.
    fn steps(&self) -> usize {
        self.cpus.len() * ON_CPU + self.tasks.capacity() * ON_TASK
    }

    fn warm(&self) -> usize {
        self.steps() + 1
    }

    /// The slot for looks of the daemon.
    fn looks(&self) -> usize {
        self.steps() + 2
    }

    /// The slot for changes of affinity (fault).
    fn changes(&self) -> usize {
        self.steps() + 3
    }

    /// The slot for changes of attributes (fault).
    fn attrs(&self) -> usize {
        self.steps() + 5
    }

    /// The slot for hotplug (fault).
    fn hotplugs(&self) -> usize {
        self.steps() + 4
    }

    /// Runs the load to its end, or for as long as it is measured. `anew` makes a scheduler and a
    /// daemon for the machine without some CPUs. Errors: all tasks wait for each other; a task
    /// loops without work; `anew` fails.
    pub fn run(&mut self, anew: &Anew<'_, S>) -> Result<()> {
        self.begin();
        let end = self.wait.load.duration.map(|d| self.wait.load.warmup + d);
        while let Some(at) = self.clock.next() {
            if end.is_some_and(|end| at >= end) || self.ended() {
                break;
            }
            let slot = self.clock.pop().expect("one is due");
            self.measured.events += 1;
            self.sched.set_now(self.clock.now());
            match slot == self.hotplugs() {
                true => self.hotplug(anew)?,
                false => self.happens(slot),
            }
            self.check_moves()?;
            self.watch.after(&Sight {
                now: self.clock.now(),
                tasks: &self.tasks,
                sched: &self.sched,
            })?;
        }
        self.finish(end);
        Ok(())
    }

    fn see(&mut self, what: What) {
        self.watch.happens(self.clock.now(), what);
    }

    /// Requests the speed with which a new scheduler begins.
    fn takes_over(&mut self) {
        let Some(speed) = self.sched.first_speed() else {
            return;
        };
        let ask = |cpu| self.orders.push(Order::Speed { cpu, speed });
        (0..self.cpus.len()).for_each(ask);
        self.obey(0);
    }

    fn begin(&mut self) {
        self.takes_over();
        // Each CPU picks once and finds nothing to do, as after a load of the policy.
        for cpu in 0..self.cpus.len() {
            if self.facts.cpus[cpu].online != 0 {
                self.clock.set(self.slot(cpu, On::Pick), 0);
            } else {
                self.see(What::Away { cpu, away: true });
            }
        }
        self.start_tasks();
        let warmup = self.wait.load.warmup;
        if self.daemon.wanted() {
            self.clock.set(self.looks(), self.daemon.period);
        }
        self.faults_begin();
        if warmup > 0 {
            self.clock.set(self.warm(), warmup);
        } else {
            self.measured.warm(0, Vec::new());
            self.see(What::Warm);
        }
    }

    fn happens(&mut self, slot: usize) {
        let per_cpu = self.cpus.len() * ON_CPU;
        if slot == self.warm() {
            self.settle_all();
            self.measured.warm(self.clock.now(), self.counters());
            self.see(What::Warm);
        } else if slot == self.steps() {
            self.follow();
        } else if slot == self.looks() {
            self.look();
        } else if slot == self.changes() {
            self.change_affinity();
        } else if slot == self.attrs() {
            self.change_attr();
        } else if slot >= per_cpu {
            let (task, what) = ((slot - per_cpu) / ON_TASK, (slot - per_cpu) % ON_TASK);
            match what {
                0 => self.arrives(task),
                _ => self.place(task, self.tasks[task].wake, None),
            }
        } else {
            let (cpu, on) = (slot / ON_CPU, slot % ON_CPU);
            match on {
                0 => self.segment_ends(cpu),
                1 => self.pick(cpu),
                2 => self.tick(cpu),
                3 => self.timer(cpu, TIMER_SLICE),
                _ => self.timer(cpu, crate::native::sys::TIMER_DELAY),
            }
        }
    }

    // ---- events ----

    fn segment_ends(&mut self, cpu: usize) {
        self.settle(cpu);
        let task = self.cpus[cpu]
            .running
            .expect("a segment ends where somebody runs");
        match std::mem::replace(&mut self.tasks[task].then, Then::Step) {
            Then::Step => {}
            Then::Wake(other, sync) => {
                let wake = Wake {
                    sync,
                    ..Wake::by(cpu)
                };
                self.place(other, wake, Some(task));
            }
            Then::Fork(group) => self.forks(cpu, task, group, false),
            Then::Vfork(group) => self.forks(cpu, task, group, true),
        }
        self.proceed(cpu, task);
    }

    /// Goes on with the task's program until there is work or a wait.
    fn proceed(&mut self, cpu: usize, task: TaskId) {
        while self.goes_through(cpu, task) {}
    }

    /// Goes on to the next work or wait. True: it took no time, so call again.
    fn goes_through(&mut self, cpu: usize, task: TaskId) -> bool {
        let now = self.clock.now();
        let came = self
            .wait
            .proceed(&mut self.tasks, task, now, &self.costs, &mut self.measured);
        self.goes_on();
        match came {
            Came::Works => {
                self.touch(cpu, task);
                self.time(cpu);
            }
            Came::Circles => self.circles = Some(task),
            Came::Execs => return self.execs(cpu, task),
            Came::Changes => {
                self.sched.set_attr(task, &self.tasks[task].attr);
                return true;
            }
            Came::Yields => {
                self.tasks[task].left += self.costs.switch * FULL;
                self.see(What::Yields { task });
                self.sched.yields(cpu, task, &mut self.orders);
                self.leaves(cpu);
            }
            Came::Sleeps(until) => self.falls_asleep(cpu, task, until),
            Came::Ends => {
                self.stops(cpu, task, Stop::Ends);
                self.sched.ends(cpu, task, &mut self.orders);
                self.tasks[task].state = State::Free;
                self.free.push(task);
                self.alive -= usize::from(!self.wait.kernel(self.tasks[task].group));
                self.leaves(cpu);
            }
        }
        false
    }

    /// Puts the task to sleep until `until`, ns. None: until another task wakes it.
    fn falls_asleep(&mut self, cpu: usize, task: TaskId, until: Option<u64>) {
        if let Some(until) = until {
            self.tasks[task].wake = Wake::timer(cpu);
            let at = until.max(self.clock.now());
            self.clock.set(self.sleep(task), at);
        } else {
            self.tasks[task].stuck = true;
            self.stuck += 1;
        }
        self.tasks[task].state = State::Asleep;
        self.stops(cpu, task, Stop::Sleeps);
        self.sched.sleeps(cpu, task, &mut self.orders);
        self.leaves(cpu);
    }

    /// A task that spins continues at once when its wait is over.
    fn goes_on(&mut self) {
        while let Some(task) = self.wait.freed.pop() {
            let cpu = self.tasks[task].cpu.expect("who spins runs");
            if self.cpus[cpu].running == Some(task) {
                self.settle(cpu);
                self.time(cpu);
            }
        }
    }

    /// The task begins a new program. True: it stays on this CPU. If it moves, no cache holds data
    /// of the new program, so no refill is charged.
    fn execs(&mut self, cpu: usize, task: TaskId) -> bool {
        let to = self.sched.exec(cpu, task, &mut self.orders);
        if to == cpu {
            return true;
        }
        let at = self.clock.now() + self.costs.switch + self.costs.enqueue;
        self.stops(cpu, task, Stop::Moves);
        self.tasks[task].state = State::Coming;
        self.tasks[task].wake = Wake::exec(cpu);
        self.tasks[task].cpu = None;
        self.clock.set(self.arrival(task), at);
        self.leaves(cpu);
        false
    }

    /// The task that ran here stops or gives way: picks next.
    fn leaves(&mut self, cpu: usize) {
        self.clock.clear(self.slot(cpu, On::Segment));
        self.clock.set(self.slot(cpu, On::Pick), self.clock.now());
        self.obey(cpu);
    }

    fn stops(&mut self, cpu: usize, task: TaskId, why: Stop) {
        self.see(What::Stops { task, cpu, why });
    }

    /// Places a task that wakes or is new. `waker` is None for a timer.
    fn place(&mut self, task: TaskId, wake: Wake, waker: Option<TaskId>) {
        debug_assert_eq!(self.tasks[task].state, State::Asleep);
        self.stuck -= usize::from(std::mem::take(&mut self.tasks[task].stuck));
        let now = self.clock.now();
        self.tasks[task].wake = wake;
        // Wakeup latencies of kernel threads are not measured.
        let kernel = self.wait.kernel(self.tasks[task].group);
        self.tasks[task].woken_at = if kernel { 0 } else { now };
        self.tasks[task].state = State::Coming;
        let cpu = self.sched.place(wake, task, &mut self.orders);
        self.see(What::Placed {
            task,
            cpu,
            wake,
            waker,
        });
        let mut arrives = self.costs.enqueue;
        if let Some(waker) = waker {
            arrives += self.costs.transfer(self.costs.wake_lines, wake.cpu, cpu);
            // The waker does this work, and goes on when the task is on its run queue.
            self.tasks[waker].left += arrives * FULL;
        }
        self.clock.set(self.arrival(task), now + arrives);
        self.obey(wake.cpu);
    }

    fn arrives(&mut self, task: TaskId) {
        self.tasks[task].state = State::Runnable;
        let wake = self.tasks[task].wake;
        self.see(What::Arrives { task });
        self.sched.arrive(wake, task, &mut self.orders);
        self.obey(wake.cpu);
    }

    fn tick(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].running else {
            return;
        };
        self.clock.set(
            self.slot(cpu, On::Tick),
            self.clock.now() + self.costs.tick_period,
        );
        if self.wait.load.faults.ticks_stop(cpu, self.clock.now()) {
            return;
        }
        self.pay(cpu, self.costs.tick);
        let speed = self.cores.tick(cpu, self.clock.now()) * u64::from(CAPACITY_SCALE) / FULL;
        self.follows(cpu);
        if let Some(kernel) = self.sched.kernel() {
            kernel.view(cpu).1.speed = speed as u32;
        }
        self.sched.tick(cpu, task, &mut self.orders);
        self.obey(cpu);
    }

    fn timer(&mut self, cpu: usize, which: timer_kind) {
        self.pay(cpu, self.costs.timer);
        self.settle(cpu);
        self.sched.timer(cpu, which, &mut self.orders);
        self.obey(cpu);
    }

    fn pick(&mut self, cpu: usize) {
        self.settle(cpu);
        let before = self.cpus[cpu].running;
        let next = self.sched.pick(cpu, &mut self.orders);
        if next != before {
            self.switch(cpu, before, next);
        } else if let Some(task) = next
            && self.tasks[task].state == State::Runnable
        {
            self.time(cpu);
        }
        self.obey(cpu);
    }

    /// The CPU runs `next` from now on, no longer `before`.
    fn switch(&mut self, cpu: usize, before: Option<TaskId>, next: Option<TaskId>) {
        if before.is_none() {
            self.wake_core(cpu);
        }
        self.cpus[cpu].running = next;
        for (task, on_cpu) in [(before, false), (next, true)] {
            if let Some(task) = task {
                self.tasks[task].on_cpu = on_cpu;
            }
        }
        let preempted = before.filter(|&task| self.tasks[task].state == State::Runnable);
        if let Some(before) = preempted {
            self.stops(cpu, before, Stop::GivesWay);
        }
        let others_change = match next {
            Some(task) => self.put_on_cpu(task, cpu, preempted.is_some()),
            None => self.fall_idle(cpu),
        };
        if before.is_some() != next.is_some() {
            self.see(match next {
                Some(_) => What::Busy { cpu },
                None => What::Idle { cpu },
            });
            self.turns(cpu, next.is_some());
        } else if others_change {
            self.time_siblings(cpu);
        }
        if before.is_none() {
            self.start_tick(cpu);
        }
        self.time(cpu);
    }

    /// Caches lose their contents if the core slept deeply and no other thread of it ran.
    fn wake_core(&mut self, cpu: usize) {
        let idle = self.clock.now() - self.cpus[cpu].idle_since;
        let emptied = self.cstates.ends(cpu, idle);
        if emptied && !self.cores.busy(cpu) {
            self.caches.emptied(cpu);
        }
    }

    /// The task begins to run: its wait ends, and it pays for the switch and for cold caches. True:
    /// other threads of the core may become slower or faster by that.
    fn put_on_cpu(&mut self, task: TaskId, cpu: usize, preempts: bool) -> bool {
        let now = self.clock.now();
        let woken_at = &mut self.tasks[task].woken_at;
        self.measured.runs(now - *woken_at, woken_at);
        let from = self.tasks[task].cpu.replace(cpu);
        self.see(What::Runs { task, cpu, from });
        let from = from.map(|from| (from, self.costs.how_far(from, cpu)));
        let set = self.wait.set_of(self.tasks[task].group);
        let others_change = self.caches.uses(cpu, set);
        let first_touch = match from {
            Some((from, moved)) => {
                self.caches.leaves(task, from, moved);
                if matches!(moved, Move::OtherLlc | Move::OtherNode) {
                    self.tasks[task].far = moved;
                }
                0
            }
            None => {
                self.caches.fills(task, cpu, set);
                self.first_touch(task)
            }
        };
        let migrates = from.is_some_and(|(from, _)| from != cpu);
        self.measured
            .switches(from.map(|(_, moved)| moved), migrates);
        let switch = if preempts {
            self.costs.preempt
        } else {
            self.costs.switch
        };
        self.tasks[task].left += (switch + first_touch) * FULL;
        self.touch(cpu, task);
        others_change
    }

    /// The work that the task is about to do takes longer where caches do not hold its data.
    fn touch(&mut self, cpu: usize, task: TaskId) {
        let of = &self.tasks[task];
        if of.spins || of.until.is_some() {
            return;
        }
        let set = self.wait.set_of(of.group);
        let more = self.caches.touches(task, cpu, set, of.left / FULL, of.far);
        self.tasks[task].left += more * FULL;
    }

    fn fall_idle(&mut self, cpu: usize) -> bool {
        self.cpus[cpu].idle_since = self.clock.now();
        self.cstates.begins(cpu);
        self.clock.clear(self.slot(cpu, On::Tick));
        self.caches.uses(cpu, 0)
    }

    /// Ticks of different CPUs are staggered.
    fn start_tick(&mut self, cpu: usize) {
        let now = self.clock.now();
        let period = self.costs.tick_period;
        let shift = cpu as u64 * period / self.cpus.len() as u64;
        let at = (now + period - shift) / period * period + shift;
        self.clock.set(self.slot(cpu, On::Tick), at.max(now + 1));
    }

    /// Carries out the scheduler's orders on behalf of CPU `here`.
    fn obey(&mut self, here: usize) {
        let now = self.clock.now();
        let mut orders = std::mem::take(&mut self.orders);
        for order in orders.drain(..) {
            match order {
                Order::Reschedule(cpu) => {
                    let hears = if cpu == here { 0 } else { self.costs.ipi };
                    let wakes = match self.cpus[cpu].running {
                        None if cpu != here => {
                            self.cstates.exit(cpu, now - self.cpus[cpu].idle_since)
                        }
                        _ => 0,
                    };
                    let slot = self.slot(cpu, On::Pick);
                    let at = now + hears + wakes;
                    if self.clock.due(slot).is_none_or(|due| due > at) {
                        self.clock.set(slot, at);
                    }
                }
                Order::Speed { cpu, speed } => {
                    let part = u64::from(speed) * FULL / u64::from(CAPACITY_SCALE);
                    self.cores.ask(cpu, part);
                    self.follows(cpu);
                }
                Order::Timer { which, cpu, ns } => {
                    let on = if which == TIMER_SLICE {
                        On::Slice
                    } else {
                        On::Delay
                    };
                    let slot = self.slot(cpu, on);
                    let at = now + ns + self.costs.timer_late;
                    self.timer_set(slot, at);
                    self.pay(here, self.costs.timer_arm);
                }
            }
        }
        self.orders = orders;
    }
}
