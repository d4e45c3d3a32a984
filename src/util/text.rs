// SPDX-License-Identifier: GPL-2.0-only
//! Words for people.

use super::escape::steers;

/// '1 core', '2 cores'.
pub fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Replaces what steers a terminal and cuts the text to `max` characters.
pub fn tidy(text: &str, max: usize) -> String {
    let plain = |c: char| if steers(c) { '?' } else { c };
    text.chars().map(plain).take(max).collect()
}

/// Breaks text into lines of at most `width` characters.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        let used = line.chars().count();
        if used > 0 && used + 1 + rest.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        while rest.len() > width {
            lines.push(rest.drain(..width).collect());
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(rest);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// `text` behind `head`, in lines of at most `width` characters; those after the first are indented
/// as far as the head is long.
pub fn paragraph(head: &str, text: &str, width: usize) -> String {
    let indent = head.chars().count();
    let lines = wrap(text, width.saturating_sub(indent));
    let lines = lines.iter().enumerate().map(|(i, line)| match i {
        0 => format!("{head}{line}\n"),
        _ => format!("{:indent$}{line}\n", ""),
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::{paragraph, wrap};

    #[test]
    fn a_paragraph_hangs_from_its_head() {
        assert_eq!(paragraph("- a ", "one two", 8), "- a one\n    two\n");
    }

    #[test]
    fn lines_are_no_longer_than_their_width() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh i", 3), ["abc", "def", "gh", "i"]);
        assert_eq!(wrap("  ", 5), [""; 0]);
        assert_eq!(wrap("ab", 0), ["a", "b"]);
    }
}
