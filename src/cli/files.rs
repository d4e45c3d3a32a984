// SPDX-License-Identifier: GPL-2.0-only
//! Which configuration files a start reads, and in which order; and which it refuses.

use super::args::RunArgs;
use super::config_of;
use super::levels::{Levels, SOCKETS};
use crate::policy::file::{Key, Said};
use crate::util::plain_file::{PlainFile, TEXT_MAX};
use crate::util::user::is_root;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Command};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const FIRST: &str = "config.toml";
const DROP_INS: &str = "config.d";
/// What `ctl save` writes.
const SAVED: &str = "90-ctl.toml";
/// As the kernel: MAXSYMLINKS.
const LINKS_MAX: usize = 40;

/// Where the configuration is, as --config says it.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigSource {
    /// `config.toml` and drop-ins. `needed`: the folder must exist.
    Folder {
        path: PathBuf,
        needed: bool,
    },
    File(PathBuf),
    Nowhere,
}

impl ConfigSource {
    /// `given`: the value of --config. `usual`: the folder without one.
    pub fn of(given: Option<PathBuf>, usual: &Path) -> ConfigSource {
        match given {
            None => ConfigSource::Folder {
                path: usual.to_path_buf(),
                needed: false,
            },
            Some(none) if none.as_os_str() == "none" => ConfigSource::Nowhere,
            Some(path) if path.is_dir() => {
                let path = std::path::absolute(&path).unwrap_or(path);
                ConfigSource::Folder { path, needed: true }
            }
            Some(path) => ConfigSource::File(path),
        }
    }

    /// The configuration that this file is part of; the file alone, if there is none around it.
    pub fn around(file: PathBuf) -> ConfigSource {
        let whole = std::path::absolute(&file).unwrap_or_default();
        let folders = whole.ancestors().skip(1).take(2);
        let mut places = folders.map(|path| ConfigSource::of(Some(path.to_path_buf()), path));
        let part = |place: &ConfigSource| place.files().is_ok_and(|all| all.contains(&whole));
        places
            .find(part)
            .unwrap_or(ConfigSource::of(Some(file), Path::new("")))
    }

    /// The file that `ctl save` writes; None: no drop-in is read.
    pub fn saved(&self) -> Option<PathBuf> {
        match self {
            ConfigSource::Folder { path, .. } => Some(path.join(DROP_INS).join(SAVED)),
            _ => None,
        }
    }

    /// The same, if the scheduler `names` it too, and a start could have this text there.
    pub fn checked(&self, names: &Path, text: &str) -> Result<PathBuf> {
        let file = self.saved();
        let file = file.context("--config names no folder, so no drop-in is read")?;
        ensure!(
            file == names,
            "the scheduler reads {}, and this command would write {}: give the folder of its \
             configuration by --config",
            names.display(),
            file.display()
        );
        config_of(&Levels::new(self.read_with(Some(text))?, None)?)?;
        Ok(file)
    }

    /// All files in the order of precedence, the lowest first, with what each says. A link to
    /// /dev/null is none.
    pub fn read(&self) -> Result<Vec<(PathBuf, Said)>> {
        self.read_with(None)
    }

    /// What each file says about sockets, whatever else it says; and the errors of files that
    /// cannot be read.
    pub fn sockets(&self) -> (Vec<(PathBuf, Said)>, Vec<String>) {
        let (mut all, mut skipped) = (Vec::new(), Vec::new());
        let files = self.files().unwrap_or_else(|e| {
            skipped.push(format!("{e:#}"));
            Vec::new()
        });
        let options = SOCKETS.map(|name| Key { name, flag: false });
        for file in files {
            let name = file.display().to_string();
            let said = bytes(&file).and_then(|bytes| {
                let part = |bytes: Vec<u8>| Said::part(&name, &bytes, &options);
                bytes.map(part).transpose()
            });
            match said {
                Ok(said) => all.extend(said.map(|said| (file, said))),
                Err(e) => skipped.push(format!("{e:#}")),
            }
        }
        (all, skipped)
    }

