// SPDX-License-Identifier: GPL-2.0-only
//! The life of a task through sched_ext's callbacks (select_cpu.h, enqueue.h, dispatch.h, run.h,
//! tick.h, slice_timer.h, delay_queue.h). The test plays the kernel around them: it puts tasks
//! where the callbacks say and does what they ask for.

use crate::model::Features;
use crate::setup::{MAINLINE, NOW, STALE_MS, THRESHOLD};
use crate::topology::{Topology, WAIT_BOUND, kernel_arm, kernel_tunables};
use scx_roost::bpf::intf::{arm, task_policy};
use scx_roost::machine::Facts;
use scx_roost::native::sys::{
    ENQ_LAST, ENQ_PLACED, ENQ_PREEMPT, ENQ_WAKEUP, IMMED, KICK_IDLE, KICK_PREEMPT, MAX_CPUS,
    SET_IDLE_CORE, STAT_delay_cancel, STAT_delay_disallowed, STAT_delay_expire, STAT_delay_wake,
    STAT_dispatch_keep, STAT_dispatch_own, STAT_enq_idle, STAT_enq_queued, STAT_enq_unplaced,
    STAT_preempt_slice, STAT_rescue, STAT_spread_lost, STAT_spread_run, STAT_starved,
    STAT_steal_miss, TIMER_DELAY, TIMER_SLICE, roost_stat,
};
use scx_roost::native::{Act, Insert, Kernel, TaskId, To, World};

const SLICE: u64 = 2_800_000;
/// A new task starts with half a request.
const FIRST: u64 = SLICE / 2;
/// The flags of a wakeup that select_cpu has placed.
const WAKEUP: u64 = ENQ_WAKEUP as u64 | ENQ_PLACED;
const DELAY: u32 = 50_000;
/// The most tasks of a test; the first eight are there from the beginning.
const TASKS: usize = 32;

/// A kernel with CPUs of one LLC by default. It does the minimum of what the kernel's core does.
struct Machine {
    kernel: Kernel,
    now: u64,
    current: Vec<Option<TaskId>>,
}

impl Machine {
    fn new(cpus: usize, features: Features) -> Machine {
        Machine::on(&Topology::regular(1, cpus, 1, 1, false), features)
    }

    /// All CPUs are nohz_full.
    fn nohz(cpus: usize) -> Machine {
        let mut facts = Topology::regular(1, cpus, 1, 1, false).facts();
        facts.machine.nohz = 1;
        facts.cpus.iter_mut().for_each(|cpu| cpu.nohz = 1);
        Machine::of(facts, MAINLINE)
    }

    fn on(topology: &Topology, features: Features) -> Machine {
        Machine::of(topology.facts(), features)
    }

    fn of(facts: Facts, features: Features) -> Machine {
        let everybody = arm {
            task: task_policy {
                features: features.bits(),
                delay_ns: DELAY,
                ..kernel_arm().task
            },
            ..kernel_arm()
        };
        let cpus = facts.cpus.len();
        let mut world = World::new(facts, everybody, kernel_tunables(), 1);
        world.policy_mut().threshold[0].fill(THRESHOLD);
        world.policy_mut().freq_stale_ms = STALE_MS;
        // Frequencies are read at NOW; ages are relative to a clock at 0.
        let age = 0u32.wrapping_sub((NOW / 1_000_000) as u32);
        (0..cpus).for_each(|cpu| world.set_freq(cpu, THRESHOLD, age));
        let mut machine = Machine {
            kernel: Kernel::new(world, TASKS),
            now: NOW,
            current: vec![None; cpus],
        };
        machine.at(NOW);
        (0..8).for_each(|task| machine.kernel.begin(task, 0, 0));
        (0..cpus).for_each(|cpu| assert_eq!(machine.dispatch(cpu), None));
        machine
    }

    fn at(&mut self, now: u64) {
        self.now = now;
        self.kernel.set_now(now);
    }

    fn view(&mut self, cpu: usize) {
        let idle = self.current[cpu].is_none();
        let waiting = self.kernel.queue_length(cpu) as u32;
        let (view, run) = self.kernel.view(cpu);
        view.idle = idle.into();
        view.nr_running = u32::from(!idle) + waiting;
        run.curr_idle = idle.into();
    }

    fn acts(&mut self) -> Vec<Act> {
        let mut acts = Vec::new();
        self.kernel.acts(&mut acts);
        acts
    }

    /// Dispatches, and takes the next task from the CPU's local queue. `run` makes it run.
    fn dispatch(&mut self, cpu: usize) -> Option<TaskId> {
        self.kernel.dispatch(cpu, self.current[cpu]);
        let next = self.kernel.local(cpu).pop_front();
        self.view(cpu);
        next
    }

    fn run(&mut self, cpu: usize, task: TaskId) {
        self.kernel.set_runnable(task, true, false);
        self.kernel.set_cpu(task, cpu);
        self.kernel.running(cpu, task);
        self.current[cpu] = Some(task);
        self.view(cpu);
    }

    fn tick(&mut self, cpu: usize) {
        let task = self.current[cpu].expect("a task runs there");
        self.kernel.tick(cpu, task);
    }

    /// The running task goes to sleep.
    fn sleep(&mut self, cpu: usize) {
        let task = self.current[cpu].take().expect("a task runs there");
        self.kernel.set_runnable(task, false, true);
        self.kernel.stopping(cpu, task, false);
        self.view(cpu);
    }

    /// The running task waits again.
    fn put(&mut self, cpu: usize, flags: u64) -> Insert {
        let task = self.current[cpu].expect("a task runs there");
        self.kernel.stopping(cpu, task, true);
        let insert = self.enqueue(task, flags);
        self.current[cpu] = None;
        self.view(cpu);
        insert
    }

