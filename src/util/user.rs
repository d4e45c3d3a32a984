// SPDX-License-Identifier: GPL-2.0-only
//! The user that a command started by root runs as: the invoking user, under sudo, doas or pkexec,
//! unless another one is named.

use super::stderr::say;
use anyhow::{Context, Result, anyhow, bail, ensure};
use nix::unistd::{Gid, Group, Uid, geteuid, getgrouplist, setgid, setgroups, setuid};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, fchown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A user other than the current one.
#[derive(Clone, Debug, PartialEq)]
pub struct User {
    uid: u32,
    gid: u32,
    groups: Vec<Gid>,
    name: OsString,
    /// None: the user is not in the passwd database.
    home: Option<OsString>,
}

impl User {
    /// `asked`: a name in the passwd database. Without a name: the invoking user, if the process is
    /// root under sudo, doas or pkexec. None: that is the current user. Errors: there is no such
    /// user; only root can become another user.
    pub fn of(asked: Option<&str>) -> Result<Option<User>> {
        let own = geteuid().as_raw();
        let user = match asked {
            Some(name) => Some(User::named(name)?),
            None if own == 0 => User::caller()?,
            None => None,
        };
        let Some(user) = user.filter(|u| u.uid != own) else {
            return Ok(None);
        };
        ensure!(
            own == 0,
            "only root can run a command as {}: use sudo",
            user.name.display()
        );
        Ok(Some(user))
    }

    fn named(name: &str) -> Result<User> {
        User::found(by_name(name))?.with_context(|| format!("there is no user '{name}'"))
    }

    /// From the passwd database.
    fn found(entry: Option<Entry>) -> Result<Option<User>> {
        let user = |e: Entry| {
            let home = Some(e.dir.into());
            User::new(e.uid.as_raw(), e.gid.as_raw(), e.name.into(), home)
        };
        entry.map(user).transpose()
    }

    /// The invoking user, according to the environment variables of sudo, doas or pkexec. None:
    /// none of them is set.
    fn caller() -> Result<Option<User>> {
        let said = |name: &str| std::env::var(name).ok();
        let user = match User::of_sudo()? {
            Some(user) => return Ok(Some(user)),
            None => match (said("DOAS_USER"), said("PKEXEC_UID")) {
                (Some(name), _) => User::found(by_name(&name)).map(|u| ("DOAS_USER", u)),
                (None, Some(uid)) => match uid.parse() {
                    Ok(uid) => User::found(by_number(uid)).map(|u| ("PKEXEC_UID", u)),
                    Err(_) => Ok(("PKEXEC_UID", None)),
                },
                (None, None) => return Ok(None),
            },
        };
        match user? {
            (_, Some(user)) => Ok(Some(user)),
            (name, None) => {
                bail!("{name} does not name the invoking user: unset it, or name a user by --user")
            }
        }
    }

    fn of_sudo() -> Result<Option<User>> {
        let said = ["SUDO_UID", "SUDO_GID"].map(std::env::var_os);
        if said == [None, None] {
            return Ok(None);
        }
        let number = |text: Option<OsString>| text?.to_str()?.parse::<u32>().ok();
        let [Some(uid), Some(gid)] = said.map(number) else {
            bail!(
                "SUDO_UID and SUDO_GID do not name the invoking user: unset both, or name a user by --user"
            );
        };
        let name = std::env::var("SUDO_USER").unwrap_or_default();
        let home = by_name(&name).map(|e| e.dir.into());
        User::new(uid, gid, name.into(), home).map(Some)
    }

    fn new(uid: u32, gid: u32, name: OsString, home: Option<OsString>) -> Result<User> {
        let text = CString::new(name.as_bytes())?;
        let groups = getgrouplist(&text, Gid::from_raw(gid))
            .map_err(|_| anyhow!("cannot find the groups of {}", name.display()))?;
        Ok(User {
            uid,
            gid,
            groups,
            name,
            home,
        })
    }

