// SPDX-License-Identifier: GPL-2.0-only
//! What a server of either socket answers, a line each: whatever can be read can be shown.

use scx_roost::clients::ctl::AS_TEXT;
use scx_roost::clients::monitor::sample::Sample;
use scx_roost::clients::status;
use scx_roost::util::escape;
use scx_roost::wire::client;
use scx_roost::wire::stats::client::parse;
use scx_roost::wire::stats::host::CpusMetrics;
use scx_roost::wire::stats::{Metrics, view};
use std::time::Duration;

pub fn answers(input: &[u8]) {
    for line in input.split(|b| *b == b'\n') {
        match client::parse(line) {
            Ok(answer) => AS_TEXT.iter().for_each(|shown| calm(&shown(&answer))),
            Err(e) => calm(&format!("{e:#}")),
        }
        match parse::<Metrics>(line) {
            Ok(totals) => {
                calm(&status::text_of(&totals));
                calm(&view::block(&totals));
                let cpus = parse::<CpusMetrics>(line).unwrap_or_default();
                let sample = Sample::new(Duration::ZERO, totals, cpus);
                assert!(!sample.totals.features.contains(escape::steers));
            }
            Err(e) => calm(&format!("{e:#}")),
        }
    }
}

fn calm(text: &str) {
    let steers = |c: char| escape::steers(c) && !matches!(c, '\n' | '\t');
    assert!(!escape::text(text).contains(steers));
}
