// SPDX-License-Identifier: GPL-2.0-only
//! Tables as text and as Markdown.

use super::beside::{Behind, Compared, Gain};
use super::score::{HEADS, Scores};
use super::{Effort, Figure, Line, Table, TablePlan};

/// The columns of a table. All but the first and the last are right-aligned.
pub type Cells = Vec<String>;

pub enum Form {
    Text,
    Markdown,
}

/// docs/simulator/SOURCE.md.
pub fn document(plan: &TablePlan, tables: &[Table]) -> String {
    let beside = if plan.beside { " --beside" } else { "" };
    let changes = if plan.changes { " --changes" } else { "" };
    let beside = &format!("{beside}{changes}");
    let head = head("Published rows beside simulated ones", plan, beside);
    let tables: Vec<String> = tables.iter().map(Table::markdown).collect();
    head + &tables.join("\n")
}

/// The title of a document, and the command that writes it. `what`: the options that choose the
/// table.
pub fn head(title: &str, plan: &TablePlan, what: &str) -> String {
    let source = &plan.source;
    let options = match plan.predicted {
        true => " --predicted".to_string(),
        false => options(&plan.effort),
    };
    format!(
        "# {title}\n\n\
         Written by `scx_roost sim --table {source}{options}{what} --markdown`; \
         [simulator.md](../simulator.md#tables) says what the columns are, and how far to trust \
         them.\n\n"
    )
}

/// The options that say how many runs there are, and how long, with a space before each.
pub fn options(effort: &Effort) -> String {
    let most = match effort.most_seeds {
        Some(most) => format!(" --most-seeds {most}"),
        None => String::new(),
    };
    let short = if effort.short { " --short" } else { "" };
    let params = effort.params.iter().map(|p| format!(" --param {p}"));
    let params: String = params.collect();
    format!(" --seeds {}{most}{short}{params}", effort.runs())
}

impl Table {
    pub fn text(&self) -> String {
        self.shown(&Form::Text)
    }

    pub fn markdown(&self) -> String {
        self.shown(&Form::Markdown)
    }

    fn shown(&self, form: &Form) -> String {
        let runs = if self.short { "short runs" } else { "runs" };
        let title = format!("Source {}", self.source);
        let message = self.message.split_once(": ");
        let message = message.map_or(self.message, |(_, rest)| rest);
        let mut text = match form {
            Form::Text => format!("{title}: {message}\n"),
            Form::Markdown => format!("## {title}\n\n{message}\n\n"),
        };
        text += &match (self.predicted, self.most_seeds > self.seeds) {
            (true, _) => "Simulated: as predicted (predictions/README.md).\n".to_string(),
            (_, true) => format!("{} to {} {runs} of each. ", self.seeds, self.most_seeds),
            _ => format!("{} {runs} of each. ", self.seeds),
        };
        if !self.predicted {
            text += &self.frozen.text();
        }
        if let Some(log) = &self.log {
            text += log;
        }
        if self.short {
            text += "A tenth of the time, so that the start of tasks shows: for tests of what has \
                     changed, and no result.\n";
        }
        if !self.params.is_empty() {
            text += &format!("Here: {}.\n", self.params.join(", "));
        }
        let mut notes = Vec::new();
        let parts = [
            ("rows", &self.rows),
            ("of other messages", &self.others),
            ("apart, not counted", &self.apart),
        ];
        for (name, lines) in parts {
            let rows = lines.iter().map(|l| cells(l, self.short, &mut notes));
            let rows: Vec<Cells> = rows.collect();
            if !rows.is_empty() {
                text += "\n";
                text += &table(form, &heads(name), &rows);
            }
        }
        for (number, note) in (1..).zip(notes) {
            text += &match form {
                Form::Text => format!("[{number}] {note}\n"),
                Form::Markdown => format!("\n[{number}] {note}\n"),
            };
        }
        text + &self.scores(form) + &self.beside(form)
    }

