// SPDX-License-Identifier: GPL-2.0-only
//! Experiment 1: runs the FIFO scheduler of slice_timer.bpf.c with one way to end a slice, until a
//! signal.
mod bpf_skel {
    include!(concat!(env!("OUT_DIR"), "/slice_timer_skel.rs"));
}
use bpf_skel::*;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use libbpf_rs::OpenObject;
use scx_utils::{scx_ops_attach, scx_ops_load, scx_ops_open, uei_exited, uei_report};
use std::mem::MaybeUninit;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use std::time::Duration;

/// The order is that of `enum variant` in slice_timer.bpf.c.
#[derive(Clone, Copy, ValueEnum)]
enum Variant {
    Tick,
    OnRunning,
    OnEnqueue,
    Periodic,
}

#[derive(Parser)]
#[command(version)]
struct Cli {
    /// What ends a slice.
    #[arg(long, value_enum)]
    variant: Variant,
    /// Length of a slice, and period of the periodic timer.
    #[arg(long, default_value_t = 1000, value_name = "MICROSECONDS")]
    slice_us: u64,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let stop = Arc::new(AtomicBool::new(false));
    let seen = stop.clone();
    ctrlc::set_handler(move || seen.store(true, Ordering::Relaxed))?;

    let mut object = MaybeUninit::<OpenObject>::uninit();
    let builder = SliceTimerSkelBuilder::default();
    let mut skel = scx_ops_open!(builder, &mut object, slice_timer_ops, None)?;
    let rodata = skel
        .maps
        .rodata_data
        .as_mut()
        .context("the object has no .rodata")?;
    rodata.variant = cli.variant as u32;
    rodata.slice_ns = cli.slice_us * 1000;
    rodata.nr_cpus = *scx_utils::NR_CPUS_POSSIBLE as u32;
    let mut skel = scx_ops_load!(skel, slice_timer_ops, uei)?;
    let _link = scx_ops_attach!(skel, slice_timer_ops)?;

    while !stop.load(Ordering::Relaxed) && !uei_exited!(&skel, uei) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let bss = skel
        .maps
        .bss_data
        .as_ref()
        .context("the object has no .bss")?;
    eprintln!(
        "timer armed {} fired {} kicked {}",
        bss.nr_arms, bss.nr_fires, bss.nr_kicks
    );
    uei_report!(&skel, uei)?;
    Ok(())
}
