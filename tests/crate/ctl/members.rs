// SPDX-License-Identifier: GPL-2.0-only
//! Processes that are put on an arm.

use super::*;

#[test]
fn exec_registers_its_process_and_becomes_the_command() {
    let served = serve();
    served.done(&["ctl", "arms", "add", "x"]);
    let tables = served.told.0.lock().unwrap().tables;
    let script = "cat; echo $1 $ROOST_TEST; exit 7";
    let mut child = Command::new(env!("CARGO_BIN_EXE_scx_roost"))
        .args(["exec", "--arm", "x", "--ctl-path"])
        .arg(served.path())
        .args(["--", "sh", "-c", script, "sh", "a  b"])
        .env("ROOST_TEST", "one\ntwo")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"in\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "in\na b one two\n");
    let told = served.told.0.lock().unwrap();
    let [Ticket::Exec(id)] = told.tickets[..] else {
        panic!("told was {:?}", told.tickets)
    };
    assert!(told.table.tickets.iter().any(|t| t.id == id && t.arm == 1));
    // New rules would make every task ask for its arm.
    assert_eq!(told.tables, tables);
}

#[test]
fn a_command_that_is_not_there_is_127() {
    let served = serve();
    let output = served.roost(&["exec", "--arm", "default", "--", "/no/such/program"]);
    assert_eq!(output.status.code(), Some(127));
    let output = served.roost(&["exec", "--arm", "default", "--", "/proc"]);
    assert_eq!(output.status.code(), Some(126));
}

#[test]
fn a_rule_about_a_process_tells_it() {
    let served = serve();
    let pid = std::process::id().to_string();
    served.done(&["ctl", "rules", "add", "--pid", &pid, "--arm", "default"]);
    assert!(
        served
            .done(&["ctl", "rules"])
            .contains(&format!("--pid {pid} --arm default"))
    );
    let [Ticket::Pid(id)] = served.told.0.lock().unwrap().tickets[..] else {
        panic!("one ticket is expected");
    };
    let good = || {
        served
            .told
            .0
            .lock()
            .unwrap()
            .table
            .tickets
            .iter()
            .any(|t| t.id == id)
    };
    assert!(good());
    served.done(&["ctl", "rules", "del", "--pid", &pid]);
    assert!(!good());
}
