// SPDX-License-Identifier: GPL-2.0-only
//! What is above the panels: the meaning of marks, and the colours of tasks.

use super::svg::{At, IDLE, MIXED, SHARED, Svg, colour};

/// The most colours that are shown of a group.
const SHOWN: usize = 8;
/// Width of a colour and of a letter, px.
const STEP: f64 = 10.0;
const LETTER: f64 = 6.2;

/// Draws what shapes and colours mean.
pub fn marks(svg: &mut Svg, (mut x, y): (f64, f64)) {
    let mut entry = |fill: &str, width: f64, text: &str| {
        svg.rect(x, y - 9.0, 14.0, 10.0, fill);
        svg.text(x + 19.0, y, 11.0, At::Start, text);
        x += width;
    };
    entry(&colour(0), 260.0, "a task, the same colour everywhere");
    entry(SHARED, 230.0, "both threads of the core are busy");
    entry(IDLE, 70.0, "idle");
    entry(MIXED, 200.0, "many short runs, merged");
}

/// Draws the groups of the workload with the colours of their first tasks, from `x` on, if they fit
/// into `width`. Returns the y of what comes below.
pub fn groups(
    svg: &mut Svg,
    (x, y): (f64, f64),
    width: f64,
    groups: &[(String, Vec<usize>)],
) -> f64 {
    let entries: Vec<(String, &[usize])> = groups
        .iter()
        .filter(|(_, tasks)| !tasks.is_empty())
        .map(|(name, tasks)| (told(name, tasks), &tasks[..tasks.len().min(SHOWN)]))
        .collect();
    let wide = |(text, tasks): &(String, &[usize])| {
        STEP * (tasks.len() as f64 + 2.5) + LETTER * text.chars().count() as f64
    };
    if entries.iter().map(wide).sum::<f64>() > width {
        return y - 2.0;
    }
    let mut left = x;
    for entry in &entries {
        for (at, &task) in entry.1.iter().enumerate() {
            svg.rect(left + STEP * at as f64, y - 9.0, STEP, STEP, &colour(task));
        }
        let text = left + STEP * (entry.1.len() as f64 + 0.5);
        svg.text(text, y, 11.0, At::Start, &entry.0);
        left += wide(entry);
    }
    y + 16.0
}

fn told(name: &str, tasks: &[usize]) -> String {
    match tasks {
        [_] => name.to_string(),
        _ if tasks.len() > SHOWN => format!("{name} 0 to {}, ...", SHOWN - 1),
        _ => format!("{name} 0 to {}", tasks.len() - 1),
    }
}
