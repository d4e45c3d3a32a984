// SPDX-License-Identifier: GPL-2.0-only
//! Reads small files that may be missing, and collects complaints about those with unexpected
//! content.

use super::files::{parse_spaced, trimmed};
use crate::machine::host::Host;
use crate::util::escape;
use crate::util::plain_file;
use std::io::ErrorKind;
use std::path::Path;

/// The kernel writes this for a number that it does not know at the moment.
const UNKNOWN: &str = "<unknown>";

pub struct Asker<'a> {
    host: &'a Host,
    /// A sentence about each unusable file.
    pub odd: Vec<String>,
}

impl<'a> Asker<'a> {
    pub fn new(host: &'a Host) -> Asker<'a> {
        Asker {
            host,
            odd: Vec::new(),
        }
    }

    /// The text of a file below /sys. None: it is missing, empty or unreadable.
    pub fn text(&mut self, path: &str) -> Option<String> {
        self.read(&self.host.sys.join(path))
            .filter(|text| !text.is_empty())
    }

    /// A number below /sys. 0 is not accepted: nothing read here can be 0.
    pub fn number(&mut self, path: &str) -> Option<u32> {
        let text = self.text(path).filter(|text| text != UNKNOWN)?;
        let number = text.parse().ok().filter(|&n| n > 0);
        if number.is_none() {
            self.judge(path, &text, "expected a number");
        }
        number
    }

    /// CPUs below /sys, separated by spaces as cpufreq writes them.
    pub fn cpus(&mut self, path: &str) -> Option<Vec<u16>> {
        let text = self.text(path)?;
        let cpus = parse_spaced(&text);
        if cpus.is_none() {
            self.judge(path, &text, "expected CPU numbers such as '0 1'");
        }
        cpus
    }

    fn read(&mut self, path: &Path) -> Option<String> {
        match plain_file::text(path) {
            Ok(text) => Some(escape::line(trimmed(&text)).into_owned()),
            // A CPU or a driver may go away during the read.
            Err(e) if gone(&e) => None,
            Err(e) => {
                self.odd
                    .push(format!("cannot read {}: {e}", path.display()));
                None
            }
        }
    }

    fn judge(&mut self, path: &str, text: &str, expected: &str) {
        let path = self.host.sys.join(path);
        // The text may be long and of any content.
        let text: String = text.chars().take(20).collect();
        self.odd
            .push(format!("{} reads {text:?}: {expected}", path.display()));
    }
}

fn gone(e: &std::io::Error) -> bool {
    matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
        || matches!(e.raw_os_error(), Some(libc::ENODEV | libc::EBUSY))
}

/// The first sentence, and the number of the others.
pub fn several(odd: &[String]) -> Option<String> {
    let (first, others) = odd.split_first()?;
    Some(match others.len() {
        0 => first.clone(),
        n => format!("{first}; and {n} more"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_missing_is_no_matter_and_garbage_is() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("good", "1200000\n"),
            ("zero", "0\n"),
            ("garbage", "fast\n"),
            ("unknown", "<unknown>\n"),
            ("empty", "\n"),
            ("list", "0 1 5\n"),
            ("back", "5 1\n"),
        ] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        fs::write(dir.path().join("bytes"), [0xff, 0xfe]).unwrap();
        let host = Host::in_folder(dir.path());
        let mut ask = Asker::new(&host);
        assert_eq!(ask.number("good"), Some(1_200_000));
        assert_eq!(ask.cpus("list"), Some(vec![0, 1, 5]));
        for missing in ["none", "good/none", "unknown", "empty"] {
            assert_eq!(ask.number(missing), None);
        }
        assert_eq!(ask.odd, [""; 0]);
        assert_eq!(ask.number("zero"), None);
        assert_eq!(ask.number("garbage"), None);
        assert_eq!(ask.cpus("back"), None);
        assert_eq!(ask.text("bytes"), None);
        assert_eq!(ask.odd.len(), 4, "{:?}", ask.odd);
        assert!(ask.odd[1].ends_with("garbage reads \"fast\": expected a number"));
        let all = several(&ask.odd).unwrap();
        assert!(all.ends_with("; and 3 more"), "{all}");
        assert_eq!(several(&[]), None);
    }
}