    /// The task running on `here` wakes `task`, which last ran on `prev`. Returns the CPU, and the
    /// insertion if select_cpu made one.
    fn wake(&mut self, here: usize, task: TaskId, prev: usize) -> (usize, Option<Insert>) {
        self.kernel.set_cpu(task, prev);
        let waker = self.current[here];
        let cpu = self.kernel.select_cpu(here, waker, task, 0);
        self.kernel.set_cpu(task, cpu);
        (cpu, self.kernel.inserted())
    }

    fn enqueue(&mut self, task: TaskId, flags: u64) -> Insert {
        let cpu = self.kernel.cpu_of(task);
        self.kernel.set_runnable(task, true, false);
        self.kernel.enqueue(cpu, self.current[cpu], task, flags);
        let insert = self.kernel.inserted().expect("enqueue says where to");
        if let To::Queue(queue, key) = insert.to {
            self.kernel.queue(task, queue, key);
            self.view(queue % MAX_CPUS as usize);
        }
        insert
    }

    fn count(&self, stat: roost_stat) -> u64 {
        self.kernel.world().count(stat)
    }
}

trait ToQueue {
    /// The number of the queue that the task goes to; None: a local queue.
    fn to_queue(&self) -> Option<usize>;
}

impl ToQueue for Insert {
    fn to_queue(&self) -> Option<usize> {
        match self.to {
            To::Queue(queue, _) => Some(queue),
            _ => None,
        }
    }
}

fn queued_on(insert: &Insert) -> Option<usize> {
    Some(insert.to_queue()? % MAX_CPUS as usize)
}

#[test]
fn an_idle_cpu_is_gone_to_at_once() {
    let mut machine = Machine::new(2, MAINLINE);
    let (cpu, insert) = machine.wake(1, 0, 0);
    let insert = insert.expect("it is inserted where it was placed");
    assert_eq!((cpu, insert.to, insert.slice), (0, To::Local, SLICE));
    assert_eq!(insert.flags, IMMED);
    assert_eq!(machine.count(STAT_enq_idle), 1);
    machine.run(0, 0);
    assert_eq!(machine.kernel.state(0).on_rq, 1, "1 + the CPU");
    machine.at(NOW + 1_000_000);
    machine.kernel.tick(0, 0);
    assert_eq!(machine.kernel.state(0).vruntime, 1_000_000);
    machine.sleep(0);
    assert_eq!(machine.kernel.state(0).on_rq, 0);
    assert_eq!(machine.kernel.world().cpu(0).weight, 0);
    assert_eq!(machine.dispatch(0), None);
}

/// Linux before 7.1: the task waits in our queue, and its CPU finds it there.
#[test]
fn without_immed_it_is_fetched() {
    let mut machine = Machine::new(2, MAINLINE);
    machine.kernel.without_immed();
    assert_eq!(machine.wake(1, 0, 0), (0, None));
    let insert = machine.enqueue(0, WAKEUP);
    assert_eq!(queued_on(&insert), Some(0));
    assert_eq!(machine.dispatch(0), Some(0));
    assert_eq!(machine.count(STAT_dispatch_own), 1);
}

#[test]
fn the_slice_timer_lets_a_waiting_task_run() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.wake(0, 0, 0);
    machine.run(0, 0);
    machine.acts();
    assert_eq!(machine.wake(0, 1, 0), (0, None), "nothing is idle");
    let insert = machine.enqueue(1, WAKEUP);
    assert_eq!(queued_on(&insert), Some(0));
    assert_eq!(machine.count(STAT_enq_queued), 1);
    let timer = Act::Timer {
        which: TIMER_SLICE,
        cpu: 0,
        ns: FIRST,
    };
    assert_eq!(machine.acts(), [timer], "the running slice ends on time");

    machine.at(NOW + FIRST);
    machine.kernel.timer(TIMER_SLICE, 0, Some(0));
    let kick = Act::Kick {
        cpu: 0,
        flags: KICK_PREEMPT.into(),
    };
    assert_eq!(machine.acts(), [kick]);
    assert_eq!(machine.count(STAT_preempt_slice), 1);
    assert_eq!(machine.dispatch(0), Some(1), "its deadline is the earlier");
    assert_eq!(queued_on(&machine.put(0, 0)), Some(0));
    machine.run(0, 1);
    machine.acts();
    machine.at(NOW + FIRST + 1);
    assert_eq!(machine.dispatch(0), None, "it has only begun");
    assert_eq!(machine.count(STAT_dispatch_keep), 1);
    assert!(machine.kernel.slice(1) > 0, "and goes on");
}

#[test]
fn an_idle_cpu_pulls_a_task_that_waits_elsewhere() {
    let mut machine = Machine::new(2, MAINLINE);
    machine.run(0, 0);
    machine.run(1, 1);
    assert_eq!(machine.wake(0, 2, 0).1, None);
    machine.enqueue(2, WAKEUP);
    machine.at(NOW + 10 * SLICE);
    machine.sleep(1);
    let moved = Act::Moved {
        task: 2,
        from: 0,
        cpu: 1,
    };
    machine.acts();
    assert_eq!(machine.dispatch(1), Some(2));
    assert_eq!(machine.acts(), [moved]);
    assert_eq!(machine.count(STAT_steal_miss), 0);
}

