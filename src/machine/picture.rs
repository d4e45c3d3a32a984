// SPDX-License-Identifier: GPL-2.0-only
//! The machine as text: nodes, caches, and cores in brackets with the CPUs that are their threads.

use crate::machine::{Cpu, Llc, LlcKind, Machine, Node, UNKNOWN_NODE};
use crate::util::text::{count, paragraph};
use std::collections::BTreeMap;

const WIDTH: usize = 100;

/// A summary in one line.
pub fn summary(m: &Machine) -> String {
    format!(
        "{} of {} online, {}, {}, {}{}",
        count(m.cpus.len(), "CPU"),
        m.cpus.len() + m.offline.len(),
        count(m.nr_cores.into(), "core"),
        count(m.llcs.len(), "LLC"),
        count(m.nodes.len(), "node"),
        if m.asym() {
            ", of unequal capacity"
        } else {
            ""
        }
    )
}

/// The whole picture, at most 100 columns wide.
pub fn picture(m: &Machine) -> String {
    let mut text = summary(m) + "\n";
    for node in &m.nodes {
        text += &node_text(m, node);
        for index in node.first_llc..node.first_llc + node.nr_llcs {
            text += &llc_text(m, index);
        }
    }
    if !m.offline.is_empty() {
        text += &wrap("offline", m.offline.iter().map(ToString::to_string));
    }
    for doubt in &m.doubts {
        text += &paragraph("doubt ", doubt, WIDTH);
    }
    text
}

/// With several nodes, the label has their distances, as numactl shows them.
fn node_text(m: &Machine, node: &Node) -> String {
    let label = match node.id {
        UNKNOWN_NODE => "unknown node".to_string(),
        id => format!("node {id}"),
    };
    match &node.distances {
        Some(to) if m.nodes.len() > 1 => {
            wrap(&(label + "  distances"), to.iter().map(u16::to_string))
        }
        _ => label + "\n",
    }
}

fn llc_text(m: &Machine, index: u16) -> String {
    let llc = &m.llcs[index as usize];
    let mut text = format!(
        "  LLC {index}  {}, {}\n",
        kind(llc),
        count(llc.cpus.len(), "CPU")
    );
    for (capacity, cores) in cores_by_capacity(m, index) {
        let label = if m.asym() {
            format!("    capacity {capacity:>4} ")
        } else {
            "   ".to_string()
        };
        text += &wrap(&label, cores.into_iter());
    }
    text
}

/// The cores of an LLC by capacity, the highest first.
fn cores_by_capacity(m: &Machine, llc: u16) -> Vec<(u16, Vec<String>)> {
    let mut by_capacity: BTreeMap<u16, Vec<String>> = BTreeMap::new();
    let width = m.nr_cpu_ids.saturating_sub(1).to_string().len();
    for cpu in m
        .cpus
        .iter()
        .filter(|c| c.llc == llc && c.siblings.iter().all(|s| *s > c.id))
    {
        by_capacity
            .entry(cpu.capacity)
            .or_default()
            .push(core_text(cpu, width));
    }
    by_capacity.into_iter().rev().collect()
}

fn core_text(first: &Cpu, width: usize) -> String {
    let threads = std::iter::once(&first.id).chain(&first.siblings);
    format!(
        "[{}]",
        threads
            .map(|c| format!("{c:>width$}"))
            .collect::<Vec<_>>()
            .join(" ")
    )
}

fn kind(llc: &Llc) -> String {
    let size = match llc.size_kb {
        Some(kb) if kb % 1024 == 0 => format!(" {} MiB", kb / 1024),
        Some(kb) => format!(" {kb} KiB"),
        None => String::new(),
    };
    match llc.kind {
        LlcKind::L3 => format!("L3{size}"),
        LlcKind::L2 => format!("L2{size} (no L3)"),
        LlcKind::Chip => "the chip (each L2 is private, no shared cache known)".to_string(),
        LlcKind::Node => "the node (no shared cache known)".to_string(),
    }
}

/// Items after a label, continued on further lines with the same indentation.
pub fn wrap(label: &str, items: impl Iterator<Item = String>) -> String {
    let (mut text, mut line) = (String::new(), label.to_string());
    for item in items {
        if line.len() + 1 + item.len() > WIDTH {
            text = text + &line + "\n";
            line = " ".repeat(label.len());
        }
        line = line + " " + &item;
    }
    text + &line + "\n"
}
