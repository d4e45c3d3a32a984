// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler that is attached at the start: which service runs it, whether it has changes of
//! ctl that would be lost, and its restoration.

use super::{Played, scx_service, shown, status};
use scx_roost::ab::real::previous::{PreviousScheduler, ctl_path, saved};
use scx_roost::ab::real::service::{Running, Service, call, running, schedules, unit_of};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::time::Duration;

#[test]
fn a_scheduler_is_distinguished_from_a_namesake() {
    for (comm, words, is) in [
        ("scx_lavd", "/usr/bin/scx_lavd --performance", true),
        ("scx_roost", "scx_roost --preset roost", true),
        ("scx_roost", "scx_roost", true),
        ("scx_roost", "scx_roost export --port 9", false),
        ("scx_roost", "/bin/scx_roost monitor", false),
        ("scx_roost", "scx_roost --json ctl show", false),
        ("scx_roost", "scx_roost ab --variant a", false),
        ("scx_roost", "scx_roost ab-guardian", false),
        ("scx_enable_helper", "", false),
        ("scx_loader", "/usr/bin/scx_loader", false),
        ("bash", "bash scx_lavd", false),
    ] {
        let cmdline = match words {
            "" => String::new(),
            words => words.replace(' ', "\0") + "\0",
        };
        assert_eq!(schedules(comm, &cmdline), is, "{comm} {words}");
    }
}

#[test]
fn a_service_is_found_by_the_processes_in_it() {
    let of = |processes: &[(&str, &str, &str, &str)]| {
        let played = Played::new(processes);
        let call = |_: &[&str]| Ok(shown(20));
        let found = Service::of("lavd", &running(&played.host()), None, &call);
        found.map_err(|e| e.to_string())
    };
    let unit = "/system.slice/scx.service";
    let others = [
        ("7", "scx_enable_helper", "", "/"),
        ("8", "scx_roost", "scx_roost export", "/user.slice"),
        ("9", "bash", "bash", unit),
    ];
    let service = Ok(scx_service());
    let with = |more: &[(&'static str, &'static str, &'static str, &'static str)]| {
        of(&[&others[..], more].concat())
    };
    let one = ("20", "scx_lavd", "scx_lavd", unit);
    assert_eq!(with(&[one]), service);
    // A wrapper and its child, in the same service.
    assert_eq!(
        with(&[one, ("21", "scx_lavd", "scx_lavd --x", unit)]),
        service
    );
    let none = with(&[]).unwrap_err();
    assert!(none.contains("no service of systemd"), "{none}");
    let user = with(&[("20", "scx_lavd", "scx_lavd", "/user.slice/a.scope")]);
    assert!(user.unwrap_err().contains("no service of systemd"));
    let two = with(&[one, ("22", "scx_rusty", "scx_rusty", "/user.slice")]);
    assert!(two.unwrap_err().contains("several processes"));
    // Started again, scx_loader waits until it is asked for a scheduler.
    let loader = "/system.slice/scx_loader.service";
    let loader = with(&[("20", "scx_lavd", "scx_lavd", loader)]).unwrap_err();
    assert!(loader.contains("would not start it again"), "{loader}");
}