#[test]
fn the_last_one_looks_for_work() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.at(NOW + SLICE);
    machine.acts();
    let insert = machine.put(0, ENQ_LAST);
    assert_eq!(queued_on(&insert), Some(0));
    let kick = Act::Kick { cpu: 0, flags: 0 };
    assert_eq!(machine.acts().first(), Some(&kick));
    assert_eq!(machine.dispatch(0), Some(0));
}

/// A CPU goes offline: its waiting tasks go to its local queue, which the kernel empties. No task
/// is placed there, and its core is idle when the other thread is. Then the CPU comes back.
#[test]
fn an_offline_cpu_keeps_no_task() {
    let mut machine = Machine::on(&Topology::regular(1, 2, 2, 1, false), MAINLINE);
    let idle_cores =
        |machine: &Machine| machine.kernel.world().llc(0).set[SET_IDLE_CORE as usize][0];
    machine.run(0, 0);
    machine.run(3, 1);
    let bound = machine.kernel.mask(&[0b1000]);
    machine.kernel.begin(2, bound, 3);
    machine.enqueue(2, WAKEUP);
    assert_eq!(idle_cores(&machine), 0);
    machine.kernel.cpu_turns(3, None, false);
    assert_eq!(*machine.kernel.local(3), [2], "also a task bound to it");
    assert_eq!(machine.kernel.queue_length(3), 0);
    machine.kernel.local(3).clear();
    machine.sleep(3);
    machine.run(2, 4);
    machine.sleep(2);
    assert_eq!(machine.dispatch(2), None);
    assert_eq!(idle_cores(&machine), 0b0100, "CPU 2 is its core");
    machine.kernel.view(3).0.idle = 1;
    assert_eq!(machine.wake(0, 3, 3).0, 2, "though CPU 3 looks idle");
    machine.run(2, 3);
    assert_eq!(machine.wake(0, 5, 3).0, 1);

    machine.sleep(2);
    assert_eq!(machine.dispatch(2), None);
    machine.kernel.cpu_turns(3, None, true);
    assert_eq!(machine.dispatch(3), None);
    assert_eq!(idle_cores(&machine), 0b1100);
    assert_eq!(machine.wake(0, 3, 3).0, 3);
}

/// The slice of a task on a CPU that is away, ns.
const FOREVER: u64 = 1 << 62;

/// CPU 1 is away, taken offline by its kthread 1, which runs there; the kthread 2 is bound to it
/// too. Tasks wait on CPU 0.
fn away() -> Machine {
    let mut machine = Machine::new(2, MAINLINE);
    let bound = machine.kernel.mask(&[0b10]);
    for kthread in [1, 2] {
        machine.kernel.begin(kthread, bound, 1);
        machine.kernel.set_kthread(kthread, true);
        machine.kernel.set_slice(kthread, FIRST);
    }
    machine.run(0, 0);
    for task in [3, 4, 5] {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    machine.run(1, 1);
    machine.kernel.cpu_turns(1, Some(1), false);
    machine.acts();
    machine
}

/// The kernel asks nobody what runs next on a CPU that is away: a task that loses its slice there
/// while no other waits is not kept, and the CPU goes idle beside it. So it loses none, by whatever
/// would end a slice elsewhere.
#[test]
fn a_slice_does_not_end_on_a_cpu_that_is_away() {
    let mut machine = away();
    assert_eq!(machine.kernel.slice(1), FOREVER, "it takes CPU 1 offline");
    for n in 1..100 {
        machine.at(NOW + n * SLICE);
        machine.tick(1);
        machine.kernel.timer(TIMER_SLICE, 1, Some(1));
    }
    assert_eq!(machine.acts(), [], "no other queue is served from there");
    machine.kernel.yields(1, 1);
    assert_eq!(machine.kernel.slice(1), FOREVER);
    machine.sleep(1);
    machine.run(1, 2);
    assert_eq!(machine.kernel.slice(2), FOREVER, "of one that begins there");
    machine.kernel.cpu_turns(1, Some(2), true);
    assert_eq!(machine.kernel.slice(2), SLICE, "the CPU is back");
}

/// It ends where another task is in the local queue.
#[test]
fn a_slice_ends_on_a_cpu_that_is_away_and_has_another_task() {
    let mut machine = away();
    machine.kernel.view(1).1.local = 1;
    machine.tick(1);
    assert_eq!(machine.kernel.slice(1), FOREVER, "its own is not over");
    machine.at(NOW + 200 * SLICE);
    machine.kernel.timer(TIMER_SLICE, 1, Some(1));
    let why = "the other may go before a kick arrives";
    assert_eq!(machine.acts(), [], "{why}");
    machine.tick(1);
    assert_eq!(machine.kernel.slice(1), 0);
    machine.kernel.set_slice(1, FOREVER);
    machine.kernel.yields(1, 1);
    assert_eq!(machine.kernel.slice(1), 0, "it yields to the other");
}

/// The kernel pushes a task that is not one of its bound threads away when it chooses it.
#[test]
fn a_task_is_pushed_away_from_a_cpu_that_is_away() {
    let mut machine = away();
    machine.sleep(1);
    machine.run(1, 6);
    machine.tick(1);
    let flags = 0;
    assert_eq!(machine.acts(), [Act::Kick { cpu: 1, flags }]);
}

/// The kernel begins to take a CPU offline before it says so: the thread that does it is not
/// interrupted to serve another queue. One that runs for longer is.
#[test]
fn a_bound_kthread_does_not_serve_other_queues_at_once() {
    let mut machine = taken(2, 6);
    let bound = machine.kernel.mask(&[0b10]);
    machine.kernel.set_affinity(1, bound);
    machine.kernel.set_kthread(1, true);
    machine.sleep(1);
    machine.run(1, 1);
    machine.at(machine.now + 2_000_000);
    machine.tick(1);
    assert!(!rescues(&machine, 1), "it has just begun");
    machine.at(machine.now + 20_000_000);
    machine.tick(1);
    assert!(rescues(&machine, 1));
}

/// The kernel begins to take a CPU offline before it says so, and waits for an RCU grace period.
/// The CPU idles meanwhile, and a task that is bound to it may keep the grace period from ending.
#[test]
fn bound_tasks_beside_which_their_cpu_idles_go_to_the_kernel() {
    let mut machine = Machine::new(2, MAINLINE);
    let bound = machine.kernel.mask(&[0b01]);
    machine.kernel.begin(2, bound, 0);
    machine.run(0, 0);
    machine.run(1, 1);
    machine.enqueue(2, WAKEUP);
    machine.sleep(0);
    let timer =
        |act: &Act| matches!(act, Act::Timer { which, cpu: 0, .. } if *which == TIMER_SLICE);
    machine.acts();
    machine.at(NOW + 1_000_000);
    machine.tick(1);
    assert!(!machine.acts().iter().any(timer), "it was busy until now");
    machine.kernel.timer(TIMER_SLICE, 0, None);
    assert_eq!(machine.kernel.queue_length(0), 1, "it has time to dispatch");
    assert!(machine.acts().iter().any(timer));
    machine.at(NOW + 100_000_000);
    machine.tick(1);
    assert!(
        machine.acts().iter().any(timer),
        "a tick elsewhere starts it"
    );
    machine.kernel.timer(TIMER_SLICE, 0, None);
    assert_eq!(*machine.kernel.local(0), [2]);
    assert_eq!(machine.kernel.queue_length(0), 0);
}

/// A CPU may count a task that another has taken and not run yet: nothing waits for it then.
#[test]
fn a_timer_beside_an_empty_queue_does_nothing() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.sleep(0);
    machine.kernel.world_mut().cpu_mut(0).weight = 16384;
    machine.acts();
    machine.kernel.timer(TIMER_SLICE, 0, None);
    assert_eq!(machine.acts(), []);
}

