// SPDX-License-Identifier: GPL-2.0-only
//! The systemd units in contrib/. tests/guest/systemd.sh runs them under a real systemd.

use std::process::Command;

/// What systemd-analyze calls the exposure of a unit, from 0 to 10; None: it cannot say.
fn exposure(unit: &str) -> Option<f64> {
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=yes", "--no-pager", unit])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/contrib"))
        .env("LC_ALL", "C.UTF-8")
        .output();
    let Ok(output) = output else {
        println!("skip: there is no systemd-analyze");
        return None;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("unrecognized option") {
        println!("skip: systemd-analyze is older than 250 and reads no file");
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let (_, last) = text
        .split_once("Overall exposure level for ")
        .expect(&stderr);
    let number = last.split_whitespace().nth(1).expect("a number");
    Some(number.parse().expect("a number"))
}

#[test]
fn the_units_expose_little() {
    for unit in ["scx_roost.service", "scx_roost-export.service"] {
        let Some(exposure) = exposure(unit) else {
            return;
        };
        println!("{unit}: {exposure}");
        assert!(exposure <= 3.0, "{unit}: {exposure}");
    }
}

#[test]
fn the_scheduler_conflicts_with_other_services_of_schedulers() {
    let unit = include_str!("../../contrib/scx_roost.service");
    for key in ["Conflicts", "After"] {
        let line = format!("\n{key}=scx.service scx_loader.service\n");
        assert!(unit.contains(&line), "{key}");
    }
}
