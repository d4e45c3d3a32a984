// SPDX-License-Identifier: GPL-2.0-only
//! The machine at a load: /sys may be changing.

use super::Machine;
use super::host::Host;
use anyhow::{Result, bail};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long /sys may stay inconsistent after a CPU came or went.
const SETTLE_TIME: Duration = Duration::from_secs(2);
/// Files that contradict each other may be right, and always do so on some machines.
const DOUBT_TIME: Duration = Duration::from_millis(200);
const SETTLE_NAP: Duration = Duration::from_millis(20);

/// The machine, and the count of hotplug events when it was read. After a restart, or if a CPU came
/// or went meanwhile, /sys may still be changing: what is inconsistent is read again for up to
/// `SETTLE_TIME`, what is in doubt for up to `DOUBT_TIME`.
pub fn read_machine(host: &Host, restarted: bool) -> Result<(Machine, u64)> {
    let begin = Instant::now();
    loop {
        let seq = host.hotplug_seq()?;
        let machine = Machine::read(&host.sys);
        let moved = host.hotplug_seq()? != seq;
        let patient = |time| (restarted || moved) && begin.elapsed() < time;
        match machine {
            Ok(machine) if !moved && (machine.doubts.is_empty() || !patient(DOUBT_TIME)) => {
                check_described(host, &machine)?;
                return Ok((machine, seq));
            }
            Err(e) if !patient(SETTLE_TIME) => return Err(e),
            Ok(_) if !patient(SETTLE_TIME) => {
                bail!("CPUs keep coming and going: cannot read the machine, try again later")
            }
            _ => sleep(SETTLE_NAP),
        }
    }
}

/// A machine described elsewhere (--sysfs) can only be run if it has the same CPUs online.
fn check_described(host: &Host, machine: &Machine) -> Result<()> {
    if host.own_machine() || !host.own_kernel() {
        return Ok(());
    }
    let real = Machine::read(Path::new("/sys"))?;
    if real.online() != machine.online() || real.nr_cpu_ids > machine.nr_cpu_ids {
        bail!(
            "--sysfs {} describes a machine with other CPUs: to run, the same CPUs must be online as here",
            host.sys.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tempfile::TempDir;

    fn described(online: &str) -> (TempDir, Host) {
        let dir = tempfile::tempdir().unwrap();
        let cpu = dir.path().join("devices/system/cpu");
        fs::create_dir_all(&cpu).unwrap();
        fs::create_dir_all(dir.path().join("kernel/sched_ext")).unwrap();
        fs::write(cpu.join("possible"), "0-3\n").unwrap();
        fs::write(cpu.join("online"), online).unwrap();
        fs::write(dir.path().join("kernel/sched_ext/hotplug_seq"), "7\n").unwrap();
        let host = Host::in_folder(dir.path());
        (dir, host)
    }

    #[test]
    fn the_machine_comes_with_its_hotplug_count() {
        let (_dir, host) = described("0-3\n");
        let (machine, seq) = read_machine(&host, false).unwrap();
        assert_eq!((machine.cpus.len(), seq), (4, 7));
    }

    #[test]
    fn at_the_first_start_garbage_is_an_error_at_once() {
        let (_dir, host) = described("garbage\n");
        let begin = Instant::now();
        assert!(read_machine(&host, false).is_err());
        assert!(begin.elapsed() < SETTLE_TIME / 2);
    }

    #[test]
    fn after_a_restart_the_machine_may_take_a_moment() {
        let (dir, host) = described("garbage\n");
        let settle = std::thread::spawn(move || {
            sleep(Duration::from_millis(150));
            fs::write(dir.path().join("devices/system/cpu/online"), "0-2\n").unwrap();
            dir
        });
        let (machine, _) = read_machine(&host, true).unwrap();
        assert_eq!(machine.online(), [0, 1, 2]);
        settle.join().unwrap();
    }

    #[test]
    fn after_a_restart_a_doubt_is_looked_at_again_and_then_stays() {
        let (dir, host) = described("0-3\n");
        let l3 = |cpu: u16, cpus: &str| {
            let cache = dir.path().join("devices/system/cpu");
            let cache = cache.join(format!("cpu{cpu}/cache/index0"));
            fs::create_dir_all(&cache).unwrap();
            fs::write(cache.join("level"), "3\n").unwrap();
            fs::write(cache.join("shared_cpu_list"), cpus).unwrap();
        };
        l3(0, "0-3\n");
        l3(1, "1\n");
        let doubts = |restarted| read_machine(&host, restarted).unwrap().0.doubts.len();
        let begin = Instant::now();
        assert_eq!(doubts(true), 1);
        assert!(begin.elapsed() >= DOUBT_TIME);
        assert_eq!(doubts(false), 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                sleep(DOUBT_TIME / 4);
                l3(1, "0-3\n");
            });
            assert_eq!(doubts(true), 0);
        });
    }
}
