// SPDX-License-Identifier: GPL-2.0-only
//! What reports show of results.

use crate::played::{Played, asked, header, played};
use scx_roost::ab::condition::{Seen, warnings};
use scx_roost::ab::report::text::{Shown, text};
use scx_roost::ab::report::{Report, headline, number, shift};
use scx_roost::ab::result::Recorded;
use scx_roost::ab::stats::Interval;
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::turns::Scale;
use scx_roost::ab::stats::verdict::{Against, Direction, Judged, Verdict};
use scx_roost::util::escape;

const PLAIN: Shown = Shown {
    colors: false,
    counters: false,
};
const ALL: Shown = Shown {
    colors: true,
    counters: true,
};

/// A comparison of three variants. The last one is slower; one run was disturbed.
fn recorded(rounds: usize) -> Recorded {
    let scx = "scx:/home/me/bin/scx_lavd --performance";
    let mut header = header(&["mainline", "roost", scx], Plan::Fixed(rounds));
    header.metrics.push(asked("json:/ops", Direction::Higher));
    let mut machine = Played::new(1).slower(scx, 1.1);
    machine.counter.insert("roost".into(), "wide_node");
    machine.seen.modes = "governor schedutil".to_string();
    let (mut recorded, _) = played(&header, &mut machine).unwrap();
    let mut own = recorded.runs.iter_mut().filter(|r| r.variant == "roost");
    let disturbed = own.nth(3).unwrap();
    disturbed.values.insert("wall".to_string(), 12.5);
    recorded
}

/// Outliers are counted and mentioned. What else was measured is shown on request.
#[test]
fn on_a_terminal() {
    let recorded = recorded(8);
    let report = Report::new(&recorded).unwrap();
    let (page, more) = (text(&report, PLAIN), text(&report, ALL));
    println!("{page}{more}");
    for part in [
        "make -j16 /home/me/secret\n8 runs of each of 3 variants on average, on the whole machine; seed 5, margin 2 %\n",
        "wall in s, lower is better\n",
        "json:/ops, higher is better\n",
        "12.5, is far from the rest; it is included",
        "warning: frequencies were not fixed (governor schedutil)",
    ] {
        assert_eq!(page.matches(part).count(), 1, "{part} in\n{page}");
        assert!(more.contains(part), "{part} in\n{more}");
    }
    for part in [
        "Also measured, medians\n",
        "  user, s ",
        "Counters that differ, medians of a run\n",
        "  wide_node ",
    ] {
        assert!(!page.contains(part), "{part} in\n{page}");
        assert_eq!(more.matches(part).count(), 1, "{part} in\n{more}");
    }
}

/// The last thing that a report says is the result, in words and per cent.
#[test]
fn the_result_comes_last() {
    let recorded = recorded(8);
    let report = Report::new(&recorded).unwrap();
    let slower = "scx:/home/me/bin/scx_lavd --performance against mainline: worse, wall +";
    let plain = text(&report, PLAIN);
    let last: Vec<&str> = plain.lines().rev().take(4).collect();
    assert!(
        last.iter().all(|line| line.contains(" against mainline: ")),
        "{plain}"
    );
    let (_, rest) = plain.split_once(slower).unwrap();
    let (value, rest) = rest.split_once(" %, 98.75 % interval +").unwrap();
    assert!(
        (value.parse::<f64>().unwrap() - 10.0).abs() < 1.0,
        "{plain}"
    );
    let (interval, p) = rest.split_once(" %, p ").unwrap();
    assert!(interval.contains(" to +"), "{plain}");
    assert!(p.starts_with("0.00") || p.starts_with("below"), "{plain}");
    assert!(text(&report, ALL).contains(&format!("\u{1b}[1m\u{1b}[31m{slower}")));
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
    let shown = |recorded: &Recorded| text(&Report::new(recorded).unwrap(), PLAIN);
    let kernel = "kernel 7.2.13 (its rules: 7.2)";
    let where_and_when = format!("2025-12-31 23:59 UTC, scx_roost 0, {kernel}, A CPU, 16 CPUs; ");
    let plan = format!("{where_and_when}-n 8, 1 warm-up of each variant");
    let page = shown(&recorded);
    assert!(page.contains(&plan), "{page}");
    recorded.header.rule.plan = Plan::Auto(40);
    recorded.header.host.clear();
    let plan = "UTC, scx_roost 0; -n auto:40, 1 warm-up of each variant";
    let page = shown(&recorded);
    assert!(page.contains(plan), "{page}");
}

