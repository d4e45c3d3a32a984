// SPDX-License-Identifier: GPL-2.0-only
//! A task's life through sched_ext's callbacks (select_cpu.h, enqueue.h, dispatch.h, run.h, tick.h, slice_timer.h, delay_queue.h), the
//! test being the kernel around them: it puts tasks where they say, and does what they want of it.

use crate::model::Features;
use crate::setup::{MAINLINE, NOW, STALE_MS, THRESHOLD};
use crate::topology::{Topology, kernel_arm, kernel_tunables};
use scx_roost::bpf::intf::{arm, task_policy};
use scx_roost::native::sys::{
    ENQ_LAST, ENQ_PLACED, ENQ_WAKEUP, IMMED, KICK_PREEMPT, STAT_delay_expire, STAT_delay_wake,
    STAT_dispatch_keep, STAT_dispatch_own, STAT_enq_idle, STAT_enq_queued, STAT_enq_unplaced,
    STAT_preempt_slice, STAT_spread_lost, STAT_spread_run, STAT_steal_miss, TIMER_DELAY,
    TIMER_SLICE, roost_stat,
};
use scx_roost::native::{Act, Insert, Kernel, TaskId, To, World};

const SLICE: u64 = 2_800_000;
/// A new task begins with half a request.
const FIRST: u64 = SLICE / 2;
/// Of a wakeup for which select_cpu was asked.
const WAKEUP: u64 = ENQ_WAKEUP as u64 | ENQ_PLACED;
const DELAY: u32 = 50_000;

/// A kernel of so many CPUs of one LLC, with the least that its core does.
struct Machine {
    kernel: Kernel,
    now: u64,
    current: Vec<Option<TaskId>>,
}

impl Machine {
    fn new(cpus: usize, features: Features) -> Machine {
        Machine::on(&Topology::regular(1, cpus, 1, 1, false), features)
    }

    fn on(topology: &Topology, features: Features) -> Machine {
        let everybody = arm {
            task: task_policy {
                features: features.bits(),
                delay_ns: DELAY,
                ..kernel_arm().task
            },
            ..kernel_arm()
        };
        let facts = topology.facts();
        let cpus = facts.cpus.len();
        let mut world = World::new(facts, everybody, kernel_tunables(), 1);
        world.policy_mut().threshold[0].fill(THRESHOLD);
        world.policy_mut().freq_stale_ms = STALE_MS;
        // Read at NOW: ages are told against a clock that stands at 0.
        let age = 0u32.wrapping_sub((NOW / 1_000_000) as u32);
        (0..cpus).for_each(|cpu| world.set_freq(cpu, THRESHOLD, age));
        let mut machine = Machine {
            kernel: Kernel::new(world, 8),
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

    /// Who runs there next, of its local queue; the CPU is as it was if nobody does.
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
        let task = self.current[cpu].expect("somebody runs there");
        self.kernel.tick(cpu, task);
    }

    /// Who runs there goes to sleep.
    fn sleep(&mut self, cpu: usize) {
        let task = self.current[cpu].take().expect("somebody runs there");
        self.kernel.set_runnable(task, false, true);
        self.kernel.stopping(cpu, task, false);
        self.view(cpu);
    }

    /// Who runs there waits anew.
    fn put(&mut self, cpu: usize, flags: u64) -> Insert {
        let task = self.current[cpu].expect("somebody runs there");
        self.kernel.stopping(cpu, task, true);
        let insert = self.enqueue(task, flags);
        self.current[cpu] = None;
        self.view(cpu);
        insert
    }

    /// The task, which was last on `prev`, is woken by who runs on `here`. Where it goes, if select_cpu says.
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
        if let To::Queue(cpu, key) = insert.to {
            self.kernel.queue(task, cpu, key);
            self.view(cpu);
        }
        insert
    }

    fn count(&self, stat: roost_stat) -> u64 {
        self.kernel.world().count(stat)
    }
}

fn queued_on(insert: &Insert) -> Option<usize> {
    match insert.to {
        To::Queue(cpu, _) => Some(cpu),
        _ => None,
    }
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
    assert_eq!(machine.kernel.state(0).joined, 1, "1 + the CPU");
    machine.at(NOW + 1_000_000);
    machine.kernel.tick(0, 0);
    assert_eq!(machine.kernel.state(0).vruntime, 1_000_000);
    machine.sleep(0);
    assert_eq!(machine.kernel.state(0).joined, 0);
    assert_eq!(machine.kernel.world().cpu(0).weight, 0);
    assert_eq!(machine.dispatch(0), None);
}

/// Linux before 7.1: the task waits in our queue, and the CPU finds it there.
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
fn who_waits_gets_its_turn_by_the_slice_timer() {
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
fn a_cpu_without_work_takes_who_waits_elsewhere() {
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

/// A search that takes another CPU's lock lets go of its own. Who is put on the CPU meanwhile joins it; then the search ends, in vain, and a period begins
/// that is none: the next one that counts begins when that task sleeps.
#[test]
fn who_came_while_its_cpu_searched_leaves_no_old_idle_period() {
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

/// Two share a core, and the tick sends one of them to the other core. It comes to dispatch, which lets go of it where the core still idles; or sleeps
/// before, by itself: then it has not left, and no order is kept.
#[test]
fn who_sleeps_before_it_leaves_for_a_core_has_lost_it() {
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

/// A task that can run on one CPU only: the kernel does not ask where.
#[test]
fn who_was_not_placed_is_counted() {
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

#[test]
fn a_delayed_move_comes_by_its_timer() {
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
    let delay = Act::Timer {
        which: TIMER_DELAY,
        cpu: 0,
        ns: DELAY.into(),
    };
    assert!(machine.acts().contains(&delay));
    assert_eq!(machine.dispatch(1), None, "nobody takes it before");
    machine.acts();
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
