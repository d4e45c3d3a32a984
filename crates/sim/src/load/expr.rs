// SPDX-License-Identifier: GPL-2.0-only
//! Numbers of a workload: times in ns, sizes in bytes, counts, and values that only a task knows.

use anyhow::{Context, Result, bail, ensure};

/// The value that a name stands for.
pub type Names<'a> = &'a dyn Fn(&str) -> Option<(Atom, Unit)>;

/// The unit of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// A count, or a part.
    #[default]
    None,
    /// ns
    Time,
    /// Bytes.
    Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atom {
    Number(i64),
    /// The number of the task in its group.
    Me,
    /// The number of the last message's sender in its group; and the number that was kept.
    From,
    Kept,
    /// The turn of the innermost loop.
    Turn,
}

/// A sum of products of atoms. False: the product is subtracted, the atom divides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    sum: Vec<(bool, Vec<(bool, Atom)>)>,
    unit: Unit,
}

/// The values that a task knows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known {
    pub me: i64,
    pub from: i64,
    pub kept: i64,
    pub turn: i64,
}

const UNITS: [(&str, i64, Unit); 9] = [
    ("", 1, Unit::None),
    ("%", 1, Unit::None),
    ("ns", 1, Unit::Time),
    ("us", 1_000, Unit::Time),
    ("ms", 1_000_000, Unit::Time),
    ("s", 1_000_000_000, Unit::Time),
    ("kB", 1_000, Unit::Size),
    ("MB", 1_000_000, Unit::Size),
    ("B", 1, Unit::Size),
];

impl Unit {
    /// What was expected, for errors.
    pub fn expected(self) -> &'static str {
        match self {
            Unit::None => "a number without a unit",
            Unit::Time => "a time in ns, us, ms or s",
            Unit::Size => "a size in B, kB or MB",
        }
    }

    /// The unit of a product or a quotient.
    fn by(self, times: bool, other: Unit) -> Unit {
        match (self, other) {
            (Unit::None, unit) if times => unit,
            (unit, other) if !times && unit == other => Unit::None,
            (unit, _) => unit,
        }
    }
}

impl Expr {
    pub fn number(n: i64) -> Expr {
        Expr {
            sum: vec![(true, vec![(true, Atom::Number(n))])],
            unit: Unit::None,
        }
    }

    /// Reads operands with an operator between each two.
    pub fn parse(words: &[&str], names: Names<'_>) -> Result<Expr> {
        let mut sum = vec![(true, Vec::new())];
        let mut units = vec![Unit::None];
        let mut times = true;
        for (i, word) in words.iter().enumerate() {
            if i % 2 == 0 {
                let (atom, unit) = atom(word, names)?;
                sum.last_mut()
                    .expect("it begins with one")
                    .1
                    .push((times, atom));
                let of = units.last_mut().expect("as many as products");
                *of = of.by(times, unit);
                continue;
            }
            match *word {
                "*" => times = true,
                "/" => times = false,
                "+" | "-" => {
                    times = true;
                    sum.push((*word == "+", Vec::new()));
                    units.push(Unit::None);
                }
                _ => bail!("{word:?} where one of + - * / was expected"),
            }
        }
        if words.len().is_multiple_of(2) {
            bail!("a number was expected at the end of {:?}", words.join(" "));
        }
        let unit = units[0];
        ensure!(
            units.iter().all(|&u| u == unit),
            "{:?} adds numbers of different units",
            words.join(" ")
        );
        Ok(Expr { sum, unit })
    }

    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// The value. None: it depends on the task.
    pub fn fixed(&self) -> Option<i64> {
        let number = |(_, a): &(bool, Atom)| matches!(a, Atom::Number(_));
        let fixed = self
            .sum
            .iter()
            .all(|(_, product)| product.iter().all(number));
        fixed.then(|| self.value(&Known::default()))
    }

    pub fn value(&self, known: &Known) -> i64 {
        let product = |factors: &[(bool, Atom)]| {
            factors.iter().fold(1i64, |product, &(times, atom)| {
                let value = atom.value(known);
                match times {
                    true => product.saturating_mul(value),
                    false => product.checked_div(value).unwrap_or(0),
                }
            })
        };
        let signed = |(plus, factors): &(bool, Vec<_>)| {
            if *plus {
                product(factors)
            } else {
                -product(factors)
            }
        };
        self.sum.iter().map(signed).fold(0, i64::saturating_add)
    }
}

impl Atom {
    fn value(self, known: &Known) -> i64 {
        match self {
            Atom::Number(n) => n,
            Atom::Me => known.me,
            Atom::From => known.from,
            Atom::Kept => known.kept,
            Atom::Turn => known.turn,
        }
    }
}

fn atom(word: &str, names: Names<'_>) -> Result<(Atom, Unit)> {
    if let Some(atom) = names(word) {
        return Ok(atom);
    }
    let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
    let row = UNITS.iter().find(|row| row.0 == &word[digits.len()..]);
    let &(_, scale, unit) = row.with_context(|| {
        format!("{word:?} where a name, a number, a time or a size was expected")
    })?;
    let number: i64 = digits
        .parse()
        .with_context(|| format!("there is no {word:?}, and it is not a number"))?;
    let number = number.checked_mul(scale);
    let number = number.with_context(|| format!("{word:?} is too large"))?;
    Ok((Atom::Number(number), unit))
}
