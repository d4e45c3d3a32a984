// SPDX-License-Identifier: GPL-2.0-only
//! What reports show of results.

use crate::played::{Played, asked, header};
use scx_roost::ab::condition::{Seen, warnings};
use scx_roost::ab::report::text::{colored, text};
use scx_roost::ab::report::{Report, least_effect, number, remark};
use scx_roost::ab::result::{Recorded, ResultFile};
use scx_roost::ab::run::run;
use scx_roost::ab::stats::pairs::Scale;
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::{Direction, Judged, Verdict};
use scx_roost::util::escape;

/// A comparison of three variants. The last one is slower; one run was disturbed.
pub fn recorded(blocks: usize) -> Recorded {
    let scx = "scx:/home/me/bin/scx_lavd --performance";
    let mut header = header(&["mainline", "roost", scx], Plan::Fixed(blocks));
    header.metrics.push(asked("json:/ops", Direction::Higher));
    let mut machine = Played::new(1).slower(scx, 1.1);
    machine.counter.insert("roost".into(), "wide_node");
    machine.seen.modes = "governor schedutil".to_string();
    let folder = tempfile::tempdir().unwrap();
    let mut file = ResultFile::create(&folder.path().join("r"), &header).unwrap();
    let mut recorded = Recorded::new(header);
    run(
        &mut recorded,
        &mut machine,
        &mut file,
        &|| false,
        &mut |_| (),
    )
    .unwrap();
    let disturbed = recorded
        .runs
        .iter_mut()
        .find(|r| r.block == Some(3) && r.variant == "roost")
        .unwrap();
    disturbed.values.insert("wall".to_string(), 12.5);
    recorded
}

#[test]
fn on_a_terminal() {
    let recorded = recorded(8);
    let text = text(&Report::new(&recorded).unwrap());
    println!("{text}");
    let has = |part: &str| assert!(text.contains(part), "{part} in\n{text}");
    has(
        "make -j16 /home/me/secret\n8 blocks of 3 variants, on the whole machine; seed 5, margin 2 %\n",
    );
    has("wall in s, lower is better\n");
    has("json:/ops, higher is better\n");
    has("is far from the rest; it is included");
    has("warning: frequencies were not fixed (governor schedutil)");
    has("Also measured, medians\n");
    has("  user, s ");
    has("Counters that differ, medians of a run\n");
    has("  wide_node ");
    let (_, table) = text.split_once("  verdict\n").unwrap();
    let mut rows = table.lines().map(str::trim);
    let row = rows.find(|row| row.starts_with("scx:/home")).unwrap();
    assert!(row.ends_with("worse"), "{row}");
}

/// The first thing that every report says is the result, in words and per cent.
#[test]
fn the_result_comes_first() {
    let recorded = recorded(8);
    let report = Report::new(&recorded).unwrap();
    let slower = "scx:/home/me/bin/scx_lavd --performance against mainline: worse, wall +";
    let plain = text(&report);
    let (before, rest) = plain.split_once(slower).unwrap();
    assert!(
        !before.contains("lower is better") && !before.contains("arning"),
        "{plain}"
    );
    let (value, rest) = rest.split_once(" %, 98.75 % interval +").unwrap();
    assert!(
        (value.parse::<f64>().unwrap() - 10.0).abs() < 1.0,
        "{plain}"
    );
    let (interval, _) = rest.split_once(" %").unwrap();
    assert!(interval.contains(" to +"), "{plain}");
    assert!(colored(&report).contains(&format!("\u{1b}[1m\u{1b}[31m{slower}")));
    assert!(!plain.contains('\u{1b}'));
}

#[test]
fn where_and_when_it_was_taken_is_shown() {
    let mut recorded = recorded(8);
    recorded.header.began = 1_767_225_599;
    recorded.header.host.insert("cpu".into(), "A CPU".into());
    recorded
        .header
        .host
        .insert("cpus".into(), "0-7,16-23".into());
    let shown = |recorded: &Recorded| text(&Report::new(recorded).unwrap());
    let where_and_when = "2025-12-31 23:59 UTC, scx_roost 0, kernel 7.2.13, A CPU, 16 CPUs; ";
    let plan = format!("{where_and_when}8 blocks planned, 1 warm-up of each variant");
    let page = shown(&recorded);
    assert!(page.contains(&plan), "{page}");
    recorded.header.rule.plan = Plan::Auto(40);
    recorded.header.host.clear();
    let plan = "UTC, scx_roost 0; auto, 40 blocks at most, 1 warm-up of each variant";
    let page = shown(&recorded);
    assert!(page.contains(plan), "{page}");
}

/// Outliers are counted and mentioned. So are counters and other measured values.
#[test]
fn outliers_and_counters_are_shown() {
    let recorded = recorded(8);
    let report = Report::new(&recorded).unwrap();
    let outlier = "12.5, is far from the rest; it is included";
    let page = text(&report);
    for part in [
        outlier,
        "Also measured, medians",
        "Counters that differ, medians of a run",
        "user, s",
    ] {
        assert_eq!(page.matches(part).count(), 1, "{part} in\n{page}");
    }
}

