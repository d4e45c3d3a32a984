// SPDX-License-Identifier: GPL-2.0-only
//! A configuration file: TOML whose keys are long options of the command line, tables `arms` and
//! a list `rules`. It is parsed into the changes that `ctl` makes, and into words for the options'
//! own parser.

use crate::policy::arms::{DEFAULT_ARM, check_name};
use crate::policy::change::Change;
use crate::policy::features::{TUNABLES, feature};
use crate::policy::plan::{Changes, RuleOf};
use crate::policy::rules::Subject;
use crate::util::names::instead;
use anyhow::{Context, Result, anyhow, ensure};
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
    /// The line of each key: `slice-us`, `arms.games`, `arms.games.slice-us`, `--comm cc1`.
    pub lines: BTreeMap<String, usize>,
    /// What is changed on arms.
    pub arms: BTreeMap<String, Change>,
    pub rules: Vec<RuleOf>,
}

/// A key of a file that is an option of a run, and no setting.
#[derive(Clone, Debug)]
pub struct Key<'a> {
    pub name: &'a str,
    /// It is on or off.
    pub flag: bool,
}

/// A text, and its name in errors.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

type Entry<'a> = (
    &'a Spanned<std::borrow::Cow<'a, str>>,
    &'a Spanned<DeValue<'a>>,
);

impl Said {
    /// Parses the file `name`. `options`: the long options that are no setting. An error is one
    /// sentence with the line.
    pub fn parse(name: &str, bytes: &[u8], options: &[Key<'_>]) -> Result<Said> {
        Said::of(name, bytes, options, &|_| true)
    }

    /// These options alone, whatever else the file says.
    pub fn part(name: &str, bytes: &[u8], options: &[Key<'_>]) -> Result<Said> {
        let wanted = |key: &str| options.iter().any(|option| option.name == key);
        Said::of(name, bytes, options, &wanted)
    }

    fn of(
        name: &str,
        bytes: &[u8],
        options: &[Key<'_>],
        wanted: &dyn Fn(&str) -> bool,
    ) -> Result<Said> {
        let text = str::from_utf8(bytes).map_err(|e| {
            let line = bytes[..e.valid_up_to()]
                .iter()
                .filter(|b| **b == b'\n')
                .count()
                + 1;
            anyhow!("{name}, line {line}: expected UTF-8: save the file in that encoding")
        })?;
        let source = Source { name, text };
        let table = DeTable::parse(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start);
            source.wrong(at, e.message().trim_end_matches('\n').replace('\n', ", "))
        })?;
        let mut said = Said::default();
        let keys = table.get_ref().iter();
        for key in keys.filter(|(key, _)| wanted(key.get_ref())) {
            source.top(key, options, &mut said)?;
        }
        Ok(said)
    }
}

impl Source<'_> {
    fn line(&self, at: usize) -> usize {
        self.text[..at.min(self.text.len())].matches('\n').count() + 1
    }

    /// One line, whatever the file has.
    fn wrong(&self, at: usize, what: impl std::fmt::Display) -> anyhow::Error {
        let what = what.to_string().replace(char::is_control, " ");
        anyhow!("{}, line {}: {what}", self.name, self.line(at))
    }

