// SPDX-License-Identifier: GPL-2.0-only
//! The loop ends when it should, and one whose file does not answer holds nobody up.

use super::*;
use scx_roost::looks::Looks;
use std::time::Instant;

fn looks(bench: &Bench) -> Looks {
    Looks::start(bench.watch(), bench.control.clone(), SECOND).unwrap()
}

/// A pipe that nobody writes to.
#[test]
fn a_file_that_does_not_answer_stops_nobody() {
    let bench = bench("roost");
    let stat = bench.tree.remove("proc/stat");
    let made = Command::new("mkfifo").arg(&stat).status().unwrap();
    assert!(made.success());
    let (stopper, stop) = stopper();
    let looks = looks(&bench);
    let waiting = std::thread::spawn(move || looks.wait(&stop).unwrap().is_none());
    let end = Instant::now() + 20 * SECOND;
    while bench.condition("period_slow").active == 0 {
        assert!(Instant::now() < end, "it is told while it lasts");
        std::thread::sleep(SECOND / 10);
    }
    drop(stopper);
    assert!(waiting.join().unwrap(), "it is left behind");
    std::fs::write(&stat, "cpu\n").unwrap();
}

#[test]
fn looks_end_with_the_scheduler_and_when_the_machine_is_another() {
    for other in [true, false] {
        let bench = bench("roost");
        let (_stopper, stop) = stopper();
        let looks = looks(&bench);
        if other {
            bench.tree.online(&[0, 1, 2]);
        } else {
            bench.told.0.lock().unwrap().ended = true;
        }
        bench.control.bell().ring();
        let over = looks.wait(&stop).unwrap().unwrap();
        assert_eq!(over.machine_changed, other);
    }
}

#[test]
fn looks_end_when_they_are_stopped() {
    let bench = bench("roost");
    let (stopper, stop) = stopper();
    let looks = looks(&bench);
    drop(stopper);
    assert!(!looks.wait(&stop).unwrap().unwrap().machine_changed);
}