/// The least effect that would have been found is reported with every verdict.
#[test]
fn the_least_effect_that_could_be_found_is_reported() {
    let recorded = recorded(8);
    let report = Report::new(&recorded).unwrap();
    let variants = report.metrics.iter().flat_map(|m| &m.variants);
    let judged: Vec<&Judged> = variants.filter_map(|v| v.judged.as_ref()).collect();
    for verdict in [Verdict::Worse, Verdict::Inconclusive] {
        assert!(judged.iter().any(|j| j.verdict == verdict), "{verdict:?}");
    }
    let text = text(&report);
    for judged in judged {
        let least = least_effect(judged, "s");
        assert!(least.ends_with(" %"), "{least}");
        assert!(
            text.contains(&format!("; least effect {least}\n")),
            "{text}"
        );
    }
    let of = |least: f64, scale: Scale| Judged {
        least_effect: Some(least),
        scale,
        ..report.metrics[0].variants[1].judged.clone().unwrap()
    };
    assert_eq!(least_effect(&of(0.0012, Scale::Ratio), "s"), "0.12 %");
    assert_eq!(least_effect(&of(0.25, Scale::Difference), "s"), "0.25 s");
    assert_eq!(least_effect(&of(2.0, Scale::Difference), ""), "2");
}

#[test]
fn too_few_blocks_are_named() {
    let recorded = recorded(4);
    let text = text(&Report::new(&recorded).unwrap());
    assert!(
        text.contains("inconclusive: 4 blocks are too few for a verdict"),
        "{text}"
    );
}

/// Runs of some milliseconds scatter so much that nothing would be found.
#[test]
fn runs_that_are_too_short_are_named() {
    let recorded = recorded(8);
    let report = Report::new(&recorded).unwrap();
    let judged = report.metrics[0].variants[1].judged.clone().unwrap();
    let told = |least: f64| {
        let judged = Judged {
            verdict: Verdict::Inconclusive,
            against: None,
            least_effect: Some(least),
            ..judged.clone()
        };
        remark(&judged, "s")
    };
    assert_eq!(told(0.08), "8 blocks can find 8.0 % or more");
    let short = "runs are too short or differ too much, 8 blocks would find only 588.4 %: make them a second or longer";
    assert_eq!(told(5.884), short);
}

/// They could steer a terminal, or end a line early.
#[test]
fn control_characters_are_shown_as_text() {
    let mut recorded = recorded(8);
    let raw = "\u{1b}]0;x\u{7}\r\u{9b}2J";
    recorded.header.command = vec!["sh".to_string(), format!("a{raw}\nb")];
    recorded.header.host.insert("cpu".into(), raw.to_string());
    let name = format!("scx:x {raw}");
    for variant in &mut recorded.header.variants {
        if variant == "roost" {
            *variant = name.clone();
        }
    }
    for run in &mut recorded.runs {
        if run.variant == "roost" {
            run.variant = name.clone();
        }
        run.values.insert(format!("v{raw}"), 1.0);
        run.counters.insert(format!("c{raw}"), run.number as u64);
        run.seen.modes = raw.to_string();
    }
    let report = Report::new(&recorded).unwrap();
    let steers = |c: char| escape::steers(c) && c != '\n';
    let shown = text(&report);
    assert!(!shown.contains(steers), "{shown:?}");
    assert!(shown.contains("\\x1b]0;x\\x07\\x0d\\x9b2J"), "{shown}");
    assert!(shown.contains("\\x9b2J\\nb\n"));
    let colored = colored(&report);
    assert_eq!(colored.matches("\u{1b}]").count(), 0, "{colored:?}");
}

#[test]
fn as_json() {
    let recorded = recorded(8);
    let json = serde_json::to_value(Report::new(&recorded).unwrap()).unwrap();
    let judged = &json["metrics"][0]["variants"][2]["judged"];
    assert_eq!(judged["verdict"], "worse");
    assert!((judged["effect"]["value"].as_f64().unwrap() - 1.1).abs() < 0.02);
    assert_eq!(json["plan"]["seed"], 5);
    assert_eq!(json["blocks"], 8);
}

#[test]
fn nothing_run_yet_is_shown_too() {
    let mut recorded = recorded(8);
    for left in [0, 3, 5] {
        recorded.runs.truncate(left);
        let report = Report::new(&recorded).unwrap();
        let text = text(&report);
        assert!(
            text.contains("no verdict yet: the plan is not complete"),
            "{text}"
        );
        assert!(!text.contains("NaN"), "{text}");
    }
}