    fn top(&self, key: Entry, options: &[Key<'_>], said: &mut Said) -> Result<()> {
        let (name, value) = (key.0.get_ref().as_ref(), key.1);
        let at = key.0.span().start;
        match (name, value.get_ref()) {
            (ARMS, DeValue::Table(arms)) => {
                for arm in arms {
                    self.arm(arm, said)?;
                }
                Ok(())
            }
            (RULES, DeValue::Array(rules)) => {
                for rule in rules {
                    let (rule, at) = (self.rule(rule)?, rule.span().start);
                    rule.subject.check().map_err(|e| self.wrong(at, e))?;
                    said.lines.insert(rule.subject.to_string(), self.line(at));
                    said.rules.push(rule);
                }
                Ok(())
            }
            (ARMS, _) => Err(self.wrong(at, "expected tables, such as [arms.games]")),
            (RULES, _) => Err(self.wrong(at, "expected tables, such as [[rules]]")),
            _ if options.iter().any(|o| o.name == name) => {
                let flag = options.iter().any(|o| o.name == name && o.flag);
                let words = match value.get_ref() {
                    DeValue::Boolean(on) if flag => on.then(Vec::new),
                    _ if flag => {
                        return Err(self.wrong(at, format!("{name}: expected true or false")));
                    }
                    one => Some(vec![word(one).ok_or_else(|| {
                        self.wrong(at, format!("{name}: expected a text or a number"))
                    })?]),
                };
                said.options.insert(name.to_string(), words);
                said.lines.insert(name.to_string(), self.line(at));
                Ok(())
            }
            _ => {
                let top = options.iter().map(|o| o.name).chain([ARMS, RULES]);
                said.lines.insert(name.to_string(), self.line(at));
                self.setting(key, &mut said.change, top)
            }
        }
    }

    fn setting<'a>(
        &self,
        key: Entry,
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
            change.put(name, &words(name, key.1.get_ref())?)
        };
        put().map(|_| ()).map_err(|e| self.wrong(at, e))
    }

    fn arm(&self, key: Entry, said: &mut Said) -> Result<()> {
        let (name, at) = (key.0.get_ref().as_ref(), key.0.span().start);
        let DeValue::Table(keys) = key.1.get_ref() else {
            return Err(self.wrong(at, "expected a table, such as [arms.games]"));
        };
        if name == DEFAULT_ARM {
            let what = "is for all other tasks: write its keys above all tables";
            return Err(self.wrong(at, format!("arm {name} {what}")));
        }
        check_name(name).map_err(|e| self.wrong(at, e))?;
        said.lines.insert(format!("{ARMS}.{name}"), self.line(at));
        let mut change = Change::default();
        for key in keys {
            let (inner, at) = (key.0.get_ref().as_ref(), key.0.span().start);
            if TUNABLES.iter().any(|t| t.machine_wide && t.name == inner) {
                let what = "applies to the whole machine: write it above all tables";
                return Err(self.wrong(at, format!("arm {name}: {inner} {what}")));
            }
            self.setting(key, &mut change, std::iter::empty())?;
            said.lines
                .insert(format!("{ARMS}.{name}.{inner}"), self.line(at));
        }
        said.arms.insert(name.to_string(), change);
        Ok(())
    }

    fn rule(&self, rule: &Spanned<DeValue>) -> Result<RuleOf> {
        let at = rule.span().start;
        let expected = "expected a rule: comm or cgroup, and arm";
        let DeValue::Table(keys) = rule.get_ref() else {
            return Err(self.wrong(at, expected));
        };
        let (mut subject, mut arm) = (None, None);
        for (key, value) in keys {
            let name = key.get_ref().as_ref();
            let known = ["comm", "cgroup", "arm"];
            let text = value.get_ref().as_str().and_then(plain);
            match (name, text) {
                ("arm", Some(text)) => arm = Some(text),
                ("comm", Some(text)) if subject.is_none() => subject = Some(Subject::Comm(text)),
                ("cgroup", Some(text)) if subject.is_none() => {
                    subject = Some(Subject::Cgroup(text.into()));
                }
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
        match (subject, arm) {
            (Some(subject), Some(arm)) => Ok(RuleOf { subject, arm }),
            _ => Err(self.wrong(at, expected)),
        }
    }
}

/// A text that fits into a line of the log.
fn plain(text: &str) -> Option<String> {
    (!text.contains(char::is_control)).then(|| text.to_string())
}

/// A text or a number as one word of a command line.
fn word(value: &DeValue) -> Option<String> {
    match value {
        DeValue::String(text) => plain(text),
        DeValue::Integer(number) => match number.radix() {
            10 => Some(number.as_str().to_string()),
            radix => u128::from_str_radix(number.as_str(), radix)
                .ok()
                .map(|n| n.to_string()),
        },
        DeValue::Float(number) => Some(number.as_str().to_string()),
        _ => None,
    }
}

/// The words of a setting.
fn words(key: &str, value: &DeValue) -> Result<Vec<String>> {
    match value {
        DeValue::Array(all) => {
            let text = |one: &Spanned<DeValue>| match one.get_ref() {
                text @ DeValue::String(_) => word(text),
                _ => None,
            };
            let all: Option<Vec<String>> = all.iter().map(text).collect();
            all.with_context(|| format!("{key}: expected a list of texts, such as [\"claim\"]"))
        }
        one => {
            let one = word(one);
            let one = one.with_context(|| format!("{key}: expected a text or a number"))?;
            Ok(vec![one])
        }
    }
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
        let mut enable = merged(self.enable, &later.enable, &later.disable);
        let disable = merged(self.disable, &later.disable, &later.enable);
        // A sub-switch without its feature has no effect, and a file with it would be refused.
        let off = |name: &str| disable.iter().any(|d| d == name);
        enable.retain(|name| !feature(name).is_some_and(|f| off(f.parent)));
        Change {
            enable,
            disable,
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
            // A number may come as a text, from a command line.
            let text = value.as_str().unwrap_or_default();
            let number = text.bytes().all(|b| b.is_ascii_digit());
            let number = text.parse().ok().filter(|_| number);
            let value = number.map_or_else(|| Value::try_from(value), |n| Ok(Value::Integer(n)))?;
            table.insert(key.clone(), value);
        }
        Ok(table)
    }
}

impl Said {
    /// What was said and then changed. Arms and rules that were deleted since are dropped.
    pub fn then(self, later: &Changes) -> Said {
        let mut said = self;
        said.change = said.change.then(later.everybody.clone());
        for (name, change) in &later.arms {
            let old = said.arms.remove(name).unwrap_or_default();
            said.arms.insert(name.clone(), old.then(change.clone()));
        }
        for rule in &later.rules {
            said.rules.retain(|old| old.subject != rule.subject);
            said.rules.push(rule.clone());
        }
        said.arms
            .retain(|name, _| !later.deleted_arms.contains(name));
        said.rules
            .retain(|rule| !later.deleted_rules.contains(&rule.subject));
        said
    }

