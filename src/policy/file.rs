// SPDX-License-Identifier: GPL-2.0-only
//! A configuration file: TOML whose keys are long options of the command line, tables `arms` and
//! a list `rules`. It is parsed into the changes that `ctl` makes, and into words for the options'
//! own parser.

use crate::policy::features::TUNABLES;
use crate::policy::plan::{Changes, RuleOf};
use crate::policy::rules::Whom;
use crate::policy::settings::Change;
use crate::util::names::instead;
use anyhow::{Result, anyhow, bail, ensure};
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// The keys of a setting that are no tunable.
const CHOICES: [&str; 4] = ["profile", "preset", "enable", "disable"];
const ARMS: &str = "arms";
const RULES: &str = "rules";

/// What one place says: a file, or the command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// For arm default.
    pub change: Change,
    /// The values of each other option; a flag has none. None: a flag is off.
    pub options: BTreeMap<String, Option<Vec<String>>>,
    /// The line of each option.
    pub lines: BTreeMap<String, usize>,
    /// What is changed on arms.
    pub arms: BTreeMap<String, Change>,
    pub rules: Vec<RuleOf>,
}

/// A text, and its name in errors.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

type Key<'a> = (
    &'a Spanned<std::borrow::Cow<'a, str>>,
    &'a Spanned<DeValue<'a>>,
);

impl Said {
    /// Parses the text of the file `name`. `options`: the long options that are no setting. An
    /// error is one sentence with the line.
    pub fn parse(name: &str, text: &str, options: &[&str]) -> Result<Said> {
        let source = Source { name, text };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            source.wrong(at, e.message().trim_end_matches('\n').replace('\n', ", "))
        })?;
        let mut said = Said::default();
        for key in table.get_ref() {
            source.top(key, options, &mut said)?;
        }
        Ok(said)
    }
}

impl Source<'_> {
    fn line(&self, at: usize) -> usize {
        self.text[..at.min(self.text.len())].matches('\n').count() + 1
    }

    fn wrong(&self, at: usize, what: impl std::fmt::Display) -> anyhow::Error {
        anyhow!("{}, line {}: {what}", self.name, self.line(at))
    }

    fn top(&self, key: Key, options: &[&str], said: &mut Said) -> Result<()> {
        let (name, value) = (key.0.get_ref().as_ref(), key.1);
        let at = key.0.span().start;
        match (name, value.get_ref()) {
            (ARMS, DeValue::Table(arms)) => {
                for (arm, keys) in arms {
                    let change = self.arm((arm, keys))?;
                    said.arms.insert(arm.get_ref().to_string(), change);
                }
                Ok(())
            }
            (RULES, DeValue::Array(rules)) => {
                for rule in rules {
                    said.rules.push(self.rule(rule)?);
                }
                Ok(())
            }
            (ARMS, _) => Err(self.wrong(at, "expected tables, such as [arms.games]")),
            (RULES, _) => Err(self.wrong(at, "expected tables, such as [[rules]]")),
            _ if options.contains(&name) => {
                let line = self.line(at);
                let words = words(value.get_ref()).map_err(|e| self.wrong(at, e))?;
                said.options.insert(name.to_string(), words);
                said.lines.insert(name.to_string(), line);
                Ok(())
            }
            _ => {
                let top = options.iter().copied().chain([ARMS, RULES]);
                self.setting(key, &mut said.change, top)
            }
        }
    }

    fn setting<'a>(
        &self,
        key: Key,
        change: &mut Change,
        others: impl Iterator<Item = &'a str>,
    ) -> Result<()> {
        let (name, at) = (key.0.get_ref().as_ref(), key.0.span().start);
        let known: Vec<&str> = CHOICES
            .into_iter()
            .chain(TUNABLES.iter().map(|t| t.name))
            .chain(others)
            .collect();
        let mut put = || {
            ensure!(
                known.contains(&name),
                "unknown key '{name}': {}",
                instead(name, &known)
            );
            match words(key.1.get_ref())? {
                Some(words)
                    if !words.is_empty() || !matches!(key.1.get_ref(), DeValue::Boolean(_)) =>
                {
                    change.put(name, &words)
                }
                _ => bail!("{name}: expected a value"),
            }
        };
        put().map(|_| ()).map_err(|e| self.wrong(at, e))
    }

    fn arm(&self, key: Key) -> Result<Change> {
        let DeValue::Table(keys) = key.1.get_ref() else {
            return Err(self.wrong(key.0.span().start, "expected a table, such as [arms.games]"));
        };
        let mut change = Change::default();
        for key in keys {
            self.setting(key, &mut change, std::iter::empty())?;
        }
        Ok(change)
    }

    fn rule(&self, rule: &Spanned<DeValue>) -> Result<RuleOf> {
        let at = rule.span().start;
        let expected = "expected a rule: comm or cgroup, and arm";
        let DeValue::Table(keys) = rule.get_ref() else {
            return Err(self.wrong(at, expected));
        };
        let (mut whom, mut arm) = (None, None);
        for (key, value) in keys {
            let name = key.get_ref().as_ref();
            let known = ["comm", "cgroup", "arm"];
            let text = value.get_ref().as_str().map(str::to_string);
            match (name, text) {
                ("arm", Some(text)) => arm = Some(text),
                ("comm", Some(text)) if whom.is_none() => whom = Some(Whom::Comm(text)),
                ("cgroup", Some(text)) if whom.is_none() => whom = Some(Whom::Cgroup(text.into())),
                ("comm" | "cgroup", Some(_)) => {
                    return Err(self.wrong(key.span().start, "give comm or cgroup, not both"));
                }
                (name, None) if known.contains(&name) => {
                    return Err(self.wrong(key.span().start, format!("{name}: expected a text")));
                }
                _ => {
                    let said = format!("unknown key '{name}': {}", instead(name, &known));
                    return Err(self.wrong(key.span().start, said));
                }
            }
        }
        match (whom, arm) {
            (Some(whom), Some(arm)) => Ok(RuleOf { whom, arm }),
            _ => Err(self.wrong(at, expected)),
        }
    }
}

