// SPDX-License-Identifier: GPL-2.0-only
#[path = "build/native.rs"]
mod native;

fn main() {
    let out = std::path::PathBuf::from(std::env::var("OUT_DIR").unwrap());
    if let Err(e) = native::build(&out) {
        eprintln!("scx_roost: {e}");
        std::process::exit(1);
    }
    scx_cargo::BpfBuilder::new()
        .unwrap()
        .enable_intf("src/bpf/intf.h", "bpf_intf.rs")
        .enable_skel("src/bpf/main.bpf.c", "bpf")
        .build()
        .unwrap();
}
