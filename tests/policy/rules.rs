// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's rules by version: protection, wakeups that interrupt, yields, delayed dequeue.

use crate::callbacks::{Machine, WAKEUP};
use crate::queue::{MSEC, task, world};
use scx_roost::native::sys::{
    PREEMPT_LATER, PREEMPT_NO, PREEMPT_NOW, STAT_wake_delayed, cpu_state, preempt,
};
use scx_roost::placement::Features;
use scx_roost::placement::topology::NICE0;
use scx_roost::policy::fair;

const UNIT: u64 = 100_000;
const VERSIONS: [&str; 4] = ["6.16", "6.18", "7.2", "7.3"];

fn bits(rules: &str) -> u32 {
    fair::set(fair::code(rules).unwrap()).bits
}

/// What a wakeup gets under each version, in the order of `VERSIONS`. Times are in units of 0.1 ms.
/// The mean is at 1000. The running task requested 2.8 ms, and is protected up to `vprot`.
struct Contest {
    curr: u64,
    vprot: u64,
    vruntime: u64,
    request: u64,
    expected: [preempt; 4],
}

#[test]
fn which_wakeup_interrupts() {
    let row = |curr, vprot, vruntime, request, expected| Contest {
        curr,
        vprot,
        vruntime,
        request,
        expected,
    };
    let table = [
        // Equal requests: not before the protection ends, however long it ran.
        row(990, 1010, 980, 28, [PREEMPT_LATER; 4]),
        row(990, 990, 980, 28, [PREEMPT_NOW; 4]),
        // A later deadline does not, the same one does.
        row(990, 990, 991, 28, [PREEMPT_NO; 4]),
        row(990, 990, 990, 28, [PREEMPT_NOW; 4]),
        // Nothing protects a task that is ahead; one that is ahead interrupts nothing.
        row(1001, 1010, 1000, 28, [PREEMPT_NOW; 4]),
        row(990, 990, 1001, 2, [PREEMPT_NO; 4]),
        // A shorter request is not held up, if its deadline is earlier; since 7.3 it need not be.
        row(990, 1010, 995, 5, [PREEMPT_NOW; 4]),
        row(
            970,
            1010,
            999,
            5,
            [PREEMPT_NO, PREEMPT_NO, PREEMPT_NO, PREEMPT_NOW],
        ),
    ];
    for (i, c) in table.iter().enumerate() {
        for (rules, expected) in VERSIONS.iter().zip(c.expected) {
            let mut world = world(1);
            let mut t = task(&world, 1, NICE0);
            t.state.pol.rules = bits(rules);
            t.state.custom_slice = c.request * UNIT;
            t.state.vruntime = c.vruntime * UNIT;
            t.state.deadline = (c.vruntime + c.request) * UNIT;
            *world.cpu_mut(0) = cpu_state {
                avg_vruntime: 1000 * UNIT,
                curr_pid: 9,
                curr_weight: NICE0,
                curr_start: UNIT,
                curr_vruntime: c.curr * UNIT,
                curr_deadline: (c.curr + 28) * UNIT,
                curr_vprot: c.vprot * UNIT,
                curr_request: 28 * UNIT,
                ..Default::default()
            };
            assert_eq!(world.preempts(0, &t, 0, UNIT), expected, "row {i}, {rules}");
        }
    }
}

/// The task that runs, and one that waits with that request: how far the first is protected, in
/// units from its virtual run time. It is at the mean.
#[test]
fn how_far_a_running_task_is_protected() {
    for (rules, alone, beside_a_shorter) in [
        ("6.16", 28, 28),
        ("6.18", 28, 5),
        ("7.2", 28, 5),
        ("7.3", 28, 0),
    ] {
        for (request, expected) in [(0, alone), (5, beside_a_shorter)] {
            let mut m = two(rules, request);
            m.run(0, RUNS);
            let cpu = m.kernel.world().cpu(0);
            let far = cpu.curr_vprot - m.kernel.state(RUNS).vruntime;
            // The point at which it is ahead of the others is one further.
            assert_eq!(far / UNIT, expected, "{rules}, request {request}");
            // It goes on after its request without protection.
            m.at(m.now + 28 * UNIT);
            let until = m.kernel.world().cpu(0).curr_vprot;
            m.sleep_of_others();
            assert_eq!(m.dispatch(0), None, "{rules}: alone it goes on");
            assert_eq!(m.kernel.world().cpu(0).curr_vprot, until, "{rules}");
        }
    }
}

const RUNS: usize = 0;
const WAITS: usize = 1;
const THIRD: usize = 2;

/// One CPU with these rules, and two tasks in its queue; `WAITS` has that request.
fn two(rules: &str, request: u64) -> Machine {
    let mut m = Machine::new(1, Features::default());
    for task in [RUNS, WAITS, THIRD] {
        let state = m.kernel.state_mut(task);
        state.pol.rules = bits(rules);
        state.load_cpu = 1;
    }
    m.kernel.state_mut(WAITS).custom_slice = request * UNIT;
    for task in [RUNS, WAITS] {
        m.kernel.set_cpu(task, 0);
        m.enqueue(task, 0);
    }
    m.kernel.unqueue(RUNS);
    m
}

trait Others {
    fn sleep_of_others(&mut self);
}

impl Others for Machine {
    /// Takes the waiting task away.
    fn sleep_of_others(&mut self) {
        self.kernel.unqueue(WAITS);
        self.kernel.disable(0, WAITS);
    }
}

/// RUNS runs for 1 ms beside a waiting task and sleeps: it is ahead of the mean.
fn slept(rules: &str) -> Machine {
    let mut m = two(rules, 0);
    m.run(0, RUNS);
    m.at(m.now + MSEC);
    m.sleep(0);
    m
}