/// Any user may have a process of that name, and start a program of root under it.
#[test]
fn a_process_of_another_user_is_no_scheduler() {
    let unit = "/system.slice/scx.service";
    let processes = [
        ("20", "scx_lavd", "scx_lavd", unit),
        ("21", "scx_x", "scx_x", "/user.slice"),
        ("22", "scx_sudo", "scx_sudo id", "/user.slice"),
        ("23", "scx_su", "scx_su", "/user.slice"),
    ];
    let played = Played::new(&processes);
    let proc = |file: &str| played.0.path().join("proc").join(file);
    let found = || {
        running(&played.host())
            .iter()
            .map(|r| r.pid)
            .collect::<Vec<_>>()
    };
    assert_eq!(found().len(), 4);
    std::fs::write(proc("21/status"), status(1, 1000)).unwrap();
    let by_root = status(1, 0).replace("Uid:\t0", "Uid:\t1000");
    std::fs::write(proc("23/status"), by_root).unwrap();
    std::os::unix::fs::symlink("/usr/bin/sudo", proc("22/exe")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/scx_lavd (deleted)", proc("20/exe")).unwrap();
    assert_eq!(found(), [20]);
}

/// A unit that systemd forgets once stopped, a unit of another process and our own unit are left
/// alone.
#[test]
fn only_a_service_that_can_be_started_again_is_one() {
    let unit = "/system.slice/scx.service";
    let played = Played::new(&[("20", "scx_lavd", "scx_lavd", unit)]);
    let file = played.0.path().join("proc/20/status");
    std::fs::write(file, status(19, 0)).unwrap();
    let running = running(&played.host());
    let of = |shown: String, own: Option<&str>| {
        let call = |words: &[&str]| {
            assert_eq!((words[1], words[3]), ("show", "scx.service"));
            Ok(shown.clone())
        };
        let found = Service::of("lavd", &running, own, &call);
        found.map_err(|e| e.to_string())
    };
    // 19 is the main process if it is a wrapper, whose child 20 is the scheduler.
    for main in [20, 19] {
        assert_eq!(of(shown(main), Some("ssh.service")), Ok(scx_service()));
    }
    let odd = |from: &str, to: &str| shown(20).replace(from, to);
    for (shown, own, why) in [
        (
            odd("Transient=no", "Transient=yes"),
            None,
            "disappears when it is",
        ),
        (String::new(), None, "disappears when it is"),
        (odd("CanStart=yes", "CanStart=no"), None, "does not allow"),
        (odd("CanStop=yes", "CanStop=no"), None, "does not allow"),
        (shown(18), None, "a service of another program"),
        (shown(0), None, "a service of another program"),
        (shown(20), Some("scx.service"), "which this process runs in"),
    ] {
        let told = of(shown, own).unwrap_err();
        let begin = "the sched_ext scheduler 'lavd' is attached, in scx.service, which ";
        assert!(told.starts_with(begin) && told.contains(why), "{told}");
        assert!(told.ends_with("it could not be started again"), "{told}");
    }
}

/// What `ab` makes of a scheduler that answers so to `ctl save`, and has these arms: an error, and
/// warnings.
fn asked(save: &Value, arms: &[&str]) -> (Result<(), String>, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ctl");
    let listener = UnixListener::bind(&path).unwrap();
    let arms: Vec<Value> = arms.iter().map(|arm| json!({"name": arm})).collect();
    let save = save.clone();
    let serve = move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let mut line = String::new();
            // The first connection asks nothing.
            if stream.read_line(&mut line).unwrap() == 0 {
                continue;
            }
            let shown = json!({"errno": 0, "args": {"resp": {"arms": arms}}});
            let last = line.contains("\"show\"");
            let answer = if last { &shown } else { &save };
            writeln!(stream.get_mut(), "{answer}").unwrap();
            if last || answer["errno"] != libc::ENODATA && answer["errno"] != libc::EOPNOTSUPP {
                return;
            }
        }
    };
    let server = std::thread::spawn(serve);
    let warnings = RefCell::new(String::new());
    let found = saved(&path, &|text| *warnings.borrow_mut() += text);
    server.join().unwrap();
    (found.map_err(|e| format!("{e:#}")), warnings.take())
}

/// A restart would lose them. Only what certainly has no changes is restarted without a word.
#[test]
fn changes_that_are_not_saved_are_not_lost() {
    let refused = |errno: i32| json!({"errno": errno, "args": {"resp": "no luck"}});
    let nothing = refused(libc::ENODATA);
    assert_eq!(asked(&nothing, &["default"]), (Ok(()), String::new()));
    let (there, warned) = asked(&nothing, &["default", "quiet"]);
    assert_eq!(there, Ok(()));
    assert!(warned.contains("rules about processes are not put back"));
    let (there, warned) = asked(&refused(libc::EOPNOTSUPP), &["default"]);
    assert_eq!(there, Ok(()));
    assert!(warned.contains("does not say whether"), "{warned}");
    let changes = json!({"errno": 0, "args": {"resp": {"file": "f", "text": "t"}}});
    let told = asked(&changes, &[]).0.unwrap_err();
    assert!(told.contains("save or reset them first"), "{told}");
    for unknown in [refused(libc::EINVAL), json!([])] {
        let told = asked(&unknown, &[]).0.unwrap_err();
        assert!(told.contains("does not say whether ctl has"), "{told}");
    }
    let dir = tempfile::tempdir().unwrap();
    saved(&dir.path().join("ctl"), &|text| panic!("{text}")).unwrap();
}

fn of_words(words: Vec<String>) -> Running {
    Running {
        pid: 20,
        parent: 1,
        unit: None,
        words,
    }
}

#[test]
fn the_control_socket_is_found_by_how_it_was_started() {
    let of = |line: &str| {
        let words = line.split(' ').map(str::to_string).collect();
        ctl_path(&[of_words(words)]).unwrap()
    };
    let beside = of("/usr/bin/scx_roost --config none --preset mainline --stats-path /run/x/stats");
    assert_eq!(beside, Some("/run/x/ctl".into()));
    let own = of("scx_roost --config none --ctl-path /run/own");
    assert_eq!(own, Some("/run/own".into()));
    // One that cannot be parsed hides no other.
    let ones = [
        "scx_roost --gone",
        "scx_roost --config none --ctl-path /run/own",
    ];
    let ones = ones.map(|line| of_words(line.split(' ').map(str::to_string).collect()));
    assert_eq!(ctl_path(&ones).unwrap(), Some("/run/own".into()));
    for other in ["scx_lavd --ctl-path /run/own", "scx_roost ctl show"] {
        assert_eq!(of(other), None, "{other}");
    }
}

