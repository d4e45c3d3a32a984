// SPDX-License-Identifier: GPL-2.0-only
//! Opens the folder of a file that is to be written, when root writes where others may write too. A
//! link on the way is followed only if root or the invoking user owns it. The folder is held open,
//! so that replacing it later has no effect.

use crate::util::user::{User, is_root};
use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

/// The kernel's limit of links in one path (MAXSYMLINKS).
const LINKS_MAX: usize = 40;

/// The folder of `path`, as a descriptor to open files relative to (openat()), not to read.
/// Errors: there is no such folder; as root, a link of another user leads there.
pub fn of(path: &Path) -> Result<File> {
    let root = is_root();
    // A user other than root gains nothing from a link: they can only do what they may do anyway.
    let caller = User::of(None).ok().flatten().map(|user| user.uid());
    let trusts = |uid: u32| !root || uid == 0 || Some(uid) == caller;
    open(path.parent().unwrap_or(Path::new("")), &trusts)
}

/// Creates the folder `path` and opens it. None: it is not created, as when it exists. Errors: it
/// was, and cannot be opened.
pub fn create(path: &Path) -> Option<Result<File>> {
    let parent = of(path).ok()?;
    let name = path.file_name()?;
    rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)).ok()?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    Some(at(&parent, name, flags, Mode::empty()))
}

fn open(path: &Path, trusts: &dyn Fn(u32) -> bool) -> Result<File> {
    let begin = |path: &Path| {
        let begin = if path.is_absolute() { "/" } else { "." };
        at(CWD, OsStr::new(begin), OFlags::PATH, Mode::empty())
    };
    let mut folder = begin(path)?;
    let mut left = names(path);
    let mut links = 0;
    while let Some(name) = left.pop() {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let next = at(&folder, &name, flags, Mode::empty())?;
        let meta = next.metadata()?;
        if !meta.is_symlink() {
            folder = next;
            continue;
        }
        links += 1;
        if links > LINKS_MAX {
            return Err(Error::from_raw_os_error(libc::ELOOP));
        }
        if !trusts(meta.uid()) {
            let text = format!(
                "the link {} on the way there belongs to user {}, and root does not follow it",
                name.display(),
                meta.uid()
            );
            return Err(Error::new(ErrorKind::PermissionDenied, text));
        }
        let to = says(&next)?;
        let to = Path::new(&to);
        if to.is_absolute() {
            folder = begin(to)?;
        }
        left.extend(names(to));
    }
    Ok(folder)
}

/// The names of the path in reverse, so that the first is popped first.
fn names(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    });
    let mut names: Vec<OsString> = names.collect();
    names.reverse();
    names
}

/// Opens a name in a folder.
pub fn at(folder: impl AsFd, name: &OsStr, flags: OFlags, mode: Mode) -> Result<File> {
    let opened = rustix::fs::openat(folder, name, flags | OFlags::CLOEXEC, mode)?;
    Ok(opened.into())
}

fn says(link: &File) -> Result<OsString> {
    let text = rustix::fs::readlinkat(link, c"", Vec::new())?;
    Ok(OsString::from_vec(text.into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn told(result: Result<File>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn links_of_trusted_users_are_followed() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        fs::create_dir_all(base.join("a/b")).unwrap();
        symlink("a", base.join("near")).unwrap();
        symlink(base.join("near/b"), base.join("far")).unwrap();
        symlink("round", base.join("round")).unwrap();
        let own = fs::metadata(base).unwrap().uid();
        let number = |path: &Path| fs::metadata(path).unwrap().ino();
        let opened = |path: &str| open(&base.join(path), &|uid| uid == own);
        for path in ["a/b", "near/b", "far", "a/../near/./b", "far/../../near/b"] {
            let folder = opened(path).unwrap();
            assert_eq!(
                folder.metadata().unwrap().ino(),
                number(&base.join("a/b")),
                "{path}"
            );
        }
        for path in ["near/b", "far"] {
            let refused = told(open(&base.join(path), &|_| false));
            assert!(
                refused.contains("on the way there belongs to user"),
                "{refused}"
            );
        }
        assert!(open(&base.join("a/b"), &|_| false).is_ok());
        assert!(told(opened("round")).contains("symbolic link"));
        assert!(told(opened("none/x")).contains("No such file"));
        let here = open(Path::new(""), &|_| false).unwrap();
        assert_eq!(here.metadata().unwrap().ino(), number(Path::new(".")));
    }
}
