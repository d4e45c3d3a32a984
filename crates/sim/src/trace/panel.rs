// SPDX-License-Identifier: GPL-2.0-only
//! The picture: a panel for each variant, on one time axis. Each CPU has a row, and threads of a
//! core are neighbours. A bar shows a running task, in the task's colour. A core is red behind the
//! bars where several of its threads are busy.

use super::svg::{At, IDLE, MIXED, SHARED, Svg, colour};
use super::{Span, Trace, legend};
use crate::Measured;
use scx_roost::machine::{Cpu, Machine, cpulist_text};

const LEFT: f64 = 118.0;
const PLOT: f64 = 1180.0;
const RIGHT: f64 = 22.0;
/// The height of the smallest readable text, px.
const LEAST_TEXT: f64 = 6.0;
/// Narrower bars are drawn together with their neighbours, px.
const NARROW: f64 = 0.4;

/// Where each row is drawn.
struct Rows<'a> {
    /// Each CPU with its distance from the top.
    cpus: Vec<(&'a Cpu, f64)>,
    height: f64,
    row: f64,
}

/// The time axis of all panels.
struct Axis {
    ns: u64,
}

impl Axis {
    fn x(&self, since: u64, at: u64) -> f64 {
        LEFT + at.saturating_sub(since) as f64 / self.ns.max(1) as f64 * PLOT
    }
}

pub fn picture(title: &str, machine: &Machine, seen: &[(Trace, Measured)]) -> String {
    let rows = Rows::new(machine);
    let longest = seen.iter().map(|(t, _)| t.until - t.since).max();
    let axis = Axis {
        ns: longest.unwrap_or(0),
    };
    let mut svg = Svg::default();
    svg.text(LEFT, 24.0, 17.0, At::Start, title);
    legend::marks(&mut svg, (LEFT, 46.0));
    let groups = seen.first().map_or(&[][..], |(trace, _)| &trace.groups);
    let mut y = legend::groups(&mut svg, (LEFT, 64.0), PLOT, groups);
    for (trace, measured) in seen {
        y = panel(&mut svg, y, &rows, &axis, trace, measured);
    }
    ticks(&mut svg, y, &axis);
    svg.document(LEFT + PLOT + RIGHT, y + 40.0)
}

impl Rows<'_> {
    fn new(machine: &Machine) -> Rows<'_> {
        let mut cpus: Vec<&Cpu> = machine.cpus.iter().collect();
        cpus.sort_by_key(|c| (c.node, c.llc, c.core, c.id));
        let row = match cpus.len() {
            ..=16 => 16.0,
            17..=64 => 8.0,
            65..=128 => 5.0,
            _ => 2.5,
        };
        let (mut y, mut last): (f64, Option<&Cpu>) = (0.0, None);
        let mut placed = Vec::new();
        for cpu in cpus {
            y += match last {
                None => 0.0,
                Some(l) if l.node != cpu.node => 14.0,
                Some(l) if l.llc != cpu.llc => 7.0,
                Some(l) if l.core != cpu.core => row / 4.0,
                Some(_) => 0.0,
            };
            placed.push((cpu, y));
            y += row;
            last = Some(cpu);
        }
        Rows {
            cpus: placed,
            height: y,
            row,
        }
    }

    /// Runs of neighbours with the same `of`, each with its top and bottom.
    fn groups(&self, of: impl Fn(&Cpu) -> u16) -> Vec<(Vec<&Cpu>, f64, f64)> {
        let mut groups: Vec<(Vec<&Cpu>, f64, f64)> = Vec::new();
        for &(cpu, y) in &self.cpus {
            match groups.last_mut() {
                Some((cpus, _, end)) if of(cpus[0]) == of(cpu) => {
                    cpus.push(cpu);
                    *end = y + self.row;
                }
                _ => groups.push((vec![cpu], y, y + self.row)),
            }
        }
        groups
    }
}

/// Draws a panel. Returns the y of what comes below.
fn panel(
    svg: &mut Svg,
    top: f64,
    rows: &Rows,
    axis: &Axis,
    trace: &Trace,
    measured: &Measured,
) -> f64 {
    let y = top + 22.0;
    svg.text(
        LEFT,
        top + 15.0,
        14.0,
        At::Start,
        &headline(trace, measured),
    );
    labels(svg, y, rows);
    let end = axis.x(trace.since, trace.until);
    for &(_, at) in &rows.cpus {
        svg.rect(LEFT, y + at, end - LEFT, rows.row, IDLE);
    }
    let lanes = Lanes::new(rows, trace);
    lanes.shared(svg, y, rows, axis, trace);
    for (at, lane) in rows.cpus.iter().zip(&lanes.0) {
        bars(svg, (at.0, y + at.1), rows.row, axis, trace, lane);
    }
    y + rows.height + 24.0
}

/// Counts, not rates: the window is only a moment of the run.
fn headline(trace: &Trace, measured: &Measured) -> String {
    format!(
        "{}:  in these {} ms, {:.0} % of the CPU time on shared cores, {} moves to another core of the LLC, {} to another LLC",
        trace.variant,
        (trace.until - trace.since) as f64 / 1e6,
        measured.shared_ns as f64 / measured.busy_ns.max(1) as f64 * 100.0,
        measured.moves[1],
        measured.moves[2] + measured.moves[3],
    )
}

