// SPDX-License-Identifier: GPL-2.0-only
//! Results for a mailing list, in the layout of the sources: their own numbers, as if `ab` had
//! measured them.

use crate::played::{asked, header, played_runs};
use scx_roost::ab::report::csv::as_csv;
use scx_roost::ab::report::lkml::as_mail;
use scx_roost::ab::result::Recorded;
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::Direction;

/// A result with these values: one list per variant.
fn recorded(variants: &[&str], metric: &str, better: Direction, values: &[&[f64]]) -> Recorded {
    let mut header = header(variants, Plan::Fixed(values[0].len()));
    header.warmups = 0;
    let mut runs = played_runs(&header, 1);
    header.metrics = vec![asked(metric, better)];
    for run in &mut runs {
        let at = variants.iter().position(|v| *v == run.variant).unwrap();
        let value = values[at][run.block.unwrap()];
        run.values.insert(metric.to_string(), value);
    }
    Recorded {
        runs,
        ..Recorded::new(header)
    }
}

fn narrow(text: &str) {
    for line in text.lines() {
        assert!(
            line.chars().count() <= 72 && line == line.trim_end(),
            "{line}"
        );
    }
}

/// x265 of Roy v7: its numbers, sums and percents, line by line.
#[test]
fn raw_runs_are_laid_out_as_in_roy_v7() {
    let mut recorded = recorded(
        &["eevdf", "roy-v7", "pinned"],
        "wall",
        Direction::Lower,
        &[
            &[19.15, 19.21, 19.45, 19.28, 19.25],
            &[17.70, 17.70, 17.75, 17.73, 17.74],
            &[17.43, 17.46, 17.47, 17.46, 17.47],
        ],
    );
    let command = "x265 -p slow -b 6 -o /dev/null --no-progress --log-level none --input Bosphorus_1920x1080_120fps_420_8bit_YUV.y4m";
    recorded.header.command = command.split(' ').map(str::to_string).collect();
    recorded.header.workload = Some("x265".to_string());
    let version = ("pinned".to_string(), "of a scheduler 1.2".to_string());
    recorded.header.host.extend([version]);
    let text = as_mail(&[recorded]).unwrap();
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
   19.25   17.74   17.47
  ------  ------  ------
   96.34   88.62   87.29  total wall, s
  ------  ------  ------
  100.0%   92.0%   90.6%  lower is better
";
    assert!(text.contains(table), "{text}");
    assert!(
        text.contains("  Kernel: 7.2.13\n  Version: scx_roost 0\n"),
        "{text}"
    );
}

/// tbench of Fleming: least, harmonic mean and most for each number of clients.
#[test]
fn a_parameter_is_laid_out_as_by_mmtests() {
    // Runs with this least, harmonic mean and most.
    let many = |[least, mean, most]: [f64; 3]| {
        let usual = 38.0 / (40.0 / mean - 1.0 / least - 1.0 / most);
        assert!(least < usual && usual < most);
        [vec![usual; 38], vec![least, most]].concat()
    };
    let files = [
        ("1", [484.50, 505.20, 510.30], [463.03, 485.81, 489.89]),
        (
            "32",
            [7268.61, 7627.96, 7678.18],
            [7491.29, 8021.26, 8098.63],
        ),
        (
            "192",
            [13237.02, 13265.26, 13612.01],
            [13231.43, 13263.98, 13832.98],
        ),
    ]
    .map(|(clients, base, patched)| {
        let values = [many(base), many(patched)];
        let mut recorded = recorded(
            &["eevdf", "eevdf@cpus=0"],
            "json:/mb/sec",
            Direction::Higher,
            &[&values[0], &values[1]],
        );
        recorded.header.workload = Some(format!("clients={clients}"));
        recorded
    });
    let text = as_mail(&files).unwrap();
    println!("{text}");
    narrow(&text);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    for row in [
        "Min json:/mb/sec-1 484.50 ( 0.00%) 463.03 ( -4.43%)",
        "Min json:/mb/sec-32 7268.61 ( 0.00%) 7491.29 ( 3.06%)",
        "Min json:/mb/sec-192 13237.02 ( 0.00%) 13231.43 ( -0.04%)",
        "Hmean json:/mb/sec-1 505.20 ( 0.00%) 485.81 ( -3.84%)",
        "Hmean json:/mb/sec-32 7627.96 ( 0.00%) 8021.26 ( 5.16%)",
        "Hmean json:/mb/sec-192 13265.26 ( 0.00%) 13263.98 ( -0.01%)",
        "Max json:/mb/sec-1 510.30 ( 0.00%) 489.89 ( -4.00%)",
        "Max json:/mb/sec-32 7678.18 ( 0.00%) 8098.63 ( 5.48%)",
        "Max json:/mb/sec-192 13612.01 ( 0.00%) 13832.98 ( 1.62%)",
    ] {
        assert!(lines.iter().any(|line| line == row), "{row} in {text}");
    }
    let mut other = files[0].clone();
    other.header.variants[1] = "pinned".to_string();
    let told = as_mail(&[files[0].clone(), other]).unwrap_err().to_string();
    assert!(
        told.starts_with("the files compare different variants: "),
        "{told}"
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
    ] {
        recorded
            .header
            .host
            .insert(name.to_string(), text.to_string());
    }
    for run in &mut recorded.runs {
        run.seen.modes = "governor performance, boost on".to_string();
    }
    let text = as_mail(&[recorded]).unwrap();
    println!("{text}");
    narrow(&text);
    for said in [
        "  Machine: A CPU, 64 CPUs\n",
        "  Command line: BOOT_IMAGE=/vmlinuz",
        "  Mitigations: spectre_v2",
        "  Frequencies: governor performance, boost on\n",
        "  Version: scx_roost 0\n",
        "  J: scx:/usr/bin/scx_cosmos -m all -s 1250",
        "average max-rss, kB",
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
        &[&[1.0], &[2.0]],
    );
    let text = as_mail(&[runs.clone(), runs]).unwrap();
    narrow(&text);
    assert!(text.contains(" 2.00 ( 100.00%)"), "{text}");
}

/// A program reads what was measured. Names with commas and quotes stay one field.
#[test]
fn as_comma_separated_values() {
    let scx = "scx:a 'b, \"c\"'";
    let runs = recorded(
        &["eevdf", scx],
        "wall",
        Direction::Lower,
        &[&[1.5, 2.0], &[3.0, 4.25]],
    );
    let mut other = runs.clone();
    other.header.workload = Some("jobs=4".to_string());
    let text = as_csv(&["a", "b"].map(str::to_string), &[runs, other]).unwrap();
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("file,began,workload,variant,block,run,metric,unit,value")
    );
    let rows: Vec<&str> = lines.filter(|line| line.contains(",wall,")).collect();
    assert_eq!(rows.len(), 8);
    assert!(
        rows.contains(&"a,1000000,make,\"scx:a 'b, \"\"c\"\"'\",2,4,wall,s,4.25")
            || rows.contains(&"a,1000000,make,\"scx:a 'b, \"\"c\"\"'\",2,3,wall,s,4.25"),
        "{text}"
    );
    assert!(
        rows.iter()
            .any(|row| row.starts_with("b,1000000,jobs=4,eevdf,1,") && row.ends_with(",wall,s,1.5")),
        "{text}"
    );
}
