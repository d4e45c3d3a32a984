// SPDX-License-Identifier: GPL-2.0-only
//! How many rows agree, beside what "always 0 %" would score by the same rules. A model that is not
//! better than that says nothing about effects.

use super::verdict::Verdict;
use super::{Figure, Line};
use serde::Serialize;

/// The score of some rows. Rows that are underpowered or not modelled count nowhere; undecided ones
/// in a second score, since leaving them out may favour the model or "always 0 %". Rows that one
/// run measures (quantiles) count together as one *effective* row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    pub rows: usize,
    pub effective: f64,
    /// Effective rows that are `ok`; and those that "always 0 %" would have.
    pub ok: f64,
    pub ok_if_zero: f64,
    /// The mean over the effective rows of how far the effect is from the published one, points.
    pub error: f64,
    pub error_if_zero: f64,
    /// Rows in which an effect was published, and those of them with the right sign, by more than
    /// the error of the simulated effect.
    pub effects: usize,
    pub signs: usize,
}

const ZERO: Figure = Figure {
    value: 0.0,
    error: None,
};

/// Of the decided rows, and of all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Scores {
    #[serde(flatten)]
    pub decided: Score,
    pub all: Score,
}

impl Scores {
    /// None: no row is decided.
    pub fn of<'a>(lines: impl Iterator<Item = &'a Line> + Clone) -> Option<Scores> {
        Some(Scores {
            decided: Score::of(lines.clone(), false)?,
            all: Score::of(lines, true)?,
        })
    }

    /// For the columns of `HEADS`: a line for each score, but one if no row is undecided.
    pub fn lines(&self, name: &str) -> Vec<Vec<String>> {
        let mut lines = vec![self.decided.cells(name)];
        if self.all.rows > self.decided.rows {
            lines.push(self.all.cells(&format!("{name}{UNDECIDED_TOO}")));
        }
        lines
    }
}

/// Behind the name of a score with undecided rows.
pub const UNDECIDED_TOO: &str = ", undecided too";

impl Score {
    /// None: no row counts. `undecided`: such rows count too.
    fn of<'a>(lines: impl Iterator<Item = &'a Line>, undecided: bool) -> Option<Score> {
        let counts = |l: &&Line| {
            let without = [Verdict::Underpowered, Verdict::NotModelled, Verdict::Sealed];
            (undecided || l.undecided_seeds.is_none()) && !without.contains(&l.verdict)
        };
        let lines: Vec<&Line> = lines.filter(counts).collect();
        let mut score = Score::default();
        for line in &lines {
            let simulated = line.simulated?;
            let same = lines.iter().filter(|l| l.run == line.run).count();
            let part = 1.0 / same as f64;
            let published = line.published.map_or(0.0, |p| p.value);
            let is_ok = |verdict| if verdict == Verdict::Ok { part } else { 0.0 };
            score.rows += 1;
            score.effective += part;
            score.ok += is_ok(line.verdict);
            score.ok_if_zero += is_ok(line.demand.judge(ZERO, 1));
            score.error += part * (simulated.value - published).abs();
            score.error_if_zero += part * published.abs();
            if line.demand.has_sign() {
                score.effects += 1;
                score.signs += usize::from(line.demand.signed(simulated, line.runs));
            }
        }
        score.error /= score.effective;
        score.error_if_zero /= score.effective;
        (score.rows > 0).then_some(score)
    }

    /// For the columns of `HEADS`.
    fn cells(&self, name: &str) -> Vec<String> {
        let one = |value: f64| format!("{value:.1}");
        vec![
            name.to_string(),
            self.rows.to_string(),
            one(self.effective),
            one(self.ok),
            one(self.ok_if_zero),
            one(self.error),
            one(self.error_if_zero),
            format!("{} of {}", self.signs, self.effects),
        ]
    }
}

pub const HEADS: [&str; 8] = [
    "score",
    "rows",
    "effective",
    "ok",
    "ok of always 0 %",
    "mean error",
    "that of always 0 %",
    "sign right",
];

