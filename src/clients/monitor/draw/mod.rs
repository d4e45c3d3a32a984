// SPDX-License-Identifier: GPL-2.0-only
//! Draws a state. Each view is a function that returns lines for a given width and height. What
//! does not fit is left out, least important first.

mod arms;
mod machine;
mod overview;
mod rates;
pub mod text;
pub mod theme;

use super::keys::{self, HELP};
use super::sample::Sample;
use super::state::CpuPosition;
use super::state::{Link, MonitorState, View};
use crate::util::text::count;
use crate::util::text::wrap;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use text::{Row, percent, row};
use theme::{Role, Theme};

/// The space for a view.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub theme: Theme,
    pub width: usize,
    pub height: usize,
}

/// From this height on there is a line with the views, and one line or more for a message.
const TALL: u16 = 8;
const MIDDLE: u16 = 4;
/// The reason is at the end of a sentence.
const WHY_LINES: usize = 3;
/// Below this width only the most important is shown.
const NARROW: usize = 50;

/// The lines above and below the view, and the space between.
struct Parts {
    top: Vec<Row>,
    bottom: Vec<Row>,
    room: Room,
}

impl Parts {
    fn of(state: &MonitorState, theme: Theme, area: Rect) -> Parts {
        let width = usize::from(area.width);
        let mut top = vec![header(state, theme, area)];
        let mut bottom = Vec::new();
        if area.height >= TALL {
            top.push(tabs(state, theme, width));
            bottom = unconnected(state, theme, width, WHY_LINES);
            // Keep an empty line for the message, so that nothing moves when one comes.
            bottom.resize_with(bottom.len().max(1), Row::default);
            bottom.push(keys(state, theme, width));
        } else if area.height > 1 {
            bottom = unconnected(state, theme, width, 1);
            if bottom.is_empty() && area.height >= MIDDLE {
                bottom.push(keys(state, theme, width));
            }
        }
        let height = usize::from(area.height).saturating_sub(top.len() + bottom.len());
        let room = Room {
            theme,
            width,
            height,
        };
        Parts { top, bottom, room }
    }
}

pub fn frame(frame: &mut Frame, state: &MonitorState, theme: Theme) {
    let area = frame.area();
    let Parts { top, bottom, room } = Parts::of(state, theme, area);
    let (y, height) = (area.y + top.len() as u16, room.height as u16);
    let body = lines_of(body(state, room));
    put(frame, area, area.y, lines_of(top));
    put(
        frame,
        Rect {
            height: y + height - area.y,
            ..area
        },
        y,
        body,
    );
    put(frame, area, y + height, lines_of(bottom));
}

/// Where a picture of this size has each CPU of view Machine, for keys to move within.
pub fn places(state: &MonitorState, theme: Theme, area: Rect) -> Vec<CpuPosition> {
    machine::places(state, Parts::of(state, theme, area).room)
}

/// Draws lines from line `y` on, as far as they fit into `area`.
fn put(frame: &mut Frame, area: Rect, y: u16, lines: Vec<Line<'static>>) {
    let height = area.bottom().saturating_sub(y).min(lines.len() as u16);
    let rect = Rect { y, height, ..area };
    frame.render_widget(Paragraph::new(lines), rect);
}

fn lines_of(rows: Vec<Row>) -> Vec<Line<'static>> {
    rows.into_iter().map(Row::line).collect()
}

fn body(state: &MonitorState, room: Room) -> Vec<Row> {
    if state.help {
        return help(state, room);
    }
    if state.sample.is_none() {
        return wait(state, room);
    }
    match state.view {
        View::Overview => overview::rows(state, room),
        View::Machine => machine::rows(state, room),
        View::Rates => rates::rows(state, room),
        View::Arms => arms::rows(state, room),
    }
}

/// How to start a scheduler, for those who have none.
const START: &[&str] = &[
    "Start one in another terminal:",
    "  sudo scx_roost              until Ctrl-C there",
    "  scx_roost doctor            can this machine run it?",
];

