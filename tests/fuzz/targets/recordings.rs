// SPDX-License-Identifier: GPL-2.0-only
//! Recordings of a machine of 8 CPUs. What is read has as many tasks as groups, and a picture.

use scx_roost::sim::{Recording, model};

pub fn recordings(input: &[u8]) {
    let model = model("ryzen-3400g").expect("it is a machine");
    let Ok(recording) = Recording::parse(input, &model, 0) else {
        return;
    };
    assert!(recording.load.groups.len() <= recording.load.tasks());
    let seen = recording.trace(&model, u64::MAX);
    assert!(seen.is_ok());
}
