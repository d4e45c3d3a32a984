// SPDX-License-Identifier: GPL-2.0-only
//! The plausible ranges of a workload's params: "param step = 1ms in 200us..5ms".

use super::number;
use super::text::lines;
use anyhow::{Context, Result, ensure};

/// The ends of a range as written: times, sizes or numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<'a> {
    pub name: &'a str,
    pub low: &'a str,
    pub high: &'a str,
}

/// The ranges of all params that have one, except ranges of one value. Errors: the text is no
/// workload; a range is malformed.
pub fn ranges(text: &str) -> Result<Vec<Range<'_>>> {
    let mut all = Vec::new();
    for line in lines(text)? {
        let ["param", name, "=", .., "in", range] = line.words[..] else {
            continue;
        };
        let expected = || format!("param {name}: expected 'in LOW..HIGH', found {range}");
        let (low, high) = range.split_once("..").with_context(expected)?;
        let [from, to] = [low, high].map(|end| number(end).with_context(expected));
        let ((from, unit), (to, of)) = (from?, to?);
        ensure!(from <= to && unit == of, expected());
        if from < to {
            all.push(Range { name, low, high });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_of_params() {
        let text = "param n = 3 # one\nparam t = 2 * 1ms in 1ms..2500us\nparam k = 4 in 4..4\ntask a:\n    run t\n";
        let t = Range {
            name: "t",
            low: "1ms",
            high: "2500us",
        };
        assert_eq!(ranges(text).unwrap(), [t]);
        for text in [
            "param n = 3 in 4",
            "param n = 3 in 5..4",
            "param n = 3 in a..b",
        ] {
            let told = format!("{:#}", ranges(text).unwrap_err());
            assert!(
                told.starts_with("param n: expected 'in LOW..HIGH'"),
                "{told}"
            );
        }
    }
}