/// Shown before the first sample.
fn wait(state: &MonitorState, room: Room) -> Vec<Row> {
    let Link::Waiting(why) = &state.link else {
        return paragraph(room, Role::Plain, "waiting for the first answer");
    };
    let mut rows = paragraph(room, Role::Plain, why);
    rows.push(Row::default());
    let start = START
        .iter()
        .map(|line| row(room.theme, Role::Plain, format!(" {line}")));
    rows.extend(start);
    rows
}

fn paragraph(room: Room, role: Role, text: &str) -> Vec<Row> {
    let lines = wrap(text, room.width.saturating_sub(1)).into_iter();
    lines
        .map(|line| row(room.theme, role, format!(" {line}")))
        .collect()
}

/// The header. On a low screen, which has no line with the views, it begins with the view's name.
fn header(state: &MonitorState, theme: Theme, area: Rect) -> Row {
    let width = usize::from(area.width);
    let title = if area.height >= TALL {
        "scx_roost"
    } else {
        state.view.name()
    };
    let mut left = row(theme, Role::Heading, format!(" {title} "));
    let mut right = Row::default();
    if state.paused {
        right.push(theme, Role::Warning, "PAUSED ");
    }
    if width >= NARROW {
        let interval = format!("every {} s ", state.interval.as_secs_f64());
        right.push(theme, Role::Faint, interval);
    }
    for (role, text) in facts(state) {
        if left.width() + text.chars().count() + 1 + right.width() > width {
            break;
        }
        left.push(theme, role, text + "  ");
    }
    left.pad(width.saturating_sub(right.width()));
    left.append(right);
    left
}

/// Facts about the whole machine, most important first.
fn facts(state: &MonitorState) -> Vec<(Role, String)> {
    let mut facts = Vec::new();
    match (&state.link, state.silent()) {
        (Link::Waiting(_), _) => facts.push((Role::Bad, "not connected".to_string())),
        (_, Some(silent)) => {
            facts.push((
                Role::Warning,
                format!("no answer for {} s", silent.as_secs()),
            ));
        }
        _ => (),
    }
    let Some(totals) = state.sample.as_ref().map(|s| &s.totals) else {
        return facts;
    };
    if totals.running == 0 {
        facts.push((Role::Warning, "not loaded".to_string()));
    }
    facts.push((Role::Good, totals.preset.clone()));
    let cpus = totals.gauges.cpus_online.max(
        state
            .sample
            .as_ref()
            .map_or(0, |s| s.cpus.cpus.len() as u64),
    );
    let busy = totals.gauges.busy_permille;
    facts.push((Role::Plain, count(cpus as usize, "CPU")));
    facts.push((Role::Busy(busy), format!("{} % busy", percent(busy))));
    if let Some(rates) = &state.rates {
        facts.push((
            Role::Plain,
            format!("{} wakeups/s", text::rate(rates.all.wakeups())),
        ));
    }
    facts.push((Role::Plain, count(totals.arms.len(), "arm")));
    if totals.gauges.psi_cpu_some_permille > 0 {
        let part = totals.gauges.psi_cpu_some_permille as f64 / 10.0;
        facts.push((Role::Plain, format!("waiting {part:.1} %")));
    }
    facts.push((Role::Faint, format!("governor {}", totals.governor)));
    facts.push((Role::Faint, count(totals.restarts as usize, "restart")));
    facts
}

fn tabs(state: &MonitorState, theme: Theme, width: usize) -> Row {
    let active = state
        .sample
        .iter()
        .flat_map(Sample::active_conditions)
        .count();
    let all = |gap: &str| all_tabs(state, theme, active, gap);
    let fits = |row: &Row| row.width() <= width;
    if let Some(tabs) = [all(" "), all("")].into_iter().find(fits) {
        return tabs;
    }
    let short = format!(" {} ", state.view.name());
    let mut narrow = row(theme, Role::Chosen, short);
    narrow.push(
        theme,
        Role::Faint,
        format!(" {}/{}", state.view.index() + 1, View::ALL.len()),
    );
    narrow
}

