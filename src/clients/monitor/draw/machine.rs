// SPDX-License-Identifier: GPL-2.0-only
//! View Machine: nodes, LLCs, cores and threads, with as much detail as fits.

use super::Room;
use super::text::{Row, ghz, micros, percent, rate, row};
use super::theme::{Role, Theme};
use crate::clients::monitor::state::CpuPosition;
use crate::clients::monitor::state::MonitorState;
use crate::clients::monitor::topology::{
    Core, Detail, Layout, Llc, Node, Sum, Widths, layout, sum,
};
use crate::wire::stats::ROWS;
use crate::wire::stats::host::CpuMetrics;

const GAP: usize = 3;
/// Lines about the chosen CPU.
const BELOW: usize = 4;
/// Columns of an LLC's heading ("LLC 3  34%  2/4 idle") without its number. Enough for 99 cores.
const HEADING: usize = 22;

struct Painter<'a> {
    state: &'a MonitorState,
    room: Room,
    /// Digits of the largest CPU number, and of the largest LLC or node number.
    cpu: usize,
    llc: usize,
    /// True if some frequency is known.
    khz: bool,
    widths: Widths,
}

pub fn rows(state: &MonitorState, room: Room) -> Vec<Row> {
    if state.nodes.is_empty() {
        let text = "the scheduler gives no values of CPUs";
        return super::paragraph(room, Role::Faint, text);
    }
    let painter = Painter::new(state, room);
    let below = below(room);
    let room_above = room.height - below;
    let mut rows = painter.picture(room_above);
    let mut tail = painter.chosen(below);
    if rows.len() > room_above {
        let hidden = rows.len() + 1 - room_above;
        rows.truncate(room_above.saturating_sub(1));
        let more = format!(" ... and {hidden} lines more");
        rows.push(row(room.theme, Role::Faint, more));
    } else if rows.len() < room_above && below > 1 {
        tail.insert(0, painter.legend(painter.layout(room_above).detail));
    }
    rows.resize_with(room.height.saturating_sub(tail.len()), Row::default);
    rows.extend(tail);
    rows
}

/// Position of each CPU in the picture, including those that do not fit.
pub fn places(state: &MonitorState, room: Room) -> Vec<CpuPosition> {
    if state.nodes.is_empty() {
        return Vec::new();
    }
    let rows = Painter::new(state, room).picture(room.height - below(room));
    let of_line = |(line, row): (usize, &Row)| {
        let place = |(column, cpu): &(usize, u64)| CpuPosition {
            line,
            column: *column,
            cpu: *cpu,
        };
        row.cpus().iter().map(place).collect::<Vec<_>>()
    };
    rows.iter().enumerate().flat_map(of_line).collect()
}

/// Number of lines about the chosen CPU.
fn below(room: Room) -> usize {
    if room.height >= 3 * BELOW {
        BELOW
    } else {
        usize::from(room.height > 3)
    }
}

fn digits(n: u64) -> usize {
    n.to_string().len()
}