    /// Makes the command run as this user, with the user's groups and home, and without environment
    /// variables about other users.
    pub fn takes(&self, command: &mut Command) {
        let names = std::env::vars_os().map(|(name, _)| name);
        for name in names.filter(|name| self.is_strange(name)) {
            command.env_remove(name);
        }
        command.env("USER", &self.name).env("LOGNAME", &self.name);
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        let groups = self.groups.clone();
        // SAFETY: between fork and exec only system calls are made, with plain numbers and memory
        // that the closure owns.
        unsafe {
            command.pre_exec(move || {
                setgroups(&groups)?;
                setgid(gid)?;
                Ok(setuid(uid)?)
            })
        };
    }

    /// Variables that must not be passed on. Those of a session belong to the user who owns its
    /// folder.
    fn is_strange(&self, name: &OsStr) -> bool {
        let begins = |with: &str| name.as_bytes().starts_with(with.as_bytes());
        let of_session = begins("XDG_") || name == "DBUS_SESSION_BUS_ADDRESS";
        let of_caller = begins("SUDO_") || name == "DOAS_USER" || name == "PKEXEC_UID";
        of_caller || name == "SHELL" || name == "MAIL" || of_session && !self.has_session()
    }

    /// The environment belongs to a session of this user.
    fn has_session(&self) -> bool {
        let folder = std::env::var_os("XDG_RUNTIME_DIR");
        let owner = folder.and_then(|folder| Some(std::fs::metadata(folder).ok()?.uid()));
        owner == Some(self.uid)
    }

    pub fn name(&self) -> &OsStr {
        &self.name
    }

    pub fn uid(&self) -> u32 {
        self.uid
    }
}

/// Gives a file that root has made to the invoking user. Failures are reported on stderr, since
/// some file systems have no owners. `path` is the file's name in that message only; it may lead to
/// another file by then.
pub fn give_back(made: &File, path: &Path) {
    let given = User::of(None).and_then(|user| match user {
        Some(user) => Ok(fchown(made, Some(user.uid), Some(user.gid))?),
        None => Ok(()),
    });
    if let Err(e) = given {
        say!(
            "warning: cannot give {} to the invoking user: {e:#}",
            path.display()
        );
    }
}

/// The name of `user` (None: the current user), or the number if the passwd database has no name.
pub fn name_of(user: Option<&User>) -> String {
    let uid = user.map_or_else(|| geteuid().as_raw(), |user| user.uid);
    let known = user.filter(|user| !user.name.is_empty());
    let name = match known {
        Some(user) => Some(user.name.clone()),
        None => by_number(uid).map(|e| e.name.into()),
    };
    name.map_or(uid.to_string(), |n| n.to_string_lossy().into_owned())
}

/// An entry of the passwd database. A database that cannot be read has none.
type Entry = nix::unistd::User;

fn by_name(name: &str) -> Option<Entry> {
    Entry::from_name(name).unwrap_or_default()
}

fn by_number(uid: u32) -> Option<Entry> {
    Entry::from_uid(Uid::from_raw(uid)).unwrap_or_default()
}

/// The number of the group of this name; None: there is no such group. Thread-safe.
pub fn group_of(name: &str) -> Result<Option<u32>> {
    let found = Group::from_name(name).map_err(std::io::Error::from);
    let found = found.context("cannot read the table of groups")?;
    Ok(found.map(|group| group.gid.as_raw()))
}

/// Whether this process runs as root.
pub fn is_root() -> bool {
    geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_may_ask_for_groups_at_once() {
        let text = std::fs::read_to_string("/etc/group").unwrap();
        let groups: Vec<(String, u32)> = text
            .lines()
            .filter_map(|line| {
                let mut words = line.split(':');
                let name = words.next()?.to_string();
                Some((name, words.nth(1)?.parse().ok()?))
            })
            .collect();
        let ask = |(name, number): &(String, u32)| {
            for _ in 0..200 {
                assert_eq!(group_of(name).unwrap(), Some(*number), "{name}");
            }
        };
        std::thread::scope(|scope| {
            for group in groups.iter().take(8) {
                scope.spawn(move || ask(group));
            }
        });
        assert_eq!(group_of("no-such-group").unwrap(), None);
        assert_eq!(group_of("a\0b").unwrap(), None);
    }
}
