// SPDX-License-Identifier: GPL-2.0-only
//! What the binary is linked with: the feature `rustland` alone brings libseccomp and the allocator
//! of scx_rustland_core.

fn has(binary: &[u8], text: &str) -> bool {
    binary.windows(text.len()).any(|at| at == text.as_bytes())
}

#[test]
fn the_feature_rustland_alone_links_libseccomp_and_an_allocator() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_scx_roost")).unwrap();
    assert!(has(&binary, "libelf.so"), "names of libraries are found");
    let with = cfg!(feature = "rustland");
    assert_eq!(has(&binary, "libseccomp.so"), with);
    // The places of its panics.
    assert_eq!(has(&binary, "scx_rustland_core-"), with);
}
