// SPDX-License-Identifier: GPL-2.0-only
//! What the placement policy is told: features, arms and their settings, rules that put tasks on
//! arms, and the configuration of a run. No file, no clock, no kernel.

pub mod arms;
pub mod config;
pub mod features;
pub mod rules;
pub mod variant;
