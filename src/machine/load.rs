// SPDX-License-Identifier: GPL-2.0-only
//! What the machine is busy with, from /proc: time of each CPU, waiting for a CPU (PSI), and this
//! process's memory.

use crate::machine::host::Host;

/// In ticks of /proc/stat (USER_HZ), since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub busy: u64,
    pub idle: u64,
}

/// By online CPU number, ascending. None: the file cannot be read or parsed.
pub fn cpu_times(host: &Host) -> Option<Vec<(u16, CpuTime)>> {
    parse_stat(&host.proc_text("stat")?)
}

fn parse_stat(text: &str) -> Option<Vec<(u16, CpuTime)>> {
    let of_cpu = |line: &str| {
        let mut fields = line.strip_prefix("cpu")?.split_ascii_whitespace();
        let cpu = fields.next()?.parse().ok()?;
        let ticks: Vec<u64> = fields.map_while(|f| f.parse().ok()).collect();
        // user nice system idle iowait irq softirq steal; time of guests is included in user.
        let (spent, idle) = (ticks.get(..8)?, ticks.get(3..5)?);
        let idle = idle.iter().sum::<u64>();
        let busy = spent.iter().sum::<u64>() - idle;
        Some((cpu, CpuTime { busy, idle }))
    };
    // The first line is the sum of all CPUs; other lines follow those of the CPUs.
    let lines = text.lines().skip(1).take_while(|l| l.starts_with("cpu"));
    let times = lines.map(of_cpu).collect::<Option<Vec<_>>>()?;
    (!times.is_empty()).then_some(times)
}

/// The share of the last ten seconds in which some task waited for a CPU, in thousandths; None
/// where the kernel has no PSI.
pub fn waiting_permille(host: &Host) -> Option<u64> {
    let text = host.proc_text("pressure/cpu")?;
    let some = text.lines().find(|l| l.starts_with("some "))?;
    let mut fields = some.split_ascii_whitespace();
    let percent: f64 = fields
        .find_map(|f| f.strip_prefix("avg10="))?
        .parse()
        .ok()?;
    (0.0..=100.0)
        .contains(&percent)
        .then_some((percent * 10.0) as u64)
}

/// This process's resident memory.
pub fn resident_kb(host: &Host) -> Option<u64> {
    let status = host.proc_text("self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const STAT: &str = "cpu  30 3 9 900 6 0 3 3 7 0
cpu0 10 1 3 300 2 0 1 1 7 0
cpu5 20 2 6 600 4 0 2 2 0 0
intr 5 0 0
ctxt 77
";

    #[test]
    fn times_of_cpus() {
        let time = |busy, idle| CpuTime { busy, idle };
        let times = [(0, time(16, 302)), (5, time(32, 604))];
        assert_eq!(parse_stat(STAT).unwrap(), times);
        for garbage in [
            "",
            "cpu 1 2",
            "cpu\ncpux 1 2 3 4 5 6 7 8",
            "cpu\ncpu0 1 2 x",
        ] {
            assert_eq!(parse_stat(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn pressure_and_memory() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        assert_eq!((waiting_permille(&host), resident_kb(&host)), (None, None));
        fs::create_dir_all(host.proc.join("pressure")).unwrap();
        fs::create_dir_all(host.proc.join("self")).unwrap();
        let write = |name: &str, text: &str| fs::write(host.proc.join(name), text).unwrap();
        write(
            "pressure/cpu",
            "some avg10=1.91 avg60=2.10 avg300=4.17 total=529\nfull avg10=0.00 total=1\n",
        );
        write("self/status", "Name:\tx\nVmRSS:\t    1234 kB\n");
        assert_eq!(
            (waiting_permille(&host), resident_kb(&host)),
            (Some(19), Some(1234))
        );
        write("pressure/cpu", "some avg10=many\n");
        assert_eq!(waiting_permille(&host), None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let host = Host::new(std::path::Path::new("/sys"));
        assert!(!cpu_times(&host).unwrap().is_empty());
        assert!(resident_kb(&host).unwrap() > 100);
    }
}
