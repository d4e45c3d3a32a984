// SPDX-License-Identifier: GPL-2.0-only
//! The text of a workload as lines of words, each with its depth.

use anyhow::{Result, ensure};

const INDENT: usize = 4;

pub struct Line<'a> {
    pub number: usize,
    pub depth: usize,
    pub words: Vec<&'a str>,
}

/// The line, for errors.
pub fn at(line: &Line) -> String {
    format!("line {}: {:?}", line.number, line.words.join(" "))
}

/// Splits the text. Errors: wrong indentation; a missing colon.
pub fn lines(text: &str) -> Result<Vec<Line<'_>>> {
    let mut lines: Vec<Line> = Vec::new();
    for (number, raw) in (1..).zip(text.lines()) {
        let line = raw.split('#').next().unwrap_or_default();
        // `x[i]` is a name and an index.
        let words: Vec<&str> = split(line);
        if words.is_empty() {
            continue;
        }
        let blank = line.len() - line.trim_start().len();
        ensure!(
            !line[..blank].contains('\t'),
            "line {number}: blocks are indented by {INDENT} spaces, found a tab"
        );
        let spaces = line.len() - line.trim_start_matches(' ').len();
        ensure!(
            spaces % INDENT == 0,
            "line {number}: blocks are indented by {INDENT} spaces, found {spaces}"
        );
        let depth = spaces / INDENT;
        let most = lines
            .last()
            .map_or(0, |l: &Line| l.depth + usize::from(opens(l)));
        ensure!(
            depth <= most,
            "line {number}: {line:?} is indented too far for the line above"
        );
        let line = Line {
            number,
            depth,
            words,
        };
        ensure!(
            line.words[0] != "task" || opens(&line),
            "{}: : was expected at the end",
            at(&line)
        );
        lines.push(line);
    }
    for pair in lines.windows(2) {
        ensure!(
            !opens(&pair[0]) || pair[1].depth == pair[0].depth + 1,
            "line {}: a block was opened, but no indented line follows",
            pair[0].number
        );
    }
    Ok(lines)
}

/// Splits a line into words. The characters [ ] , : are words of their own.
fn split(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for word in line.split_whitespace() {
        let mut rest = word;
        while let Some(at) = rest.find(['[', ']', ',', ':']) {
            words.extend(
                [&rest[..at], &rest[at..at + 1]]
                    .iter()
                    .filter(|w| !w.is_empty()),
            );
            rest = &rest[at + 1..];
        }
        words.extend([rest].iter().filter(|w| !w.is_empty()));
    }
    words
}

fn opens(line: &Line) -> bool {
    line.words.last() == Some(&":")
        || matches!(line.words[0], "forever" | "repeat" | "on" | "first")
}

/// Splits `words` before the first of `ends`.
pub fn until<'a, 'b>(words: &'b [&'a str], ends: &[&str]) -> (&'b [&'a str], &'b [&'a str]) {
    let end = words.iter().position(|w| ends.contains(w));
    words.split_at(end.unwrap_or(words.len()))
}
