// SPDX-License-Identifier: GPL-2.0-only
//! Waits until nothing reads the old image.

use anyhow::{Context, Result};
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use std::os::fd::{AsFd, AsRawFd};

/// `wait` returns when every reader that had begun is done.
pub trait Grace {
    fn wait(&mut self) -> Result<()>;
}

/// Waits for the kernel's BPF programs. An update of a map of maps returns when no program can
/// still use the old one, by synchronize_rcu(). membarrier() would do the same, but not on a
/// machine with nohz_full.
pub struct MapUpdate {
    outer: MapHandle,
    inner: MapHandle,
}

impl MapUpdate {
    pub fn new() -> Result<MapUpdate> {
        let mut opts = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            ..Default::default()
        };
        let inner = MapHandle::create(MapType::Array, Some("roost_grace"), 4, 4, 1, &opts)
            .context("the kernel cannot create a map")?;
        opts.inner_map_fd = inner.as_fd().as_raw_fd() as u32;
        let outer = MapHandle::create(MapType::ArrayOfMaps, Some("roost_graces"), 4, 4, 1, &opts)
            .context("the kernel cannot create a map of maps")?;
        Ok(MapUpdate { outer, inner })
    }
}

impl Grace for MapUpdate {
    fn wait(&mut self) -> Result<()> {
        let fd = self.inner.as_fd().as_raw_fd().to_ne_bytes();
        self.outer
            .update(&0u32.to_ne_bytes(), &fd, MapFlags::ANY)
            .context("cannot wait for BPF programs that use the old policy")
    }
}
