// SPDX-License-Identifier: GPL-2.0-only
//! Texts that somebody else chose: names of processes and groups, commands, result files, answers
//! of a socket. In no output may they steer a terminal, reorder what is shown, or pass for a line
//! of ours. `print` and `stderr` escape all that they print; `line` is for names, which have no
//! line ends.

use std::borrow::Cow;

/// True for control characters, and for those that change the direction of text or end a line.
pub fn steers(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        )
        || matches!(c, '\u{2066}'..='\u{2069}')
}

/// For lines of ours: line ends and tabs stay.
pub fn text(text: &str) -> Cow<'_, str> {
    replaced(text, |c| steers(c) && !matches!(c, '\n' | '\t'), shown)
}

/// For a name, or what else is a part of one line.
pub fn line(text: &str) -> Cow<'_, str> {
    replaced(text, steers, shown)
}

/// For JSON, which needs no escape for some of them. Outside of strings it has only line ends.
pub fn json(text: &str) -> Cow<'_, str> {
    let escape = |c: char| format!("\\u{:04x}", u32::from(c));
    replaced(text, |c| steers(c) && c != '\n', escape)
}

fn shown(c: char) -> String {
    match c {
        '\n' => "\\n".to_string(),
        '\0'..='\u{ff}' => format!("\\x{:02x}", u32::from(c)),
        c => format!("\\u{{{:x}}}", u32::from(c)),
    }
}

fn replaced(text: &str, which: fn(char) -> bool, with: fn(char) -> String) -> Cow<'_, str> {
    if !text.contains(which) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match which(c) {
            true => escaped += &with(c),
            false => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b[2J\u{9b}\u{7f}\r\u{202e}\t\n<0>b";

    #[test]
    fn nothing_steers_and_the_rest_stays() {
        let escaped = "a\\x1b[2J\\x9b\\x7f\\x0d\\u{202e}";
        assert_eq!(text(HOSTILE), format!("{escaped}\t\n<0>b"));
        assert_eq!(line(HOSTILE), format!("{escaped}\\x09\\n<0>b"));
        assert!(matches!(line("Größe 5 µs"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE] });
        let pretty = serde_json::to_string_pretty(&value).unwrap();
        let escaped = json(&pretty);
        assert!(!escaped.contains(|c| steers(c) && c != '\n'), "{escaped}");
        let again: serde_json::Value = serde_json::from_str(&escaped).unwrap();
        assert_eq!(again, value);
    }
}
