// SPDX-License-Identifier: GPL-2.0-only
//! The C declarations of policy.h, made by build/native.rs.
#![allow(
    non_upper_case_globals,
    non_camel_case_types,
    non_snake_case,
    dead_code,
    missing_docs,
    clippy::all
)]
include!(concat!(env!("OUT_DIR"), "/native_policy.rs"));