/// The kernel begins to take a CPU offline before it says so. If a slice is ended meanwhile, the
/// CPU goes idle beside the task, and the timer finds it.
#[test]
fn a_cpu_that_idles_beside_a_task_is_woken() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.sleep(0);
    machine.kernel.view(0).1.local = 1;
    machine.acts();
    machine.kernel.timer(TIMER_SLICE, 0, None);
    let flags = KICK_IDLE.into();
    assert_eq!(machine.acts()[..1], [Act::Kick { cpu: 0, flags }]);
}

/// A search that takes another CPU's lock drops its own, so a task can be put on the CPU meanwhile.
/// The search then finds nothing and starts an idle period, which is no real one. The next period
/// that counts starts when that task sleeps.
#[test]
fn a_task_that_comes_during_a_search_leaves_no_old_idle_period() {
    let mut machine = Machine::new(2, MAINLINE);
    let since = |machine: &Machine| machine.kernel.world().cpu(0).idle_every.since;
    let one = machine.kernel.mask(&[0b01]);
    machine.kernel.begin(3, one, 0);
    assert_eq!(machine.enqueue(3, ENQ_WAKEUP.into()).to, To::Local);
    assert_eq!(since(&machine), 0, "whoever arrives ends the period");
    machine.kernel.world_mut().idle_begins(0, NOW);
    machine.run(0, 3);
    let slept = NOW + 5_000_000;
    machine.at(slept);
    machine.sleep(0);
    assert_eq!(machine.dispatch(0), None);
    assert_eq!(since(&machine), slept);
}

/// Two tasks share a core, and the tick sends one of them to another core. Either it reaches
/// dispatch, which lets it leave while that core is still idle; or it sleeps first, and then the
/// order is dropped and counted as lost.
#[test]
fn a_task_that_sleeps_before_its_move_loses_the_core() {
    let spread = Features {
        smt_spread: true,
        ..MAINLINE
    };
    let told = |ends: fn(&mut Machine)| {
        let mut machine = Machine::on(&Topology::regular(1, 2, 2, 1, false), spread);
        (0..2).for_each(|task| machine.run(task, task));
        machine.at(NOW + 2 * SLICE);
        machine.tick(0);
        assert_eq!(machine.kernel.slice(0), 0, "it shall go");
        ends(&mut machine);
        [STAT_spread_run, STAT_spread_lost].map(|stat| machine.count(stat))
    };
    let leaves = |machine: &mut Machine| {
        assert_eq!(machine.dispatch(0), None);
        assert_eq!(machine.put(0, ENQ_LAST).to, To::LocalOn(2));
    };
    assert_eq!(told(leaves), [1, 0]);
    assert_eq!(told(|machine| machine.sleep(0)), [0, 1]);
}

/// yield_to(): the target runs next, whatever its deadline. If the target does not wait, the call
/// returns false.
#[test]
fn the_target_of_a_yield_runs_next() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    for task in [1, 2, 3] {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    let deadline = machine.kernel.state(0).deadline;
    assert!(!machine.kernel.yields_to(0, 0, 5), "it sleeps");
    assert!(!machine.kernel.yields_to(0, 0, 0), "it runs");
    assert_eq!(machine.kernel.state(0).deadline, deadline, "no penalty");
    assert!(machine.kernel.yields_to(0, 0, 3));
    assert_eq!(machine.dispatch(0), Some(3));
}

/// Whether a waiting task is cache hot is judged by our own clock, which is the same for all CPUs.
#[test]
fn when_it_last_ran_is_kept() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.at(NOW + 700_000);
    machine.put(0, 0);
    assert_eq!(machine.kernel.state(0).ran_at, NOW + 700_000);
}

