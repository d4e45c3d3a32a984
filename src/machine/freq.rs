// SPDX-License-Identifier: GPL-2.0-only
//! Where the frequency of each CPU is read: files of cpufreq, or a folder given by the user.

use super::policy::cpufreq_file;
use crate::machine::host::Host;
use crate::util::names::meant;
use log::warn;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;

/// Where the frequency of each CPU is read: the value of `--freq-source`, which `FromStr` parses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreqSource {
    /// What ticks see if that turns out to vary, else cpufreq, else nothing.
    Auto,
    /// What ticks see.
    Cpuperf,
    /// The files of cpufreq in /sys.
    Cpufreq,
    /// Frequencies are not read.
    Off,
    /// `DIR/cpu<N>` holds a number of kHz.
    Folder(PathBuf),
}

impl FreqSource {
    pub(crate) fn folder(&self) -> Option<&PathBuf> {
        match self {
            FreqSource::Folder(path) => Some(path),
            _ => None,
        }
    }
}

impl FromStr for FreqSource {
    type Err = String;

    fn from_str(text: &str) -> Result<FreqSource, String> {
        match text {
            "auto" => Ok(FreqSource::Auto),
            "cpuperf" => Ok(FreqSource::Cpuperf),
            "cpufreq" => Ok(FreqSource::Cpufreq),
            "off" => Ok(FreqSource::Off),
            _ if !text.contains('/') => {
                let all =
                    || "expected auto, cpuperf, cpufreq, off or a folder's path with a / in it";
                let meant = meant(text, &["auto", "cpuperf", "cpufreq", "off"]);
                let meant = meant.unwrap_or_else(|| all().to_string());
                Err(format!("'{text}' is not a source: {meant}"))
            }
            _ if !Path::new(text).is_dir() => Err(format!(
                "'{text}' is not a folder: expected one whose files cpu0, cpu1 and so on hold a number of kHz"
            )),
            _ => Ok(FreqSource::Folder(PathBuf::from(text))),
        }
    }
}

/// Best first. `cpuinfo_cur_freq` is left out, because each read queries the hardware.
const FILES: [&str; 2] = ["cpuinfo_avg_freq", "scaling_cur_freq"];

/// A number of kHz is shorter.
const BYTES_MAX: usize = 32;

/// The files to read, one per CPU, by number. They are kept open, so new values must be written in
/// place.
pub struct FreqFiles {
    /// A name for people.
    pub name: String,
    /// Files of the kernel's own /sys, which do not hang.
    pub of_kernel: bool,
    paths: Vec<PathBuf>,
    open: Mutex<Open>,
}

/// Both by CPU number.
struct Open {
    files: Vec<Option<File>>,
    /// It was reported that this is no regular file.
    reported: Vec<bool>,
}

impl FreqFiles {
    pub fn of_folder(folder: &Path, nr_cpu_ids: usize) -> FreqFiles {
        let path = |cpu| folder.join(format!("cpu{cpu}"));
        FreqFiles::new(
            folder.display().to_string(),
            false,
            (0..nr_cpu_ids).map(path).collect(),
        )
    }

    /// The best file that some CPU has and that can be read; None: there is none.
    pub fn of_cpufreq(host: &Host, nr_cpu_ids: usize) -> Option<FreqFiles> {
        FILES.iter().find_map(|name| {
            let path = |cpu| host.sys.join(cpufreq_file(cpu, name));
            let paths = (0..nr_cpu_ids).map(path).collect();
            let files = FreqFiles::new((*name).to_string(), !host.described(), paths);
            files.read().iter().any(Option::is_some).then_some(files)
        })
    }

    fn new(name: String, of_kernel: bool, paths: Vec<PathBuf>) -> FreqFiles {
        let open = Open {
            files: paths.iter().map(|_| None).collect(),
            reported: vec![false; paths.len()],
        };
        FreqFiles {
            name,
            of_kernel,
            paths,
            open: Mutex::new(open),
        }
    }

    /// Frequencies in kHz, by CPU number; None: missing, or no number. Empty: another thread still
    /// reads. A read may block in the file system, so the caller must hold no lock.
    pub fn read(&self) -> Vec<Option<u32>> {
        let (khz, odd) = self.read_and_judge();
        if let Some(odd) = odd {
            warn!("{odd}");
        }
        khz
    }

    /// As `read`, with a complaint about paths that are no regular files, once for each.
    fn read_and_judge(&self) -> (Vec<Option<u32>>, Option<String>) {
        // Another thread may still wait for a file.
        let Ok(mut open) = self.open.try_lock() else {
            return (Vec::new(), None);
        };
        let Open { files, reported } = &mut *open;
        let mut odd = Vec::new();
        let each = self.paths.iter().zip(files).zip(reported);
        let each = each.map(|((path, file), reported)| {
            if file.is_none() {
                *file = match open_regular(path) {
                    Opened::File(file) => Some(file),
                    Opened::Missing => None,
                    Opened::Odd => {
                        if !std::mem::replace(reported, true) {
                            odd.push(path);
                        }
                        None
                    }
                };
            }
            let khz = file.as_ref().and_then(khz);
            if khz.is_none() {
                *file = None;
            }
            khz
        });
        (each.collect(), complaint(&odd))
    }
}

