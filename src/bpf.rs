// SPDX-License-Identifier: GPL-2.0-only
//! What the build made of src/bpf: `intf` are the C types that both halves share, `skel` is the BPF object.

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
