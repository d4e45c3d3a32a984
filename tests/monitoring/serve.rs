// SPDX-License-Identifier: GPL-2.0-only
//! Serves the statistics of fake.rs at the given socket, with counters that grow by 1000 a second,
//! until its stdin ends. For scripts/monitoring.py.

#[allow(dead_code)]
mod fake;

use fake::FakeDaemon;
use std::io::Read;
use std::path::PathBuf;
use std::time::Instant;

fn main() {
    let path = PathBuf::from(std::env::args_os().nth(1).expect("a path"));
    let begin = Instant::now();
    let _daemon = FakeDaemon::serve(&path, move || begin.elapsed().as_millis() as u64);
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