#[test]
fn a_disturbance_is_reported_once() {
    let fine = Seen {
        modes: "governor performance, boost on".to_string(),
        throttled: Some(false),
        // With 64 busy CPUs the kernel's tick-based accounting is no finer than this.
        busy_cpus: 64.0,
        other_cpus: 1.3,
        ..Seen::default()
    };
    let told = |runs: &[Seen]| warnings(runs.iter().map(|seen| ("roost", seen)));
    assert!(told(&[fine.clone(), fine.clone()]).is_empty());
    let unseen = told(&[Seen::default(), Seen::default()]);
    assert_eq!(unseen, ["throttling of hot CPUs cannot be observed here"]);
    let one = Seen {
        busy_cpus: 1.0,
        other_cpus: 0.08,
        ..fine.clone()
    };
    assert_eq!(
        told(&[one]),
        [
            "other tasks used CPUs while the command ran: end those tasks (1 of 1 runs; 0.08 CPUs at most)"
        ]
    );
    let hot = Seen {
        throttled: Some(true),
        clock_step_s: -3.0,
        ..fine.clone()
    };
    let both = told(&[fine.clone(), hot.clone(), hot]);
    assert_eq!(both.len(), 2);
    assert!(both[0].ends_with("(2 of 3 runs)") && both[1].starts_with("the clock was set"));
    let busy = Seen {
        modes: "governor performance, boost off".to_string(),
        battery: true,
        busy_cpus: 64.0,
        other_cpus: 1.4,
        ..fine.clone()
    };
    let told = told(&[fine, busy]);
    assert_eq!(told.len(), 3);
    assert!(told[0].contains("changed between runs"), "{told:?}");
}

/// The modes of all CPUs, before and after the run.
#[test]
fn frequencies_are_fixed_where_each_governor_is_performance() {
    for (modes, told) in [
        ("no governor", ""),
        ("boost on", ""),
        ("governor performance, EPP performance, boost on", ""),
        ("governor performance powersave, boost on", "not fixed"),
        ("governor powersave, EPP performance", "not fixed"),
        ("governor schedutil", "not fixed"),
        (
            "governor performance, held to 2.8 of 4.5 GHz",
            "held to 2.8 of 4.5 GHz all the time",
        ),
        ("governor performance, then governor powersave", "changed"),
        (
            "governor performance, then governor performance, held to 2.8 of 4.5 GHz",
            "changed",
        ),
    ] {
        let seen = Seen {
            modes: modes.to_string(),
            throttled: Some(false),
            ..Seen::default()
        };
        let warned = warnings([("roost", &seen)].into_iter()).concat();
        assert_eq!(warned.is_empty(), told.is_empty(), "{modes}: {warned}");
        assert!(warned.contains(told), "{modes}: {warned}");
    }
}

/// A disturbance of one variant alone affects its numbers.
#[test]
fn a_disturbance_is_reported_per_variant() {
    let fine = Seen {
        throttled: Some(false),
        ..Seen::default()
    };
    let busy = Seen {
        busy_cpus: 10.0,
        other_cpus: 8.0,
        modes: "boost on".to_string(),
        ..fine.clone()
    };
    let suspended = Seen {
        suspended_s: 60.0,
        ..fine.clone()
    };
    let told = |runs: [(&str, &Seen); 6]| warnings(runs.into_iter());
    let of = |a, b, c| {
        told([
            ("a", a),
            ("b", b),
            ("c", c),
            ("a", a),
            ("b", b),
            ("c", &fine),
        ])
    };
    let load = "other tasks used CPUs while the command ran: end those tasks";
    assert_eq!(
        of(&fine, &busy, &fine)[1],
        format!("{load} (2 of 6 runs: 2 of 2 of b, none of the others; 8 CPUs at most)")
    );
    assert_eq!(
        of(&fine, &busy, &fine)[0],
        "governor, EPP, boost or the highest frequency changed between runs or during them:  (4 of 6 runs: 2 of 2 of a, 2 of 2 of c, none of the others); \
         boost on (2 of 6 runs: 2 of 2 of b, none of the others); the comparison is not reliable"
    );
    assert_eq!(
        of(&busy, &busy, &busy)[1],
        format!("{load} (5 of 6 runs: 2 of 2 of a, 2 of 2 of b, 1 of 2 of c; 8 CPUs at most)")
    );
    let [slept] = &of(&suspended, &fine, &fine)[..] else {
        panic!("one thing happened");
    };
    assert!(slept.starts_with("the machine was suspended"), "{slept}");
    assert!(slept.ends_with("(2 of 6 runs: 2 of 2 of a, none of the others)"));
}

#[test]
fn numbers_have_four_digits() {
    let shown = [
        0.0, 12345.6, 123.456, 12.3456, 1.23456, 0.123456, 1.5e-7, 2e9,
    ]
    .map(number);
    assert_eq!(
        shown,
        [
            "0", "12346", "123.5", "12.35", "1.235", "0.1235", "1.500e-7", "2.000e9"
        ]
    );
    assert_eq!(
        [9.0, 34.5, 0.9, 100.0].map(number),
        ["9", "34.5", "0.9", "100"]
    );
}