#[cfg(test)]
mod tests {
    use super::super::{Rows, line};
    use super::*;

    /// The lines of a source, as if each effect had been simulated as `of` says.
    fn lines(source: &str, of: &dyn Fn(&Line) -> f64) -> Vec<Line> {
        let rows = Rows::of(source).unwrap().that_count().0;
        let simulated = rows.iter().map(|(row, _)| {
            let mut line = line(row, Err(String::new())).unwrap();
            let value = of(&line);
            let simulated = Figure { value, ..ZERO };
            line.simulated = Some(simulated);
            line.verdict = line.demand.judge(simulated, 1);
            line
        });
        simulated.collect()
    }

    fn score(lines: &[Line]) -> Score {
        Scores::of(lines.iter()).unwrap().decided
    }

    #[test]
    fn zero_scores_what_zero_would() {
        for source in ["000", "001", "002", "003", "004"] {
            let score = score(&lines(source, &|_| 0.0));
            assert_eq!(score.ok, score.ok_if_zero, "{source}");
            assert_eq!(score.error, score.error_if_zero, "{source}");
            assert_eq!(score.signs, 0, "{source}");
            assert!(score.effects > 0, "{source}");
        }
    }

    #[test]
    fn what_was_published_is_right() {
        let score = score(&lines("003", &|l| l.published.map_or(0.0, |p| p.value)));
        assert_eq!((score.ok, score.error), (18.0, 0.0));
        assert_eq!((score.signs, score.effects), (16, 16));
        assert_eq!(score.ok_if_zero, 2.0);
    }

    /// Whether they count may decide which is nearer, so both are shown.
    #[test]
    fn undecided_rows_count_in_a_score_of_their_own() {
        let mut lines = lines("000", &|_| 0.0);
        let all = score(&lines);
        let at = lines.iter().position(|l| l.row == "lu.C/passive").unwrap();
        lines[at].undecided_seeds = Some(9);
        let rest = score(&lines);
        assert_eq!((all.rows - rest.rows, all.effects - rest.effects), (1, 1));
        assert!(rest.error_if_zero < all.error_if_zero);
        let both = Scores::of(lines.iter()).unwrap();
        assert_eq!((both.decided, both.all), (rest, all));
        let names = both
            .lines("of it")
            .iter()
            .map(|l| l[0].clone())
            .collect::<Vec<_>>();
        assert_eq!(names, ["of it", "of it, undecided too"]);
    }

    /// Nine of tbench and six of schbench, of which each has up to seven quantiles.
    #[test]
    fn quantiles_of_a_run_are_one_row() {
        let score = score(&lines("002", &|_| 0.0));
        assert!(score.rows > 30, "{score:?}");
        assert!((score.effective - 15.0).abs() < 1e-9, "{score:?}");
    }

    /// -13.25 % with a standard error of 7.55 shows nothing, nor does 1 us of 46 where whole
    /// microseconds are published.
    #[test]
    fn underpowered_rows_count_nowhere() {
        let verdict = |source, name| {
            let lines = lines(source, &|_| 0.0);
            lines.iter().find(|l| l.row == name).unwrap().verdict
        };
        assert_eq!(verdict("000", "lu.C/active"), Verdict::Underpowered);
        assert_eq!(verdict("000", "lu.C/passive"), Verdict::Sign);
        for name in ["schbench-4/p50", "schbench-2/p75"] {
            assert_eq!(verdict("002", name), Verdict::Underpowered, "{name}");
        }
        assert_eq!(verdict("002", "schbench-1/p50"), Verdict::Sign);
        assert_eq!(score(&lines("000", &|_| 0.0)).rows, 7);
    }

    /// The source has one line of figures of one benchmark: time, migrations, CPUs and switches,
    /// and two rates. The others are of later patches and of replies.
    #[test]
    fn rows_of_other_messages_are_apart() {
        let lines = lines("004", &|_| 0.0);
        let own = lines.iter().filter(|l| l.in_source).count();
        assert_eq!((own, lines.len()), (6, 33));
    }
}