/// A task keeps the start of its wait over every change: dequeued and queued again, and in another
/// class meanwhile.
#[test]
fn a_change_does_not_set_a_wait_back() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.kernel.set_cpu(1, 0);
    machine.enqueue(1, WAKEUP);
    let since = machine.kernel.state(1).waits_since;
    assert_eq!(since, NOW);
    machine.at(NOW + 100_000_000);
    machine.kernel.unqueue(1);
    let insert = machine.enqueue(1, 0);
    assert_eq!(machine.kernel.state(1).waits_since, since);
    assert_eq!(insert.to_queue(), Some(0), "it is young still");
    machine.kernel.unqueue(1);
    machine.at(NOW + WAIT_BOUND / 16);
    let insert = machine.enqueue(1, 0);
    assert_eq!(insert.to_queue(), Some(MAX_CPUS as usize), "it is old");
    machine.kernel.unqueue(1);
    machine.kernel.disable(0, 1);
    machine.at(NOW + WAIT_BOUND / 3);
    let insert = machine.enqueue(1, 0);
    assert_eq!(insert.to, To::Local, "and now it runs");
    machine.run(0, 1);
    assert_eq!(machine.kernel.state(1).waits_since, 0);
}

/// Looking at other CPUs' queues reads cache lines that they write, so one CPU of an LLC looks per
/// millisecond.
#[test]
fn abandoned_queues_are_looked_for_once_a_millisecond() {
    let mut machine = Machine::new(4, MAINLINE);
    for cpu in 0..4 {
        machine.run(cpu, cpu);
    }
    for cpu in [0, 3] {
        machine.kernel.set_cpu(cpu + 4, cpu);
        machine.enqueue(cpu + 4, WAKEUP);
        machine.put(cpu, 0);
        machine.kernel.view(cpu).1.taken = 1;
    }
    let assigned =
        |machine: &Machine| [1, 2].map(|cpu| machine.kernel.world().cpu(cpu).assigned_cpu > 0);
    machine.at(NOW + 30_000_000);
    machine.tick(1);
    machine.tick(2);
    assert_eq!(assigned(&machine), [true, false]);
    machine.at(NOW + 31_000_000);
    machine.tick(2);
    assert_eq!(assigned(&machine), [true, true]);
}

/// Each abandoned queue gets its turn, even if looks are rarer than SERVE_NS (serve.h), and if
/// another queue has no task that the looking CPU may run.
#[test]
fn an_abandoned_queue_does_not_hide_another() {
    let mut machine = Machine::new(4, MAINLINE);
    let elsewhere = machine.kernel.mask(&[0b1001]);
    machine.kernel.begin(4, elsewhere, 0);
    for cpu in 0..4 {
        machine.run(cpu, cpu);
    }
    for cpu in [0, 2] {
        machine.kernel.set_cpu(cpu + 4, cpu);
        machine.enqueue(cpu + 4, WAKEUP);
        machine.kernel.view(cpu).1.taken = 1;
        machine.sleep(cpu);
    }
    for look in 0..2 {
        machine.at(NOW + 30_000_000 + look * 10_000_000);
        machine.tick(1);
    }
    assert_eq!(machine.kernel.world().cpu(1).assigned_cpu, 1 + 2);
}

