// SPDX-License-Identifier: GPL-2.0-only
//! Pictures as a user sees them, in the files of `shown/` and in docs/reference/monitor.md. After
//! an intended change, `ROOST_DRAW=1 cargo test --release --test crate monitor::pictures` rewrites
//! them: review the diff.

use super::*;
use scx_roost::clients::monitor::state::{Action, View};
use std::fs;
use std::path::{Path, PathBuf};

fn file(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn anew() -> bool {
    std::env::var_os("ROOST_DRAW").is_some()
}

/// A picture in a frame, which shows its size.
fn framed(lines: &[String], width: u16) -> String {
    let edge = format!("+{}+\n", "-".repeat(width.into()));
    let line = |line: &String| {
        let missing = usize::from(width) - line.chars().count();
        format!("|{line}{}|\n", " ".repeat(missing))
    };
    let lines: String = lines.iter().map(line).collect();
    edge.clone() + &lines + &edge
}

fn compare(name: &str, shown: &str) {
    let path = file(&format!("tests/crate/monitor/shown/{name}.txt"));
    if anew() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        draw(&path, shown);
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        shown == expected,
        "{name} is now\n{shown}\nand was\n{expected}"
    );
}

/// Replaces the file in one step: the test of the page reads pictures at the same time.
fn draw(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, path).unwrap();
}

fn shows(name: &str, state: &MonitorState, width: u16, height: u16) {
    compare(name, &framed(&picture(state, width, height), width));
}

fn state_after(shape: Shape, actions: &[Action]) -> MonitorState {
    let mut state = state_of(shape);
    for action in actions {
        state.act(*action);
    }
    state
}

fn machine(shape: Shape) -> MonitorState {
    state_after(shape, &[Action::Go(View::Machine)])
}

#[test]
fn overviews() {
    shows("overview-8", &state_of(EIGHT), 80, 24);
    shows("overview-64", &state_of(THREADRIPPER), 120, 28);
    shows("overview-small", &state_of(THREADRIPPER), 60, 14);
}

#[test]
fn machines_of_all_sizes() {
    shows("machine-1", &machine(ONE), 80, 16);
    shows("machine-8", &machine(EIGHT), 80, 18);
    shows("machine-64", &machine(THREADRIPPER), 120, 24);
    shows("machine-64-small", &machine(THREADRIPPER), 80, 20);
    shows("machine-1024", &machine(LARGE), 120, 40);
    shows("machine-1024-small", &machine(LARGE), 80, 24);
    shows("machine-1024-tiny", &machine(LARGE), 40, 10);
}

#[test]
fn views() {
    use Action::*;
    let of = |view, actions: &[Action]| state_after(THREADRIPPER, &[&[Go(view)], actions].concat());
    shows("rates", &of(View::Rates, &[PageDown, PageDown]), 120, 40);
    shows("rates-all", &of(View::Rates, &[Zeros]), 120, 40);
    shows(
        "rates-of-an-arm",
        &of(View::Rates, &[Right, Right, End]),
        80,
        24,
    );
    shows("arms", &of(View::Arms, &[Down]), 120, 18);
    shows("arms-small", &of(View::Arms, &[Down]), 80, 18);
    shows("help", &of(View::Machine, &[Help]), 80, 28);
}

#[test]
fn tiny_terminals() {
    let mut all = String::new();
    for view in View::ALL {
        let state = state_after(EIGHT, &[Action::Go(*view)]);
        all += &framed(&picture(&state, 20, 5), 20);
    }
    compare("tiny", &all);
}

#[test]
fn no_scheduler_and_one_that_went_away() {
    let mut state = MonitorState::new(Duration::from_secs(1));
    state.disconnected("no scheduler serves statistics at /run/scx/root/stats: waiting for one");
    shows("waiting", &state, 80, 10);
    let mut state = state_of(EIGHT);
    state
        .disconnected("the scheduler at /run/scx/root/stats went away (the connection was closed)");
    state.act(Action::Pause);
    shows("went-away", &state, 80, 16);
    let mut state = state_of(EIGHT);
    state.tick(Duration::from_secs(39));
    assert!(picture(&state, 80, 16)[0].contains("no answer for 9 s"));
}

/// Without colours and UTF-8 the picture is plain ASCII.
#[test]
fn neither_colours_nor_utf8() {
    let theme = Theme {
        color: false,
        utf8: false,
    };
    let state = machine(EIGHT);
    let lines = picture_in(&state, 80, 18, theme);
    assert!(lines.iter().all(|line| line.is_ascii()), "{lines:?}");
    compare("ascii", &framed(&lines, 80));
    let mut terminal = Terminal::new(TestBackend::new(80, 18)).unwrap();
    terminal.draw(|f| frame(f, &state, theme)).unwrap();
    let cells = terminal.backend().buffer().content();
    let plain = ratatui::style::Color::Reset;
    assert!(cells.iter().all(|c| c.fg == plain && c.bg == plain));
}

/// The block after `<!-- shown: NAME -->` is the content of that file.
fn shows_what_is_shown(name: &str) {
    let path = file(name);
    let page = fs::read_to_string(&path).unwrap();
    let mut parts = page.split("<!-- shown: ");
    let mut drawn = parts.next().unwrap().to_string();
    let mut count = 0;
    for part in parts {
        let (name, rest) = part.split_once(" -->\n").unwrap();
        let (_, after) = rest.split_once("\n```\n").unwrap();
        let shown =
            fs::read_to_string(file(&format!("tests/crate/monitor/shown/{name}.txt"))).unwrap();
        drawn += &format!("<!-- shown: {name} -->\n```text\n{shown}```\n{after}");
        count += 1;
    }
    if anew() {
        draw(&path, &drawn);
    } else {
        assert!(page == drawn, "{name} shows something else");
    }
    assert!(count > 0, "{name} shows nothing");
}

#[test]
fn the_pages_show_what_is_shown() {
    for page in [
        "README.md",
        "docs/reference/monitor.md",
        "docs/tutorial/first-hour.md",
    ] {
        shows_what_is_shown(page);
    }
}
