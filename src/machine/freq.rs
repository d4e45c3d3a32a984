// SPDX-License-Identifier: GPL-2.0-only
//! Where the frequency of each CPU is read: files of cpufreq, or a folder of somebody's own.

use crate::host::Host;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What was asked for with --freq-source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FreqSource {
    /// What ticks see if that turns out to change, else cpufreq, else nothing.
    Auto,
    /// What ticks see.
    Cpuperf,
    Cpufreq,
    Off,
    /// `DIR/cpu<N>` holds a number of kHz.
    Folder(PathBuf),
}

impl FromStr for FreqSource {
    type Err = String;

    fn from_str(text: &str) -> Result<FreqSource, String> {
        match text {
            "auto" => Ok(FreqSource::Auto),
            "cpuperf" => Ok(FreqSource::Cpuperf),
            "cpufreq" => Ok(FreqSource::Cpufreq),
            "off" => Ok(FreqSource::Off),
            _ if !text.contains('/') => Err(format!(
                "'{text}' is no source: auto, cpuperf, cpufreq, off or a folder's path with a / in it is expected"
            )),
            _ if !Path::new(text).is_dir() => Err(format!("'{text}' is no folder")),
            _ => Ok(FreqSource::Folder(PathBuf::from(text))),
        }
    }
}

/// Best first. `cpuinfo_cur_freq` asks the hardware at each read, and is left alone.
const FILES: [&str; 2] = ["cpuinfo_avg_freq", "scaling_cur_freq"];

/// The files that are read, one of each CPU, by number. They are kept open: they have to be written in place.
pub struct FreqFiles {
    /// What they are, for people.
    pub name: String,
    paths: Vec<PathBuf>,
    files: Vec<Option<File>>,
}

impl FreqFiles {
    pub fn of_folder(folder: &Path, nr_cpu_ids: usize) -> FreqFiles {
        let path = |cpu| folder.join(format!("cpu{cpu}"));
        FreqFiles::new(
            folder.display().to_string(),
            (0..nr_cpu_ids).map(path).collect(),
        )
    }

    /// The best that some CPU has and can be read; None: there is none.
    pub fn of_cpufreq(host: &Host, nr_cpu_ids: usize) -> Option<FreqFiles> {
        FILES.iter().find_map(|name| {
            let path = |cpu| host.sys.join(cpufreq_file(cpu, name));
            let paths = (0..nr_cpu_ids).map(path).collect();
            let mut files = FreqFiles::new((*name).to_string(), paths);
            files.read().iter().any(Option::is_some).then_some(files)
        })
    }

    fn new(name: String, paths: Vec<PathBuf>) -> FreqFiles {
        let files = paths.iter().map(|_| None).collect();
        FreqFiles { name, paths, files }
    }

    /// In kHz; None: missing, or no number.
    pub fn read(&mut self) -> Vec<Option<u32>> {
        let each = self.paths.iter().zip(&mut self.files);
        each.map(|(path, file)| {
            if file.is_none() {
                *file = File::open(path).ok();
            }
            let khz = file.as_ref().and_then(khz);
            if khz.is_none() {
                *file = None;
            }
            khz
        })
        .collect()
    }
}

fn khz(file: &File) -> Option<u32> {
    let mut text = [0; 32];
    let len = file.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..len]).ok()?;
    text.trim().parse().ok().filter(|&khz| khz > 0)
}

fn cpufreq_file(cpu: usize, name: &str) -> String {
    format!("devices/system/cpu/cpu{cpu}/cpufreq/{name}")
}

/// The lowest frequency of each CPU, where cpufreq says it.
pub fn least_khz(host: &Host, nr_cpu_ids: usize) -> Vec<Option<u32>> {
    let least = |cpu| {
        host.sys_text(&cpufreq_file(cpu, "cpuinfo_min_freq"))?
            .parse()
            .ok()
    };
    (0..nr_cpu_ids).map(least).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn sources_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        assert_eq!("auto".parse(), Ok(FreqSource::Auto));
        assert_eq!("off".parse(), Ok(FreqSource::Off));
        assert_eq!(path.parse(), Ok(FreqSource::Folder(dir.path().into())));
        for (wrong, why) in [
            ("fast", "'fast' is no source"),
            ("/no/where", "is no folder"),
        ] {
            let error = wrong.parse::<FreqSource>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn a_folder_is_read_anew_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let write = |cpu: usize, text: &str| {
            fs::write(dir.path().join(format!("cpu{cpu}")), text).unwrap();
        };
        write(0, "1200000\n");
        write(2, "fast\n");
        write(3, "0\n");
        let mut files = FreqFiles::of_folder(dir.path(), 4);
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
    fn the_best_file_of_cpufreq() {
        let dir = tempfile::tempdir().unwrap();
        let host = Host::in_folder(dir.path());
        let write = |cpu: usize, name: &str, text: &str| {
            let path = dir.path().join(cpufreq_file(cpu, name));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let found = || FreqFiles::of_cpufreq(&host, 2).map(|mut f| (f.name.clone(), f.read()));
        assert_eq!(found(), None);
        write(1, "cpuinfo_cur_freq", "1\n");
        assert_eq!(found(), None);
        write(1, "scaling_cur_freq", "2000\n");
        assert_eq!(
            found(),
            Some(("scaling_cur_freq".into(), vec![None, Some(2000)]))
        );
        write(0, "cpuinfo_avg_freq", "3000\n");
        assert_eq!(
            found(),
            Some(("cpuinfo_avg_freq".into(), vec![Some(3000), None]))
        );
        write(0, "cpuinfo_min_freq", "400\n");
        assert_eq!(least_khz(&host, 2), [Some(400), None]);
    }
}