/// What a verdict does not say stands behind it.
#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn each_verdict_is_explained() {
    let recorded = recorded(8);
    let report = Report::new(&recorded).unwrap();
    let metric = &report.metrics[0];
    let judged = |verdict, against, (low, high): (f64, f64)| Judged {
        verdict,
        against,
        interval: (low < high).then_some(Interval { low, high }),
        within_margin: low > 0.98 && high < 1.02,
        ..metric.variants[1].judged.clone().unwrap()
    };
    let (few, far) = ((1.0, 1.0), (0.96, 1.03));
    let (none, small, large) = ((0.995, 1.005), (0.99, 0.995), (0.9, 0.95));
    for (verdict, against, interval, why) in [
        (Verdict::Better, None, large, ""),
        (Verdict::Better, None, small, "by less than 2 %"),
        (
            Verdict::Worse,
            Some(Against::Steps),
            large,
            "the steps of this metric are as wide: by how much is not known",
        ),
        (
            Verdict::Equivalent,
            None,
            none,
            "within 2 %; a run in 2 or more may be slow without being seen",
        ),
        (
            Verdict::NotExercised,
            None,
            none,
            "the variants' difference took effect in at most half of the runs",
        ),
        (
            Verdict::Inconclusive,
            None,
            few,
            "too few runs for a verdict",
        ),
        (
            Verdict::Inconclusive,
            None,
            far,
            "the interval has 'no change' in it, and is not within the margin",
        ),
        // Runs of some milliseconds scatter so much that nothing would be found.
        (
            Verdict::Inconclusive,
            None,
            (0.4, 1.6),
            "runs are too short or differ too much: make them a second or longer",
        ),
        (
            Verdict::Inconclusive,
            Some(Against::Failures),
            large,
            "failed runs are not equally many: counted as the worst, they leave no verdict",
        ),
        (
            Verdict::Inconclusive,
            Some(Against::Steps),
            none,
            "within 2 %, but the steps of this metric are as wide: measure it finer, or make runs longer",
        ),
        (
            Verdict::Inconclusive,
            Some(Against::Mean),
            none,
            "most runs are within 2 %, the mean may not be: some are far off",
        ),
    ] {
        let line = headline(
            "mainline",
            "roost",
            metric,
            &judged(verdict, against, interval),
        );
        let (_, told) = line.split_once("; ").unwrap_or_default();
        assert_eq!(told, why, "{line}");
    }
    let in_seconds = Judged {
        scale: Scale::Difference,
        shift: Some(-0.25),
        ..judged(Verdict::Better, None, (-0.5, 0.125))
    };
    let told = "-0.25 s, 98.75 % interval -0.5 to +0.125 s";
    assert_eq!(shift(&in_seconds, "s"), told);
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
    let counters = true;
    let shown = text(&report, Shown { counters, ..PLAIN });
    assert!(!shown.contains(steers), "{shown:?}");
    assert!(shown.contains("\\x1b]0;x\\x07\\x0d\\x9b2J"), "{shown}");
    assert!(shown.contains("\\x9b2J\\nb\n"));
    let colored = text(&report, ALL);
    assert_eq!(colored.matches("\u{1b}]").count(), 0, "{colored:?}");
}

#[test]
fn as_json() {
    let recorded = recorded(8);
    let json = serde_json::to_value(Report::new(&recorded).unwrap()).unwrap();
    let judged = &json["metrics"][0]["variants"][2]["judged"];
    assert_eq!(judged["verdict"], "worse");
    assert!((judged["shift"].as_f64().unwrap() - 1.1).abs() < 0.02);
    assert_eq!(json["plan"]["seed"], 5);
    assert_eq!(json["rounds"], 8);
}

#[test]
fn nothing_run_yet_is_shown_too() {
    let mut recorded = recorded(8);
    for left in [0, 3, 5] {
        recorded.runs.truncate(left);
        let report = Report::new(&recorded).unwrap();
        let text = text(&report, ALL);
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