/// A machine of `cpus` CPUs, all busy. Then a real-time task takes CPU 0, on which `waiting` tasks
/// wait.
fn taken(cpus: usize, waiting: usize) -> Machine {
    let mut machine = Machine::new(cpus, MAINLINE);
    for cpu in 0..cpus {
        machine.run(cpu, cpu);
    }
    for task in cpus..cpus + waiting {
        if task >= 8 {
            machine.kernel.begin(task, 0, 0);
        }
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    machine.kernel.view(0).1.taken = 1;
    machine.sleep(0);
    machine.at(NOW + 30_000_000);
    machine
}

/// The CPU is assigned a queue, and not for balance.
fn rescues(machine: &Machine, cpu: usize) -> bool {
    let cpu = machine.kernel.world().cpu(cpu);
    cpu.assigned_cpu > 0 && cpu.assigned_balances == 0
}

/// The task of CPU 1 is interrupted; the next one runs there. Returns how many were rescued so far.
fn next_on_cpu_1(machine: &mut Machine) -> u64 {
    machine.put(1, 0);
    let next = machine.dispatch(1).expect("a task waits");
    machine.kernel.unqueue(next);
    machine.run(1, next);
    machine.count(STAT_rescue)
}

/// Tasks of the abandoned queue and of the CPU's own run in turn, until the queue's own CPU
/// dispatches again. One task per tick would leave hundreds of tasks waiting for seconds.
#[test]
fn a_rescue_goes_on_while_it_is_needed() {
    let mut machine = taken(2, 6);
    machine.tick(1);
    let rescued: Vec<u64> = (0..4).map(|_| next_on_cpu_1(&mut machine)).collect();
    assert_eq!(rescued, [1, 1, 2, 2]);
    machine.kernel.view(0).1.taken = 0;
    machine.run(0, 0);
    let rescued: Vec<u64> = (0..4).map(|_| next_on_cpu_1(&mut machine)).collect();
    assert_eq!(rescued, [2, 2, 2, 2], "no more is needed");
    assert_eq!(machine.kernel.world().cpu(1).assigned_cpu, 0);
}

/// A rescue ends after a while, so that the ticks can choose another abandoned queue.
#[test]
fn a_rescue_ends_though_more_tasks_wait() {
    let mut machine = taken(2, 6);
    machine.tick(1);
    assert_eq!(next_on_cpu_1(&mut machine), 1);
    machine.at(machine.now + 20_000_000);
    for _ in 0..3 {
        assert_eq!(next_on_cpu_1(&mut machine), 1);
    }
    machine.tick(1);
    assert_eq!(next_on_cpu_1(&mut machine), 2);
}

/// The kernel begins to take a CPU offline before it says so, and lets it idle beside its queue. A
/// CPU that was idle when the task came is given time to dispatch.
#[test]
fn a_queue_beside_which_its_cpu_idles_is_rescued() {
    let mut machine = taken(2, 1);
    let run = machine.kernel.view(0).1;
    (run.taken, run.curr_idle) = (0, 0);
    machine.tick(1);
    assert!(!rescues(&machine, 1), "CPU 0 is about to dispatch");
    machine.kernel.view(0).1.curr_idle = 1;
    machine.at(machine.now + 2_000_000);
    machine.tick(1);
    assert!(rescues(&machine, 1));

    let mut machine = Machine::new(2, MAINLINE);
    machine.run(1, 1);
    machine.at(NOW + 30_000_000);
    machine.kernel.view(0).1.curr_idle = 0;
    assert_eq!(queued_on(&machine.enqueue(2, WAKEUP)), Some(0));
    machine.kernel.view(0).1.curr_idle = 1;
    machine.at(machine.now + 1_000_000);
    machine.tick(1);
    assert!(!rescues(&machine, 1), "it came a moment ago");
}

/// A CPU without a task of its own does not wait for its turn.
#[test]
fn a_rescuer_without_a_task_of_its_own_goes_on() {
    let mut machine = taken(2, 6);
    machine.tick(1);
    for rescued in 1..4 {
        machine.sleep(1);
        let next = machine.dispatch(1).expect("a task waits on CPU 0");
        machine.kernel.unqueue(next);
        machine.run(1, next);
        if rescued == 1 {
            // Its own task sleeps.
            assert_eq!(machine.count(STAT_rescue), rescued);
        }
    }
    assert_eq!(machine.count(STAT_rescue), 3);
}

/// Tasks in the old queue have waited for longer than those with an earlier deadline.
#[test]
fn the_old_queue_is_rescued_first() {
    let mut machine = taken(2, 6);
    machine.kernel.unqueue(2);
    machine.kernel.queue(2, MAX_CPUS as usize, u64::MAX / 4);
    machine.kernel.world_mut().cpu_mut(0).old_waits = 1;
    machine.tick(1);
    machine.put(1, 0);
    assert_eq!(machine.dispatch(1), Some(2));
}

/// Of several CPUs that tick at once, one that has a queue to serve leaves the look to the others.
#[test]
fn a_rescuer_leaves_the_look_to_others() {
    let mut machine = taken(3, 16);
    machine.tick(1);
    machine.at(machine.now + 1_000_000);
    machine.tick(1);
    machine.tick(2);
    assert!(rescues(&machine, 2));
}

/// Many tasks that are bound to a taken CPU of this cache do not hide those of another cache.
#[test]
fn a_bound_crowd_hides_no_other_cache() {
    let topology = Topology::regular(2, 2, 1, 1, false);
    let mut machine = Machine::on(&topology, MAINLINE);
    let bound = machine.kernel.mask(&[0b0001]);
    (0..4).for_each(|cpu| machine.run(cpu, cpu));
    for task in 8..26 {
        machine.kernel.begin(task, bound, 0);
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    machine.kernel.set_cpu(4, 2);
    machine.enqueue(4, WAKEUP);
    for cpu in [0, 2, 3] {
        machine.kernel.view(cpu).1.taken = 1;
        machine.sleep(cpu);
    }
    let waiting = |machine: &mut Machine, cpu| machine.kernel.world_mut().mark_waiting(cpu);
    for tick in 0..4 {
        waiting(&mut machine, 0);
        waiting(&mut machine, 2);
        machine.at(NOW + 30_000_000 + tick * 4_000_000);
        machine.tick(1);
        if machine.kernel.world().cpu(1).assigned_cpu == 1 + 2 {
            return;
        }
    }
    panic!("the task on CPU 2 is never looked at");
}

/// One CPU rescues from a short queue for 20 ms, though the others look.
#[test]
fn a_short_queue_has_one_rescuer_at_a_time() {
    let mut machine = taken(3, 6);
    machine.tick(1);
    for (ms, joins) in [(4, false), (19, false), (20, true)] {
        machine.at(NOW + 30_000_000 + ms * 1_000_000);
        machine.tick(2);
        assert_eq!(rescues(&machine, 2), joins, "after {ms} ms");
        machine.kernel.world_mut().cpu_mut(2).assigned_cpu = 0;
    }
}

/// Balance looks at the same queues and may take nothing there. That hides none of them.
#[test]
fn balance_hides_no_abandoned_queue() {
    let mut machine = taken(3, 6);
    machine.kernel.world_mut().cpu_mut(0).served_at = machine.now;
    machine.tick(1);
    assert!(rescues(&machine, 1));
}

/// A CPU that may take no task of a queue hides it from others for 5 ms, and no longer.
#[test]
fn a_cpu_that_may_take_nothing_hides_a_queue_for_a_moment() {
    let mut machine = Machine::new(3, MAINLINE);
    let not_on_1 = machine.kernel.mask(&[0b101]);
    machine.kernel.begin(4, not_on_1, 0);
    (0..3).for_each(|cpu| machine.run(cpu, cpu));
    machine.kernel.set_cpu(4, 0);
    machine.enqueue(4, WAKEUP);
    machine.kernel.view(0).1.taken = 1;
    machine.sleep(0);
    machine.at(NOW + 30_000_000);
    machine.tick(1);
    assert_eq!(machine.kernel.world().cpu(1).assigned_cpu, 0);
    machine.at(NOW + 35_000_000);
    machine.tick(2);
    assert_eq!(machine.kernel.world().cpu(2).assigned_cpu, 1);
}

/// One CPU at a time rescues from a short queue; from a long one all do that look.
#[test]
fn a_long_queue_is_rescued_by_several_cpus() {
    for (waiting, rescuers) in [(15, 1), (16, 2)] {
        let mut machine = taken(3, waiting);
        for cpu in [1, 2] {
            machine.at(machine.now + 1_000_000);
            machine.tick(cpu);
        }
        let number = [1, 2]
            .into_iter()
            .filter(|&cpu| rescues(&machine, cpu))
            .count();
        assert_eq!(number, rescuers, "{waiting} wait");
    }
}

/// A task is found that waits behind tasks bound to a CPU which a real-time task occupies.
#[test]
fn bound_tasks_do_not_hide_the_waiters_after_them() {
    let mut machine = Machine::new(2, MAINLINE);
    let bound = machine.kernel.mask(&[0b01]);
    machine.run(0, 0);
    machine.run(1, 1);
    (2..7).for_each(|task| machine.kernel.begin(task, bound, 0));
    for task in 2..8 {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
    }
    machine.kernel.view(0).1.taken = 1;
    machine.sleep(0);
    machine.at(NOW + 30_000_000);
    machine.tick(1);
    assert_eq!(machine.kernel.world().cpu(1).assigned_cpu, 1);
}

/// A task that may run on one CPU only: the kernel does not call select_cpu.
#[test]
fn unplaced_tasks_are_counted() {
    let mut machine = Machine::new(2, MAINLINE);
    let one = machine.kernel.mask(&[0b10]);
    machine.kernel.begin(3, one, 1);
    machine.run(1, 1);
    machine.enqueue(3, ENQ_WAKEUP.into());
    assert_eq!(machine.count(STAT_enq_unplaced), 1);
    machine.sleep(1);
    assert_eq!(machine.dispatch(0), None, "it may not go there");
    assert_eq!(machine.dispatch(1), Some(3));
}

/// The source changes the CPU and sets a timer; check_preempt_curr() still runs.
#[test]
fn a_delayed_task_may_interrupt_its_waker() {
    let smove = Features {
        delay_migration: true,
        ..MAINLINE
    };
    let mut machine = Machine::new(2, smove);
    machine.run(0, 0);
    machine.at(NOW + FIRST + 1);
    assert_eq!(machine.dispatch(0), None, "the waker makes a new request");
    machine.at(NOW + FIRST + 1_000_000);
    machine.wake(0, 1, 0);
    assert_eq!(machine.count(STAT_delay_wake), 1);
    let insert = machine.enqueue(1, WAKEUP);
    assert_eq!(insert.to, To::Local, "its deadline is earlier");
    machine.run(0, 1);
    assert_eq!(machine.count(STAT_delay_cancel), 1, "it ran here");
}

/// Task 1 waits on CPU 0, beside its waker, for a move to CPU 1.
fn delayed() -> Machine {
    let smove = Features {
        delay_migration: true,
        ..MAINLINE
    };
    let mut machine = Machine::new(2, smove);
    machine.run(0, 0);
    machine.acts();
    let (cpu, insert) = machine.wake(0, 1, 0);
    assert_eq!((cpu, insert), (0, None), "CPU 1 is idle and slow");
    assert_eq!(machine.count(STAT_delay_wake), 1);
    assert_eq!(queued_on(&machine.enqueue(1, WAKEUP)), Some(0));
    machine
}

#[test]
fn a_delayed_move_comes_by_its_timer() {
    let mut machine = delayed();
    let delay = Act::Timer {
        which: TIMER_DELAY,
        cpu: 0,
        ns: DELAY.into(),
    };
    assert!(machine.acts().contains(&delay));
    machine.at(NOW + u64::from(DELAY));
    machine.kernel.timer(TIMER_DELAY, 0, Some(0));
    let moved = Act::Moved {
        task: 1,
        from: 0,
        cpu: 1,
    };
    assert_eq!(machine.acts().first(), Some(&moved));
    assert_eq!(machine.count(STAT_delay_expire), 1);
    assert_eq!(machine.kernel.local(1).pop_front(), Some(1));
}

/// B10 of delay.rs: the destination is forbidden by then.
#[test]
fn a_delayed_move_to_a_forbidden_cpu_does_not_happen() {
    let mut machine = delayed();
    let first = machine.kernel.mask(&[0b01]);
    machine.kernel.set_affinity(1, first);
    machine.at(NOW + u64::from(DELAY));
    machine.kernel.timer(TIMER_DELAY, 0, Some(0));
    assert_eq!(machine.count(STAT_delay_disallowed), 1);
    assert_eq!(machine.count(STAT_delay_expire), 0);
    assert!(machine.kernel.local(1).is_empty());
}

/// Sets nr_running: the kernel counts a task before it runs.
fn counts(machine: &mut Machine, tasks: u32) {
    machine.kernel.view(0).0.nr_running = tasks;
}

#[test]
fn a_task_alone_on_a_nohz_full_cpu_has_a_slice_without_end() {
    let mut machine = Machine::nohz(1);
    machine.wake(0, 0, 0);
    counts(&mut machine, 1);
    machine.run(0, 0);
    assert_eq!(machine.kernel.slice(0), u64::MAX);
    machine.acts();
    // Its request ended long ago: a task that joins does not wait for a tick.
    machine.at(NOW + 50 * SLICE);
    assert_eq!(machine.wake(0, 1, 0), (0, None));
    let insert = machine.enqueue(1, WAKEUP);
    let at_once =
        |act: &Act| matches!(act, Act::Timer { which: TIMER_SLICE, ns, .. } if *ns <= SLICE);
    assert!(
        insert.flags & ENQ_PREEMPT != 0 || machine.acts().iter().any(at_once),
        "{insert:?}"
    );
}

/// A task without a slice timer, as after a lost timer.
#[test]
fn the_remote_tick_ends_a_slice_without_end() {
    let mut machine = Machine::nohz(1);
    machine.wake(0, 0, 0);
    counts(&mut machine, 1);
    machine.run(0, 0);
    machine.kernel.view(0).1.local = 1;
    machine.tick(0);
    assert_eq!(machine.kernel.slice(0), u64::MAX, "it has only begun");
    machine.at(NOW + 1_000_000_000);
    machine.tick(0);
    assert_eq!(machine.kernel.slice(0), 0);
}

#[test]
fn a_task_that_is_not_alone_there_has_an_end() {
    let mut machine = Machine::nohz(1);
    machine.wake(0, 0, 0);
    counts(&mut machine, 2);
    machine.kernel.set_slice(0, SLICE);
    machine.run(0, 0);
    assert_eq!(
        machine.kernel.slice(0),
        SLICE,
        "another is behind it in the local queue"
    );
}

#[test]
fn without_nohz_full_a_slice_has_an_end() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.wake(0, 0, 0);
    counts(&mut machine, 1);
    machine.kernel.set_slice(0, SLICE);
    machine.run(0, 0);
    assert_eq!(machine.kernel.slice(0), SLICE);
}

/// Tasks that are queued again do not go into a late queue, or it might never empty and the young
/// queue would get no turn.
#[test]
fn a_late_queue_takes_no_more() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    machine.kernel.set_cpu(1, 0);
    machine.enqueue(1, WAKEUP);
    machine.at(NOW + WAIT_BOUND / 4);
    let mut old = |late| {
        machine.kernel.unqueue(1);
        machine.kernel.world_mut().cpu_mut(0).late = late;
        let young = machine.kernel.world().cpu(0).young;
        let to = machine.enqueue(1, 0).to_queue().expect("it waits");
        to / MAX_CPUS as usize != young as usize
    };
    assert!(old(0), "it has waited for long");
    assert!(!old(1), "but this one is late");
}

