// SPDX-License-Identifier: GPL-2.0-only
//! Workloads of the simulator. The first line of an input is 'rtapp' or settings of a load as
//! NAME=VALUE.

use roost_sim::load::{Load, Settings, check_unit, number};

pub fn workloads(input: &[u8]) {
    let input = String::from_utf8_lossy(input);
    let (head, text) = input.split_once('\n').unwrap_or(("", &input));
    let load = match head {
        "rtapp" => Load::rtapp(text),
        _ => Load::parse(text, &settings(head, text)),
    };
    let Ok(load) = load else {
        return;
    };
    let _ = (load.tasks(), load.depth(), load.timers());
    for group in &load.groups {
        let _ = group.mask(16);
    }
}

fn settings(head: &str, text: &str) -> Settings {
    let pairs = head.split_whitespace().filter_map(|w| w.split_once('='));
    let good = |(name, value): (&str, &str)| {
        check_unit(text, name, value).ok()?;
        Some((name.to_string(), number(value).ok()?.0))
    };
    pairs.filter_map(good).collect()
}