fn labels(svg: &mut Svg, y: f64, rows: &Rows) {
    let cores = rows.groups(|c| c.core);
    let size = ((cores[0].2 - cores[0].1) * 0.8).min(10.0);
    let each = size >= LEAST_TEXT;
    let mut free = f64::MIN;
    for (cpus, from, to) in rows.groups(|c| c.llc) {
        svg.line((48.0, y + from), (48.0, y + to), "#999");
        let middle = y + (from + to) / 2.0 + 4.0;
        // Labels of LLCs with few threads would overlap.
        if middle < free {
            continue;
        }
        free = middle + 11.0;
        let text = format!("LLC {}", cpus[0].llc);
        svg.text(8.0, middle, 11.0, At::Start, &text);
        if !each {
            numbers(svg, middle, to - from, &cpus);
        }
    }
    for (cpus, from, to) in cores.into_iter().filter(|_| each) {
        let numbers: Vec<String> = cpus.iter().map(|c| c.id.to_string()).collect();
        let text = format!("CPU {}", numbers.join(", "));
        let middle = y + (from + to) / 2.0 + size * 0.35;
        svg.text(LEFT - 6.0, middle, size, At::End, &text);
    }
}

/// Draws the CPUs of an LLC, a line for each range, as many as fit.
fn numbers(svg: &mut Svg, middle: f64, height: f64, cpus: &[&Cpu]) {
    let mut ids: Vec<u16> = cpus.iter().map(|c| c.id).collect();
    ids.sort_unstable();
    let text = cpulist_text(&ids);
    let ranges: Vec<&str> = text.split(',').collect();
    let shown = ranges.len().min((height / 9.0) as usize).max(1);
    let top = middle - 4.5 * (shown - 1) as f64;
    for (at, range) in ranges[..shown].iter().enumerate() {
        let more = match at + 1 == shown && shown < ranges.len() {
            true => ", ...",
            false => "",
        };
        let text = format!("{range}{more}");
        svg.text(LEFT - 6.0, top + 9.0 * at as f64, 8.0, At::End, &text);
    }
}

/// The spans of each row.
struct Lanes(Vec<Vec<Span>>);

impl Lanes {
    fn new(rows: &Rows, trace: &Trace) -> Lanes {
        let lane = |cpu: &Cpu| {
            let own = trace.spans.iter().filter(|s| s.cpu == usize::from(cpu.id));
            own.copied().collect()
        };
        Lanes(rows.cpus.iter().map(|(cpu, _)| lane(cpu)).collect())
    }

    /// Marks where several threads of a core are busy.
    fn shared(&self, svg: &mut Svg, y: f64, rows: &Rows, axis: &Axis, trace: &Trace) {
        let mut first = 0;
        for (cpus, from, to) in rows.groups(|c| c.core) {
            let lanes = &self.0[first..first + cpus.len()];
            first += cpus.len();
            let edges = edges(lanes);
            for pair in edges.windows(2).filter(|pair| pair[0].1 > 1) {
                let left = axis.x(trace.since, pair[0].0);
                let right = axis.x(trace.since, pair[1].0);
                svg.rect(left, y + from, right - left, to - from, SHARED);
            }
        }
    }
}

/// The number of spans that overlap, from each time on.
fn edges(lanes: &[Vec<Span>]) -> Vec<(u64, i64)> {
    let ends = |span: &Span| [(span.from, 1), (span.to, -1)];
    let mut steps: Vec<(u64, i64)> = lanes.iter().flatten().flat_map(ends).collect();
    steps.sort_unstable();
    let mut sum = 0;
    for (_, count) in &mut steps {
        sum += *count;
        *count = sum;
    }
    steps
}

/// Draws the bars of a row. Narrow ones are gathered until a wide one comes.
fn bars(svg: &mut Svg, (cpu, y): (&Cpu, f64), row: f64, axis: &Axis, trace: &Trace, lane: &[Span]) {
    let height = row - 1.0;
    let mut mixed: Option<(f64, f64)> = None;
    let draw = |svg: &mut Svg, (left, right): (f64, f64)| {
        svg.rect(left, y + 1.0, right - left, height, MIXED);
    };
    for span in lane {
        let left = axis.x(trace.since, span.from);
        let right = axis.x(trace.since, span.to);
        let near = mixed.filter(|m| left - m.1 < NARROW);
        if right - left < NARROW {
            if let Some(old) = mixed.filter(|_| near.is_none()) {
                draw(svg, old);
            }
            mixed = Some((near.map_or(left, |m| m.0), right));
            continue;
        }
        if let Some(old) = mixed.take() {
            draw(svg, old);
        }
        let title = format!("{}, CPU {}", trace.tasks[span.task], cpu.id);
        let width = right - left;
        svg.titled(left, y + 1.0, width, height, &colour(span.task), &title);
    }
    if let Some(old) = mixed {
        draw(svg, old);
    }
}

/// The axis of time, from the end of the warm-up.
fn ticks(svg: &mut Svg, y: f64, axis: &Axis) {
    let step = [1u64, 2, 5]
        .iter()
        .flat_map(|&n| (0..10).map(move |e| n * 10u64.pow(e)))
        .filter(|step| axis.ns / step <= 12)
        .min()
        .unwrap_or(1_000_000_000);
    for at in (0..=axis.ns).step_by(step as usize) {
        let x = axis.x(0, at);
        svg.line((x, y - 8.0), (x, y - 2.0), "#555");
        let text = format!("{} ms", at as f64 / 1e6);
        svg.text(x - 3.0, y + 11.0, 11.0, At::Start, &text);
    }
    let text = "from the end of the warm-up";
    svg.text(LEFT + PLOT, y + 28.0, 11.0, At::End, text);
}
