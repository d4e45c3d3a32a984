// SPDX-License-Identifier: GPL-2.0-only
//! The event loop. It handles the event that is due next and reschedules whatever that changes. A
//! segment of a task's work ends when its work is done at the CPU's speed. Each change of speed
//! accounts for the work done so far and reschedules the end.

mod end;
mod faults;
mod forks;
mod hotplug;
mod pace;
mod switch;

use super::Rng;
use super::caches::Caches;
use super::clock::Clock;
use super::cost::Costs;
use super::cstates::Cstates;
use super::daemon::Daemon;
use super::machines::Hardware;
use super::measure::Measured;
use super::sched::{Order, Scheduler};
use super::speed::{Cores, FULL};
use super::task::{Task, TaskState, Then, Wake};
use super::wait::{Came, Wait};
use super::watch::{Sight, Stop, Watch, What};
use anyhow::Result;
use scx_roost::bpf::intf::CAPACITY_SCALE;
use scx_roost::machine::Facts;
use scx_roost::native::TaskId;
use scx_roost::native::sys::{TIMER_SLICE, timer_kind};

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
            mut caches,
            cstates,
        } = hardware;
        if let Some(ns) = wait.load.touch {
            caches.set_pace(ns);
        }
        let cpus = facts.cpus.len();
        let slots = cpus * ON_CPU + tasks * ON_TASK + 6;
        let cpu = || Cpu {
            running: None,
            settled: 0,
            rate: FULL,
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
            self.measured.warm(0, Vec::new(), Some(0));
            self.see(What::Warm);
        }
    }

    fn happens(&mut self, slot: usize) {
        let per_cpu = self.cpus.len() * ON_CPU;
        if slot == self.warm() {
            self.settle_all();
            let now = self.clock.now();
            let slept = self.cstates.slept(now);
            self.measured.warm(now, self.counters(), Some(slept));
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
                _ => self.sleep_ends(task),
            }
        } else {
            let (cpu, on) = (slot / ON_CPU, slot % ON_CPU);
            match on {
                0 => self.segment_ends(cpu),
                1 => self.told_to_pick(cpu),
                2 => self.tick(cpu),
                3 => self.timer(cpu, TIMER_SLICE),
                _ => self.timer(cpu, scx_roost::native::sys::TIMER_DELAY),
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
            Then::Fork(group) => self.forks(cpu, task, group),
        }
        self.proceed(cpu, task);
    }

    /// Goes on with the task's program until there is work or a wait.
    fn proceed(&mut self, cpu: usize, task: TaskId) {
        let now = self.clock.now();
        let came = self
            .wait
            .proceed(&mut self.tasks, task, now, &self.costs, &mut self.measured);
        match came {
            Came::Works => {
                self.touch(cpu, task);
                self.time(cpu);
            }
            Came::GivesWay => self.leaves(cpu),
            Came::Circles => self.circles = Some(task),
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
                self.tasks[task].state = TaskState::Free;
                self.free.push(task);
                self.alive -= 1;
                self.leaves(cpu);
            }
        }
    }

    /// Puts the task to sleep until `until`, ns. None: until another task wakes it.
    fn falls_asleep(&mut self, cpu: usize, task: TaskId, until: Option<u64>) {
        if let Some(until) = until {
            self.tasks[task].wake = Wake::by(cpu);
            let at = until.max(self.clock.now());
            self.clock.set(self.sleep(task), at);
        } else {
            self.tasks[task].stuck = true;
            self.stuck += 1;
        }
        self.tasks[task].state = TaskState::Asleep;
        self.stops(cpu, task, Stop::Sleeps);
        self.sched.sleeps(cpu, task, &mut self.orders);
        self.leaves(cpu);
    }

    /// The task's timer is due. Where its CPU is idle, it has to wake up before it can do anything.
    fn sleep_ends(&mut self, task: TaskId) {
        let wake = self.tasks[task].wake;
        let cpu = wake.cpu;
        // A task that begins its life has no timer.
        if !wake.fork && self.cpus[cpu].running.is_none() {
            let wakes = self.wakes(cpu);
            if wakes > 0 {
                self.clock.set(self.sleep(task), self.clock.now() + wakes);
                return;
            }
        }
        self.place(task, wake, None);
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
        debug_assert_eq!(self.tasks[task].state, TaskState::Asleep);
        self.stuck -= usize::from(std::mem::take(&mut self.tasks[task].stuck));
        let now = self.clock.now();
        self.tasks[task].wake = wake;
        self.tasks[task].woken_at = now;
        self.tasks[task].state = TaskState::Coming;
        let cpu = self.sched.place(wake, task, &mut self.orders);
        self.see(What::Placed {
            task,
            cpu,
            wake,
            waker,
        });
        let idle = self.cpus[cpu].running.is_none();
        let queued = !wake.fork && self.costs.queues_wakeup(wake.cpu, cpu, idle);
        // The waker puts the task on the run queue, or that CPU does.
        match waker {
            _ if queued => self.pay(cpu, self.costs.enqueue),
            Some(waker) => self.tasks[waker].left += self.costs.enqueue * FULL,
            None => {}
        }
        self.clock.set(self.arrival(task), now + self.costs.enqueue);
        self.obey(wake.cpu);
    }

    fn arrives(&mut self, task: TaskId) {
        self.tasks[task].state = TaskState::Runnable;
        let wake = self.tasks[task].wake;
        self.see(What::Arrives { task });
        self.sched.arrive(wake, task, &mut self.orders);
        self.obey(wake.cpu);
        self.rests(wake.cpu);
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

    /// Carries out the scheduler's orders on behalf of CPU `here`.
    fn obey(&mut self, here: usize) {
        let now = self.clock.now();
        let mut orders = std::mem::take(&mut self.orders);
        for order in orders.drain(..) {
            match order {
                Order::Reschedule(cpu) => {
                    let hears = match cpu == here {
                        true => 0,
                        false => self.costs.ipi,
                    };
                    let wakes = match self.cpus[cpu].running {
                        None if cpu != here => self.wakes(cpu),
                        _ => 0,
                    };
                    let slot = self.slot(cpu, On::Pick);
                    let at = now + hears + wakes;
                    if self.clock.due(slot).is_none_or(|due| due > at) {
                        self.clock.set(slot, at);
                    }
                }
                Order::Looks { cpu, ns } => match self.cpus[cpu].running {
                    Some(_) => self.pay(cpu, ns),
                    None => self.cstates.stays_up(cpu, now + ns),
                },
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
