// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler's answers as text. A scheduler of another version may answer without some fields.

use crate::policy::features::FEATURES;
use crate::policy::rules::Subject;
use crate::policy::settings::shown_as;
use crate::util::escape;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt::Write;

pub fn saved(answer: &Value) -> String {
    format!(
        "{}:\n{}",
        text_of(&answer["file"]),
        answer["text"].as_str().unwrap_or_default()
    )
}

pub fn changed(answer: &Value) -> String {
    let lines = rows(&answer["changes"]).iter().map(text_of);
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    // A scheduler of another version does not say what has changed.
    let none = match lines.is_empty() && answer["changes"].is_array() {
        true => "nothing changed: ",
        false => "",
    };
    format!(
        "{lines}{none}generation {} is in force\n",
        answer["generation"]
    )
}

/// In one line, since any server may have chosen it.
fn text_of(value: &Value) -> Cow<'_, str> {
    escape::line(value.as_str().unwrap_or_default())
}

fn rows(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub fn show(answer: &Value) -> String {
    let frozen = if answer["frozen"] == true {
        ", frozen"
    } else {
        ""
    };
    let mut text = format!("generation {}{frozen}\n", answer["generation"]);
    for arm in rows(&answer["arms"]) {
        let on = text_of(&arm["features"]);
        let is_on = |name: &str| on.split(' ').any(|f| f == name);
        let off: Vec<&str> = FEATURES
            .iter()
            .map(|f| f.name)
            .filter(|f| !is_on(f))
            .collect();
        let off = if off.is_empty() {
            "none".to_string()
        } else {
            off.join(" ")
        };
        let tunables = arm["tunables"].as_object().cloned().unwrap_or_default();
        let tunables: Vec<String> = tunables.iter().map(tunable).collect();
        let _ = write!(
            text,
            "arm {}: {}, {} rules\n  on        {on}\n  off       {off}\n  tunables  {}\n",
            text_of(&arm["name"]),
            shown_as(&text_of(&arm["profile"]), &text_of(&arm["variant"])),
            arm["rules"],
            tunables.join(", ")
        );
    }
    text
}

pub fn audit(answer: &Value) -> String {
    let mut text = format!(
        "{} tasks, {} of them counted by CPUs with a util_est of {}\ndrift {}\n",
        answer["tasks"], answer["joined"], answer["util_est"], answer["util_drift"]
    );
    let off = answer["drift_of_cpu"].as_object();
    for (cpu, drift) in off.into_iter().flatten() {
        let cpu = escape::line(cpu);
        let _ = writeln!(text, "  CPU {cpu:<4} off by {drift}");
    }
    text
}

pub fn limits(answer: &Value) -> String {
    let mut text = String::new();
    for row in rows(answer) {
        let ms = |key: &str| row[key].as_f64().unwrap_or_default() / 1000.0;
        let _ = writeln!(
            text,
            "{}: {} of {} ms, burst {} ms\n  used {:.0} ms, without budget {} times in {} periods, \
             for {:.0} ms; {} tasks parked now, {} parked so far",
            text_of(&row["cgroup"]),
            ms("quota_us"),
            ms("period_us"),
            ms("burst_us"),
            ms("used_us"),
            row["throttled"],
            row["periods"],
            ms("throttled_us"),
            row["parked"],
            row["parks"]
        );
    }
    if text.is_empty() {
        text += "no CPU limit of a control group is enforced\n";
    }
    text
}

pub fn arms(answer: &Value) -> String {
    let mut text = String::new();
    for arm in rows(&answer["arms"]) {
        let _ = writeln!(
            text,
            "{:<16} preset {:<22} {} rules",
            text_of(&arm["name"]),
            text_of(&arm["variant"]),
            arm["rules"]
        );
    }
    text
}

pub fn rules(answer: &Value) -> String {
    let mut text = String::new();
    for rule in rows(answer) {
        let subject = serde_json::from_value::<Subject>(rule["subject"].clone());
        let subject =
            subject.map_or_else(|_| json!(rule["subject"]).to_string(), |w| w.to_string());
        let _ = writeln!(text, "{subject} --arm {}", text_of(&rule["arm"]));
    }
    if text.is_empty() {
        text = "no rules\n".to_string();
    }
    text
}

/// The value is a number or a word.
fn tunable((name, value): (&String, &Value)) -> String {
    match value {
        Value::String(word) => escape::line(&format!("{name} {word}")).into_owned(),
        number => escape::line(&format!("{name} {number}")).into_owned(),
    }
}
