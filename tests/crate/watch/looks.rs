// SPDX-License-Identifier: GPL-2.0-only
//! The loop ends when it should, and a file that does not answer delays nothing else.

use super::*;
use crossbeam_channel::bounded;
use scx_roost::daemon::looks::Looks;
use std::path::PathBuf;
use std::time::Instant;

fn looks(bench: &Bench) -> Looks {
    Looks::start(bench.watch(), &bench.control, &bench.source, SECOND).unwrap()
}

/// Replaces the file by a pipe without a writer.
fn hang(bench: &Bench, file: &str) -> PathBuf {
    let path = bench.tree.remove(file);
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    path
}

/// Waits until the condition is reported. Nothing asks for it.
fn wait_until_reported(bench: &Bench) {
    let end = Instant::now() + 20 * SECOND;
    while bench.condition("period_slow").active == 0 {
        assert!(Instant::now() < end, "it is reported while it lasts");
        std::thread::sleep(SECOND / 10);
    }
}

#[test]
fn a_hanging_file_does_not_prevent_the_end() {
    for stopped in [true, false] {
        let bench = bench("roost");
        let stat = hang(&bench, "proc/stat");
        let (stopper, stop) = stopper();
        let looks = looks(&bench);
        let (tell, told) = bounded(1);
        let wait = move || tell.send(looks.wait(&stop).unwrap()).unwrap();
        std::thread::spawn(wait);
        wait_until_reported(&bench);
        let stopper = match stopped {
            true => {
                drop(stopper);
                None
            }
            false => {
                bench.told.0.lock().unwrap().ended = true;
                bench.control.bell().ring();
                Some(stopper)
            }
        };
        let over = told.recv_timeout(20 * SECOND).expect("it is left behind");
        assert!(over.left_behind && !over.machine_changed);
        drop(stopper);
        is_over_after(&bench, over.past);
        std::fs::write(&stat, "cpu\n").unwrap();
    }
}

/// The condition of a look that hung ends after a minute of the next load.
fn is_over_after(bench: &Bench, past: Past) {
    let mut watch = bench.watch_after(past);
    let mut now = Clocks::now();
    watch.ended(Duration::ZERO, &now);
    assert_eq!(bench.state("period_slow"), (1, 1));
    now.boot += 61 * SECOND;
    watch.ended(Duration::ZERO, &now);
    assert_eq!(bench.state("period_slow"), (0, 1));
}

#[test]
fn a_slow_look_that_finds_another_machine_is_reported_for_a_minute() {
    let bench = bench("roost");
    let stat = hang(&bench, "proc/stat");
    let online = bench.tree.root().join("devices/system/cpu/online");
    let (_stopper, stop) = stopper();
    let looks = looks(&bench);
    let answer = std::thread::spawn(move || {
        std::thread::sleep(8 * SECOND);
        std::fs::write(&online, "0-8\n").unwrap();
        std::fs::write(&stat, "cpu\n").unwrap();
    });
    let over = looks.wait(&stop).unwrap();
    answer.join().unwrap();
    assert!(over.machine_changed && !over.left_behind);
    is_over_after(&bench, over.past);
}

#[test]
fn looks_end_with_the_scheduler_and_when_the_machine_is_another() {
    for other in [true, false] {
        let bench = bench("roost");
        let (_stopper, stop) = stopper();
        let looks = looks(&bench);
        if other {
            bench.tree.online(&[0, 1, 2, 3, 4, 5, 6, 7, 8]);
        } else {
            bench.told.0.lock().unwrap().ended = true;
        }
        bench.control.bell().ring();
        let over = looks.wait(&stop).unwrap();
        assert_eq!(over.machine_changed, other);
    }
}

#[test]
fn looks_end_when_they_are_stopped() {
    let bench = bench("roost");
    let (stopper, stop) = stopper();
    let looks = looks(&bench);
    drop(stopper);
    assert!(!looks.wait(&stop).unwrap().machine_changed);
}
