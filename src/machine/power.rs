// SPDX-License-Identifier: GPL-2.0-only
//! The machine's power setting, as power-profiles-daemon, tuned, TLP or a key of the keyboard leave
//! it: in the firmware's platform profile, in EPP, or in cpufreq's governor.

use super::host::Host;
use super::modes::Modes;
use std::fmt;

const PLATFORM: &str = "firmware/acpi/platform_profile";
/// Drivers that choose frequencies themselves. Their governor `powersave` is the usual one.
const AUTONOMOUS: [&str; 2] = ["intel_pstate", "amd-pstate-epp"];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Power {
    Save,
    #[default]
    Balanced,
    Performance,
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Power::Save => "saves power",
            Power::Balanced => "is balanced",
            Power::Performance => "is set to performance",
        })
    }
}

impl Power {
    /// The setting, and the file that has it. The first source that says more than "balanced"
    /// counts. `driver`: cpufreq's.
    pub fn read(host: &Host, modes: &Modes, driver: Option<&str>) -> (Power, String) {
        let platform = host.sys_text(PLATFORM).unwrap_or_default();
        let (epp, governor) = (modes.epps(), modes.governors());
        let chooses = driver.is_some_and(|driver| AUTONOMOUS.contains(&driver));
        let sources = [
            ("platform_profile", of_platform(&platform), &platform),
            ("EPP", of_epp(&epp), &epp),
            ("governor", of_governor(&governor, chooses), &governor),
        ];
        let told = sources
            .iter()
            .find(|(_, power, _)| *power != Power::Balanced);
        match told {
            Some((name, power, text)) => (*power, format!("{name} {text}")),
            None => (Power::Balanced, "no source says otherwise".to_string()),
        }
    }
}

/// kernel: profile_names of drivers/acpi/platform_profile.c
fn of_platform(text: &str) -> Power {
    match text {
        "low-power" | "cool" | "quiet" => Power::Save,
        "performance" | "max-power" => Power::Performance,
        _ => Power::Balanced,
    }
}

/// kernel: energy_perf_strings of intel_pstate and amd-pstate
fn of_epp(text: &str) -> Power {
    match text {
        "power" => Power::Save,
        "performance" => Power::Performance,
        _ => Power::Balanced,
    }
}

fn of_governor(text: &str, driver_chooses: bool) -> Power {
    match text {
        "powersave" if !driver_chooses => Power::Save,
        "performance" => Power::Performance,
        _ => Power::Balanced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Policies;
    use std::fs;

    #[test]
    fn the_first_source_that_says_something_counts() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        let cpufreq =
            |cpu: usize, file: &str| format!("devices/system/cpu/cpu{cpu}/cpufreq/{file}");
        let power = |driver| {
            let modes = Modes::read(&host, &Policies::read(&host, 2), None);
            Power::read(&host, &modes, driver)
        };
        assert_eq!(power(None).0, Power::Balanced);
        for cpu in 0..2 {
            write(&cpufreq(cpu, "scaling_governor"), "powersave");
        }
        let slow = (Power::Save, "governor powersave".to_string());
        assert_eq!(power(Some("acpi-cpufreq")), slow);
        assert_eq!(power(Some("intel_pstate")).0, Power::Balanced);
        write(&cpufreq(0, "energy_performance_preference"), "performance");
        let fast = (Power::Performance, "EPP performance".to_string());
        assert_eq!(power(Some("intel_pstate")), fast);
        write(&cpufreq(1, "energy_performance_preference"), "power");
        assert_eq!(power(Some("intel_pstate")).0, Power::Balanced);
        write(PLATFORM, "balanced");
        assert_eq!(power(Some("acpi-cpufreq")), slow);
        write(PLATFORM, "performance");
        let fast = (
            Power::Performance,
            "platform_profile performance".to_string(),
        );
        assert_eq!(power(Some("acpi-cpufreq")), fast);
    }
}