/// Turns stop while the local queue holds tasks, so at most one overdue task is put there.
#[test]
fn one_overdue_task_at_a_time() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    for task in [1, 2] {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
        machine.kernel.unqueue(task);
    }
    machine.at(NOW + WAIT_BOUND / 3);
    assert_eq!(machine.enqueue(1, 0).to, To::Local);
    machine.kernel.view(0).1.local = 1;
    assert_ne!(machine.enqueue(2, 0).to, To::Local);
}

/// A late task runs for the least slice of a crowd, even if --min-slice-us is 0. Else the slice
/// timer would end its turn where it began.
#[test]
fn a_late_task_runs_for_a_moment() {
    let mut machine = Machine::new(1, MAINLINE);
    machine.run(0, 0);
    for task in 1..3 {
        machine.kernel.set_cpu(task, 0);
        machine.enqueue(task, WAKEUP);
        machine.kernel.state_mut(task).pol.min_slice_ns = 0;
    }
    while machine.count(STAT_starved) == 0 {
        assert!(machine.now < NOW + 9 * WAIT_BOUND, "no task is late");
        machine.at(machine.now + WAIT_BOUND);
        machine.put(0, 0);
        let next = machine.dispatch(0).expect("a task waits");
        machine.kernel.unqueue(next);
        machine.run(0, next);
    }
    assert!(machine.kernel.world().cpu(0).curr_slice >= 25_000);
}

