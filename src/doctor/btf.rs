// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's own type information (BTF). No scheduler loads without it.

use super::Check;
use crate::bpf::skel::BpfSkelBuilder;
use crate::machine::host::Host;
use anyhow::{Context, Result};
use libbpf_rs::btf::{Btf, types};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{AsRawLibbpf, OpenObject};
use scx_utils::compat;
use std::collections::BTreeSet;
use std::mem::MaybeUninit;

const FIX: &str = "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y and pahole 1.26 or later";

pub fn present(host: &Host) -> Option<Check> {
    // libbpf reads the BTF of the running kernel only.
    if !host.own_kernel() {
        return None;
    }
    Some(match Btf::from_vmlinux() {
        Ok(_) => Check::ok("btf", "the kernel has BTF"),
        Err(e) => Check::fail("btf", format!("the kernel's BTF cannot be read ({e})"), FIX),
    })
}

/// pahole before 1.26 leaves the hidden argument of some kfuncs in their public prototype. A
/// program that calls one of them does not load ("func_proto incompatible with vmlinux"), seen on
/// Debian's 7.1.13.
pub fn usable(host: &Host) -> Option<Check> {
    if !host.own_kernel() || Btf::from_vmlinux().is_err() {
        return None;
    }
    let used = kfuncs_used().unwrap_or_default();
    let bad: Vec<String> = compat::malformed_scx_kfuncs()
        .into_iter()
        .filter(|k| used.contains(k))
        .collect();
    if bad.is_empty() {
        return Some(Check::ok(
            "kfuncs",
            "the kfuncs that scx_roost calls are described correctly",
        ));
    }
    let found = format!(
        "this kernel's BTF was made by pahole before 1.26 and describes {} wrongly",
        bad.join(" ")
    );
    Some(Check::fail(
        "kfuncs",
        found,
        "no scheduler that calls them can load; boot another kernel version",
    ))
}

/// Names of the sched_ext kfuncs that the BPF object calls, without the suffixes of their
/// compatibility variants. The compiler emits BTF for a kernel function only if it is called.
/// (libbpf overwrites the list of externals, .ksyms, when it opens the object.)
pub fn kfuncs_used() -> Result<BTreeSet<String>> {
    let mut object = MaybeUninit::<OpenObject>::uninit();
    let skel = BpfSkelBuilder::default()
        .open(&mut object)
        .context("cannot open the BPF object")?;
    // SAFETY: the object lives as long as `skel`, which outlives the reference.
    let raw = unsafe { skel.open_object().as_libbpf_object().as_ref() };
    let btf = Btf::from_bpf_object(raw)?.context("the BPF object has no BTF")?;
    let names = btf
        .type_by_kind::<types::Func<'_>>()
        .filter_map(|f| Some(f.name()?.to_string_lossy().into_owned()))
        .filter(|n| n.starts_with("scx_bpf_") || n.starts_with("__scx_bpf_"));
    Ok(names
        .map(|n| n.split("___").next().unwrap_or_default().to_string())
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_kfuncs_are_found_in_the_object() {
        let used = kfuncs_used().unwrap();
        assert!(used.contains("scx_bpf_kick_cpu"), "{used:?}");
        assert!(used.iter().all(|k| !k.contains("___")), "{used:?}");
    }
}
