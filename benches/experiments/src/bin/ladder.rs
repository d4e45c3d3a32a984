// SPDX-License-Identifier: GPL-2.0-only
//! Experiment 2: what the verifier and the CPU pay for each way to write the placement ladder of
//! ladder.bpf.c.
mod bpf_skel {
    include!(concat!(env!("OUT_DIR"), "/ladder_skel.rs"));
}
use bpf_skel::*;

use anyhow::{Context, Result};
use clap::Parser;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{OpenObject, PrintLevel, ProgramInput, libbpf_sys};
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Mutex;

#[derive(Parser)]
#[command(version)]
struct Cli {
    /// Decisions per measurement; the smallest of `rounds` measurements counts.
    #[arg(long, default_value_t = 200_000)]
    repeat: u32,
    #[arg(long, default_value_t = 7)]
    rounds: u32,
    /// Only the programs whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

/// Bits of ladder.bpf.c.
const F_PREV_IDLE: u32 = 1;
const F_SIS_UTIL: u32 = 2;
const F_WIDE_IDLE: u32 = 4;
const F_CLAIM: u32 = 256;
const F_ALL: u32 = 0x1ff;
const MASKS: [(&str, u32); 3] = [
    ("mainline", F_PREV_IDLE | F_SIS_UTIL),
    ("all", F_ALL),
    ("all but claim", F_ALL & !F_CLAIM),
];

struct Shape {
    cpus: usize,
    llcs: usize,
    nodes: usize,
}

const SHAPES: [Shape; 4] = [
    Shape {
        cpus: 8,
        llcs: 2,
        nodes: 1,
    },
    Shape {
        cpus: 64,
        llcs: 8,
        nodes: 1,
    },
    Shape {
        cpus: 1024,
        llcs: 64,
        nodes: 8,
    },
    Shape {
        cpus: 1024,
        llcs: 4,
        nodes: 4,
    },
];

/// Which CPU is idle, all others being busy.
#[derive(Clone, Copy)]
enum Idle {
    /// The core of the previous CPU.
    Prev,
    /// The CPU that a scan of the LLC finds last.
    LastOfLlc,
    /// The last CPU of the machine.
    LastOfMachine,
    Nobody,
}
const SCENES: [Idle; 4] = [
    Idle::Prev,
    Idle::LastOfLlc,
    Idle::LastOfMachine,
    Idle::Nobody,
];

const TARGET: usize = 0;
const PREV: usize = 2;

const PROGRAMS: [&str; 14] = [
    "prog_empty",
    "prog_plain_live",
    "prog_plain_frozen",
    "prog_may_goto_live",
    "prog_may_goto_frozen",
    "prog_unknown_live",
    "prog_unknown_frozen",
    "prog_iter_live",
    "prog_iter_frozen",
    "prog_plain_live_sub",
    "prog_unknown_live_sub",
    "prog_unknown_frozen_sub",
    "prog_iter_live_sub",
    "prog_unknown_live_word",
];

/// libbpf's messages since the last verdict, with the verifier's log.
static LOG: Mutex<String> = Mutex::new(String::new());

fn keep_log(_level: PrintLevel, text: String) {
    LOG.lock().unwrap().push_str(&text);
}

/// The verifier's reason: its last line before the figures.
fn verdict() -> String {
    let log = std::mem::take(&mut *LOG.lock().unwrap());
    let mut lines: Vec<&str> = log.lines().filter(|l| !l.starts_with("libbpf:")).collect();
    lines.retain(|l| !l.is_empty() && !l.starts_with("processed ") && !l.starts_with("-- "));
    lines.last().unwrap_or(&"no log").to_string()
}

fn load<'obj>(
    name: &str,
    mask: u32,
    object: &'obj mut MaybeUninit<OpenObject>,
) -> Result<LadderSkel<'obj>> {
    let mut open = LadderSkelBuilder::default().open(object)?;
    for mut prog in open.open_object_mut().progs_mut() {
        prog.set_autoload(prog.name().to_str() == Some(name));
    }
    open.maps
        .rodata_data
        .as_mut()
        .context("the object has no .rodata")?
        .frozen_features = mask;
    Ok(open.load()?)
}

/// Verified instructions and bytes of machine code.
fn cost(skel: &LadderSkel, name: &str) -> Result<(u32, u32)> {
    let prog = skel
        .object()
        .progs()
        .find(|p| p.name() == name)
        .context("no such program")?;
    let mut info = libbpf_sys::bpf_prog_info::default();
    let mut len = size_of::<libbpf_sys::bpf_prog_info>() as u32;
    let fd = prog.as_fd().as_raw_fd();
    // SAFETY: `info` is zeroed, so that it asks for no arrays, and `len` is its size.
    let err = unsafe { libbpf_sys::bpf_prog_get_info_by_fd(fd, &mut info, &mut len) };
    anyhow::ensure!(err == 0, "BPF_OBJ_GET_INFO_BY_FD failed: {err}");
    Ok((info.verified_insns, info.jited_prog_len))
}

