// SPDX-License-Identifier: GPL-2.0-only
//! What is done to a machine, and undone: services, schedulers and the process that outlives us. The kernel is a folder, schedulers are
//! shell scripts; processes and cgroups are real.

use crate::child::{alone, lives};
use scx_roost::ab::cgroup::Cgroup;
use scx_roost::ab::child::{Failure, Workload};
use scx_roost::ab::machine::Machine;
use scx_roost::ab::real::former::Former;
use scx_roost::ab::real::ground::{self, Ground};
use scx_roost::ab::real::guardian::{COMMAND, Guardian, Word};
use scx_roost::ab::real::service::{Service, schedules, unit_of};
use scx_roost::ab::real::{Means, Real};
use scx_roost::ab::variant::{Scope, Variant, parse_all};
use scx_roost::host::Host;
use std::cell::RefCell;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_scx_roost");

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A kernel with sched_ext, and processes: number, name, words, cgroup.
struct Played(TempDir);

impl Played {
    fn new(processes: &[(&str, &str, &str, &str)]) -> Played {
        let played = Played(tempfile::tempdir().unwrap());
        played.says("state", "disabled");
        played.says("enable_seq", "4");
        for (pid, comm, cmdline, cgroup) in processes {
            let of = |file: &str| played.0.path().join("proc").join(pid).join(file);
            write(of("comm"), &format!("{comm}\n"));
            write(of("cmdline"), &cmdline.replace(' ', "\0"));
            write(of("cgroup"), &format!("0::{cgroup}\n"));
        }
        played
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("kernel/sched_ext").join(file)
    }

    fn says(&self, file: &str, text: &str) {
        write(self.path(file), &format!("{text}\n"));
    }

    /// The cgroups are the real ones, where there are any.
    fn host(&self) -> Host {
        let real = Host::new(Path::new("/sys"));
        let own = real.proc_text("self/cgroup").unwrap_or_default();
        write(self.0.path().join("proc/self/cgroup"), &own);
        Host {
            cgroup: real.cgroup,
            ..Host::in_folder(self.0.path())
        }
    }

    /// A scheduler by its script.
    fn scx(&self, script: &str) -> String {
        let path = self.0.path().join("scx_played");
        let state = self.path("state");
        let text = script.replace("STATE", state.to_str().unwrap());
        write(path.clone(), &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        format!("scx:{}", path.display())
    }
}

const ATTACHES: &str = "trap 'echo disabled >STATE; exit 0' INT
setsid sleep 7660 &
echo enabled >STATE
while :; do sleep 0.05 & wait $!; done";

fn workload(script: &str) -> Workload {
    Workload {
        command: ["sh", "-c", script].map(Into::into).to_vec(),
        timeout: Duration::from_secs(20),
        powercap: "/nowhere".into(),
    }
}

fn means<'a>(
    host: Host,
    call: &'a dyn Fn(&[&str]) -> anyhow::Result<String>,
    stopped: &'a dyn Fn() -> bool,
) -> Means<'a> {
    Means {
        host,
        program: PROGRAM.into(),
        call,
        stopped,
        warn: &|text| println!("warning: {text}"),
    }
}

fn root() -> bool {
    // SAFETY: a plain call.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        println!("skip: schedulers are started by root");
    }
    root
}

fn cgroups() -> bool {
    let made = Cgroup::below_ours(&Host::new(Path::new("/sys")), "scx_roost-ab-test");
    made.map(|c| c.remove())
        .inspect_err(|e| println!("skip: {e:#}"))
        .is_ok()
}

