// SPDX-License-Identifier: GPL-2.0-only
//! Builds the recorder.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    scx_cargo::BpfBuilder::new()?
        .enable_intf("src/bpf/event.h", "bpf_intf.rs")
        .enable_skel("src/bpf/record.bpf.c", "record")
        .build()?;
    Ok(())
}
