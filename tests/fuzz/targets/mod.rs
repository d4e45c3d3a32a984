// SPDX-License-Identifier: GPL-2.0-only
//! Fuzz targets: functions of some bytes. They panic, or the C aborts, when a property does not
//! hold.

mod answers;
pub mod bytes;
mod configuration;
mod lists;
pub mod live;
mod policy;
mod results;
mod rules;
mod sockets;
mod sysfs;
#[path = "../../policy/topology.rs"]
#[allow(dead_code)]
mod topology;

pub struct Target {
    /// Also the name of its file in corpus/.
    pub name: &'static str,
    pub run: fn(&[u8]),
}

pub const TARGETS: &[Target] = &[
    target("lists", lists::lists),
    target("sysfs", sysfs::sysfs),
    target("control", sockets::control),
    target("statistics", sockets::statistics),
    target("answers", answers::answers),
    target("configuration", configuration::configuration),
    target("rules", rules::rules),
    target("results", results::results),
    target("policy", policy::policy),
];

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}