    /// As `read`, when the file that `ctl save` writes would have this text.
    pub fn read_with(&self, saved: Option<&str>) -> Result<Vec<(PathBuf, Said)>> {
        let command = RunArgs::augment_args(Command::new(""));
        let options: Vec<Key> = command.get_arguments().filter_map(key).collect();
        let parsed = |path: PathBuf, bytes: &[u8]| {
            let said = Said::parse(&path.display().to_string(), bytes, &options)?;
            anyhow::Ok((path, said))
        };
        let mut files = self.files()?;
        let saved = self.saved().zip(saved);
        if let Some((path, _)) = &saved {
            refuse_others(path)?;
            if !files.contains(path) {
                files.push(path.clone());
                // config.toml comes before config.d.
                let drop_ins = files.iter().position(|file| !file.ends_with(FIRST));
                files[drop_ins.unwrap_or(0)..].sort();
            }
        }
        let mut all = Vec::new();
        for file in files {
            match &saved {
                Some((path, text)) if *path == file => all.push(parsed(file, text.as_bytes())?),
                _ => {
                    if let Some(bytes) = bytes(&file)? {
                        all.push(parsed(file, &bytes)?);
                    }
                }
            }
        }
        Ok(all)
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let (folder, needed) = match self {
            ConfigSource::Nowhere => return Ok(Vec::new()),
            ConfigSource::File(path) => return Ok(vec![path.clone()]),
            ConfigSource::Folder { path, needed } => (path, needed),
        };
        let unreadable = |path: &Path| format!("cannot read {}", path.display());
        let mut drop_ins = Vec::new();
        let below = folder.join(DROP_INS);
        match fs::read_dir(&below) {
            Ok(entries) => {
                for entry in entries {
                    drop_ins.push(entry.with_context(|| unreadable(&below))?.path());
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(e).with_context(|| unreadable(&below)),
        }
        drop_ins.retain(|path| {
            let hidden = path
                .file_name()
                .is_some_and(|n| n.as_encoded_bytes()[0] == b'.');
            !hidden && path.extension().is_some_and(|e| e == "toml")
        });
        drop_ins.sort();
        let first = folder.join(FIRST);
        // A link to nowhere is an error, and no missing file.
        let there = first.symlink_metadata().is_ok();
        ensure!(
            there || !drop_ins.is_empty() || !needed,
            "{} has neither {FIRST} nor {DROP_INS}/*.toml: name another folder, a file, or none",
            folder.display()
        );
        Ok(there.then_some(first).into_iter().chain(drop_ins).collect())
    }
}

/// An option of a run that is no setting, as a key of a file.
fn key(arg: &clap::Arg) -> Option<Key<'_>> {
    let name = arg.get_long()?;
    let flag = !arg.get_action().takes_values();
    Some(Key { name, flag })
}

/// None: it is a link to /dev/null, which stands for no file.
fn bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    let unreadable = || format!("cannot read {}", path.display());
    let real = path.canonicalize().with_context(unreadable)?;
    if real == Path::new("/dev/null") {
        return Ok(None);
    }
    refuse_others(path)?;
    let file = PlainFile::open(&real).with_context(unreadable)?;
    let bytes = file.bytes(TEXT_MAX).with_context(unreadable)?;
    Ok(Some(bytes))
}

/// As root: nobody else may write the file, or replace it, or a link on the way to it. What does
/// not exist yet is nobody's.
fn refuse_others(path: &Path) -> Result<()> {
    if !is_root() {
        return Ok(());
    }
    match open_part(path)? {
        None => Ok(()),
        Some(part) => bail!(
            "{} is not used: others than root may write {}, so make it root's ('chown -h root:root') \
             and closed to others ('chmod go-w')",
            path.display(),
            part.display()
        ),
    }
}

/// The part of the way to a file that others may write.
fn open_part(path: &Path) -> Result<Option<PathBuf>> {
    let unreadable = || format!("cannot read {}", path.display());
    let mut ahead = vec![std::path::absolute(path).with_context(unreadable)?];
    for _ in 0..LINKS_MAX {
        let Some(path) = ahead.pop() else {
            return Ok(None);
        };
        for part in path.ancestors() {
            let meta = match part.symlink_metadata() {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                meta => meta.with_context(unreadable)?,
            };
            if open_to_others(&meta) {
                return Ok(Some(part.to_path_buf()));
            }
            if meta.is_symlink() {
                let to = fs::read_link(part).with_context(unreadable)?;
                ahead.push(part.parent().unwrap_or(part).join(to));
            }
        }
    }
    bail!("{}: there are too many links on the way", path.display())
}

