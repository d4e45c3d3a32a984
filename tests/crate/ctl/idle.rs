// SPDX-License-Identifier: GPL-2.0-only
//! What a scan is worth by idle periods is published while an arm bounds its scans by it.

use super::*;
use scx_roost::bpf::intf::llc_facts;
use scx_roost::daemon::sampler::Samplers;
use scx_roost::publish::Scans;
use scx_roost::util::stop::stopper;
use std::time::{Duration, Instant};

#[test]
fn scan_budgets_are_written_while_an_arm_uses_them() {
    let served = serve();
    let llc = |first, nr_cpus| llc_facts {
        first,
        nr_cpus,
        nr_words: 1,
        node: 0,
        capacity: 1024 * u32::from(nr_cpus),
    };
    let period = Duration::from_millis(20);
    let cpus = [0, 1, 2, 3, 4, 5, 6, 7];
    let scans = Scans::new(&[llc(0, 1), llc(1, 7)], &cpus, period);
    served.control.set_scans(scans);
    let told = || {
        served.told.0.lock().unwrap().scans.clear();
        served.control.sample_idle();
        served.told.0.lock().unwrap().scans.clone()
    };
    assert!(!served.control.wants_scans());
    assert_eq!(told(), [], "no client asks");
    served.done(&["ctl", "arms", "add", "x", "--preset", "mainline"]);
    served.done(&["ctl", "set", "--arm", "x", "--enable", "avg_idle_scan"]);
    assert!(served.control.wants_scans());
    assert_eq!(told(), [(1, 60), (6, 60)]);
    // The default arm decides which of the two means counts, for the whole machine.
    served.done(&["ctl", "set", "--arm", "x", "--enable", "avg_idle_every"]);
    assert_eq!(told(), [(1, 60), (6, 60)]);
    served.done(&["ctl", "set", "--enable", "avg_idle_every"]);
    assert_eq!(told(), [(1, 60), (4, 60)]);
    served.control.forget_idle();
    let scans = served.told.0.lock().unwrap().scans.clone();
    assert_eq!(scans, [(0, 0), (0, 0)], "unknown while nothing reads");
    served.done(&["ctl", "set", "--arm", "x", "--disable", "avg_idle"]);
    assert_eq!(told(), [], "without its feature it does nothing");
}

#[test]
fn nothing_is_sampled_while_the_machine_rests() {
    let served = serve();
    served.control.set_scans(Scans::new(
        &[llc_facts {
            first: 0,
            nr_cpus: 8,
            nr_words: 1,
            node: 0,
            capacity: 8192,
        }],
        &[0, 1, 2, 3, 4, 5, 6, 7],
        Duration::from_millis(20),
    ));
    served.done(&["ctl", "set", "--enable", "avg_idle_scan"]);
    let told = |expected: &[(u32, u32)]| {
        let end = Instant::now() + Duration::from_secs(20);
        while served.told.0.lock().unwrap().scans != expected {
            assert!(Instant::now() < end, "{expected:?} is written");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let (stopper, stop) = stopper();
    let mut samplers = Samplers::new(stop);
    let mut follow = |rests| samplers.follow(&served.control, Duration::from_millis(5), rests);
    for _ in 0..2 {
        follow(false);
        told(&[(6, 60)]);
        follow(true);
        told(&[(0, 0)]);
        std::thread::sleep(Duration::from_millis(100));
        told(&[(0, 0)]);
    }
    follow(false);
    told(&[(6, 60)]);
    // The thread that owns the samplers may hang before it drops them.
    drop(stopper);
    std::thread::sleep(Duration::from_millis(100));
    served.told.0.lock().unwrap().scans.clear();
    std::thread::sleep(Duration::from_millis(100));
    told(&[]);
    drop(samplers);
}
