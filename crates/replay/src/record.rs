// SPDX-License-Identifier: GPL-2.0-only
//! Runs a command, and writes each decision of the kernel meanwhile to a file: `struct event` after
//! `struct event`.

use crate::intf::{
    skipped_NR_SKIPPED as NR_SKIPPED, skipped_SKIPPED_FULL as SKIPPED_FULL,
    skipped_SKIPPED_GROUP as SKIPPED_GROUP, skipped_SKIPPED_LONG as SKIPPED_LONG,
};
use anyhow::{Context, Result, bail};
use libbpf_rs::RingBufferBuilder;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

#[allow(clippy::too_many_lines, reason = "libbpf-cargo writes it")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/record_skel.rs"));
}

/// Fails if the kernel lacks what the recorder traces, if the command cannot be started or fails,
/// and if the file cannot be written.
pub fn record(file: &Path, command: &[String]) -> Result<()> {
    let shown = file.display().to_string();
    let out = File::create(file).with_context(|| shown.clone())?;
    let mut out = BufWriter::new(out);
    let mut failed = None;
    let mut events = 0u64;
    let mut place = MaybeUninit::uninit();
    let open = generated::RecordSkelBuilder::default().open(&mut place)?;
    let mut skel = open.load().context("the recorder does not load")?;
    {
        let mut ring = RingBufferBuilder::new();
        ring.add(&skel.maps.events, |bytes| {
            events += 1;
            match out.write_all(bytes) {
                Ok(()) => 0,
                Err(e) => {
                    failed.get_or_insert(e);
                    -1
                }
            }
        })?;
        let ring = ring.build()?;
        skel.attach().context("the recorder does not attach")?;
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .spawn()
            .with_context(|| command[0].clone())?;
        let status = loop {
            // The loop itself wakes, so it is part of what is recorded; rarely.
            let polled = ring.poll(Duration::from_millis(100));
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if polled.is_err() {
                child.kill().ok();
            }
        };
        drop(skel.links);
        ring.consume().ok();
        if !status.success() {
            bail!("{}: {status}", command[0]);
        }
    }
    if let Some(e) = failed {
        return Err(e).context(shown);
    }
    out.flush().context(shown)?;
    let skipped = skel
        .maps
        .bss_data
        .as_ref()
        .map_or([0; NR_SKIPPED as usize], |bss| bss.skipped);
    println!(
        "{events} decisions; not recorded: {} of groups, {} of long queues, {} for lack of room",
        skipped[SKIPPED_GROUP as usize],
        skipped[SKIPPED_LONG as usize],
        skipped[SKIPPED_FULL as usize]
    );
    Ok(())
}
