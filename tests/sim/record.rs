// SPDX-License-Identifier: GPL-2.0-only
//! What the simulator is good for: the scores of the tables at full length, in data/record.tsv and
//! in docs/simulator.md. `ROOST_DRAW=1 cargo test --release --test sim record` draws both from the
//! pages of docs/simulator/.

use crate::shown::is_kept;
use scx_roost::sim::table::{Record, UNDECIDED_TOO};
use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 7] = ["000", "001", "002", "003", "004", "005", "006"];
const BEGIN: &str = "<!-- record: drawn by tests/sim/record.rs -->\n";
const END: &str = "<!-- end of record -->\n";

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The line of a page's table that begins with this cell, without it. None: there is none.
fn cells(page: &str, first: &str) -> Option<Vec<String>> {
    let start = format!("| {first} | ");
    let line = page.lines().find_map(|line| line.strip_prefix(&start))?;
    let cells = line.trim_end_matches(" |").split(" | ");
    Some(cells.map(str::to_string).collect())
}

/// data/record.tsv, as the pages have it.
fn record() -> String {
    let page = |source| fs::read_to_string(file(&format!("docs/simulator/{source}.md"))).unwrap();
    let heads = cells(&page("000"), "score").unwrap();
    let mut text = format!("source\tscore\t{}\n", heads.join("\t"));
    // A source whose results are still sealed has no page.
    let there = |source: &&str| file(&format!("docs/simulator/{source}.md")).exists();
    for source in SOURCES.into_iter().filter(there) {
        let page = page(source);
        // A row that a parameter was fitted to proves nothing.
        let unfitted = page.lines().find_map(|line| {
            let (name, _) = line.strip_prefix("| without the ")?.split_once(" | ")?;
            Some(format!("without the {name}"))
        });
        let name = unfitted.as_deref().unwrap_or("of the source");
        let decided = cells(&page, name).unwrap_or_else(|| panic!("{source}: no line {name}"));
        // Where no row is undecided, there is one line for both. A page from before the second
        // score was kept does not say.
        let undecided = page.contains("undecided: try");
        let all = cells(&page, &format!("{name}{UNDECIDED_TOO}"));
        let all = all.or_else(|| (!undecided).then(|| decided.clone()));
        text += &format!("{source}\tdecided\t{}\n", decided.join("\t"));
        text += &all.map_or(String::new(), |all| {
            format!("{source}\tall\t{}\n", all.join("\t"))
        });
    }
    text
}

#[test]
fn the_record_is_that_of_the_tables() {
    let now = record();
    is_kept(&file("src/sim/data/record.tsv"), &now);
    let record = Record::parse(&now).unwrap();
    let page = file("docs/simulator.md");
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the record begins");
    let (_, after) = rest.split_once(END).expect("the record ends");
    let (sentence, table) = (filled(&record.text()), markdown(&now, &record));
    is_kept(
        &page,
        &format!("{before}{BEGIN}{sentence}\n{table}{END}{after}"),
    );
}

/// The lines of record.tsv as a table.
fn markdown(lines: &str, record: &Record) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut lines = lines
        .lines()
        .map(|line| line.split('\t').map(String::from).collect::<Vec<_>>());
    let mut heads = lines.next().unwrap();
    heads[1] = "of its rows".to_string();
    heads.push("nearer than always 0 %".to_string());
    let rule = vec!["---".to_string(); heads.len()];
    let scored = record.0.iter().flat_map(|scored| {
        let lines = 1 + usize::from(scored.all.is_some());
        std::iter::repeat_n(scored, lines)
    });
    let rows = lines.zip(scored).map(|(mut cells, scored)| {
        cells[0] = format!("[{}](simulator/{}.md)", scored.name, scored.source);
        cells.push(if scored.nearer { "yes" } else { "no" }.to_string());
        cells
    });
    [heads, rule].into_iter().chain(rows).map(row).collect()
}

/// Filled to 100 columns.
fn filled(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().unwrap();
        if last.chars().count() + 1 + word.chars().count() > 100 {
            lines.push(word.to_string());
        } else {
            *last += if last.is_empty() { "" } else { " " };
            *last += word;
        }
    }
    lines.join("\n") + "\n"
}
