// SPDX-License-Identifier: GPL-2.0-only
//! Why the kernel ended the scheduler, from what `UEI_RECORD` stored (scx's user_exit_info.bpf.h).
//!
//! scx_utils has `UserExitInfo` for this. It panics if a task's name in the message is not UTF-8,
//! and if stderr has no reader, so it is not used here.

use crate::bpf::skel::types::user_exit_info;
use crate::util::stderr::{self, say};
use anyhow::{Error, Result, anyhow};
use scx_utils::{ScxExitKind, UEI_DUMP_PTR_MUTEX, compat};
use std::ffi::{CStr, c_char};
use std::fmt;

/// SysRq-S ended the scheduler, to save the machine from it. A service manager must not start it
/// again.
#[derive(Debug)]
pub struct Rescued;

impl fmt::Display for Rescued {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("SysRq-S ended the scheduler")
    }
}

const STALLED: &str = "a task waited too long, so the kernel's watchdog ended the scheduler";

/// A scheduler that ended without an error.
#[derive(Debug)]
pub struct Exit {
    /// The kernel asks for another load: CPUs have changed.
    pub restarts: bool,
}

/// Prints the kernel's debug dump, if there is one, and the reason.
/// Errors: an exit that is an error has its reason as the error.
pub fn report(recorded: &user_exit_info) -> Result<Exit> {
    if recorded.kind == ScxExitKind::None as i32 {
        return Ok(Exit { restarts: false });
    }
    let rule = "=".repeat(80);
    if let Some(dump) = dump() {
        stderr::text(&format!("\nDEBUG DUMP\n{rule}\n\n{dump}\n{rule}\n\n"));
    }
    let knows_cpu = compat::struct_has_field("scx_exit_info", "exit_cpu").unwrap_or(false);
    let why = reason(recorded, knows_cpu);
    if recorded.kind > ScxExitKind::UnregKern as i32 {
        return Err(failure(recorded.kind, why));
    }
    say!("{why}");
    Ok(Exit {
        restarts: restarts(recorded),
    })
}

/// As scx_utils words it.
fn reason(recorded: &user_exit_info, knows_cpu: bool) -> String {
    let (reason, message) = (text(&recorded.reason), text(&recorded.msg));
    let why = match (reason.is_empty(), message.is_empty()) {
        (true, _) => "<UNKNOWN>".to_string(),
        (_, true) => format!("EXIT: {reason}"),
        _ => format!("EXIT: {reason} ({message})"),
    };
    match recorded.exit_cpu {
        cpu if knows_cpu && cpu >= 0 => format!("{why} on CPU {cpu}"),
        _ => why,
    }
}

fn failure(kind: i32, why: String) -> Error {
    let exit = anyhow!(why);
    match kind {
        kind if kind == ScxExitKind::SysRq as i32 => exit.context(Rescued),
        kind if kind == ScxExitKind::ErrorStall as i32 => exit.context(STALLED),
        _ => with_remedy(exit),
    }
}

/// Exit codes count only where a program or the kernel gave one.
fn restarts(recorded: &user_exit_info) -> bool {
    let asks = compat::read_enum("scx_exit_code", "SCX_ECODE_ACT_RESTART").unwrap_or(0);
    let gave = [ScxExitKind::UnregBPF as i32, ScxExitKind::UnregKern as i32];
    gave.contains(&recorded.kind) && recorded.exit_code as u64 & asks != 0
}

/// Bytes up to the first zero. Names of tasks may be any bytes.
fn text(bytes: &[c_char]) -> String {
    let bytes: Vec<u8> = bytes.iter().map(|b| *b as u8).collect();
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// `scx_ops_load!` made room for it and left the address there.
fn dump() -> Option<String> {
    let dump = UEI_DUMP_PTR_MUTEX.lock().ok()?.ptr;
    if dump.is_null() {
        return None;
    }
    // SAFETY: the map outlives this call, and the kernel ends its text with a zero.
    let dump = unsafe { CStr::from_ptr(dump) };
    Some(dump.to_string_lossy().into_owned()).filter(|dump| !dump.is_empty())
}

/// scx_root_enable_workfn() reserves bandwidth for each CPU's ext_server, since 7.2. Nothing else
/// there fails with EBUSY after the scheduler has been created, but a hotplug, which is a restart.
fn with_remedy(exit: Error) -> Error {
    if !exit.to_string().contains("scx_root_enable() failed (-16)") {
        return exit;
    }
    exit.context(
        "the kernel cannot reserve CPU time for sched_ext: tasks of SCHED_DEADLINE hold it (end \
         those that 'ps -eLo pid,cls,comm' shows as DLN), or its count of them is off ('sysctl -w \
         kernel.sched_rt_runtime_us=N', with the N that it has, makes it count again)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(kind: ScxExitKind, reason: &[u8], message: &[u8]) -> user_exit_info {
        let mut recorded = user_exit_info {
            kind: kind as i32,
            exit_cpu: 3,
            ..user_exit_info::default()
        };
        for (to, from) in [
            (&mut recorded.reason[..], reason),
            (&mut recorded.msg, message),
        ] {
            to.iter_mut()
                .zip(from)
                .for_each(|(to, b)| *to = *b as c_char);
        }
        recorded
    }

    #[test]
    fn a_name_may_be_any_bytes() {
        let stall = recorded(
            ScxExitKind::ErrorStall,
            b"runnable task stall",
            b"\xff[7] failed to run",
        );
        let said = "EXIT: runnable task stall (\u{fffd}[7] failed to run)";
        assert_eq!(reason(&stall, false), said);
        assert_eq!(reason(&stall, true), format!("{said} on CPU 3"));
        let full = recorded(ScxExitKind::Error, &[b'x'; 200], b"");
        assert_eq!(reason(&full, false), format!("EXIT: {}", "x".repeat(128)));
        let none = recorded(ScxExitKind::Error, b"", b"");
        assert_eq!(reason(&none, false), "<UNKNOWN>");
    }

    #[test]
    fn sysrq_is_told_from_errors() {
        let is_rescue = |kind| failure(kind as i32, "EXIT".to_string()).is::<Rescued>();
        assert!(is_rescue(ScxExitKind::SysRq));
        assert!(!is_rescue(ScxExitKind::ErrorStall));
    }

    #[test]
    fn a_load_that_deadline_tasks_prevent_is_explained() {
        let said = |exit: &str| format!("{:#}", with_remedy(anyhow!("{exit}")));
        let refused = "EXIT: runtime error (scx_root_enable() failed (-16)) on CPU 0";
        assert!(said(refused).contains("SCHED_DEADLINE") && said(refused).ends_with(refused));
        let other = "EXIT: runtime error (scx_root_enable() failed (-12)) on CPU 0";
        assert_eq!(said(other), other);
    }
}
