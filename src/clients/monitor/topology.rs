// SPDX-License-Identifier: GPL-2.0-only
//! The CPUs of a sample as a tree, and how much detail of it fits into the terminal.

use super::sample::Sample;
use crate::wire::stats::host::CpuGauges;
use std::collections::BTreeMap;

/// A CPU that is less busy counts as idle: the tick and the daemon use as much.
const IDLE_PERMILLE: u64 = 20;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub id: u64,
    pub llcs: Vec<Llc>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Llc {
    pub id: u64,
    pub cores: Vec<Core>,
}

/// The threads of a core, with their CPU numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Core(pub Vec<(u64, CpuGauges)>);

/// The machine in the order in which it is drawn.
pub fn tree(sample: &Sample) -> Vec<Node> {
    let mut nodes: BTreeMap<u64, BTreeMap<u64, BTreeMap<u64, Core>>> = BTreeMap::new();
    for (cpu, metrics) in &sample.cpus.cpus {
        let g = &metrics.gauges;
        let llcs = nodes.entry(g.node).or_default();
        let core = llcs.entry(g.llc).or_default().entry(g.core).or_default();
        core.0.push((*cpu, g.clone()));
    }
    let llc = |(id, cores): (u64, BTreeMap<u64, Core>)| Llc {
        id,
        cores: cores.into_values().collect(),
    };
    let node = |(id, llcs): (u64, BTreeMap<u64, _>)| Node {
        id,
        llcs: llcs.into_iter().map(llc).collect(),
    };
    nodes.into_iter().map(node).collect()
}

/// Summary of a set of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    pub threads: usize,
    pub cores: usize,
    pub idle_cores: usize,
    /// Mean over the threads.
    pub busy_permille: u64,
    /// Mean over the cores with a known frequency; 0: none is known.
    pub khz: u64,
}

impl Core {
    /// The highest frequency of the threads. They share a clock, but one may have been read
    /// earlier.
    pub fn khz(&self) -> u64 {
        self.0.iter().map(|(_, g)| g.khz).max().unwrap_or(0)
    }

    pub fn idle(&self) -> bool {
        self.0.iter().all(|(_, g)| g.busy_permille < IDLE_PERMILLE)
    }

    /// True if its frequency is low for delay_migration.
    pub fn low(&self) -> bool {
        let low = |g: &CpuGauges| g.khz != 0 && g.khz <= g.threshold_khz;
        self.0.iter().any(|(_, g)| low(g))
    }

    /// True if cooling or cpufreq limits its capacity.
    pub fn limited(&self) -> bool {
        self.0.iter().any(|(_, g)| g.capacity_now < g.capacity)
    }
}

pub fn sum<'a>(cores: impl Iterator<Item = &'a Core>) -> Sum {
    let mut sum = Sum::default();
    let (mut busy, mut khz, mut known) = (0u128, 0u128, 0u128);
    for core in cores {
        sum.cores += 1;
        sum.idle_cores += usize::from(core.idle());
        sum.threads += core.0.len();
        busy += core
            .0
            .iter()
            .map(|(_, g)| u128::from(g.busy_permille))
            .sum::<u128>();
        khz += u128::from(core.khz());
        known += u128::from(core.khz() != 0);
    }
    sum.busy_permille = (busy / sum.threads.max(1) as u128) as u64;
    sum.khz = (khz / known.max(1)) as u64;
    sum
}

impl Node {
    pub fn cores(&self) -> impl Iterator<Item = &Core> {
        self.llcs.iter().flat_map(|llc| &llc.cores)
    }
}

/// The smallest unit that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Cores with numbers.
    Cores,
    /// Threads as bars.
    Threads,
    /// LLCs as numbers.
    Llcs,
    /// Nodes.
    Nodes,
}

/// Layout of the picture: blocks side by side, one per LLC or node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub detail: Detail,
    /// Cores side by side in a block.
    pub cores: usize,
    /// Blocks side by side.
    pub blocks: usize,
    /// Columns of a block, without the gap.
    pub width: usize,
    /// Lines of the picture. May exceed the lines of the terminal.
    pub height: usize,
}

/// Columns of each element.
#[derive(Clone, Copy, Debug)]
pub struct Widths {
    pub gap: usize,
    /// A core with numbers for all its threads.
    pub core: usize,
    pub heading: usize,
    /// The name of an LLC before the bars of its threads.
    pub label: usize,
    pub llc: usize,
    pub node: usize,
}

/// The most detailed layout that fits, or else the least detailed one.
pub fn layout(nodes: &[Node], widths: &Widths, columns: usize, lines: usize) -> Layout {
    let details = [Detail::Cores, Detail::Threads, Detail::Llcs];
    let tried = details.iter().flat_map(|detail| {
        let most = nodes.iter().flat_map(|n| &n.llcs).map(|l| l.cores.len());
        let most = match detail {
            Detail::Cores | Detail::Threads => most.max().unwrap_or(1),
            _ => 1,
        };
        (1..=most).map(|cores| arrange(nodes, widths, columns, *detail, cores))
    });
    let mut fitting = tried.filter(|l| l.height <= lines && l.width <= columns);
    fitting
        .next()
        .unwrap_or_else(|| arrange(nodes, widths, columns, Detail::Nodes, 1))
}

fn arrange(
    nodes: &[Node],
    widths: &Widths,
    columns: usize,
    detail: Detail,
    cores: usize,
) -> Layout {
    let threads = |core: &Core| core.0.len();
    let all_cores = nodes.iter().flat_map(Node::cores);
    let wide = all_cores.map(threads).max().unwrap_or(1);
    let width = match detail {
        Detail::Cores => widths
            .heading
            .max(cores * (widths.core + widths.gap) - widths.gap),
        Detail::Threads => widths.label + cores * (wide + 1) - 1,
        Detail::Llcs => widths.llc,
        Detail::Nodes => widths.node,
    };
    let blocks = ((columns + widths.gap) / (width + widths.gap)).max(1);
    let heading = usize::from(nodes.len() > 1);
    let rows = |node: &Node| -> usize {
        let tall = |llc: &Llc| match detail {
            Detail::Cores => 1 + llc.cores.len().div_ceil(cores),
            Detail::Threads => llc.cores.len().div_ceil(cores),
            _ => 1,
        };
        let rows = node.llcs.chunks(blocks);
        let height = |row: &[Llc]| row.iter().map(tall).max().unwrap_or(0);
        heading + rows.map(height).sum::<usize>()
    };
    let height = match detail {
        Detail::Nodes => nodes.len().div_ceil(blocks),
        _ => nodes.iter().map(rows).sum(),
    };
    Layout {
        detail,
        cores,
        blocks,
        width,
        height,
    }
}