    /// The scores beside those of "always 0 %", and the number of rows with each verdict.
    fn scores(&self, form: &Form) -> String {
        let fitted = self.rows.iter().filter(|l| l.calibrates()).count();
        let unfitted = format!("without the {fitted} that calibrate");
        let scores = [
            ("of the source", &self.score),
            (unfitted.as_str(), &self.score_unfitted),
            ("of other messages", &self.score_others),
        ];
        let shown = |(name, scores): &(&str, &Option<Scores>)| {
            let doubled = fitted == 0 && *name == unfitted;
            scores.filter(|_| !doubled).map(|scores| scores.lines(name))
        };
        let rows: Vec<Cells> = scores.iter().filter_map(shown).flatten().collect();
        if rows.is_empty() {
            return String::new();
        }
        let mut text = "\n".to_string() + &table(form, &HEADS.map(String::from).into(), &rows);
        for (of, lines) in [
            ("rows", &self.rows),
            ("rows of other messages", &self.others),
        ] {
            if !lines.is_empty() {
                let lines: Vec<&Line> = lines.iter().collect();
                text += &format!("\nOf {} {of}: {}.\n", lines.len(), counts(&lines));
            }
        }
        text
    }

    fn beside(&self, form: &Form) -> String {
        if self.beside.is_empty() {
            return String::new();
        }
        let heads = [
            "workload",
            "metric",
            "ours",
            "best source",
            "which",
            "pinned",
            "oracle",
            "ours is behind",
        ];
        let heads: Cells = heads.map(String::from).into();
        let rows: Vec<Cells> = self.beside.iter().map(compared).collect();
        let behind = |decided: bool| {
            let of = |b: &Option<Behind>| b.is_some_and(|b| !decided || !b.undecided);
            let lines = self.beside.iter();
            lines
                .filter(|c| of(&c.behind_source) || of(&c.behind_pinned))
                .count()
        };
        let known = self.beside.iter().filter(|c| c.ours.is_some());
        format!(
            "\nOur own choice beside the sources', percent better than the row's base:\n\n{}{}\nBehind on {} of {}, {} of these undecided.\n",
            table(form, &heads, &rows),
            self.crowded(),
            behind(false),
            known.count(),
            behind(false) - behind(true)
        )
    }

    /// Why some workloads have no pinned figure.
    fn crowded(&self) -> &'static str {
        let without = |c: &Compared| c.crowded && c.pinned.is_none();
        match self.beside.iter().any(without) {
            true => "\nPinned -: the base keeps more CPUs busy than there are cores.\n",
            false => "",
        }
    }
}

/// Counts lines by verdict. Undecided ones are counted apart.
fn counts(lines: &[&Line]) -> String {
    let (undecided, decided): (Vec<&Line>, Vec<&Line>) =
        lines.iter().partition(|l| l.undecided_seeds.is_some());
    let mut verdicts: Vec<_> = decided.iter().map(|l| l.verdict).collect();
    verdicts.sort();
    let of = verdicts.chunk_by(|a, b| a == b);
    let counts = of.map(|v| format!("{} {}", v.len(), v[0].name()));
    let undecided = (!undecided.is_empty()).then(|| format!("{} undecided", undecided.len()));
    counts.chain(undecided).collect::<Vec<_>>().join(", ")
}

fn heads(name: &str) -> Cells {
    let heads = [
        name,
        "published",
        "se",
        "simulated",
        "se",
        "runs",
        "off",
        "level",
        "verdict",
    ];
    heads.map(String::from).into()
}

