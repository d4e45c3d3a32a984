// SPDX-License-Identifier: GPL-2.0-only
//! What userspace sets in the policy: features, presets, profiles, the kernel's rules, arms and
//! their settings, rules that put tasks on arms, and the configuration of a run with its files.
//! Only `rules` asks the kernel: it looks up cgroups and processes.

pub mod arms;
pub mod change;
pub mod config;
pub mod differences;
pub mod fair;
pub mod features;
pub mod file;
pub mod plan;
pub mod profiles;
pub mod rules;
pub mod settings;
pub mod variant;