/// The words of a value as the command line has them. None: `false`.
fn words(value: &DeValue) -> Result<Option<Vec<String>>> {
    Ok(Some(match value {
        DeValue::Boolean(true) => Vec::new(),
        DeValue::Boolean(false) => return Ok(None),
        DeValue::Array(all) => {
            let one = |one: &Spanned<DeValue>| match one.get_ref() {
                DeValue::String(text) => Ok(text.to_string()),
                _ => bail!("expected texts, such as [\"claim\"]"),
            };
            all.iter().map(one).collect::<Result<_>>()?
        }
        DeValue::String(text) => vec![text.to_string()],
        DeValue::Integer(number) => vec![number.as_str().to_string()],
        DeValue::Float(number) => vec![number.as_str().to_string()],
        _ => bail!("expected a text, a number, true, false or a list of texts"),
    }))
}

// ---- what ctl save writes ----

impl Change {
    /// This change and then another one, as one. As `ctl set` twice.
    fn then(self, later: Change) -> Change {
        if later.profile.is_some() {
            return later;
        }
        let mut set = self.set;
        set.extend(later.set);
        if later.preset.is_some() {
            return Change { set, ..later };
        }
        let merged = |old: Vec<String>, new: &[String], undone: &[String]| {
            let mut all = old;
            all.retain(|name| !undone.contains(name) && !new.contains(name));
            all.extend_from_slice(new);
            all
        };
        Change {
            enable: merged(self.enable, &later.enable, &later.disable),
            disable: merged(self.disable, &later.disable, &later.enable),
            profile: self.profile,
            preset: self.preset,
            set,
        }
    }

    fn table(&self) -> Result<Table> {
        let mut table = Table::new();
        let choices = [("profile", &self.profile), ("preset", &self.preset)];
        for (key, value) in choices {
            table.extend(value.clone().map(|v| (key.to_string(), Value::String(v))));
        }
        for (key, list) in [("enable", &self.enable), ("disable", &self.disable)] {
            if !list.is_empty() {
                table.insert(key.to_string(), Value::try_from(list)?);
            }
        }
        for (key, value) in &self.set {
            table.insert(key.clone(), Value::try_from(value)?);
        }
        Ok(table)
    }
}

impl Said {
    /// What was said and then changed. Arms and rules that were deleted since are dropped; those
    /// that were not said here are returned, each with its name.
    pub fn then(self, later: &Changes) -> (Said, Vec<String>) {
        let (mut said, mut elsewhere) = (self, Vec::new());
        said.change = said.change.then(later.everybody.clone());
        for (name, change) in &later.arms {
            let old = said.arms.remove(name).unwrap_or_default();
            said.arms.insert(name.clone(), old.then(change.clone()));
        }
        for rule in &later.rules {
            said.rules.retain(|old| old.whom != rule.whom);
            said.rules.push(rule.clone());
        }
        for name in &later.deleted_arms {
            if said.arms.remove(name).is_none() {
                elsewhere.push(format!("arm {name}"));
            }
        }
        for whom in &later.deleted_rules {
            let before = said.rules.len();
            said.rules.retain(|old| old.whom != *whom);
            if said.rules.len() == before {
                elsewhere.push(format!("rule {whom}"));
            }
        }
        (said, elsewhere)
    }

