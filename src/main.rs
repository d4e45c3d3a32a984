// SPDX-License-Identifier: GPL-2.0-only
mod bpf_skel {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}
use bpf_skel::*;
use anyhow::{Context, Result};
use libbpf_rs::{MapCore, OpenObject};
use scx_utils::{UserExitInfo, scx_ops_attach, scx_ops_load, scx_ops_open, uei_exited, uei_report};
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use std::mem::MaybeUninit;
use std::sync::{Arc, atomic::{AtomicBool, Ordering}};
fn main() -> Result<()> {
    let shutdown = Arc::new(AtomicBool::new(false));
    let s = shutdown.clone();
    ctrlc::set_handler(move || s.store(true, Ordering::Relaxed))?;
    let mut open_object = MaybeUninit::<OpenObject>::uninit();
    let builder = BpfSkelBuilder::default();
    let mut skel = scx_ops_open!(builder, &mut open_object, roost_ops, None)?;
    let mut skel = scx_ops_load!(skel, roost_ops, uei)?;
    let _link = scx_ops_attach!(skel, roost_ops)?;
    while !shutdown.load(Ordering::Relaxed) && !uei_exited!(&skel, uei) {
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    uei_report!(&skel, uei)?;
    Ok(())
}