    /// As the text of a file.
    pub fn text(&self) -> Result<String> {
        let mut table = self.change.table()?;
        for (key, words) in &self.options {
            let value = match words.as_deref() {
                None => Value::Boolean(false),
                Some([]) => Value::Boolean(true),
                Some(words) => Value::String(words.join(" ")),
            };
            table.insert(key.clone(), value);
        }
        let mut arms = Table::new();
        for (name, change) in &self.arms {
            arms.insert(name.clone(), Value::Table(change.table()?));
        }
        if !arms.is_empty() {
            table.insert(ARMS.to_string(), Value::Table(arms));
        }
        let rule = |rule: &RuleOf| {
            let mut row = Table::new();
            let (key, subject) = match &rule.subject {
                Subject::Cgroup(path) => ("cgroup", path.display().to_string()),
                Subject::Comm(glob) => ("comm", glob.clone()),
                Subject::Pid(pid) => ("pid", pid.to_string()),
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

    fn parsed(text: impl AsRef<[u8]>) -> Result<Said> {
        let key = |name, flag| Key { name, flag };
        let options = [key("freeze", true), key("stats-path", false)];
        Said::parse("F", text.as_ref(), &options)
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
        assert_eq!(said.rules[0].subject, Subject::Comm("Game*".into()));
        assert_eq!(parsed("freeze = false").unwrap().options["freeze"], None);
        for number in ["0x400", "0o2000", "0b100_0000_0000", "1_024"] {
            let said = parsed(format!("slice-us = {number}")).unwrap();
            assert_eq!(said.change.set["slice-us"], "1024");
        }
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
            (
                "slice-us = true",
                "F, line 1: slice-us: expected a text or a number",
            ),
            (
                "slice-us = 0x5",
                "F, line 1: slice-us 5: 100 to 100000 us are possible",
            ),
            (
                "freeze = 'yes'",
                "F, line 1: freeze: expected true or false",
            ),
            ("freeze = []", "F, line 1: freeze: expected true or false"),
            (
                "stats-path = true",
                "F, line 1: stats-path: expected a text",
            ),
            (
                "stats-path = false",
                "F, line 1: stats-path: expected a text",
            ),
            (
                "stats-path = \"a\\u0000\"",
                "F, line 1: stats-path: expected a text",
            ),
            (
                "[arms.default]",
                "F, line 1: arm default is for all other tasks: write its keys",
            ),
            (
                "\n[arms.Big]",
                "F, line 2: arm 'Big': a name has 1 to 15 of a-z",
            ),
            (
                "[arms.x]\nrescue-us = 9000",
                "F, line 2: arm x: rescue-us applies to the whole",
            ),
            (
                "[[rules]]\ncgroup = 'build'\narm = 'x'",
                "F, line 1: cgroup build: expected a path from / on",
            ),
            (
                "[[rules]]\ncgroup = '/a/../b'\narm = 'x'",
                "F, line 1: cgroup /a/../b: expected a path",
            ),
            (
                "[[rules]]\ncomm = '0123456789abcdef'\narm = 'x'",
                "F, line 1: name '0123456789abcdef': a pattern has 1 to 15 bytes",
            ),
            (
                "enable = ['claims']",
                "F, line 1: unknown feature 'claims': did you mean 'claim'?",
            ),
            (
                "enable = [1]",
                "F, line 1: enable: expected a list of texts, such as [\"claim\"]",
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
                "F, line 1: slice-us: expected a text or a number",
            ),
        ] {
            let told = parsed(text).unwrap_err().to_string();
            assert!(told.starts_with(expected), "{text}: {told}");
            assert!(!told.contains('\n'), "{told}");
        }
        let told = parsed(b"freeze = true\n# \xff").unwrap_err().to_string();
        assert_eq!(
            told,
            "F, line 2: expected UTF-8: save the file in that encoding"
        );
    }

    #[test]
    fn a_sub_switch_goes_with_its_feature() {
        let change = |text: &str| serde_json::from_str::<Change>(text).unwrap();
        let old = change(r#"{"enable":["avg_idle","avg_idle_every"]}"#);
        let now = old.then(change(r#"{"disable":["avg_idle"]}"#));
        assert_eq!(now, change(r#"{"disable":["avg_idle"]}"#));
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
                subject: Subject::Comm("Game*".into()),
                arm: "b".into(),
            }],
            deleted_arms: vec!["a".into(), "c".into()],
            deleted_rules: vec![Subject::Comm("old".into())],
        };
        let old = "enable = ['claim', 'util_fits']\nrescue-us = 9000\n[arms.a]\npreset = 'patra'\n\
                   [[rules]]\ncomm = 'Game*'\narm = 'a'\n";
        let said = parsed(old).unwrap().then(&later);
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
