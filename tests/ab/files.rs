// SPDX-License-Identifier: GPL-2.0-only
//! Result files: an error in one is a sentence. One process at a time writes a file, and a run
//! continues where its file ends.

use crate::played::{complete, header, lines};
use scx_roost::ab::analysis;
use scx_roost::ab::report::Report;
use scx_roost::ab::result::{Header, Recorded, ResultFile};
use scx_roost::ab::stats::plan::Plan;
use scx_roost::ab::stats::verdict::Verdict;
use serde_json::{Value, json};
use std::fs;

const TWO: [&str; 2] = ["mainline", "roost"];

fn text() -> String {
    lines(&complete())
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn a_broken_file_is_reported_in_a_sentence() {
    let text = text();
    let replaced = |from: &str, to: &str| {
        assert!(text.contains(from), "{from} in {text}");
        text.replacen(from, to, 1)
    };
    let line = |at: usize| text.lines().nth(at).unwrap().to_string() + "\n";
    let many: Vec<String> = (1000..1013)
        .map(|us| format!("\"roost+slice-us={us}\""))
        .collect();
    let many = many.join(",");
    let cases = [
        (String::new(), "it is empty"),
        ("hello\n".into(), "it is not a result file of scx_roost ab"),
        ("{}\n".into(), "it is not a result file of scx_roost ab"),
        (
            "{\"format\":\"scx_roost ab 9\"}\n".into(),
            "it has the format 'scx_roost ab 9', but this version reads 'scx_roost ab 2'",
        ),
        (
            "{\"format\":\"scx_roost ab 2\"}\n".into(),
            "line 1: missing field",
        ),
        (
            replaced("\"mainline\",\"roost\"", "\"mainline\",\"mainline\""),
            "line 1: variant mainline is given twice",
        ),
        (
            replaced("\"metric\":\"wall\"", "\"metric\":\"walls\""),
            "line 1: unknown metric 'walls'",
        ),
        (
            replaced("\"boots\":", "\"mirrored\":true,\"boots\":"),
            "it was made with --mirror, --concurrent, --suite or --parameter, which",
        ),
        (
            replaced("\"boots\":", "\"sides\":[\"0-3\",\"4-7\"],\"boots\":"),
            "it was made with --mirror, --concurrent, --suite or --parameter, which",
        ),
        (
            replaced("\"margin\":0.02", "\"margin\":0.02,\"suite\":14"),
            "--suite or --parameter, which this version does not have",
        ),
        (
            replaced("\"fixed\":6", "\"fixed\":0"),
            "line 1: 1 to 1000 runs",
        ),
        (
            replaced("\"alpha\":0.05", "\"alpha\":0.5"),
            "line 1: alpha is 0.5: above 0 and at most 0.2 are possible",
        ),
        (
            replaced("\"boots\":null", "\"boots\":9223372036854775807"),
            "line 1: mainline names no kernel",
        ),
        (
            replaced("\"roost\"", &many).replace("\"warmups\":1", "\"warmups\":10000"),
            "runs: at most 131072 runs are possible",
        ),
        (
            replaced("\"scope\":\"machine\"", "\"scope\":\"moon\""),
            "line 1: unknown variant `moon`",
        ),
        (line(0) + "[]\n", "line 2: it is not a run"),
        (line(0) + &line(2), "line 2: it is run 1, expected 0"),
        (
            replaced("\"variant\":\"mainline\"", "\"variant\":\"roost\""),
            "line 2: run 0 is of roost, which is not its turn",
        ),
        (
            replaced("\"wall\":", "\"wail\":"),
            "line 2: run 0 has no wall",
        ),
        (
            replaced("\"drawn\":true", "\"drawn\":false"),
            "which is not its turn",
        ),
        (
            text.clone() + &line(16).replace("\"number\":15", "\"number\":16"),
            "line 18: there are only 16 runs, and it is one more",
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    for (text, told) in cases {
        fs::write(&path, &text).unwrap();
        let error = format!("{:#}", Recorded::read(&path).unwrap_err());
        let begin = format!("cannot read {}: ", path.display());
        assert!(
            error.starts_with(&begin) && error.contains(told) && !error.contains('\n'),
            "{told} in {error}"
        );
    }
    fs::write(&path, [0xff, 0xfe, b'\n']).unwrap();
    assert!(Recorded::read(&path).is_err());
    assert!(Recorded::read(&folder.path().join("none")).is_err());
}

/// Any part of a file's bytes gives a report or an error message.
#[test]
fn no_part_of_a_file_brings_it_down() {
    let text = text();
    for end in (0..text.len()).step_by(37) {
        if let Ok(recorded) = Recorded::of_lines(&text[..end]) {
            Report::new(&recorded).unwrap();
        }
    }
}

#[test]
fn a_value_that_is_missing_compares_nothing() {
    for variant in TWO {
        let mut recorded = complete();
        let run = recorded.runs.iter_mut().rfind(|r| r.variant == variant);
        run.unwrap().values.clear();
        let judged = analysis::judged(&recorded).unwrap().remove(0);
        assert_eq!((judged.shift, judged.interval), (None, None), "{variant}");
    }
}

/// Blocks of both variants in random order, each after an uncounted run of its first variant unless
/// that ran last: the first run after a block was drawn. Such a file cannot be continued.
#[test]
fn a_file_with_runs_in_blocks_is_shown() {
    let four_blocks = [
        (None, 0, true),
        (Some(0), 0, false),
        (Some(0), 1, false),
        (Some(1), 1, true),
        (Some(1), 0, false),
        (None, 1, true),
        (Some(2), 1, false),
        (Some(2), 0, false),
        (Some(3), 0, true),
        (Some(3), 1, false),
    ];
    let warmups = [(None, 0, false), (None, 1, false)];
    let runs = [&warmups[..], &four_blocks.repeat(3)].concat();
    let mut header = serde_json::to_value(header(&TWO, Plan::Fixed(12))).unwrap();
    header["format"] = "scx_roost ab 1".into();
    header["settle"] = "blocks".into();
    header["rule"]["power"] = 0.8.into();
    let lines = |header: &Value| {
        let run = |(number, (block, variant, _)): (usize, &(Option<usize>, usize, bool))| {
            json!({
                "number": number, "block": block, "variant": TWO[*variant], "seen": {},
                "values": {"wall": 10 + variant}, "counters": {"wide_node": 5},
            })
        };
        let lines = std::iter::once(header.clone()).chain(runs.iter().enumerate().map(run));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let text = lines(&header);
    let recorded = Recorded::of_lines(&text).unwrap();
    assert_eq!(recorded.rounds(), 14);
    for (run, (_, _, drawn)) in recorded.runs.iter().zip(&runs) {
        assert_eq!(run.drawn, *drawn, "{run:?}");
    }
    let judged = analysis::judged(&recorded).unwrap().remove(0);
    assert_eq!(judged.verdict, Verdict::Worse);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    fs::write(&path, &text).unwrap();
    let now = self::header(&TWO, Plan::Fixed(12));
    let told = ResultFile::resume(&path, &now).map(|_| ()).unwrap_err();
    let told = format!("{told:#}");
    assert!(
        told.contains("format is \"scx_roost ab 1\" there and \"scx_roost ab 2\" here"),
        "{told}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    header["variants"] = json!(["mainline", "roost", "eevdf"]);
    let told = Recorded::of_lines(&lines(&header)).unwrap_err();
    assert!(
        told.to_string()
            .starts_with("its runs are in blocks of more than two")
    );
}

#[test]
fn one_process_writes_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let header = header(&TWO, Plan::Fixed(6));
    let first = ResultFile::create(&path, &header).unwrap();
    let error = format!(
        "{:#}",
        ResultFile::resume(&path, &header).map(|_| ()).unwrap_err()
    );
    assert!(error.starts_with("another process is writing "), "{error}");
    drop(first);
    ResultFile::resume(&path, &header).unwrap();
}

#[test]
fn a_comparison_goes_on_where_it_was_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let header = header(&TWO, Plan::Fixed(6));
    drop(ResultFile::create(&path, &header).unwrap());
    let refused = |change: fn(&mut Header)| {
        let mut other = header.clone();
        change(&mut other);
        let resumed = ResultFile::resume(&path, &other).map(|_| ());
        format!("{:#}", resumed.unwrap_err())
    };
    let version = refused(|h| h.version = "9.9".into());
    assert!(
        version.contains("begun by version 0, and this is 9.9"),
        "{version}"
    );
    let kernel = refused(|h| *h.host.get_mut("kernel").unwrap() = "8.0".into());
    assert!(
        kernel.contains("kernel was '7.2.13' and is '8.0'"),
        "{kernel}"
    );
    let command = refused(|h| h.command.push("more".into()));
    assert!(
        command.contains("of another comparison: command is [\"make\",\"-j16\",\"/home/me/secret\"] there and [\"make\",\"-j16\",\"/home/me/secret\",\"more\"] here"),
        "{command}"
    );
    let both = refused(|h| {
        h.seed = 6;
        h.rule.margin = 0.03;
    });
    assert!(
        both.ends_with(
            "of another comparison: margin is 0.02 there and 0.03 here; seed is 5 there and 6 here"
        ),
        "{both}"
    );
    let longer = Header {
        timeout_s: 1.0,
        began: 7,
        ..header.clone()
    };
    let (_, recorded) = ResultFile::resume(&path, &longer).unwrap();
    assert_eq!(recorded.header, header);
}

/// After a crash before the first line was complete, the file is started again.
#[test]
fn a_file_without_its_first_line_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let header = header(&TWO, Plan::Fixed(6));
    let line = serde_json::to_string(&header).unwrap();
    for begun in ["", "{\"for", &line[..50], &line] {
        fs::write(&path, begun).unwrap();
        assert_eq!(Recorded::begun(&path).unwrap(), None);
        let (file, recorded) = ResultFile::resume(&path, &header).unwrap();
        assert_eq!((recorded.header, recorded.runs.len()), (header.clone(), 0));
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{line}\n"));
    }
    // No result file of ours.
    for other in ["hello", "{\"form\"", "\n"] {
        fs::write(&path, other).unwrap();
        let told = ResultFile::resume(&path, &header).map(|_| ()).unwrap_err();
        assert!(told.to_string().starts_with("cannot read "), "{told}");
        assert_eq!(fs::read_to_string(&path).unwrap(), other);
    }
}

/// A crash may cut a character in two.
#[test]
fn a_last_line_that_was_cut_off_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let header = header(&TWO, Plan::Fixed(6));
    drop(ResultFile::create(&path, &header).unwrap());
    let whole = fs::read(&path).unwrap();
    let cut = [
        &whole[..],
        b"{\"number\":0,\"turn\":null,\"variant\":\"\xc3",
    ]
    .concat();
    fs::write(&path, &cut).unwrap();
    assert!(Recorded::read(&path).unwrap().runs.is_empty());
    drop(ResultFile::resume(&path, &header).unwrap());
    assert_eq!(fs::read(&path).unwrap(), whole);
}

#[test]
fn a_file_that_could_not_be_read_is_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r");
    let mut header = header(&["mainline", "eevdf"], Plan::Fixed(6));
    header.scope = scx_roost::ab::variant::Scope::Workload;
    let told = ResultFile::create(&path, &header).map(|_| ()).unwrap_err();
    assert!(
        told.to_string()
            .starts_with("eevdf schedules the whole machine")
    );
    assert!(!path.exists());
}
