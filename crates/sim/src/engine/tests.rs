// SPDX-License-Identifier: GPL-2.0-only
//! The engine at a moment of a run.

use super::*;
use crate::fair::{Ends, Fair};
use crate::load::Load;
use crate::{kthreads, model};
use scx_roost::native::{Kernel, World};
use scx_roost::policy::config::Config;
use scx_roost::policy::settings::Settings;

/// The load with the threads of the kernel, on the 3970X after 1 ms.
fn after_a_ms(text: &str) -> Engine<Fair> {
    let model = model("tr-3970x").unwrap();
    let mut load = Load::parse(text, &Default::default()).unwrap();
    kthreads::add(&mut load, &model.params, &model.machine);
    let (tasks, masks) = (load.tasks(), vec![0; load.groups.len()]);
    let hardware = model.hardware().unwrap();
    let settings = Settings::of_preset("mainline").unwrap();
    let arm = settings.arm(hardware.facts.machine.nr_online);
    let facts = model.facts_without(&[]).unwrap();
    let daemon = Daemon::new(&settings, &facts, &model.policies());
    let tunables = Config::default().tunables(&model.listens(), true, false);
    let kernel = Kernel::new(World::new(facts, arm, tunables, 1), tasks);
    let fair = Fair::new(kernel, tasks, Ends::Wakeup, &model.params);
    let wait = Wait::new(load, masks, 1);
    let mut engine = Engine::new(hardware, daemon, wait, fair, (), tasks);
    engine.begin();
    while engine.clock.next().is_some_and(|at| at < 1_000_000) {
        let slot = engine.clock.pop().unwrap();
        engine.sched.set_now(engine.clock.now());
        engine.happens(slot);
    }
    engine
}

/// A kernel thread of each CPU sleeps for a random time; the workload's task for 100 ms.
#[test]
fn timers_of_the_workload_alone_are_foreseen() {
    let engine = after_a_ms("task a:\n    sleep 100ms\n    run 1ms\n");
    let known = |cpu: &usize| engine.next_timer(*cpu).is_some();
    let all = engine
        .cpus
        .iter()
        .map(|cpu| cpu.timers.len())
        .sum::<usize>();
    assert!(all > 32, "{all}");
    assert_eq!((0..64).filter(known).count(), 1);
}
