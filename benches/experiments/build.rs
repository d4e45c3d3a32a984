// SPDX-License-Identifier: GPL-2.0-only
fn skeleton(source: &str, name: &str) {
    scx_cargo::BpfBuilder::new()
        .unwrap()
        .enable_skel(source, name)
        .build()
        .unwrap();
}

fn main() {
    skeleton("src/bpf/slice_timer.bpf.c", "slice_timer");
    skeleton("src/bpf/ladder.bpf.c", "ladder");
}
