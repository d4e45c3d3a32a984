// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler that is attached at the start: which service runs it, what ctl has set in it, and
//! its restoration.

use super::{Played, scx_service, shown, status};
use scx_roost::ab::real::live::{Live, ctl_path};
use scx_roost::ab::real::previous::PreviousScheduler;
use scx_roost::ab::real::service::{Running, Service, call, running, schedules, unit_of};
use scx_roost::machine::Power;
use scx_roost::policy::arms::Arms;
use scx_roost::policy::change::Change;
use scx_roost::policy::settings::Settings;
use scx_roost::wire::protocol::Op;
use serde_json::{Value, json};
use std::cell::RefCell;
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
    let service = Ok(Service::Systemd {
        unit: "scx.service".into(),
    });
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

const NR_CPUS: u32 = 8;

/// The state of the scheduler as `ctl show` and `ctl rules` print it.
fn live(arms: &[(&str, &str, &str, Value)], rules: &[(Value, &str)]) -> Live {
    let arm = |(name, preset, features, tunables): &(&str, &str, &str, Value)| json!({"name": name, "preset": preset, "features": features, "tunables": tunables, "rules": 0});
    let arms: Vec<Value> = arms.iter().map(arm).collect();
    let rules: Vec<Value> = rules
        .iter()
        .map(|(whom, arm)| json!({"whom": whom, "arm": arm}))
        .collect();
    Live::of(&json!({"generation": 3, "arms": arms}), &json!(rules)).unwrap()
}

#[test]
fn what_ctl_has_set_is_given_back() {
    let mainline = "prev_idle sis_util avg_idle";
    let slice = |us: u32| json!({"slice-us": us, "min-slice-us": 700});
    let rules = [
        (json!({"comm": "game*"}), "quiet"),
        (json!({"pid": 77}), "quiet"),
        (json!({"comm": "here"}), "default"),
    ];
    let was = live(
        &[
            (
                "default",
                "mainline",
                "prev_idle avg_idle claim",
                slice(900),
            ),
            ("quiet", "mainline", mainline, slice(2800)),
        ],
        &rules,
    );
    let begins = live(
        &[("default", "mainline", mainline, slice(2800))],
        &rules[2..],
    );
    let text = |ops: Vec<Op>| serde_json::to_value(ops).unwrap();
    let add = json!([{"op": "arm_add", "arm": "quiet", "preset": "mainline"}]);
    assert_eq!(text(was.arms_to_add(&begins)), add);
    let added = live(
        &[
            ("default", "mainline", mainline, slice(2800)),
            ("quiet", "mainline", mainline, slice(2800)),
        ],
        &rules[2..],
    );
    assert!(was.arms_to_add(&added).is_empty());
    let change = json!({"preset": "mainline", "enable": ["claim"], "disable": ["sis_util"], "set": {"slice-us": 900}});
    let set = json!({"op": "set", "arm": "default", "change": change});
    let rule = json!({"op": "rule_add", "whom": {"comm": "game*"}, "arm": "quiet"});
    assert_eq!(text(was.changes(&added, NR_CPUS)), json!([set, rule]));
    assert!(was.changes(&was, NR_CPUS).is_empty());
    assert!(was.surplus(&added).is_empty());
    // Arms and rules that were added meanwhile are removed, and so are rules that now name another
    // arm.
    let more = live(
        &[
            ("default", "mainline", mainline, slice(2800)),
            ("new", "mainline", mainline, slice(2800)),
        ],
        &[
            (json!({"comm": "game*"}), "new"),
            (json!({"comm": "here"}), "default"),
            (json!({"comm": "other"}), "default"),
            (json!({"pid": 78}), "new"),
        ],
    );
    let gone = json!([
        {"op": "rule_del", "whom": {"comm": "game*"}},
        {"op": "rule_del", "whom": {"comm": "other"}},
        {"op": "arm_del", "arm": "new"},
    ]);
    assert_eq!(text(was.surplus(&more)), gone);
    assert!(was.loses().is_some() && begins.loses().is_none());
}

