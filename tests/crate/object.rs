// SPDX-License-Identifier: GPL-2.0-only
//! What the BPF object must not contain.

use libbpf_rs::libbpf_sys::bpf_map__pin_path;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, OpenObject};
use scx_roost::bpf::skel::BpfSkelBuilder;
use std::mem::MaybeUninit;

fn map_names() -> Vec<String> {
    let mut object = MaybeUninit::<OpenObject>::uninit();
    let skel = BpfSkelBuilder::default().open(&mut object).unwrap();
    skel.open_object()
        .maps()
        .map(|m| m.name().to_string_lossy().into_owned())
        .collect()
}

/// A program with kconfig externals needs /boot/config and a release of three numbers. It would not
/// load on every kernel that has sched_ext.
#[test]
fn no_kconfig_external_is_referenced() {
    let names = map_names();
    assert!(names.iter().any(|n| n.ends_with(".rodata")), "{names:?}");
    assert!(!names.iter().any(|n| n.ends_with(".kconfig")), "{names:?}");
}

/// A pinned map would outlive the scheduler.
#[test]
fn no_map_is_pinned() {
    let mut object = MaybeUninit::<OpenObject>::uninit();
    let skel = BpfSkelBuilder::default().open(&mut object).unwrap();
    for map in skel.open_object().maps() {
        // SAFETY: the map belongs to the open object.
        let path = unsafe { bpf_map__pin_path(map.as_libbpf_object().as_ptr()) };
        assert!(path.is_null(), "{:?} is pinned", map.name());
    }
}
