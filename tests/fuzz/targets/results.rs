// SPDX-License-Identifier: GPL-2.0-only
//! Result files of `ab`: a file that can be read can be shown in every way.

use scx_roost::ab::report::Report;
use scx_roost::ab::report::lkml::as_mail;
use scx_roost::ab::report::text::{Shown, text};
use scx_roost::ab::result::Recorded;

pub fn results(input: &[u8]) {
    let input = String::from_utf8_lossy(input);
    let Ok(recorded) = Recorded::of_lines(&input) else {
        return;
    };
    let Ok(report) = Report::new(&recorded) else {
        return;
    };
    let shown = Shown {
        counters: true,
        ..Shown::default()
    };
    let _ = text(&report, shown);
    as_mail(&recorded).expect("it has a report");
    serde_json::to_string(&report).expect("a report is JSON");
}