fn changed(settings: &Settings, text: &str) -> Settings {
    match serde_json::from_str(text).unwrap() {
        none if none == Change::default() => settings.clone(),
        change => settings.changed(&change).unwrap(),
    }
}

/// Arm default as `ctl show` prints it.
fn told(settings: &Settings) -> Live {
    let arms = Arms::new(settings.clone());
    let arms = arms.iter().map(|(_, arm)| arm.describe(true, NR_CPUS));
    Live::of(&json!({"arms": arms.collect::<Vec<_>>()}), &json!([])).unwrap()
}

/// `now`, with what `was` had given back.
fn given_back(was: &Settings, now: &Settings) -> Settings {
    let mut now = now.clone();
    for op in told(was).changes(&told(&now), NR_CPUS) {
        let Op::Set { change, .. } = op else {
            panic!("{op:?}")
        };
        now = now.changed(&change).unwrap();
    }
    now
}

/// The profile `auto` stands for another one than before if the machine's power setting changed
/// meanwhile.
#[test]
fn a_profile_is_given_back_as_one() {
    let of = |profile: &str, change: &str| {
        let profile = format!(r#"{{"profile": "{profile}"}}"#);
        changed(&changed(&Settings::default(), &profile), change)
    };
    let own = r#"{"enable": ["util_fits"], "set": {"claim-ttl-us": 900}}"#;
    for (profile, own) in [("auto", "{}"), ("auto", own), ("gaming", own)] {
        for (before, after) in [
            (Power::Save, Power::Balanced),
            (Power::Balanced, Power::Save),
        ] {
            let was = of(profile, own).under(before);
            let now = given_back(&was, &of("auto", "{}").under(after));
            let was = was.under(after);
            assert_eq!(told(&now), told(&was), "{profile} {own}");
            // What was set stays set, and nothing else: 'ctl save' writes that.
            assert_eq!(now.since(&was, NR_CPUS), Change::default());
            assert_eq!(was.since(&now, NR_CPUS), Change::default());
        }
    }
}

/// Only what was set is set again: a value that has adapted to another one was not, nor was a
/// default. A value of a profile may have been set.
#[test]
fn what_was_not_set_is_not_set_by_giving_back() {
    let mainline = r#"{"preset": "mainline", "set": {"claim-ttl-us": 900}}"#;
    let slice = r#"{"set": {"slice-us": 500}}"#;
    for (base, was, more) in [
        (r#"{"profile": "gaming"}"#, mainline, "slice-us"),
        (
            r#"{"profile": "powersave"}"#,
            mainline,
            "min-slice-us slice-us",
        ),
        ("{}", slice, ""),
        ("{}", r#"{"set": {"min-slice-us": 5000}}"#, ""),
        (
            "{}",
            r#"{"set": {"slice-us": 600, "min-slice-us": 500}}"#,
            "",
        ),
        (r#"{"profile": "powersave"}"#, slice, ""),
        (
            slice,
            r#"{"set": {"slice-us": 600, "min-slice-us": 500}}"#,
            "",
        ),
        (slice, r#"{"set": {"min-slice-us": 300}}"#, ""),
    ] {
        let now = changed(&Settings::default(), base);
        let was = changed(&now, was);
        let again = given_back(&was, &now);
        assert_eq!(told(&again), told(&was), "{base}");
        let set = again.since(&was, NR_CPUS).set;
        let names: Vec<&str> = set.keys().map(String::as_str).collect();
        assert_eq!(names.join(" "), more, "{base}");
    }
}

fn of_words(unit: Option<String>, words: Vec<String>) -> Running {
    Running {
        pid: 20,
        parent: 1,
        unit,
        words,
    }
}

#[test]
fn the_control_socket_is_found_by_how_it_was_started() {
    let of = |line: &str| {
        let words = line.split(' ').map(str::to_string).collect();
        ctl_path(&[of_words(None, words)]).unwrap()
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
    let ones = ones.map(|line| of_words(None, line.split(' ').map(str::to_string).collect()));
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
        assert_eq!(of_words(None, words).names_files_here(), is, "{line}");
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

#[test]
fn scx_loader_is_queried_and_commanded() {
    let said = RefCell::new(Vec::new());
    let call = |words: &[&str]| {
        said.borrow_mut().push(words.join(" "));
        Ok(match *words.last().unwrap() {
            "CurrentScheduler" => r#"{"type":"s","data":"scx_lavd"}"#,
            "SchedulerMode" => r#"{"type":"u","data":2}"#,
            "CurrentSchedulerArgs" => r#"{"type":"as","data":["--a","b"]}"#,
            _ => "",
        }
        .to_string())
    };
    let words = ["/usr/bin/scx_lavd", "--old"];
    let words = words.map(str::to_string).to_vec();
    let running = [of_words(Some("scx_loader.service".into()), words)];
    let service = Service::of("lavd", &running, None, &call).unwrap();
    assert!(service.stays(&call));
    // The loader was asked to stop its scheduler.
    let stopping = |words: &[&str]| match *words.last().unwrap() {
        "CurrentScheduler" => Ok(r#"{"type":"s","data":"unknown"}"#.to_string()),
        _ => call(words),
    };
    assert!(!service.stays(&stopping));
    // Older loaders do not report the arguments, and their mode is 0 then.
    let older = |words: &[&str]| match *words.last().unwrap() {
        "CurrentSchedulerArgs" => anyhow::bail!("no such property"),
        "SchedulerMode" => Ok(r#"{"type":"u","data":0}"#.to_string()),
        _ => call(words),
    };
    let by_process = Service::Loader {
        scheduler: "scx_lavd".into(),
        mode: 0,
        args: vec!["--old".into()],
    };
    let found = Service::of("lavd", &running, None, &older);
    assert_eq!(found.unwrap(), by_process);
    said.borrow_mut().clear();
    service.stop(&call).unwrap();
    service.start(&call).unwrap();
    let path = "busctl call org.scx.Loader /org/scx/Loader org.scx.Loader";
    assert_eq!(
        *said.borrow(),
        [
            format!("{path} StopScheduler"),
            format!("{path} StartSchedulerWithArgs sas scx_lavd 2 --a b")
        ]
    );
    let plain = Service::Loader {
        scheduler: "scx_lavd".into(),
        mode: 2,
        args: Vec::new(),
    };
    plain.start(&call).unwrap();
    let last = said.borrow().last().unwrap().clone();
    assert_eq!(last, format!("{path} StartScheduler su scx_lavd 2"));
}

/// How long to wait for a scheduler that stays attached.
const PATIENCE: Duration = Duration::from_millis(200);

/// A scheduler with the service of scx, on the kernel of `played`.
fn lavd(played: &Played) -> PreviousScheduler {
    PreviousScheduler {
        name: "lavd".into(),
        service: scx_service(),
        kernel: played.host().kernel,
        live: None,
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

#[test]
fn a_loader_that_runs_its_scheduler_already_is_not_called() {
    let played = Played::new(&[]);
    says(&played, "enabled", "lavd");
    let loader = PreviousScheduler {
        service: Service::Loader {
            scheduler: "scx_lavd".into(),
            mode: 0,
            args: Vec::new(),
        },
        ..lavd(&played)
    };
    let loaded = |words: &[&str]| {
        Ok(match *words.last().unwrap() {
            "CurrentScheduler" => r#"{"data":"scx_lavd"}"#,
            "SchedulerMode" => r#"{"data":0}"#,
            "CurrentSchedulerArgs" => r#"{"data":[]}"#,
            other => panic!("{other}"),
        }
        .to_string())
    };
    loader.restore(&loaded, PATIENCE).unwrap();
}
