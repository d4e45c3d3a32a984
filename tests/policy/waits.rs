// SPDX-License-Identifier: GPL-2.0-only
//! No task waits for longer than the bound (aging.h), whatever others weigh and however often they
//! yield. Whole lives of tasks, on the model of the kernel that the tests of CPU limits have.

use crate::bandwidth::machine::{Life, MSEC, Machine, SECOND, STEP, USEC};
use crate::rng::Rng;
use crate::topology::WAIT_BOUND;
use scx_roost::native::{Attr, SchedPolicy};
use scx_roost::placement::topology::NICE0;

/// The deepest chain of groups, each in the one before.
const LEVELS: usize = 20;

/// What the kernel's watchdog needs: a thread that handles its timer, and its worker. They wake
/// twice while a task may wait, and run for a moment.
const WATCHDOG: Life = Life {
    group: 0,
    run: 50 * USEC,
    sleep: WAIT_BOUND / 2,
    yields: false,
    in_kernel: false,
    exits: false,
};

fn life(rng: &mut Rng) -> Life {
    Life {
        group: rng.below(LEVELS + 1),
        run: rng.within(1, 20_000) as u64 * USEC,
        sleep: rng.below(30_000) as u64 * USEC * rng.below(2) as u64,
        yields: rng.chance(40),
        in_kernel: false,
        exits: false,
    }
}

fn attr(rng: &mut Rng) -> Attr {
    let any = rng.below(40) as i32 - 20;
    Attr {
        nice: *rng.pick(&[-20, 19, 0, any]),
        policy: *rng.pick(&[SchedPolicy::Other, SchedPolicy::Batch, SchedPolicy::Idle]),
        slice_ns: *rng.pick(&[None, Some(100 * USEC), Some(100 * MSEC)]),
    }
}

/// A chain of groups, or all below the root; often of the least or the largest weight.
fn groups(rng: &mut Rng) -> Vec<u32> {
    let nested = rng.chance(50);
    (0..LEVELS as u32)
        .map(|of| if nested { of } else { 0 })
        .collect()
}

fn weigh(machine: &mut Machine, rng: &mut Rng) {
    for group in 1..=LEVELS {
        let any = rng.within(1, 10_000) as u32;
        let weight = *rng.pick(&[1, 10_000, any]) * NICE0 / 100;
        let idle = rng.chance(10);
        machine.kernel.world_mut().cgroup_weigh(group, weight, idle);
    }
}

/// A crowd for each CPU, of any policy, nice level and slice, in groups of any weight. Its tasks
/// yield, sleep, and are queued again in another group while they wait.
#[test]
fn no_task_waits_for_longer_than_the_bound() {
    for seed in 0..24 {
        let mut rng = Rng::new(seed);
        let cpus = 1 + rng.below(3);
        let crowd = cpus * rng.within(2, 40);
        let mut lives: Vec<Life> = (0..crowd).map(|_| life(&mut rng)).collect();
        lives.extend([WATCHDOG; 2]);
        let mut machine = Machine::new(cpus, &groups(&mut rng), &lives);
        for task in 0..crowd {
            machine.kernel.set_attr(task, &attr(&mut rng));
        }
        machine.kernel.set_kthread(crowd, true);
        machine.kernel.set_kthread(crowd + 1, true);
        weigh(&mut machine, &mut rng);
        let moves = rng.chance(50);
        while machine.now < 8 * SECOND {
            machine.goes_on(rng.within(1, 20) as u64 * MSEC);
            machine.kernel.world_mut().cgroup_sweep();
            if moves {
                machine.move_to(rng.below(crowd), rng.below(LEVELS + 1));
            }
        }
        let wait = machine.longest_wait();
        assert!(wait <= WAIT_BOUND, "seed {seed}: {} ms", wait / MSEC);
    }
}

/// Each of a ring runs for a moment in its turn, beside a task that computes. What a sleeper owes
/// holds for those that come after it: the clock is not set back (clock_stays()).
#[test]
fn a_clock_does_not_go_back_when_a_debtor_sleeps() {
    let turn = Life {
        group: 0,
        run: 200 * USEC,
        sleep: 1,
        yields: false,
        in_kernel: false,
        exits: false,
    };
    let mut lives = vec![turn; 4];
    lives.push(Life { sleep: 0, ..turn });
    let mut machine = Machine::new(1, &[], &lives);
    machine.ring(4);
    let debts = |machine: &Machine| -> usize {
        let owes = |task: &usize| {
            let state = machine.kernel.state(*task);
            state.on_rq == 0 && state.lag < 0
        };
        (0..4).filter(owes).count()
    };
    let clock = |machine: &Machine| machine.kernel.world().cpu(0).avg_vruntime;
    let mut sleeps = 0;
    while machine.now < 3 * SECOND {
        let before = (clock(&machine), debts(&machine));
        machine.goes_on(STEP);
        if debts(&machine) > before.1 {
            sleeps += 1;
            assert!(clock(&machine) >= before.0, "at {}", machine.now);
        }
    }
    assert!(sleeps > 100, "{sleeps}");
}
