// SPDX-License-Identifier: GPL-2.0-only
//! Energy of the packages, from the RAPL counters of powercap. On a large machine they wrap within
//! an hour, so they are polled.

use std::fs;
use std::path::{Path, PathBuf};

struct Zone {
    counter: PathBuf,
    /// Microjoules at which the counter wraps to 0.
    range: u64,
    last: u64,
}

/// Energy of all packages since this was created.
pub struct Energy {
    zones: Vec<Zone>,
    uj: u64,
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

impl Energy {
    /// `powercap`: /sys/class/powercap. None if no package's counter can be read.
    pub fn new(powercap: &Path) -> Option<Energy> {
        let entries = fs::read_dir(powercap).ok()?.flatten();
        let zones: Vec<Zone> = entries.filter_map(|entry| zone(&entry.path())).collect();
        (!zones.is_empty()).then_some(Energy { zones, uj: 0 })
    }

    /// Joules so far. Call it more often than counters wrap.
    pub fn poll(&mut self) -> f64 {
        for zone in &mut self.zones {
            let Some(now) = number(&zone.counter) else {
                continue;
            };
            self.uj += match now.checked_sub(zone.last) {
                Some(grown) => grown,
                None => now + zone.range.saturating_sub(zone.last),
            };
            zone.last = now;
        }
        self.uj as f64 / 1e6
    }
}

/// Only whole packages: `intel-rapl:0`. `intel-rapl:0:1` is a part of it, `intel-rapl-mmio:0` is
/// the same package, and psys contains packages.
fn zone(path: &Path) -> Option<Zone> {
    let name = path.file_name()?.to_str()?;
    name.strip_prefix("intel-rapl:")?.parse::<u32>().ok()?;
    let kind = fs::read_to_string(path.join("name")).ok()?;
    if !kind.starts_with("package") {
        return None;
    }
    let counter = path.join("energy_uj");
    Some(Zone {
        last: number(&counter)?,
        range: number(&path.join("max_energy_range_uj")).unwrap_or(0),
        counter,
    })
}
