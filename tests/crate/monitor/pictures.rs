// SPDX-License-Identifier: GPL-2.0-only
use super::*;
use scx_roost::monitor::state::{Action, View};

#[test]
fn dump() {
    for (shape, w, h) in [
        (ONE, 80, 24),
        (EIGHT, 80, 24),
        (THREADRIPPER, 120, 40),
        (THREADRIPPER, 80, 24),
        (LARGE, 120, 40),
        (LARGE, 80, 24),
        (LARGE, 40, 12),
    ] {
        let s = state_of(shape);
        println!(
            "{}\n{}",
            "=".repeat(w as usize),
            picture(&s, w, h).join("\n")
        );
    }
    for view in View::ALL {
        let mut s = state_of(THREADRIPPER);
        s.act(Action::Go(*view));
        for (w, h) in [(120, 40), (80, 24), (20, 5)] {
            println!(
                "{}\n{}",
                "=".repeat(w as usize),
                picture(&s, w, h).join("\n")
            );
        }
    }
    let mut s = state_of(THREADRIPPER);
    s.act(Action::Help);
    println!("{}\n{}", "=".repeat(80), picture(&s, 80, 24).join("\n"));
}