/// `gap`: before and after each name. View Overview says what is wrong, and how many things are.
fn all_tabs(state: &MonitorState, theme: Theme, active: usize, gap: &str) -> Row {
    let mut all = row(theme, Role::Plain, if gap.is_empty() { " " } else { "" });
    for view in View::ALL {
        let number = view.index() + 1;
        let wrong = active > 0 && *view == View::Overview;
        let marked = match wrong {
            true => format!("{gap}{number} {} ({active}){gap}", view.name()),
            false => format!("{gap}{number} {}{gap}", view.name()),
        };
        let role = match wrong {
            _ if *view == state.view => Role::Chosen,
            true => Role::Warning,
            false => Role::Plain,
        };
        all.push(theme, role, marked);
        if gap.is_empty() {
            all.push(theme, Role::Plain, " ");
        }
    }
    all
}

/// Why there is no connection.
fn unconnected(state: &MonitorState, theme: Theme, width: usize, lines: usize) -> Vec<Row> {
    let text = match &state.link {
        Link::Waiting(why) if state.sample.is_some() => why,
        _ => return Vec::new(),
    };
    let text = wrap(text, width.saturating_sub(2)).into_iter().take(lines);
    text.map(|line| row(theme, Role::Bad, format!(" {line}")))
        .collect()
}

/// The keys that fit. The last two are always shown: how to find the others, and how to quit.
fn keys(state: &MonitorState, theme: Theme, width: usize) -> Row {
    let bar = keys::bar(state);
    let (first, last) = bar.split_at(bar.len().saturating_sub(2));
    let last = last.join("  ");
    let mut row = Row::default();
    for short in first {
        if 1 + row.width() + short.len() + 2 + last.len() <= width {
            row.push(theme, Role::Faint, format!(" {short} "));
        }
    }
    row.push(theme, Role::Faint, format!(" {last}"));
    row
}

fn help(state: &MonitorState, room: Room) -> Vec<Row> {
    let theme = room.theme;
    let mut rows = vec![row(theme, Role::Heading, " Keys")];
    for (keys, what, _) in HELP {
        let mut row = row(theme, Role::Plain, format!("  {keys}"));
        row.pad(36.min(room.width / 2));
        row.push(theme, Role::Plain, format!(" {what}"));
        rows.push(row);
    }
    rows.push(Row::default());
    rows.push(row(
        theme,
        Role::Heading,
        format!(" View {}", state.view.name()),
    ));
    for text in about(state.view) {
        rows.extend(paragraph(room, Role::Plain, text));
    }
    rows
}

fn about(view: View) -> &'static [&'static str] {
    match view {
        View::Overview => &[
            "How busy the machine is, how many tasks woke and how long they waited, and what \
             is wrong. Where wakeups went: a task can be counted in several lines. Each LLC \
             is a bar. The counters that count most come with their meaning.",
        ],
        View::Machine => &[
            "Each core: its CPUs (the threads), each with a bar and a number for how busy it is in percent, and the core's \
             frequency in GHz. A ! follows where cooling or cpufreq leave less than its capacity, and an arrow where delay_migration takes the frequency for low. A core that is busy for less than 2 % counts as idle. On a larger machine or a smaller terminal each CPU is only a bar, or each LLC or node only a number.",
            "The arrow keys choose a CPU, an LLC or a node, whichever is drawn; its details are below.",
        ],
        View::Rates => &[
            "Counts per second of the last interval, by group. Counters that have not counted \
             yet are hidden. Left and right choose an arm, or all together; the meaning and \
             the last values of the chosen counter are below.",
        ],
        View::Arms => &[
            "Arms side by side: wakeups per second, the time from a wakeup until the task ran (its median and its 99 % quantile), and the shares of wakeups that were placed on the task's previous CPU, on an idle core, in another LLC, and on a busy CPU because no idle one was found. Below: the features of the chosen arm.",
        ],
    }
}

/// The rows that fit, including row `chosen`.
fn window<T>(rows: Vec<T>, chosen: usize, height: usize) -> Vec<T> {
    let first = (chosen + 1).saturating_sub(height);
    rows.into_iter().skip(first).take(height).collect()
}

/// Values as a line of bars, the latest at the right. The scale is at least 1.
fn sparkline(theme: Theme, values: &[f64]) -> String {
    let max = values.iter().copied().fold(1.0, f64::max);
    let bar = |v: &f64| theme.bar((v / max * 1000.0) as u64);
    values.iter().map(bar).collect()
}
