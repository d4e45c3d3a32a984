// SPDX-License-Identifier: GPL-2.0-only
//! A result for a mailing list, in the layout of Roy v7: its own numbers, as if `ab` had measured
//! them.

use crate::played::{asked, header};
use scx_roost::ab::report::lkml::as_mail;
use scx_roost::ab::result::{Recorded, Repetition};
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::Direction;
use std::collections::BTreeMap;

/// A result with these values in turns: one list per variant.
fn recorded(variants: &[&str], metric: &str, better: Direction, values: &[&[f64]]) -> Recorded {
    let most = values.iter().map(|list| list.len()).max().unwrap();
    let runs: usize = values.iter().map(|list| list.len()).sum();
    let mut header = header(variants, Plan::Fixed(runs / variants.len() - 1));
    header.warmups = 0;
    header.metrics = vec![asked(metric, better)];
    let mut recorded = Recorded::new(header);
    let all = (0..most).flat_map(|at| variants.iter().zip(values).map(move |of| (at, of)));
    for (at, (variant, list)) in all {
        let (Some(value), number) = (list.get(at), recorded.runs.len()) else {
            continue;
        };
        recorded.runs.push(Repetition {
            number,
            turn: Some(number),
            variant: variant.to_string(),
            drawn: at > 0,
            values: BTreeMap::from([(metric.to_string(), *value)]),
            ..Repetition::default()
        });
    }
    recorded
}

fn narrow(text: &str) {
    for line in text.lines() {
        assert!(
            line.chars().count() <= 72 && line == line.trim_end(),
            "{line}"
        );
    }
}

/// x265 of Roy v7: its numbers line by line, and what they say. `eevdf` has one run more, and
/// `pinned` one less: a die decides that.
#[test]
fn raw_runs_are_laid_out_as_in_roy_v7() {
    let mut recorded = recorded(
        &["eevdf", "roy-v7", "pinned"],
        "wall",
        Direction::Lower,
        &[
            &[19.15, 19.21, 19.45, 19.28, 19.25, 19.25],
            &[17.70, 17.70, 17.75, 17.73, 17.74],
            &[17.43, 17.46, 17.47, 17.46],
        ],
    );
    let command = "x265 -p slow -b 6 -o /dev/null --no-progress --log-level none --input Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m";
    recorded.header.command = command.split(' ').map(str::to_string).collect();
    let version = ("pinned".to_string(), "of a scheduler 1.2".to_string());
    recorded.header.host.extend([version]);
    let text = as_mail(&recorded).unwrap();
    println!("{text}");
    narrow(&text);
    assert!(text.contains("\n  pinned: of a scheduler 1.2\n"), "{text}");
    let table = "\
:-------------------------------------------------------------------
: x265
:-------------------------------------------------------------------
  x265 -p slow -b 6 -o /dev/null --no-progress --log-level none \\
  --input Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m

   eevdf  roy-v7  pinned
  ------  ------  ------
   19.15   17.70   17.43
   19.21   17.70   17.46
   19.45   17.75   17.47
   19.28   17.73   17.46
   19.25   17.74       -
   19.25       -       -
  ------  ------  ------
   19.25   17.73   17.46  median wall, s
                          lower is better

  roy-v7 against eevdf: better, wall -7.93%, 97.5% interval -9.11 to
    -7.55%, p 0.0078
  pinned against eevdf: better, wall -9.35%, 97.5% interval -10.56 to
    -8.93%, p 0.0156
";
    assert!(text.contains(table), "{text}");
    assert!(
        text.contains("  Kernel: 7.2.13\n  Version: scx_roost 0\n"),
        "{text}"
    );
}

/// Long names and many variants stay within 72 columns, and nothing of the machine is left out.
#[test]
fn nothing_is_wider_than_a_mail() {
    let long = "scx:/usr/bin/scx_cosmos -m all -s 1250 -l 50000 -c 0 -p 0 -d";
    let names: Vec<String> = (0..9)
        .map(|n| format!("roost+slice-us={}", 1000 + n))
        .collect();
    let variants: Vec<&str> = names.iter().map(String::as_str).chain([long]).collect();
    let values: Vec<Vec<f64>> = (0..10).map(|n| vec![1e7 + f64::from(n); 6]).collect();
    let values: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    let mut recorded = recorded(&variants, "max-rss", Direction::Lower, &values);
    for (name, text) in [
        (
            "mitigations",
            "spectre_v2: Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; RSB filling; PBRSB-eIBRS: SW sequence",
        ),
        (
            "cmdline",
            "BOOT_IMAGE=/vmlinuz root=/dev/sda1 mitigations=auto",
        ),
        ("cpu", "A CPU"),
        ("cpus", "0-63"),
        ("topology", "32 cores, 8 last-level caches, 1 node"),
        ("memory", "126 GiB"),
        (
            "program",
            "/usr/bin/make, 256328 bytes, of 2025-12-31 23:59 UTC",
        ),
    ] {
        recorded
            .header
            .host
            .insert(name.to_string(), text.to_string());
    }
    for run in &mut recorded.runs {
        run.seen.modes = "governor performance, boost on".to_string();
    }
    let text = as_mail(&recorded).unwrap();
    println!("{text}");
    narrow(&text);
    for said in [
        "  Machine: A CPU, 64 CPUs\n  Topology: 32 cores, 8 last",
        "  Memory: 126 GiB\n",
        "  Program: /usr/bin/make, 256328 bytes, of 2025",
        "  Command line: BOOT_IMAGE=/vmlinuz",
        "  Mitigations: spectre_v2",
        "  Frequencies: governor performance, boost on\n",
        "  Version: scx_roost 0\n",
        "  J: scx:/usr/bin/scx_cosmos -m all -s 1250",
        "median max-rss, kB",
    ] {
        assert!(text.contains(said), "{said} in {text}");
    }
}

/// A pattern that is longer than a line.
#[test]
fn a_long_metric_is_no_wider() {
    let metric = format!("regex:{}([0-9.]+) ops", "a long name ".repeat(9));
    let runs = recorded(
        &["eevdf", "pinned"],
        &metric,
        Direction::Higher,
        &[&[1.0, 1.0], &[2.0, 2.0]],
    );
    let text = as_mail(&runs).unwrap();
    narrow(&text);
    assert!(text.contains("\n    1.00    2.00\n"), "{text}");
}