/// What is said of a row. Short runs have no verdict.
fn told(line: &Line, short: bool, notes: &mut Vec<&'static str>) -> String {
    let run = line.simulated.is_some();
    let mut verdict = match line.counts() || !run {
        _ if short && run => "-".to_string(),
        true => line.verdict.name().to_string(),
        false => format!("({})", line.verdict.name()),
    };
    if line.calibrates() {
        verdict += " (calibrates)";
    }
    if let Some(why) = &line.why {
        verdict += &format!(": {why}");
    }
    if short {
        return verdict;
    }
    if let Some(seeds) = line.undecided_seeds {
        verdict += &format!(", undecided: try --seeds {seeds}");
    }
    for &note in &line.notes {
        let known = notes.iter().position(|n| *n == note);
        let at = known.unwrap_or_else(|| {
            notes.push(note);
            notes.len() - 1
        });
        verdict += &format!(" [{}]", at + 1);
    }
    verdict
}

/// The simulated level of the base beside the published one.
fn level(line: &Line) -> String {
    let Some((here, there)) = line.level.zip(line.published_base) else {
        return "-".to_string();
    };
    let shown = |value: f64| match value.abs() {
        v if v < 10.0 => format!("{value:.2}"),
        v if v < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    };
    format!("{} for {} {}", shown(here), shown(there), line.unit)
}

fn cells(line: &Line, short: bool, notes: &mut Vec<&'static str>) -> Cells {
    let value = |figure: Option<Figure>| figure.map_or("-".into(), |f| format!("{:+.2}%", f.value));
    let error = |figure: Option<Figure>| {
        let error = figure.and_then(|f| f.error);
        error.map_or("-".into(), |e| format!("{e:.2}"))
    };
    let published = match line.published {
        None => "none".to_string(),
        some => value(some),
    };
    vec![
        line.row.to_string(),
        published,
        error(line.published),
        value(line.simulated),
        error(line.simulated),
        match line.runs {
            0 => "-".to_string(),
            runs => runs.to_string(),
        },
        line.difference.map_or("-".into(), |d| format!("{d:+.2}")),
        level(line),
        told(line, short, notes),
    ]
}

fn compared(line: &Compared) -> Cells {
    let gain = |gain: &Option<Gain>| {
        let gain = gain.as_ref();
        gain.map_or("-".into(), |g| format!("{:+.2}%", g.gain.value))
    };
    let which = line.source.as_ref().map_or("-", |g| g.variant);
    vec![
        line.workload.to_string(),
        line.metric.clone(),
        gain(&line.ours),
        gain(&line.source),
        which.to_string(),
        gain(&line.pinned),
        gain(&line.oracle),
        line.behind(),
    ]
}

impl Compared {
    /// What our own choice is behind, and by how many points. Empty: nothing.
    fn behind(&self) -> String {
        let of = [
            ("source", self.behind_source),
            ("pinned", self.behind_pinned),
        ];
        let told = of.into_iter().filter_map(|(what, behind)| {
            let undecided = if behind?.undecided {
                " (undecided)"
            } else {
                ""
            };
            Some(format!("{what} by {:.1}{undecided}", behind?.points))
        });
        told.collect::<Vec<_>>().join(", ")
    }
}

pub fn table(form: &Form, heads: &Cells, rows: &[Cells]) -> String {
    match form {
        Form::Text => aligned(heads, rows),
        Form::Markdown => {
            let rule = heads.iter().map(|_| "---".to_string()).collect();
            let line = |cells: &Cells| {
                let cells = cells.iter().map(|c| c.replace('|', "\\|"));
                format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
            };
            [heads, &rule].into_iter().chain(rows).map(line).collect()
        }
    }
}

fn aligned(heads: &Cells, rows: &[Cells]) -> String {
    let all = || [heads].into_iter().chain(rows);
    let last = heads.len() - 1;
    let width = |at: usize| {
        all()
            .map(|cells| cells[at].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..=last).map(width).collect();
    let line = |cells: &Cells| {
        let cell = |(at, text): (usize, &String)| match at {
            0 => format!("{text:<0$}", widths[0]),
            _ if at == last => format!("  {text}"),
            _ => format!("  {text:>0$}", widths[at]),
        };
        let line: String = cells.iter().enumerate().map(cell).collect();
        line.trim_end().to_string() + "\n"
    };
    all().map(line).collect()
}