#[test]
fn a_sleeper_that_is_ahead_wakes_in_its_queue() {
    for rules in VERSIONS {
        let mut m = slept(rules);
        let before = *m.kernel.state(RUNS);
        assert_eq!(
            m.kernel.world().cpu(0).weight,
            u64::from(2 * NICE0),
            "{rules}"
        );
        assert_eq!(m.dispatch(0), Some(WAITS), "{rules}");
        m.run(0, WAITS);
        m.at(m.now + MSEC / 2);
        assert_eq!(m.wake(0, RUNS, 0), (0, None), "{rules}");
        m.enqueue(RUNS, WAKEUP);
        assert_eq!(m.count(STAT_wake_delayed), 1, "{rules}");
        let after = m.kernel.state(RUNS);
        let at = |s: &scx_roost::native::sys::task_state| (s.vruntime, s.deadline, s.on_rq);
        assert_eq!(at(&before), at(after), "{rules}: it keeps its place");
        assert_eq!(
            m.kernel.world().cpu(0).weight,
            u64::from(2 * NICE0),
            "{rules}"
        );
    }
}

#[test]
fn a_sleeper_leaves_when_the_mean_has_caught_up() {
    let mut m = slept("7.2");
    assert_eq!(m.dispatch(0), Some(WAITS));
    m.run(0, WAITS);
    m.kernel.set_cpu(THIRD, 0);
    m.enqueue(THIRD, 0);
    m.at(m.now + 2 * MSEC);
    m.dispatch(0);
    assert_eq!(
        m.kernel.world().cpu(0).weight,
        u64::from(2 * NICE0),
        "it left"
    );
    m.wake(0, RUNS, 0);
    m.enqueue(RUNS, WAKEUP);
    assert_eq!(m.count(STAT_wake_delayed), 0);
    assert_eq!(m.kernel.world().cpu(0).weight, u64::from(3 * NICE0));
    let lag = m.kernel.world().cpu(0).avg_vruntime as i64 - m.kernel.state(RUNS).vruntime as i64;
    assert!(
        lag.abs() < 1000,
        "it owes nothing, and is owed nothing: {lag}"
    );
}

/// The last of a queue leaves with it: an idle CPU counts nobody.
#[test]
fn an_idle_cpu_counts_no_sleeper() {
    let mut m = slept("7.2");
    assert_eq!(m.dispatch(0), Some(WAITS));
    m.run(0, WAITS);
    m.sleep(0);
    assert_eq!(m.dispatch(0), None);
    assert_eq!(m.kernel.world().cpu(0).weight, 0);
}

/// More sleepers than slots, one that moves to another CPU, one that dies, one whose weight
/// changes: the queue counts those that it should.
#[test]
fn sums_hold_whatever_becomes_of_a_sleeper() {
    let weight = |m: &Machine, cpu: usize| m.kernel.world().cpu(cpu).weight / u64::from(NICE0);
    let start = || {
        let mut m = Machine::new(2, Features::default());
        for task in 0..8 {
            let state = m.kernel.state_mut(task);
            (state.pol.rules, state.load_cpu) = (bits("7.2"), 1);
            m.kernel.set_cpu(task, 0);
            m.enqueue(task, 0);
        }
        for task in 0..7 {
            m.kernel.unqueue(task);
            m.run(0, task);
            m.at(m.now + MSEC);
            m.sleep(0);
        }
        m
    };
    let mut m = start();
    let counted = (0..8).filter(|&t| m.kernel.state(t).on_rq != 0).count() as u64;
    assert_eq!(counted, 5, "four sleepers, and the one that waits");
    assert_eq!(weight(&m, 0), counted);
    let asleep = (0..7).find(|&t| m.kernel.state(t).on_rq != 0).unwrap();
    // It wakes elsewhere.
    m.kernel.set_cpu(asleep, 1);
    m.enqueue(asleep, WAKEUP);
    assert_eq!((weight(&m, 0), weight(&m, 1)), (counted - 1, 1));
    // One dies.
    let mut m = start();
    m.kernel.disable(0, asleep);
    assert_eq!(weight(&m, 0), counted - 1);
    m.kernel.disable(0, asleep);
    assert_eq!(weight(&m, 0), counted - 1, "once");
    // One gets another nice level: it leaves.
    let mut m = start();
    let nice = scx_roost::native::Attr {
        nice: 5,
        ..Default::default()
    };
    m.kernel.set_attr(asleep, &nice);
    assert_eq!(weight(&m, 0), counted - 1);
    m.enqueue(asleep, WAKEUP);
    let own = u64::from(m.kernel.state(asleep).on_rq_weight);
    assert_eq!(
        m.kernel.world().cpu(0).weight,
        (counted - 1) * u64::from(NICE0) + own
    );
}

/// One yields beside another; how far its deadline and its virtual run time move, in units.
#[test]
fn a_yield_forfeits_or_moves_the_deadline() {
    for (rules, run, deadline) in [("6.16", 0, 28), ("6.18", 28, 28), ("7.3", 28, 28)] {
        let mut m = two(rules, 0);
        m.run(0, RUNS);
        let before = *m.kernel.state(RUNS);
        m.kernel.yields(0, RUNS);
        let after = m.kernel.state(RUNS);
        let moved = |a: u64, b: u64| (a - b) / UNIT;
        assert_eq!(
            (
                moved(after.vruntime, before.vruntime),
                moved(after.deadline, before.deadline)
            ),
            (run, deadline),
            "{rules}"
        );
    }
}