    /// As the text of a file; options are left out.
    pub fn text(&self) -> Result<String> {
        let mut table = self.change.table()?;
        let mut arms = Table::new();
        for (name, change) in &self.arms {
            arms.insert(name.clone(), Value::Table(change.table()?));
        }
        if !arms.is_empty() {
            table.insert(ARMS.to_string(), Value::Table(arms));
        }
        let rule = |rule: &RuleOf| {
            let mut row = Table::new();
            let (key, subject) = match &rule.whom {
                Whom::Cgroup(path) => ("cgroup", path.display().to_string()),
                Whom::Comm(glob) => ("comm", glob.clone()),
                Whom::Pid(pid) => ("pid", pid.to_string()),
            };
            row.insert(key.to_string(), Value::String(subject));
            row.insert("arm".to_string(), Value::String(rule.arm.clone()));
            Value::Table(row)
        };
        if !self.rules.is_empty() {
            let rules = self.rules.iter().map(rule).collect();
            table.insert(RULES.to_string(), Value::Array(rules));
        }
        Ok(toml::to_string(&table)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: [&str; 2] = ["freeze", "stats-path"];

    fn parsed(text: &str) -> Result<Said> {
        Said::parse("F", text, &OPTIONS)
    }

    #[test]
    fn keys_are_options_arms_and_rules() {
        let said = parsed(
            "preset = 'patra'\nenable = ['util_fits']\nslice-us = 4000\nfreeze = true\n\
             stats-path = '/x'\n[arms.games]\nmin-slice-us = 300\n\
             [[rules]]\ncomm = 'Game*'\narm = 'games'\n",
        )
        .unwrap();
        assert_eq!(said.change.preset.as_deref(), Some("patra"));
        assert_eq!(said.change.set["slice-us"], "4000");
        assert_eq!(said.options["freeze"], Some(Vec::new()));
        assert_eq!(said.options["stats-path"], Some(vec!["/x".to_string()]));
        assert_eq!(said.arms["games"].set["min-slice-us"], "300");
        assert_eq!(said.rules[0].whom, Whom::Comm("Game*".into()));
        assert_eq!(parsed("freeze = false").unwrap().options["freeze"], None);
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table")]
    fn what_is_wrong_is_one_sentence_with_its_line() {
        for (text, expected) in [
            (
                "\npresett = 'roost'",
                "F, line 2: unknown key 'presett': did you mean 'preset'?",
            ),
            (
                "preset = 'rost'",
                "F, line 1: unknown preset 'rost': did you mean 'roost'?",
            ),
            (
                "slice-us = 5",
                "F, line 1: slice-us 5: 100 to 100000 us are possible",
            ),
            (
                "slice-us = '2ms'",
                "F, line 1: slice-us 2ms: 100 to 100000 us are possible: give",
            ),
            ("slice-us = true", "F, line 1: slice-us: expected a value"),
            (
                "enable = ['claims']",
                "F, line 1: unknown feature 'claims': did you mean 'claim'?",
            ),
            (
                "enable = [1]",
                "F, line 1: expected texts, such as [\"claim\"]",
            ),
            (
                "preset = 'roost",
                "F, line 1: invalid literal string, expected `'`",
            ),
            ("a = 1\na = 2", "F, line 2: duplicate key"),
            (
                "arms = 3",
                "F, line 1: expected tables, such as [arms.games]",
            ),
            (
                "[arms.x]\nfreeze = true",
                "F, line 2: unknown key 'freeze': expected one of profile",
            ),
            (
                "rules = [1]",
                "F, line 1: expected a rule: comm or cgroup, and arm",
            ),
            (
                "[[rules]]\narm = 'x'",
                "F, line 1: expected a rule: comm or cgroup, and arm",
            ),
            (
                "[[rules]]\ncomm='a'\ncgroup='/b'",
                "F, line 2: give comm or cgroup, not both",
            ),
            (
                "[[rules]]\ncom = 'a'",
                "F, line 2: unknown key 'com': did you mean 'comm'?",
            ),
            ("[[rules]]\ncomm = 1", "F, line 2: comm: expected a text"),
            (
                "slice-us = 1979-05-27",
                "F, line 1: expected a text, a number",
            ),
        ] {
            let told = parsed(text).unwrap_err().to_string();
            assert!(told.starts_with(expected), "{text}: {told}");
            assert!(!told.contains('\n'), "{told}");
        }
    }

    #[test]
    fn what_is_saved_is_read_again() {
        let later = Changes {
            everybody: serde_json::from_str(
                r#"{"disable":["claim"],"set":{"freq-threshold":"+5%","slice-us":900}}"#,
            )
            .unwrap(),
            arms: [("b".to_string(), Change::default())].into(),
            rules: vec![RuleOf {
                whom: Whom::Comm("Game*".into()),
                arm: "b".into(),
            }],
            deleted_arms: vec!["a".into(), "c".into()],
            deleted_rules: vec![Whom::Comm("old".into())],
        };
        let old = "enable = ['claim', 'util_fits']\nrescue-us = 9000\n[arms.a]\npreset = 'patra'\n\
                   [[rules]]\ncomm = 'Game*'\narm = 'a'\n";
        let (said, elsewhere) = parsed(old).unwrap().then(&later);
        assert_eq!(elsewhere, ["arm c", "rule --comm old"]);
        let text = said.text().unwrap();
        let again = parsed(&text).unwrap();
        assert_eq!(again.change.enable, ["util_fits"], "{text}");
        assert_eq!(again.change.disable, ["claim"]);
        assert_eq!(again.change.set["slice-us"], "900");
        assert_eq!(again.change.set["rescue-us"], "9000");
        assert_eq!(again.change.set["freq-threshold"], "+5%");
        assert!(again.arms.keys().eq(["b"]));
        assert_eq!((again.rules.len(), again.rules[0].arm.as_str()), (1, "b"));
    }
}
