// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler for tests/guest/old-paths.sh: built with the feature `old_paths`.

#[path = "spin.rs"]
mod scheduler;

fn main() -> anyhow::Result<()> {
    scheduler::main()
}
