// SPDX-License-Identifier: GPL-2.0-only
//! Which configuration files a start reads, and in which order; and which it refuses.

use super::args::RunArgs;
use crate::policy::file::Said;
use crate::util::user::is_root;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, Command};
use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the files of a machine are.
pub const FOLDER: &str = "/etc/scx_roost";
const FIRST: &str = "config.toml";
const DROP_INS: &str = "config.d";
/// What `ctl save` writes.
const SAVED: &str = "90-ctl.toml";
/// No configuration is longer.
const BYTES_MAX: u64 = 1 << 20;

/// Where the configuration is, as --config says it.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// `config.toml` and drop-ins. `needed`: the folder must exist.
    Folder {
        path: PathBuf,
        needed: bool,
    },
    File(PathBuf),
    Nowhere,
}

impl Place {
    /// `given`: the value of --config. `usual`: the folder without one.
    pub fn of(given: Option<PathBuf>, usual: &Path) -> Place {
        match given {
            None => Place::Folder {
                path: usual.to_path_buf(),
                needed: false,
            },
            Some(none) if none.as_os_str() == "none" => Place::Nowhere,
            Some(path) if path.is_dir() => Place::Folder { path, needed: true },
            Some(path) => Place::File(path),
        }
    }

    /// The file that `ctl save` writes; None: no drop-in is read.
    pub fn saved(&self) -> Option<PathBuf> {
        match self {
            Place::Folder { path, .. } => {
                let path = std::path::absolute(path).unwrap_or(path.clone());
                Some(path.join(DROP_INS).join(SAVED))
            }
            _ => None,
        }
    }

    /// All files in the order of precedence, the lowest first, with what each says.
    pub fn read(&self) -> Result<Vec<(PathBuf, Said)>> {
        let options = options();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let parsed = |path: PathBuf| {
            let said = Said::parse(&path.display().to_string(), &text(&path)?, &options)?;
            Ok((path, said))
        };
        self.files()?.into_iter().map(parsed).collect()
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let (folder, needed) = match self {
            Place::Nowhere => return Ok(Vec::new()),
            Place::File(path) => return Ok(vec![path.clone()]),
            Place::Folder { path, needed } => (path, needed),
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
            "{} has neither {FIRST} nor {DROP_INS}/*.toml: give --config another folder, a file, or \
             none",
            folder.display()
        );
        Ok(there.then_some(first).into_iter().chain(drop_ins).collect())
    }
}

/// The long options of a run that are no settings: further keys of a file.
fn options() -> Vec<String> {
    let command = RunArgs::augment_args(Command::new(""));
    let names = command.get_arguments().filter_map(clap::Arg::get_long);
    names.map(str::to_string).collect()
}

fn text(path: &Path) -> Result<String> {
    let unreadable = || format!("cannot read {}", path.display());
    let real = path.canonicalize().with_context(unreadable)?;
    if is_root() {
        refuse_others(path, &real)?;
    }
    // Opening a FIFO would wait for a writer.
    ensure!(real.is_file(), "{} is no plain file", path.display());
    let mut text = String::new();
    let file = File::open(&real).with_context(unreadable)?;
    file.take(BYTES_MAX + 1)
        .read_to_string(&mut text)
        .with_context(unreadable)?;
    ensure!(
        text.len() as u64 <= BYTES_MAX,
        "{} is longer than 1 MiB",
        path.display()
    );
    Ok(text)
}

/// As root: nobody else may write the file, or replace it in a folder above.
fn refuse_others(path: &Path, real: &Path) -> Result<()> {
    for part in real.ancestors() {
        let meta = fs::metadata(part).with_context(|| format!("cannot read {}", path.display()))?;
        if open_to_others(&meta) {
            bail!(
                "{} is not used: others than root may write {}, so make it root's ('chown root:root') \
                 and closed to others ('chmod go-w')",
                path.display(),
                part.display()
            );
        }
    }
    Ok(())
}

/// In a folder with the sticky bit only the owner of a file may replace it.
fn open_to_others(meta: &Metadata) -> bool {
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
        let place = Place::of(Some(dir.path().into()), Path::new("/nowhere"));
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
        let usual = Place::of(None, Path::new("/nowhere/at/all"));
        assert_eq!(usual.files().unwrap(), [""; 0].map(PathBuf::from));
        let none = Place::of(Some("none".into()), Path::new("/nowhere"));
        assert_eq!((none.files().unwrap().len(), none.saved()), (0, None));
        let empty = made(&[]);
        let told = Place::of(Some(empty.path().into()), Path::new("/nowhere"));
        assert!(
            told.files()
                .unwrap_err()
                .to_string()
                .contains("has neither config.toml")
        );
        let missing = Place::of(Some("/nowhere/x.toml".into()), Path::new("/nowhere"));
        let told = format!("{:#}", missing.read().unwrap_err());
        assert_eq!(
            told,
            "cannot read /nowhere/x.toml: No such file or directory (os error 2)"
        );
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