impl<'a> Painter<'a> {
    fn new(state: &'a MonitorState, room: Room) -> Painter<'a> {
        let cores = || state.nodes.iter().flat_map(Node::cores);
        let cpus = cores().flat_map(|c| &c.0).map(|(cpu, _)| *cpu);
        let llcs = state.nodes.iter().flat_map(|n| &n.llcs).map(|l| l.id);
        let ids = llcs.chain(state.nodes.iter().map(|n| n.id));
        let (cpu, llc) = (
            digits(cpus.max().unwrap_or(0)),
            digits(ids.max().unwrap_or(0)),
        );
        let khz = cores().any(|c| c.khz() != 0);
        let threads = cores().map(|c| c.0.len()).max().unwrap_or(1);
        let of_khz = if khz { 6 } else { 0 };
        let widths = Widths {
            gap: GAP,
            core: threads * (cpu + 5) + of_khz,
            heading: HEADING + llc,
            label: llc + 10,
            llc: llc + 5,
            node: llc + 30 + of_khz,
        };
        Painter {
            state,
            room,
            cpu,
            llc,
            khz,
            widths,
        }
    }

    fn theme(&self) -> Theme {
        self.room.theme
    }

    fn layout(&self, lines: usize) -> Layout {
        let columns = self.room.width.saturating_sub(2);
        layout(&self.state.nodes, &self.widths, columns, lines)
    }

    /// The picture, with an empty line between rows of LLCs if it fits.
    fn picture(&self, lines: usize) -> Vec<Row> {
        let layout = self.layout(lines);
        if layout.detail == Detail::Cores {
            let airy = self.arranged(&layout, 1);
            if airy.len() <= lines {
                return airy;
            }
        }
        self.arranged(&layout, 0)
    }

    fn arranged(&self, layout: &Layout, air: usize) -> Vec<Row> {
        let nodes = &self.state.nodes;
        if layout.detail == Detail::Nodes {
            let block = |node: &Node| {
                let mut line = self.stands_for(&node.llcs);
                line.append(self.node(node, self.role_of(&line, Role::Heading)));
                vec![line]
            };
            return self.side_by_side(nodes.iter().map(block).collect(), layout, air);
        }
        let mut rows = Vec::new();
        for node in nodes {
            if nodes.len() > 1 {
                let mut heading = row(self.theme(), Role::Plain, " ");
                heading.append(self.node(node, Role::Heading));
                rows.push(heading);
            }
            let blocks = node
                .llcs
                .iter()
                .map(|llc| self.block(llc, layout))
                .collect();
            rows.extend(self.side_by_side(blocks, layout, air));
        }
        rows
    }

    fn side_by_side(&self, blocks: Vec<Vec<Row>>, layout: &Layout, air: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        for together in blocks.chunks(layout.blocks) {
            if !rows.is_empty() {
                rows.resize_with(rows.len() + air, Row::default);
            }
            let height = together.iter().map(Vec::len).max().unwrap_or(0);
            let first = rows.len();
            rows.resize_with(first + height, Row::default);
            for (place, block) in together.iter().enumerate() {
                for (line, piece) in block.iter().enumerate() {
                    let row = &mut rows[first + line];
                    row.pad(2 + place * (layout.width + GAP));
                    row.append(piece.clone());
                }
            }
        }
        rows
    }

    fn block(&self, llc: &Llc, layout: &Layout) -> Vec<Row> {
        let theme = self.theme();
        let total = sum(llc.cores.iter());
        let label = format!("LLC {:<1$}", llc.id, self.llc);
        match layout.detail {
            Detail::Cores => {
                let mut heading = row(theme, Role::Heading, format!("{label} "));
                heading.append(self.sum(&total));
                let cores = llc
                    .cores
                    .chunks(layout.cores)
                    .map(|cores| self.cores(cores));
                std::iter::once(heading).chain(cores).collect()
            }
            Detail::Threads => {
                let lines = llc.cores.chunks(layout.cores).enumerate();
                let line = |(i, cores): (usize, &[Core])| {
                    let mut line = Row::default();
                    if i == 0 {
                        line.push(theme, Role::Faint, format!("{label} "));
                        line.append(self.busy(total.busy_permille));
                        line.push(theme, Role::Plain, " ");
                    }
                    line.pad(self.widths.label);
                    for core in cores {
                        self.bars(&mut line, core);
                        line.push(theme, Role::Plain, " ");
                    }
                    line
                };
                lines.map(line).collect()
            }
            Detail::Llcs | Detail::Nodes => {
                let mut line = self.stands_for(std::slice::from_ref(llc));
                let role = self.role_of(&line, Role::Faint);
                let busy = total.busy_permille;
                line.push(theme, role, format!("{:>1$}", llc.id, self.llc));
                line.push(theme, Role::Busy(busy), theme.bar(busy).to_string());
                line.append(self.busy(busy));
                vec![line]
            }
        }
    }

    /// Starts a line that stands for all CPUs of `llcs`. It is marked with the chosen CPU if that
    /// is one of them, or else with the first.
    fn stands_for(&self, llcs: &[Llc]) -> Row {
        let cores = || llcs.iter().flat_map(|llc| &llc.cores);
        let cpus = || cores().flat_map(|core| &core.0).map(|(cpu, _)| *cpu);
        let chosen = cpus().find(|cpu| Some(*cpu) == self.state.chosen.cpu);
        let mut line = Row::default();
        chosen
            .or(cpus().next())
            .into_iter()
            .for_each(|cpu| line.mark(cpu));
        line
    }

    /// `role`, unless the line is marked with the chosen CPU.
    fn role_of(&self, line: &Row, role: Role) -> Role {
        match line.cpus().first() {
            Some((_, cpu)) if Some(*cpu) == self.state.chosen.cpu => Role::Chosen,
            _ => role,
        }
    }

    fn node(&self, node: &Node, role: Role) -> Row {
        let label = format!("node {:<1$} ", node.id, self.llc);
        let mut line = row(self.theme(), role, label);
        let total = sum(node.cores());
        line.append(self.busy(total.busy_permille));
        let idle = format!("  {}/{} cores idle", total.idle_cores, total.cores);
        line.push(self.theme(), Role::Faint, idle);
        line.append(self.frequency(total.khz));
        line
    }

    /// "34%  2/4 idle"
    fn sum(&self, total: &Sum) -> Row {
        let mut line = self.busy(total.busy_permille);
        let idle = format!("  {}/{} idle", total.idle_cores, total.cores);
        line.push(self.theme(), Role::Faint, idle);
        line
    }

    fn busy(&self, permille: u64) -> Row {
        row(
            self.theme(),
            Role::Busy(permille),
            format!("{:>3}%", percent(permille)),
        )
    }

    fn frequency(&self, khz: u64) -> Row {
        match khz {
            0 => Row::default(),
            khz => row(self.theme(), Role::Plain, format!("  {}", ghz(khz))),
        }
    }

    /// Explains the picture.
    fn legend(&self, detail: Detail) -> Row {
        let khz = match self.khz {
            true => format!(", its GHz; ! limited, {} low", self.theme().low()),
            false => String::new(),
        };
        let text = match detail {
            Detail::Cores => format!(" a core: its CPUs, each with its busy %{khz}"),
            Detail::Threads => " an LLC: its busy %, a bar for each CPU, core by core".to_string(),
            Detail::Llcs => " an LLC: its number, its busy %".to_string(),
            Detail::Nodes => " a node: its busy %, its cores".to_string(),
        };
        row(self.theme(), Role::Faint, text)
    }

    fn cores(&self, cores: &[Core]) -> Row {
        let width = self.widths.core;
        let mut line = Row::default();
        for (i, core) in cores.iter().enumerate() {
            line.pad(i * (width + GAP));
            line.append(self.core(core));
        }
        line
    }

    /// "  0▄ 45  32▁  0   3.9"
    fn core(&self, core: &Core) -> Row {
        let (theme, mut line) = (self.theme(), Row::default());
        for (cpu, gauges) in &core.0 {
            let busy = gauges.busy_permille;
            let chosen = Some(*cpu) == self.state.chosen.cpu;
            let role = if chosen { Role::Chosen } else { Role::Faint };
            line.mark(*cpu);
            line.push(theme, role, format!("{:>1$}", cpu, self.cpu));
            line.push(
                theme,
                Role::Busy(busy),
                format!("{}{:>3} ", theme.bar(busy), percent(busy)),
            );
        }
        if self.khz {
            let role = if core.low() { Role::Low } else { Role::Plain };
            line.push(theme, role, format!("{:>4}", ghz(core.khz())));
            match (core.limited(), core.low()) {
                (true, _) => line.push(theme, Role::Warning, "!"),
                (_, true) => line.push(theme, Role::Low, theme.low()),
                _ => line.push(theme, Role::Plain, " "),
            }
        }
        line
    }

    fn bars(&self, line: &mut Row, core: &Core) {
        for (cpu, gauges) in &core.0 {
            let chosen = Some(*cpu) == self.state.chosen.cpu;
            let role = if chosen {
                Role::Chosen
            } else {
                Role::Busy(gauges.busy_permille)
            };
            line.mark(*cpu);
            line.push(
                self.theme(),
                role,
                self.theme().bar(gauges.busy_permille).to_string(),
            );
        }
    }

    /// Lines about the chosen CPU.
    fn chosen(&self, lines: usize) -> Vec<Row> {
        let theme = self.theme();
        let sample = self.state.sample.as_ref();
        let cpu = self.state.chosen.cpu;
        let metrics = cpu.and_then(|cpu| sample?.cpus.cpus.get(&cpu));
        let (Some(cpu), Some(metrics)) = (cpu, metrics) else {
            return Vec::new();
        };
        let head = row(theme, Role::Heading, format!(" {}", place(cpu, metrics)));
        match lines {
            0 => vec![],
            1 => vec![head],
            _ => vec![
                row(theme, Role::Faint, theme.rule().repeat(self.room.width)),
                head,
                row(theme, Role::Plain, format!(" {}", speed(metrics))),
                row(theme, Role::Plain, format!(" {}", self.counted(cpu))),
            ],
        }
    }

    /// The counters with the highest rates on this CPU.
    fn counted(&self, cpu: u64) -> String {
        let rates = self.state.rates.as_ref().and_then(|r| r.cpus.get(&cpu));
        let mut grown: Vec<(&str, f64)> = rates.map_or(Vec::new(), |rates| {
            let named = ROWS.iter().map(|row| row.name).zip(*rates);
            named.filter(|(_, rate)| *rate > 0.0).collect()
        });
        grown.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut text = String::new();
        for (name, n) in grown {
            let next = format!(" {name} {}/s", rate(n));
            if text.len() + next.len() + 16 > self.room.width {
                break;
            }
            text += &next;
        }
        match text.is_empty() {
            true => "no counter changed".to_string(),
            false => format!("most counted:{text}"),
        }
    }
}

fn place(cpu: u64, metrics: &CpuMetrics) -> String {
    let g = &metrics.gauges;
    let idle = match g.idle_mean_us {
        0 => String::new(),
        us => format!(", idle for {} on average", micros(us)),
    };
    format!(
        "CPU {cpu}: core {}, LLC {}, node {}; {} % busy{idle}",
        g.core,
        g.llc,
        g.node,
        percent(g.busy_permille)
    )
}

fn speed(metrics: &CpuMetrics) -> String {
    let g = &metrics.gauges;
    let limited = match g.capacity_now < g.capacity {
        true => format!(", {} now (cooling or cpufreq)", g.capacity_now),
        false => String::new(),
    };
    let range = match (g.min_khz, g.max_khz) {
        (0, 0) => String::new(),
        (min, max) => format!(" of {} to {}", ghz(min), ghz(max)),
    };
    let khz = match g.khz {
        0 => "frequency unknown".to_string(),
        khz => format!("{} GHz{range}", ghz(khz)),
    };
    let threshold = match g.threshold_khz {
        0 => String::new(),
        khz => format!(", low up to {}", ghz(khz)),
    };
    format!("capacity {}{limited}; {khz}{threshold}", g.capacity)
}
