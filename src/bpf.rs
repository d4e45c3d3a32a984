// SPDX-License-Identifier: GPL-2.0-only
//! What the build made of src/bpf: `intf` are the C types that both halves share, `skel` is the BPF object.

use anyhow::{Result, bail};

pub mod intf {
    #![allow(
        non_upper_case_globals,
        non_camel_case_types,
        non_snake_case,
        dead_code,
        missing_docs
    )]
    include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
}

mod generated {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

pub mod skel {
    pub use super::generated::*;
}

/// bindgen and a skeleton each have their own Rust type for one C struct: copied is what C sees, its bytes.
pub fn copy_rows<To: Copy, From: Copy>(to: &mut [To], from: &[From]) -> Result<()> {
    const { assert!(size_of::<To>() == size_of::<From>()) };
    if from.len() > to.len() {
        bail!(
            "{} rows do not fit into a table of {}",
            from.len(),
            to.len()
        );
    }
    // SAFETY: both sides are plain C data of one size, and `to` is long enough.
    unsafe {
        let bytes = to.as_mut_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(from.as_ptr().cast(), bytes, size_of_val(from))
    };
    Ok(())
}

/// Writes what the BPF half reads as constants: `Facts` and `tunables` into the .rodata of a skeleton. A macro, because
/// each skeleton has a type of its own for it.
#[macro_export]
macro_rules! fill_rodata {
    ($rodata:expr, $facts:expr, $tun:expr) => {{
        use std::slice::{from_mut, from_ref};
        let (rodata, facts) = ($rodata, $facts);
        $crate::bpf::copy_rows(from_mut(&mut rodata.machine), from_ref(&facts.machine))?;
        $crate::bpf::copy_rows(from_mut(&mut rodata.tun), from_ref($tun))?;
        $crate::bpf::copy_rows(&mut rodata.cpus, &facts.cpus)?;
        $crate::bpf::copy_rows(&mut rodata.llcs, &facts.llcs)?;
        $crate::bpf::copy_rows(&mut rodata.nodes, &facts.nodes)?;
        $crate::bpf::copy_rows(&mut rodata.llc_cpus, &facts.llc_cpus)?;
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_copied_whole_or_not_at_all() {
        let mut to = [0u16; 3];
        copy_rows(&mut to, &[1i16, 2]).unwrap();
        assert_eq!(to, [1, 2, 0]);
        assert!(copy_rows(&mut to, &[1i16; 4]).is_err());
    }
}