#[test]
fn a_relative_path_of_files_is_seen() {
    for (line, is) in [
        ("scx_roost --config roost.toml", true),
        ("scx_roost --preset roost --config=etc/roost", true),
        ("scx_roost --config /etc/roost", false),
        ("scx_roost --config none", false),
        ("scx_roost --config", false),
        ("scx_roost", false),
    ] {
        let words = line.split(' ').map(str::to_string).collect();
        assert_eq!(of_words(words).names_files_here(), is, "{line}");
    }
}

/// Its service is not stopped then: no start would succeed.
#[test]
fn files_with_an_error_are_found_before_the_service_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("config.toml");
    std::fs::write(&file, "\npresett = 'roost'\n").unwrap();
    let found = |options: &str| {
        let unit = "/system.slice/scx.service";
        let line = format!("scx_roost {options}");
        let played = Played::new(&[("20", "scx_roost", &line, unit)]);
        says(&played, "enabled", "roost_0.1.0");
        let call = |words: &[&str]| {
            assert_eq!(words[1], "show");
            Ok(shown(20))
        };
        let warnings = RefCell::new(String::new());
        let warn = |text: &str| *warnings.borrow_mut() += text;
        let found = PreviousScheduler::found(&played.host(), &call, &warn);
        let found = found
            .map_err(|e| e.to_string())
            .map(|found| found.is_some());
        (found, warnings.take())
    };
    let (refused, _) = found(&format!("--config {}", dir.path().display()));
    let expected = format!(
        "the attached scheduler could not be started again: {}, line 2: unknown key 'presett': did you mean 'preset'?",
        file.display()
    );
    assert_eq!(refused, Err(expected));
    // A scheduler of another version: its own start knows the option.
    let (there, warned) = found("--config none --option-of-tomorrow");
    assert_eq!(there, Ok(true));
    let end = "the attached scheduler loses what ctl has set when it is started again";
    assert!(
        warned.contains("--option-of-tomorrow") && warned.ends_with(end),
        "{warned}"
    );
}

#[test]
fn a_unit_is_of_the_system() {
    assert_eq!(
        unit_of("1:cpu:/\n0::/system.slice/scx.service/sub\n").as_deref(),
        Some("scx.service")
    );
    for none in ["", "0::/", "0::/user.slice/a.service", "0::/system.slice/x"] {
        assert_eq!(unit_of(none), None, "{none}");
    }
}

/// Ctrl-C is meant for this process, and must not end a call that starts a service.
#[test]
fn a_called_program_has_its_own_process_group() {
    let words = ["sh", "-c", "cut -d' ' -f5 /proc/$$/stat; echo $$"];
    let said = call(&words).unwrap();
    let (group, pid) = said.trim().split_once('\n').unwrap();
    assert_eq!(group, pid);
}

/// How long to wait for a scheduler that stays attached.
const PATIENCE: Duration = Duration::from_millis(200);

/// A scheduler with the service of scx, on the kernel of `played`.
fn lavd(played: &Played) -> PreviousScheduler {
    PreviousScheduler {
        name: "lavd".into(),
        service: scx_service(),
        kernel: played.host().kernel,
    }
}

/// The state of sched_ext, and its scheduler.
fn says(played: &Played, state: &str, ops: &str) {
    played.says("root/ops", ops);
    played.says("state", state);
}

#[test]
fn the_previous_scheduler_is_attached_again_or_the_failure_reported() {
    let played = Played::new(&[]);
    let previous = lavd(&played);
    says(&played, "disabled", "");
    let comes = |_: &[&str]| {
        says(&played, "enabled", "lavd");
        Ok(String::new())
    };
    previous.restore(&comes, PATIENCE).unwrap();
    says(&played, "disabled", "");
    // As if systemctl was killed.
    let first = RefCell::new(true);
    let comes_later = |words: &[&str]| match first.replace(false) {
        true => anyhow::bail!("no luck"),
        false => comes(words),
    };
    previous.restore(&comes_later, PATIENCE).unwrap();
    says(&played, "disabled", "");
    let fails = |_: &[&str]| anyhow::bail!("no luck");
    let told = format!("{:#}", previous.restore(&fails, PATIENCE).unwrap_err());
    assert_eq!(told, "the scheduler lavd was not started again: no luck");
}

/// The service is started even if another scheduler is attached, and the result is checked.
#[test]
fn the_service_of_the_previous_scheduler_is_started_beside_another() {
    let played = Played::new(&[]);
    let previous = lavd(&played);
    says(&played, "enabled", "rusty");
    let calls = RefCell::new(0);
    let does_not_come = |_: &[&str]| {
        *calls.borrow_mut() += 1;
        Ok(String::new())
    };
    let told = previous.restore(&does_not_come, PATIENCE).unwrap_err();
    let told = format!("{told:#}");
    assert!(
        told.starts_with("the scheduler rusty is still attached")
            && told.ends_with("the service of lavd was started all the same"),
        "{told}"
    );
    // reset-failed, and start.
    assert_eq!(*calls.borrow(), 2);
    let comes = |_: &[&str]| {
        says(&played, "enabled", "lavd");
        Ok(String::new())
    };
    previous.restore(&comes, PATIENCE).unwrap();
}