/// Describes `shape` with two threads per core, numbered n and n+1, and no CPU idle.
fn describe(bss: &mut types::bss, shape: &Shape) {
    let per_llc = shape.cpus / shape.llcs;
    let words = per_llc.div_ceil(64) as u32;
    bss.nr_llcs = shape.llcs as u32;
    bss.llcs_with_cpu = [0; 16];
    bss.llcs_with_core = [0; 16];
    bss.allowed = [!0; 16];
    for (i, llc) in bss.llcs.iter_mut().take(shape.llcs).enumerate() {
        llc.first = (i * per_llc) as u32;
        llc.nr_words = words;
        llc.budget = words;
        llc.idle_cpus = [0; 16];
        llc.idle_cores = [0; 16];
    }
    for (i, node) in bss.nodes.iter_mut().take(shape.nodes).enumerate() {
        let each = shape.llcs / shape.nodes;
        node.first_llc = (i * each) as u32;
        node.end_llc = ((i + 1) * each) as u32;
    }
    for (i, cpu) in bss.cpus.iter_mut().take(shape.cpus).enumerate() {
        bss.llc_cpus[i] = i as u32;
        cpu.llc = (i / per_llc) as u32;
        cpu.pos = (i % per_llc) as u32;
        cpu.node = (i * shape.nodes / shape.cpus) as u32;
        cpu.capacity = 1024;
        cpu.util = 1024;
        cpu.nr_running = 2;
        // The weight rule must choose the waker's CPU, so that the scan starts there.
        cpu.load = if i == PREV { 8192 } else { 1024 };
        cpu.idle = 0;
        cpu.core_idle = 0;
        cpu.nr_sib = 1;
        cpu.sib[0] = (i ^ 1) as u32;
    }
    bss.query.this = TARGET as u32;
    bss.query.prev = PREV as u32;
    bss.query.recent_start = 1;
    bss.query.sync = 0;
    bss.query.anywhere = 1;
    bss.query.util = 100;
    bss.query.load = 1024;
}

fn set_idle(bss: &mut types::bss, shape: &Shape, cpu: usize, core: bool) {
    let per_llc = shape.cpus / shape.llcs;
    let (llc, pos) = (cpu / per_llc, cpu % per_llc);
    bss.cpus[cpu].idle = 1;
    bss.cpus[cpu].core_idle = core as u32;
    bss.llcs[llc].idle_cpus[pos / 64] |= 1 << (pos % 64);
    bss.llcs_with_cpu[llc / 64] |= 1 << (llc % 64);
    if core {
        bss.llcs[llc].idle_cores[pos / 64] |= 1 << (pos % 64);
        bss.llcs_with_core[llc / 64] |= 1 << (llc % 64);
    }
}

/// Sets the scene. Returns the CPU that the ladder must find, if the mask lets it reach that CPU.
fn stage(bss: &mut types::bss, shape: &Shape, idle: Idle, mask: u32) -> Option<usize> {
    describe(bss, shape);
    bss.live_features = mask;
    let per_llc = shape.cpus / shape.llcs;
    let cpu = match idle {
        Idle::Prev => PREV,
        Idle::LastOfLlc => per_llc - 1,
        Idle::LastOfMachine => shape.cpus - 1,
        Idle::Nobody => return None,
    };
    set_idle(bss, shape, cpu, matches!(idle, Idle::Prev));
    (cpu < per_llc || mask & F_WIDE_IDLE != 0).then_some(cpu)
}

/// Nanoseconds per decision: the best of the rounds.
fn time(skel: &mut LadderSkel, name: &str, cli: &Cli) -> Result<f64> {
    let packet = [0u8; 64];
    let mut best = u128::MAX;
    for _ in 0..cli.rounds {
        let prog = skel
            .object_mut()
            .progs_mut()
            .find(|p| p.name() == name)
            .context("no such program")?;
        let input = ProgramInput {
            data_in: Some(&packet),
            repeat: cli.repeat,
            ..Default::default()
        };
        best = best.min(prog.test_run(input)?.duration.as_nanos());
    }
    Ok(best as f64)
}

fn measure(name: &str, mask_name: &str, mask: u32, cli: &Cli) -> Result<()> {
    let mut object = MaybeUninit::uninit();
    let mut skel = match load(name, mask, &mut object) {
        Ok(skel) => skel,
        Err(e) => {
            println!(
                "| {name} | {mask_name} | refused: {} ({}) |",
                verdict(),
                e.root_cause()
            );
            return Ok(());
        }
    };
    let (insns, bytes) = cost(&skel, name)?;
    print!("| {name} | {mask_name} | {insns} | {bytes} |");
    for shape in SHAPES {
        for idle in SCENES {
            let bss = skel
                .maps
                .bss_data
                .as_mut()
                .context("the object has no .bss")?;
            let expected = stage(bss, &shape, idle, mask);
            let ns = time(&mut skel, name, cli)?;
            let bss = skel
                .maps
                .bss_data
                .as_mut()
                .context("the object has no .bss")?;
            if let Some(cpu) = expected.filter(|_| name != "prog_empty") {
                anyhow::ensure!(
                    bss.result == cpu as i32,
                    "{name} chose CPU {} instead of {cpu}",
                    bss.result
                );
            }
            print!(" {ns:.0} |");
        }
    }
    println!();
    Ok(())
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    libbpf_rs::set_print(Some((PrintLevel::Debug, keep_log)));
    println!(
        "Nanoseconds per decision; idle: prev, last of LLC, last of machine, nobody; prog_empty is the loop itself."
    );
    print!("| program | mask | verified instructions | bytes |");
    for shape in SHAPES {
        print!(" {} CPUs, {} LLCs | | | |", shape.cpus, shape.llcs);
    }
    println!(
        "\n|---|---|---|---|{}",
        "---|".repeat(SHAPES.len() * SCENES.len())
    );
    for name in PROGRAMS.iter().filter(|n| n.contains(&cli.only)) {
        for (mask_name, mask) in MASKS {
            measure(name, mask_name, mask, &cli)?;
        }
    }
    Ok(())
}
