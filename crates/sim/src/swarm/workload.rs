// SPDX-License-Identifier: GPL-2.0-only
//! Random workloads as text, with faults.

use super::{of, one_in};
use crate::Rng;
use scx_roost::machine::Machine;

pub fn text(rng: &mut Rng, machine: &Machine) -> String {
    let mut text = format!("duration {}ms\n", 20 + rng.below(180));
    text += &faults(rng);
    // A task that sleeps by a timer, so that time always advances.
    text += "task beat:\n    forever\n        run 20us\n        sleep 3ms\n";
    for number in 0..1 + rng.below(5) {
        text += &group(rng, machine, number);
    }
    text
}

fn faults(rng: &mut Rng) -> String {
    let mut text = String::new();
    if one_in(rng, 4) {
        text += &format!("fault timers lost {}\n", of(rng, &[5, 100, 1000]));
    }
    if one_in(rng, 4) {
        text += &format!("fault timers late {}\n", of(rng, &["20us", "1ms", "9ms"]));
    }
    if one_in(rng, 4) {
        text += &format!("fault ticks stop {}\n", of(rng, &["6ms", "25ms"]));
    }
    if one_in(rng, 3) {
        text += &format!("fault affinity {}\n", of(rng, &["100us", "1ms", "7ms"]));
    }
    if one_in(rng, 3) {
        text += &format!("fault attr {}\n", of(rng, &["100us", "1ms", "7ms"]));
    }
    if one_in(rng, 2) {
        text += &format!("fault watchdog {}\n", of(rng, &["120ms", "400ms"]));
    }
    if one_in(rng, 4) {
        text += &format!("fault hotplug {}\n", of(rng, &["7ms", "20ms", "60ms"]));
    }
    text
}

fn time(rng: &mut Rng) -> String {
    let unit = of(rng, &["us", "us", "us", "ms"]);
    let most = if unit == "us" { 900 } else { 12 };
    let vary = of(rng, &["", " +- 30%", " exp"]);
    format!("{}{unit}{vary}", 1 + rng.below(most))
}

/// The attributes of a group's tasks.
fn given(rng: &mut Rng, machine: &Machine) -> String {
    let mut text = String::new();
    if one_in(rng, 4) {
        let nice = of(rng, &[-20, -5, 3, 19]);
        text += &format!(", nice {nice}");
    }
    if one_in(rng, 3) {
        text += &format!(", set {}kB", 1 + rng.below(4000));
    }
    if one_in(rng, 3) {
        let cpu = |rng: &mut Rng| machine.cpus[rng.below(machine.cpus.len() as u64) as usize].id;
        let (first, second) = (cpu(rng), cpu(rng));
        text += &match one_in(rng, 3) {
            true => format!(", cpus {first}"),
            false => format!(", cpus {}-{}", first.min(second), first.max(second)),
        };
    }
    text
}

fn group(rng: &mut Rng, machine: &Machine, number: u64) -> String {
    let cpus = machine.cpus.len() as u64;
    let most = of(rng, &[2, cpus + 1, 2 * cpus + 1]);
    let count = 1 + rng.below(most);
    let (given, more) = (given(rng, machine), given(rng, machine));
    let (run, other, sleep) = (time(rng), time(rng), time(rng));
    let futex = of(rng, &["", " futex"]);
    let n = number;
    match rng.below(8) {
        0 => format!("task hog{n} x {count}{given}:\n    forever\n        run {run}\n"),
        1 => format!(
            "task sleeper{n} x {count}{given}:\n    forever\n        run {run}\n        sleep {sleep}\n"
        ),
        2 => format!(
            "socket ask{n}[{count}]{futex}\nsocket reply{n}[{count}]{futex}\n\
             task client{n} x {count}{given}:\n    forever\n        run {run}\n        send ask{n}[me]\n        receive reply{n}[me]\n\
             task server{n} x {count}{more}:\n    forever\n        receive ask{n}[me]\n        run {other}\n        send reply{n}[me]\n"
        ),
        3 => format!(
            "lock lock{n}[2]\ntask locker{n} x {count}{given}:\n    forever\n        lock lock{n}[me]\n        run {run}\n        \
             unlock lock{n}[me]\n        sleep {sleep}\n"
        ),
        4 => format!(
            "barrier meet{n} {count}\ntask rank{n} x {count}{given}:\n    forever\n        run {run}\n        barrier meet{n}\n"
        ),
        5 => format!(
            "task parent{n} x {}{given}:\n    forever\n        fork child{n} x 3\n        repeat 3\n            wait\n        sleep {sleep}\n\
             task child{n} from parent{n}{more}:\n    run {run}\n    {}\n    run {other}\n",
            1 + count / 4,
            of(rng, &["yield", "exit"])
        ),
        6 => format!(
            "task yielder{n} x {count}{given}:\n    forever\n        run {run}\n        yield\n"
        ),
        _ => format!(
            "pipe all{n} capacity 4{futex}\ntask writer{n} x {count}{given}:\n    forever\n        run {run}\n        send all{n}\n        \
             sleep {sleep}\ntask reader{n} x 2{more}:\n    forever\n        receive all{n}\n        run {other}\n"
        ),
    }
}
