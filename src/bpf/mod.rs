// SPDX-License-Identifier: GPL-2.0-only
//! What the build generates from src/bpf: `intf` holds the C types shared by both halves, `skel`
//! the BPF object. `exit` reads why the kernel ended it.

pub mod exit;

use anyhow::{Result, bail};
use libbpf_rs::{PrintCallback, PrintLevel, set_print};
use log::debug;

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

#[allow(clippy::too_many_lines, reason = "libbpf-cargo writes it")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

pub mod skel {
    pub use super::generated::*;
}

/// While it lives, libbpf's messages go to the log at debug level. By default libbpf writes to
/// stderr, and warns about things that are intended.
pub struct ToLog(Option<(PrintLevel, PrintCallback)>);

impl ToLog {
    pub fn begin() -> ToLog {
        // The verifier's log has many lines.
        let to_log: PrintCallback = |_, text| text.lines().for_each(|line| debug!("{line}"));
        ToLog(set_print(Some((PrintLevel::Debug, to_log))))
    }
}

impl Drop for ToLog {
    fn drop(&mut self) {
        set_print(self.0.take());
    }
}

/// Two Rust types of one C struct: bindgen and each skeleton generate their own. Every type is its
/// own twin; `twins!` declares the others.
///
/// # Safety
///
/// Both types have the layout of the same C struct, and the bytes of a value of `Other` are a value
/// of `Self`.
pub unsafe trait TwinOf<Other>: Copy {}

// SAFETY: one type has one layout.
unsafe impl<T: Copy> TwinOf<T> for T {}

/// Declares, in both directions, that `$a` and `$b` are Rust's types of the same C struct. The
/// caller writes `unsafe`, and so vouches for the contract of `TwinOf`. Sizes that differ do not
/// compile.
#[cfg_attr(feature = "internals", macro_export)]
macro_rules! twins {
    (unsafe $($a:ty = $b:ty),* $(,)?) => {$(
        const _: () = assert!(size_of::<$a>() == size_of::<$b>());
        // SAFETY: the caller vouches that both come from the same C struct.
        unsafe impl $crate::bpf::TwinOf<$b> for $a {}
        // SAFETY: as above.
        unsafe impl $crate::bpf::TwinOf<$a> for $b {}
    )*};
}

twins! { unsafe
    intf::machine_facts = skel::types::machine_facts,
    intf::cpu_facts = skel::types::cpu_facts,
    intf::llc_facts = skel::types::llc_facts,
    intf::node_facts = skel::types::node_facts,
    intf::tunables = skel::types::tunables,
    intf::policy_image = skel::types::policy_image,
}

/// Copies rows between the Rust types of one C struct. Other types do not compile:
///
/// ```compile_fail
/// let mut names = ["a"];
/// scx_roost::bpf::copy_rows(&mut names, &[[0usize; 2]]).unwrap();
/// ```
pub fn copy_rows<To: TwinOf<From>, From: Copy>(to: &mut [To], from: &[From]) -> Result<()> {
    const { assert!(size_of::<To>() == size_of::<From>()) };
    if from.len() > to.len() {
        bail!(
            "{} rows do not fit into a table of {}",
            from.len(),
            to.len()
        );
    }
    // SAFETY: twins have one layout, and each value of `From` is one of `To`; `to` is long enough.
    unsafe {
        let bytes = to.as_mut_ptr().cast::<u8>();
        std::ptr::copy_nonoverlapping(from.as_ptr().cast(), bytes, size_of_val(from));
    };
    Ok(())
}

/// Writes what the BPF half reads as constants: `Facts` and `tunables` into the .rodata of a
/// skeleton. A macro, because each skeleton has its own type for it.
#[cfg_attr(feature = "internals", macro_export)]
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

pub(crate) use fill_rodata;
#[cfg(feature = "rustland")]
pub(crate) use twins;

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    twins! { unsafe u16 = i16 }

    /// libbpf warns about data that is no object.
    fn warn_by_libbpf() {
        assert!(
            libbpf_rs::ObjectBuilder::default()
                .open_memory(b"none")
                .is_err()
        );
    }

    #[test]
    fn libbpf_is_quiet_while_its_words_go_to_the_log() {
        static HEARD: AtomicUsize = AtomicUsize::new(0);
        let heard = || HEARD.load(Ordering::Relaxed);
        let listen: PrintCallback = |_, _| {
            HEARD.fetch_add(1, Ordering::Relaxed);
        };
        let before = set_print(Some((PrintLevel::Debug, listen)));
        let quiet = ToLog::begin();
        warn_by_libbpf();
        assert_eq!(heard(), 0);
        drop(quiet);
        warn_by_libbpf();
        assert!(heard() > 0, "what was set before is back");
        set_print(before);
    }

    #[test]
    fn tables_are_copied_whole_or_not_at_all() {
        let mut to = [0u16; 3];
        copy_rows(&mut to, &[1i16, 2]).unwrap();
        assert_eq!(to, [1, 2, 0]);
        assert!(copy_rows(&mut to, &[1i16; 4]).is_err());
    }
}
