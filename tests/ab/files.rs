// SPDX-License-Identifier: GPL-2.0-only
//! Result files: an error in one is a sentence. One process at a time writes a file, and a run
//! continues where its file ends.

use crate::played::{complete, header, lines};
use scx_roost::ab::analysis;
use scx_roost::ab::report::Report;
use scx_roost::ab::result::{Header, Recorded, ResultFile};
use scx_roost::ab::stats::plan::Plan;
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
            "it has the format 'scx_roost ab 9', but this version reads 'scx_roost ab 1'",
        ),
        (
            "{\"format\":\"scx_roost ab 1\"}\n".into(),
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
            replaced("\"settle\":", "\"mirrored\":true,\"settle\":"),
            "it was made with --mirror, --concurrent, --suite or --parameter, which",
        ),
        (
            replaced("\"settle\":", "\"sides\":[\"0-3\",\"4-7\"],\"settle\":"),
            "it was made with --mirror, --concurrent, --suite or --parameter, which",
        ),
        (
            replaced("\"power\":0.8", "\"power\":0.8,\"suite\":14"),
            "--suite or --parameter, which this version does not have",
        ),
        (
            replaced("\"fixed\":6", "\"fixed\":0"),
            "line 1: 1 to 10000 blocks",
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
            replaced("\"roost\"", &many).replace("\"fixed\":6", "\"fixed\":10000"),
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
            "line 2: run 0 is of roost, expected mainline",
        ),
        (
            replaced("\"wall\":", "\"wail\":"),
            "line 2: run 0 has no wall",
        ),
        (
            text.clone() + &line(14).replace("\"number\":13", "\"number\":14"),
            "line 16: there are only 14 runs, and it is one more",
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
fn a_value_that_is_missing_pairs_nothing() {
    for variant in TWO {
        let mut recorded = complete();
        let run = recorded.runs.iter_mut().rfind(|r| r.variant == variant);
        run.unwrap().values.clear();
        let judged = analysis::judged(&recorded.header, &recorded.runs, &recorded.failed).unwrap();
        assert_eq!(judged[0].blocks, 0, "{variant}");
    }
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
        b"{\"number\":0,\"block\":null,\"variant\":\"\xc3",
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