/// In a folder with the sticky bit only the owner of a file may replace it. A link has no mode.
fn open_to_others(meta: &Metadata) -> bool {
    if meta.is_symlink() {
        return meta.uid() != 0;
    }
    let mode = meta.mode();
    let by_group = mode & 0o020 != 0 && meta.gid() != 0;
    let shared = (mode & 0o002 != 0 || by_group) && !(meta.is_dir() && mode & 0o1000 != 0);
    meta.uid() != 0 || shared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join(DROP_INS)).unwrap();
        for file in files {
            fs::write(dir.path().join(file), "").unwrap();
        }
        dir
    }

    #[test]
    fn drop_ins_are_read_in_the_order_of_their_names() {
        let dir = made(&[
            "config.d/20-b.toml",
            "config.d/10-a.toml",
            "config.d/.90-ctl.toml.7",
            "config.d/.hidden.toml",
            "config.d/README",
            "config.toml",
        ]);
        let place = ConfigSource::of(Some(dir.path().into()), Path::new("/nowhere"));
        let files = place.files().unwrap();
        let names: Vec<_> = files
            .iter()
            .map(|f| f.strip_prefix(dir.path()).unwrap())
            .collect();
        let expected = ["config.toml", "config.d/10-a.toml", "config.d/20-b.toml"];
        assert_eq!(names, expected.map(Path::new));
        assert_eq!(place.saved(), Some(dir.path().join("config.d/90-ctl.toml")));
    }

    #[test]
    fn without_files_there_are_none_unless_they_were_asked_for() {
        let usual = ConfigSource::of(None, Path::new("/nowhere/at/all"));
        assert_eq!(usual.files().unwrap(), [""; 0].map(PathBuf::from));
        let none = ConfigSource::of(Some("none".into()), Path::new("/nowhere"));
        assert_eq!((none.files().unwrap().len(), none.saved()), (0, None));
        let empty = made(&[]);
        let told = ConfigSource::of(Some(empty.path().into()), Path::new("/nowhere"));
        assert!(
            told.files()
                .unwrap_err()
                .to_string()
                .contains("has neither config.toml")
        );
        let missing = ConfigSource::of(Some("/nowhere/x.toml".into()), Path::new("/nowhere"));
        let told = format!("{:#}", missing.read().unwrap_err());
        assert_eq!(
            told,
            "cannot read /nowhere/x.toml: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn what_is_no_file_and_what_stands_for_none() {
        let dir = made(&["config.toml"]);
        let path = |name: &str| dir.path().join("config.d").join(name);
        fs::create_dir(path("10-a.toml")).unwrap();
        let place = ConfigSource::of(Some(dir.path().into()), Path::new("/nowhere"));
        let told = format!("{:#}", place.read().unwrap_err());
        let file = path("10-a.toml");
        let expected = format!("cannot read {}: it is not a plain file", file.display());
        assert_eq!(told, expected);
        fs::remove_dir(path("10-a.toml")).unwrap();
        std::os::unix::fs::symlink("/dev/null", path("10-a.toml")).unwrap();
        assert_eq!(place.read().unwrap().len(), 1);
    }

    #[test]
    fn a_link_on_the_way_counts_too() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = made(&["config.toml"]);
        let folder = dir.path().join("open");
        fs::create_dir(&folder).unwrap();
        symlink(dir.path(), folder.join("link")).unwrap();
        let file = folder.join("link/config.toml");
        let root = fs::metadata(&folder).unwrap().uid() == 0;
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(open_part(&file).unwrap().is_some());
        assert!(!root || open_part(&file).unwrap() == Some(folder));
    }

    #[test]
    fn a_file_is_part_of_the_configuration_around_it() {
        let dir = made(&["config.d/20-b.toml", "config.toml", "other.toml"]);
        let place = |name: &str| ConfigSource::around(dir.path().join(name));
        for part in ["config.toml", "config.d/20-b.toml"] {
            assert_eq!(place(part).files().unwrap().len(), 2, "{part}");
        }
        assert_eq!(place("other.toml").files().unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_others_may_write_is_known() {
        use std::os::unix::fs::PermissionsExt;
        let dir = made(&["config.toml"]);
        let file = dir.path().join("config.toml");
        let open = |path: &Path, mode: u32| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            open_to_others(&fs::metadata(path).unwrap())
        };
        let root = fs::metadata(&file).unwrap().uid() == 0;
        assert_eq!(open(&file, 0o644), !root);
        assert!(open(&file, 0o646));
        assert_eq!(open(dir.path(), 0o1777), !root);
        assert!(open(dir.path(), 0o777));
    }
}