/// A task may be stolen by a CPU whose clock is behind that of the CPU where it woke, and stop at
/// once. It was runnable for no time then, not for centuries.
#[test]
fn a_clock_that_is_behind_makes_no_task_runnable_for_long() {
    let mut machine = Machine::new(2, MAINLINE);
    machine.run(0, 0);
    machine.wake(0, 1, 0);
    machine.enqueue(1, WAKEUP);
    machine.kernel.unqueue(1);
    machine.at(NOW - 1_000);
    machine.run(1, 1);
    machine.sleep(1);
    assert!(machine.kernel.state(1).runnable_sum < 1_000_000_000);
}

/// Where real-time tasks take a part of the CPU, slices shrink by as much, or the waiting tasks
/// would not all have their turn in time. The kernel leaves our class a twentieth.
#[test]
fn slices_shrink_beside_real_time_tasks() {
    let cap = |rt_util| {
        let mut machine = Machine::new(1, MAINLINE);
        machine.run(0, 0);
        machine.kernel.view(0).0.rt_util = rt_util;
        for task in 1..8 {
            machine.kernel.set_cpu(task, 0);
            machine.enqueue(task, WAKEUP);
        }
        machine.at(NOW + WAIT_BOUND);
        machine.run(0, 0);
        machine.dispatch(0);
        machine.kernel.world().cpu(0).slice_cap
    };
    let whole = cap(0);
    assert_eq!(whole, WAIT_BOUND / 4 / 2 / 8);
    assert_eq!(cap(512), whole / 2);
    assert_eq!(cap(1024), cap(1000));
    assert!((19..=21).contains(&(whole / cap(1024))));
}
