// SPDX-License-Identifier: GPL-2.0-only
//! Lines for systemd's journal: each begins with its priority, as sd-daemon(3) describes.

use log::Level;
use std::os::fd::AsFd;

/// True if stderr is the stream that systemd made for the journal (systemd.exec(5),
/// $JOURNAL_STREAM).
pub fn reads_stderr() -> bool {
    std::env::var("JOURNAL_STREAM").is_ok_and(|stream| {
        let stat = rustix::fs::fstat(std::io::stderr().as_fd());
        stat.is_ok_and(|stat| stream == format!("{}:{}", stat.st_dev, stat.st_ino))
    })
}

/// The command that shows what this process writes there, and what systemd says of its service.
pub fn command() -> String {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let names = groups.lines().filter_map(|line| line.rsplit('/').next());
    match names.into_iter().find(|name| name.ends_with(".service")) {
        Some(unit) => format!("journalctl -b -u {unit}"),
        None => format!("journalctl -b _PID={}", std::process::id()),
    }
}

/// `text` with the level's priority before each line.
pub fn lines(level: Level, text: &str) -> String {
    let priority = match level {
        Level::Error => 3,
        Level::Warn => 4,
        Level::Info => 6,
        Level::Debug | Level::Trace => 7,
    };
    let lines = text.lines();
    lines.map(|line| format!("<{priority}>{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_its_priority() {
        assert_eq!(lines(Level::Warn, "a\nb"), "<4>a\n<4>b\n");
        assert_eq!(lines(Level::Trace, "a\n"), "<7>a\n");
    }
}