fn complaint(odd: &[&PathBuf]) -> Option<String> {
    let (first, others) = odd.split_first()?;
    let others = match others.len() {
        0 => "is not a regular file".to_string(),
        n => format!("and {n} more are not regular files"),
    };
    let first = first.display();
    Some(format!(
        "{first} {others}: the CPU's frequency is not read there (see --freq-source)"
    ))
}

enum Opened {
    File(File),
    Missing,
    /// A FIFO or a device: it may block for ever, or opening it may have an effect.
    Odd,
}

fn open_regular(path: &Path) -> Opened {
    // Checked before opening, and again afterwards in case it was replaced.
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => return Opened::Odd,
        Ok(_) => (),
        Err(_) => return Opened::Missing,
    }
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let Ok(file) = file else {
        return Opened::Missing;
    };
    match file.metadata() {
        Ok(meta) if meta.is_file() => Opened::File(file),
        _ => Opened::Odd,
    }
}

fn khz(file: &File) -> Option<u32> {
    let mut text = [0; BYTES_MAX];
    let len = file.read_at(&mut text, 0).ok()?;
    let text = text.get(..len).filter(|t| t.len() < BYTES_MAX)?;
    let text = std::str::from_utf8(text).ok()?;
    text.trim().parse().ok().filter(|&khz| khz > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        assert_eq!("auto".parse(), Ok(FreqSource::Auto));
        assert_eq!("off".parse(), Ok(FreqSource::Off));
        assert_eq!(path.parse(), Ok(FreqSource::Folder(dir.path().into())));
        for (wrong, why) in [
            ("fast", "'fast' is not a source"),
            ("/no/where", "is not a folder"),
        ] {
            let error = wrong.parse::<FreqSource>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_folder_is_read_again_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let write = |cpu: usize, text: &str| {
            fs::write(dir.path().join(format!("cpu{cpu}")), text).unwrap();
        };
        write(0, "1200000\n");
        write(2, "fast\n");
        write(3, "0\n");
        let files = FreqFiles::of_folder(dir.path(), 4);
        assert_eq!(files.read(), [Some(1_200_000), None, None, None]);
        write(0, "800000");
        write(1, "900000\n");
        write(2, "3000000\n");
        let all = [Some(800_000), Some(900_000), Some(3_000_000), None];
        assert_eq!(files.read(), all);
        fs::remove_file(dir.path().join("cpu2")).unwrap();
        write(0, "");
        let left = files.read();
        assert_eq!(left[..2], [None, Some(900_000)]);
    }

    #[test]
    fn an_irregular_file_is_reported_once_and_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = |cpu: usize| dir.path().join(format!("cpu{cpu}"));
        fs::write(path(0), "1000000\n").unwrap();
        fs::create_dir(path(1)).unwrap();
        let files = FreqFiles::of_folder(dir.path(), 4);
        let (khz, odd) = files.read_and_judge();
        assert_eq!(khz, [Some(1_000_000), None, None, None]);
        let odd = odd.unwrap();
        assert!(
            odd.starts_with(path(1).to_str().unwrap()) && odd.contains("is not a regular"),
            "{odd}"
        );
        std::os::unix::fs::symlink("/dev/null", path(2)).unwrap();
        fs::create_dir(path(3)).unwrap();
        let odd = files.read_and_judge().1.unwrap();
        assert!(odd.contains("cpu2 and 1 more"), "{odd}");
        assert_eq!(files.read_and_judge().1, None);
        fs::remove_file(path(2)).unwrap();
        fs::write(path(2), "3000000\n").unwrap();
        assert_eq!(files.read()[2], Some(3_000_000));
    }

    #[test]
    fn what_is_too_long_is_no_number() {
        let dir = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            fs::write(dir.path().join("cpu0"), text).unwrap();
            FreqFiles::of_folder(dir.path(), 1).read()[0]
        };
        assert_eq!(read(&format!("{:<31}", 7)), Some(7));
        assert_eq!(read(&format!("{:<32}", 7)), None);
    }

    #[test]
    fn the_best_file_of_cpufreq() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        let write = |cpu: usize, name: &str, text: &str| {
            let path = dir.path().join(cpufreq_file(cpu, name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let found = || FreqFiles::of_cpufreq(&host, 2).map(|f| (f.name.clone(), f.read()));
        assert_eq!(found(), None);
        write(1, "cpuinfo_cur_freq", "1\n");
        assert_eq!(found(), None);
        write(1, "scaling_cur_freq", "2000\n");
        assert_eq!(
            found(),
            Some(("scaling_cur_freq".into(), vec![None, Some(2000)]))
        );
        let of_kernel = |host: &Host| FreqFiles::of_cpufreq(host, 2).unwrap().of_kernel;
        assert!(of_kernel(&host) && !of_kernel(&Host::new(dir.path())));
        write(0, "cpuinfo_avg_freq", "3000\n");
        assert_eq!(
            found(),
            Some(("cpuinfo_avg_freq".into(), vec![Some(3000), None]))
        );
    }
}