fn soon(what: impl Fn() -> bool) -> bool {
    let end = Instant::now() + Duration::from_secs(10);
    while !what() {
        if Instant::now() > end {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

fn scx_service() -> Service {
    Service::Systemd {
        unit: "scx.service".into(),
    }
}

fn no_call(words: &[&str]) -> anyhow::Result<String> {
    panic!("{words:?}")
}

#[test]
fn schedulers_are_told_from_who_is_called_like_them() {
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
        let found = Service::of("lavd", &played.host(), &no_call);
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
    // A wrapper and its child, in one service.
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

#[test]
fn scx_loader_is_asked_and_told() {
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
    let units = [Some("scx_loader.service".to_string())];
    let service = Service::among("lavd", &units, &call).unwrap();
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

/// Whoever was attached is stopped, and that fails behind it: it is started again at once.
#[test]
fn a_beginning_that_fails_is_undone() {
    if !root() {
        return;
    }
    let _alone = alone();
    let unit = "/system.slice/scx.service";
    let played = Played::new(&[("20", "scx_lavd", "scx_lavd", unit)]);
    played.says("state", "enabled");
    let said = RefCell::new(Vec::new());
    let call = |words: &[&str]| {
        said.borrow_mut().push(words.join(" "));
        let state = if words[1] == "stop" {
            "disabled"
        } else {
            "enabled"
        };
        played.says("state", state);
        anyhow::ensure!(words[1] != "stop", "no luck");
        Ok(String::new())
    };
    let host = played.host();
    let mut real = Real::new(
        means(host, &call, &|| false),
        Scope::Machine,
        workload("true"),
    );
    let variants = parse_all(&["mainline", "eevdf"].map(str::to_string)).unwrap();
    let error = format!("{:#}", real.begin(&variants).unwrap_err());
    assert_eq!(error, "no luck");
    assert_eq!(
        *said.borrow(),
        ["systemctl stop scx.service", "systemctl start scx.service"]
    );
}

#[test]
fn what_is_attached_comes_back_in_the_end() {
    if !root() {
        return;
    }
    let _alone = alone();
    let unit = "/system.slice/scx.service";
    let played = Played::new(&[("20", "scx_lavd", "scx_lavd", unit)]);
    played.says("state", "enabled");
    let said = RefCell::new(Vec::new());
    let call = |words: &[&str]| {
        said.borrow_mut().push(words[1].to_string());
        let state = if words[1] == "stop" {
            "disabled"
        } else {
            "enabled"
        };
        played.says("state", state);
        Ok(String::new())
    };
    let scx = played.scx(ATTACHES);
    let mut real = Real::new(
        means(played.host(), &call, &|| false),
        Scope::Machine,
        workload("sleep 0.01"),
    );
    let variants = [
        Variant::parse(&scx).unwrap(),
        Variant::parse("eevdf").unwrap(),
    ];
    real.begin(&variants).unwrap();
    for variant in &variants {
        real.switch(variant).unwrap();
        real.run().unwrap();
    }
    assert_eq!(*said.borrow(), ["stop"]);
    real.switch(&variants[0]).unwrap();
    assert!(soon(|| lives("7660")));
    real.restore().unwrap();
    assert_eq!(*said.borrow(), ["stop", "start"]);
    assert!(!cgroups() || !lives("7660"));
}

#[test]
fn one_comparison_at_a_time() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new(&[]);
    let never = || false;
    let real = || {
        Real::new(
            means(played.host(), &no_call, &never),
            Scope::Machine,
            workload("true"),
        )
    };
    let (mut first, mut second) = (real(), real());
    first.begin(&[]).unwrap();
    let error = second.begin(&[]).unwrap_err().to_string();
    assert!(error.starts_with("another comparison runs"), "{error}");
    first.restore().unwrap();
    second.begin(&[]).unwrap();
    second.restore().unwrap();
}

#[test]
fn no_other_begins_before_the_machine_is_put_back() {
    let _alone = alone();
    let played = Played::new(&[]);
    let host = played.host();
    let lock = ground::alone(&host).unwrap();
    let guardian = Guardian::start(Path::new(PROGRAM), &lock).unwrap();
    // We are killed, and it still works.
    drop(lock);
    assert!(ground::alone(&host).is_err());
    guardian.dismiss();
    ground::alone(&host).unwrap();
}

/// Whoever is attached in its place, the service is told, and it is known whether it came back.
#[test]
fn who_was_attached_is_attached_again_or_it_is_told() {
    let played = Played::new(&[]);
    let former = Former {
        name: "lavd".into(),
        service: scx_service(),
        kernel: played.host().kernel,
    };
    let says = |state: &str, ops: &str| {
        played.says("root/ops", ops);
        played.says("state", state);
    };
    says("disabled", "");
    let comes = |_: &[&str]| {
        says("enabled", "lavd");
        Ok(String::new())
    };
    former.restore(&comes).unwrap();
    // Of the loader nothing is asked when it is there.
    let loader = Former {
        service: Service::Loader {
            scheduler: "scx_lavd".into(),
            mode: 0,
            args: Vec::new(),
        },
        ..former.clone()
    };
    loader.restore(&no_call).unwrap();
    says("enabled", "rusty");
    let calls = RefCell::new(0);
    let does_not_come = |_: &[&str]| {
        *calls.borrow_mut() += 1;
        Ok(String::new())
    };
    let told = format!("{:#}", former.restore(&does_not_come).unwrap_err());
    assert!(
        told.starts_with("the scheduler rusty is still attached")
            && told.ends_with("the service of lavd was told to start all the same"),
        "{told}"
    );
    assert_eq!(*calls.borrow(), 1);
    former.restore(&comes).unwrap();
    says("disabled", "");
    let fails = |_: &[&str]| anyhow::bail!("no luck");
    let told = format!("{:#}", former.restore(&fails).unwrap_err());
    assert_eq!(told, "the scheduler lavd is not started again: no luck");
}

#[test]
fn a_command_is_not_blamed_for_its_scheduler() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new(&[]);
    let state = played.path("state");
    let fails = workload(&format!("echo disabled >{}; exit 3", state.display()));
    let scx = Variant::parse(&played.scx(ATTACHES)).unwrap();
    let mut real = Real::new(
        means(played.host(), &no_call, &|| false),
        Scope::Machine,
        fails,
    );
    real.begin(std::slice::from_ref(&scx)).unwrap();
    real.switch(&scx).unwrap();
    let told = real.run().unwrap_err().to_string();
    assert!(
        told.contains("the scheduler is not attached any more"),
        "{told}"
    );
    real.restore().unwrap();
}

/// Ctrl-C while a scheduler is loaded.
#[test]
fn who_stops_a_load_is_no_failure_and_nothing_is_left() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new(&[]);
    let scx = played.scx("sleep 7662 & sleep 7662");
    let mut real = Real::new(
        means(played.host(), &no_call, &|| true),
        Scope::Machine,
        workload("true"),
    );
    let variant = Variant::parse(&scx).unwrap();
    real.begin(std::slice::from_ref(&variant)).unwrap();
    let failure = real.switch(&variant).unwrap_err();
    assert!(matches!(failure, Failure::Stopped), "{failure}");
    real.restore().unwrap();
    assert!(!lives("7662"));
}

#[test]
fn a_scheduler_that_ends_is_told_of() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new(&[]);
    let scx = played.scx("echo no BTF; exit 5");
    let mut real = Real::new(
        means(played.host(), &no_call, &|| false),
        Scope::Machine,
        workload("true"),
    );
    let variant = Variant::parse(&scx).unwrap();
    real.begin(std::slice::from_ref(&variant)).unwrap();
    let told = real.switch(&variant).unwrap_err().to_string();
    let why = "it ended before it was attached (exit status: 5): it said last: no BTF";
    assert!(told.ends_with(why), "{told}");
    real.restore().unwrap();
}

#[test]
fn who_is_attached_during_a_run_is_seen() {
    if !root() {
        return;
    }
    let _alone = alone();
    let played = Played::new(&[]);
    let seq = played.path("enable_seq");
    let came_and_went = workload(&format!("echo 5 >{}", seq.display()));
    let mut real = Real::new(
        means(played.host(), &no_call, &|| false),
        Scope::Machine,
        came_and_went,
    );
    let variant = Variant::parse("eevdf").unwrap();
    real.begin(std::slice::from_ref(&variant)).unwrap();
    real.switch(&variant).unwrap();
    let told = real.run().unwrap_err().to_string();
    assert!(told.contains("schedulers were attached anew"), "{told}");
    // It says 5 already.
    real.run().unwrap();
    played.says("state", "enabled");
    played.says("root/ops", "lavd");
    let told = real.run().unwrap_err().to_string();
    assert!(told.contains("lavd was attached meanwhile"), "{told}");
    played.says("state", "disabled");
    real.restore().unwrap();
}

/// The process that outlives us, with a systemctl that is played.
#[test]
fn who_outlives_us_ends_all_and_starts_the_service() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let (own, said) = (folder.path().join("own"), folder.path().join("said"));
    let kernel = folder.path().join("kernel");
    fs::create_dir(&own).unwrap();
    let systemctl = folder.path().join("systemctl");
    write(
        systemctl.clone(),
        &format!(
            "#!/bin/sh\necho \"$@\" >>{}\nmkdir -p {place}/root; echo lavd >{place}/root/ops; echo enabled >{place}/state\n",
            said.display(),
            place = kernel.join("sched_ext").display()
        ),
    );
    fs::set_permissions(&systemctl, fs::Permissions::from_mode(0o755)).unwrap();
    let host = Host::new(Path::new("/sys"));
    let cgroup = cgroups().then(|| Cgroup::below_ours(&host, "scx_roost-ab-test").unwrap());
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap()
    );
    let mut guardian = Command::new(PROGRAM)
        .arg(COMMAND)
        .env("PATH", path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let group = |script: &str, child: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).process_group(0);
        if let Some(cgroup) = &cgroup {
            cgroup.child(child).unwrap().takes(&mut command).unwrap();
        }
        command.spawn().unwrap()
    };
    let mut command = group("setsid sleep 7663 & sleep 7664", "command");
    let mut scheduler = group("sleep 7665 & wait", "scheduler");
    assert!(soon(|| ["7663", "7664", "7665"].iter().all(|s| lives(s))));
    let words = [
        Word::Owns(Ground {
            folder: own.clone(),
            cgroup: cgroup.clone(),
        }),
        Word::Restores(Former {
            name: "lavd".into(),
            service: scx_service(),
            kernel: kernel.clone(),
        }),
        Word::Schedules(scheduler.id() as i32),
        Word::Runs(command.id() as i32),
    ];
    let mut door = guardian.stdin.take().unwrap();
    for word in &words {
        writeln!(door, "{}", serde_json::to_string(word).unwrap()).unwrap();
    }
    assert!(soon(|| lives("7664")));
    // As when we are killed in the middle of a line.
    write!(door, "{{\"Ru").unwrap();
    drop(door);
    assert!(guardian.wait().unwrap().success());
    for child in [&mut command, &mut scheduler] {
        child.wait().unwrap();
    }
    assert!(!lives("7664") && !lives("7665"));
    assert_eq!(fs::read_to_string(said).unwrap(), "start scx.service\n");
    assert!(!own.exists());
    if let Some(cgroup) = cgroup {
        assert!(!lives("7663") && !cgroup.path().exists());
    }
}

#[test]
fn who_is_dismissed_leaves_all_alone() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let mut guardian = Command::new(PROGRAM)
        .arg(COMMAND)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut door = guardian.stdin.take().unwrap();
    let ground = Ground {
        folder: folder.path().to_path_buf(),
        cgroup: None,
    };
    for word in [Word::Owns(ground), Word::Dismissed] {
        writeln!(door, "{}", serde_json::to_string(&word).unwrap()).unwrap();
    }
    drop(door);
    assert!(guardian.wait().unwrap().success());
    assert!(folder.path().exists());
}
