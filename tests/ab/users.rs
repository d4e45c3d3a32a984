// SPDX-License-Identifier: GPL-2.0-only
//! Which user a command runs as.

use crate::child::{output, runs, workload};
use scx_roost::ab::child::Workload;
use scx_roost::util::user::{User, name_of};
use std::os::unix::process::CommandExt;
use std::process::Command;

#[test]
fn a_command_has_the_groups_and_the_home_of_its_user() {
    let unknown = User::of(Some("no-such-user")).unwrap_err().to_string();
    assert_eq!(unknown, "there is no user 'no-such-user'");
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skip: root alone runs a command as another");
        return;
    }
    assert_eq!(User::of(Some("root")).unwrap(), None);
    let nobody = User::of(Some("nobody")).unwrap();
    assert!(nobody.is_some());
    let said = runs(&Workload {
        user: nobody,
        ..workload("id -u; id -G; echo $HOME $USER; umask; echo again >/dev/stdout")
    });
    let words = said.unwrap().output;
    assert!(words.ends_with("\nagain\n"), "{words}");
    let plain = printed(Command::new("sh").args([
        "-c",
        "id -u nobody; id -G nobody; getent passwd nobody | cut -d: -f6",
    ]));
    assert!(
        words.starts_with(&format!("{} nobody\n", plain.trim_end())),
        "{words} {plain}"
    );
}

fn printed(command: &mut Command) -> String {
    String::from_utf8(output(command).stdout).unwrap()
}

/// That test, in a process of its own.
fn this_program(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command
}

/// The same, with these environment variables.
fn again(test: &str, variables: &[(&str, &str)]) -> String {
    printed(this_program(test).envs(variables.iter().copied()))
}

/// Without the lock of `alone()`: its test runs in a process of its own, for another one.
fn prints(program: &[&str]) {
    match User::of(Some("nobody")) {
        Ok(Some(user)) => {
            let mut command = Command::new(program[0]);
            user.takes(command.args(&program[1..]));
            command.status().unwrap();
        }
        _ => println!("skip: root alone runs a command as another"),
    }
}

#[test]
#[ignore = "it is run by another one"]
fn prints_the_environment() {
    prints(&["env"]);
}

#[test]
#[ignore = "it is run by another one"]
fn prints_the_groups() {
    prints(&["id", "-G"]);
}

/// Root has supplementary groups, and the command gets none of them.
#[test]
fn the_command_does_not_get_the_callers_groups() {
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skip: root alone runs a command as another");
        return;
    }
    let mut command = this_program("users::prints_the_groups");
    // SAFETY: between fork and exec there is one system call, on memory with static lifetime.
    unsafe {
        command.pre_exec(|| match libc::setgroups(2, [0, 4242].as_ptr()) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        })
    };
    let said = printed(&mut command);
    let plain = printed(Command::new("id").args(["-G", "nobody"]));
    assert!(said.lines().any(|line| line == plain.trim_end()), "{said}");
    assert!(!said.contains("4242"), "{said}");
}

#[test]
fn what_is_of_others_is_not_in_the_environment() {
    let said = |folder: &str| {
        again(
            "users::prints_the_environment",
            &[
                ("SUDO_UID", "7"),
                ("SUDO_COMMAND", "x"),
                ("DOAS_USER", "x"),
                ("PKEXEC_UID", "7"),
                ("SHELL", "/bin/other"),
                ("MAIL", "/mail/other"),
                ("XDG_RUNTIME_DIR", folder),
                ("XDG_SEAT", "seat7"),
                ("DBUS_SESSION_BUS_ADDRESS", "unix:other"),
                ("KEPT", "is"),
            ],
        )
    };
    let others = said("/");
    if others.contains("skip: ") {
        println!("{others}");
        return;
    }
    let has = |said: &str, name: &str| said.lines().any(|line| line.starts_with(name));
    for name in [
        "SUDO_", "DOAS_", "PKEXEC_", "SHELL=", "MAIL=", "XDG_", "DBUS_",
    ] {
        assert!(!has(&others, name), "{name} in {others}");
    }
    assert!(has(&others, "KEPT=is") && has(&others, "PATH="), "{others}");
    // The variables of a session of its own.
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(folder.path(), Some(65534), None).unwrap();
    let own = said(folder.path().to_str().unwrap());
    for name in ["XDG_RUNTIME_DIR=", "XDG_SEAT=", "DBUS_"] {
        assert!(has(&own, name), "{name} not in {own}");
    }
    assert!(!has(&own, "SUDO_"), "{own}");
}

#[test]
#[ignore = "it is run by another one"]
fn prints_the_user_who_called_sudo() {
    println!("{:?}", User::of(None).map_err(|e| e.to_string()));
}

/// doas and pkexec name the invoking user, like sudo.
#[test]
fn the_caller_of_doas_or_pkexec_is_known() {
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skip: root alone is called by them");
        return;
    }
    let said =
        |variables: &[(&str, &str)]| again("users::prints_the_user_who_called_sudo", variables);
    let nobody = User::of(Some("nobody")).unwrap().unwrap();
    let (uid, whole) = (nobody.uid().to_string(), format!("{:?}", Some(&nobody)));
    for variables in [("DOAS_USER", "nobody"), ("PKEXEC_UID", &uid)] {
        let said = said(&[variables]);
        assert!(said.contains(&whole), "{said} {whole}");
    }
    for (variable, wrong) in [
        ("DOAS_USER", "no-such-user"),
        ("DOAS_USER", ""),
        ("PKEXEC_UID", "4000000000"),
        ("PKEXEC_UID", "seven"),
    ] {
        let said = said(&[(variable, wrong)]);
        let told = format!("{variable} does not name the invoking user");
        assert!(said.contains(&told), "{said}");
    }
    for root in [("DOAS_USER", "root"), ("PKEXEC_UID", "0")] {
        assert!(said(&[root]).contains("Ok(None)"), "{root:?}");
    }
    // sudo's variables take precedence.
    let both = said(&[
        ("SUDO_UID", "7"),
        ("SUDO_GID", "7"),
        ("DOAS_USER", "nobody"),
    ]);
    assert!(both.contains("uid: 7,"), "{both}");
}

#[test]
fn a_user_has_a_name_or_a_number() {
    let own = name_of(None);
    let plain = printed(Command::new("id").arg("-un"));
    assert_eq!(own, plain.trim_end());
    if let Ok(Some(nobody)) = User::of(Some("nobody")) {
        assert_eq!(name_of(Some(&nobody)), "nobody");
    }
}

#[test]
fn one_of_the_two_ids_of_sudo_alone_is_an_error() {
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } != 0 {
        println!("skip: root alone is called by sudo");
        return;
    }
    let said = |uid, gid| {
        let variables = [("SUDO_UID", uid), ("SUDO_GID", gid)];
        again("users::prints_the_user_who_called_sudo", &variables)
    };
    for (uid, gid) in [("", ""), ("7", ""), ("seven", "7"), ("7", "-1")] {
        let said = said(uid, gid);
        assert!(
            said.contains("SUDO_UID and SUDO_GID do not name the invoking user"),
            "{uid} {gid}: {said}"
        );
    }
    assert!(said("7", "7").contains("uid: 7"));
}
