// SPDX-License-Identifier: GPL-2.0-only
//! One run of a command: what is measured, and what can go wrong.

use scx_roost::ab::child::{Failure, Sample, Workload, become_subreaper, reaped_within, run};
use scx_roost::ab::metric::Measured;
use std::fs;
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A lock for each test that starts a program: a child of one test would count as a leftover of
/// another, and be killed.
pub fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a program printed, and how it ended.
pub fn output(command: &mut Command) -> Output {
    let _alone = alone();
    command.output().unwrap()
}

pub fn workload(script: &str) -> Workload {
    Workload {
        command: ["sh", "-c", script].map(Into::into).to_vec(),
        timeout: Duration::from_secs(20),
        cpus: Vec::new(),
        user: None,
    }
}

pub fn runs(workload: &Workload) -> Result<Sample, Failure> {
    let _alone = alone();
    become_subreaper().unwrap();
    run(workload, None, &|| None, &|| false, &mut |_| ())
}

fn failure(script: &str) -> String {
    runs(&workload(script)).unwrap_err().to_string()
}

/// Whether a process with this argument in its command line lives.
pub fn lives(argument: &str) -> bool {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let mut lines = all.filter_map(|e| fs::read_to_string(e.path().join("cmdline")).ok());
    lines.any(|line| line.split('\0').any(|a| a == argument))
}

#[test]
fn time_and_memory_are_measured() {
    let busy = "sleep 0.2; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done";
    let sample = runs(&workload(busy)).unwrap();
    let value = |which| sample.values[&which];
    assert!((0.2..20.0).contains(&value(Measured::Wall)));
    assert!((0.02..20.0).contains(&value(Measured::User)), "{sample:?}");
    assert!(
        value(Measured::Wall) >= value(Measured::User) + 0.15,
        "{sample:?}"
    );
    assert!(value(Measured::MaxRss) > 500.0, "{sample:?}");
    assert!(value(Measured::ContextSwitches) >= 1.0);
    assert_eq!(sample.output, "done\n");
}

/// The time of a grandchild counts if the shell waits for it.
#[test]
fn what_it_waits_for_counts() {
    let busy = "sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' & wait";
    let sample = runs(&workload(busy)).unwrap();
    assert!(sample.values[&Measured::User] > 0.02, "{sample:?}");
}

/// A process that outlives the command by less than it takes to be a leftover.
#[test]
fn work_that_ends_just_after_the_command_is_a_part_of_it() {
    let sample = runs(&workload("sleep 0.12 &")).unwrap();
    let wall = sample.values[&Measured::Wall];
    assert!((0.12..1.0).contains(&wall), "{sample:?}");
    // Beside other tests even a command that does nothing may take so long, but not always.
    let alone = || runs(&workload("true")).unwrap().values[&Measured::Wall];
    assert!((0..20).any(|_| alone() < 0.1));
}

#[test]
fn moves_to_other_cpus_are_counted_where_the_kernel_lets_us() {
    let moves = "for i in 1 2 3 4 5 6; do taskset -c 0 true; taskset -cp 0 $$ >&2; taskset -cp 1 $$ >&2; done";
    if std::thread::available_parallelism().unwrap().get() < 2 {
        println!("skip: one CPU");
        return;
    }
    let sample = runs(&workload(moves)).unwrap();
    match sample.values.get(&Measured::Migrations) {
        None => println!("skip: perf_event_open is not allowed here"),
        Some(count) => assert!((6.0..1000.0).contains(count), "{sample:?}"),
    }
}

/// A command may open its output again; a file would then be cut off.
#[test]
fn output_that_is_opened_again_is_whole() {
    let script = "echo 12 ops/s; echo done >/dev/stdout; echo more; echo a | tee /dev/stderr >&2";
    let sample = runs(&workload(script)).unwrap();
    assert_eq!(sample.output, "12 ops/s\ndone\nmore\n");
    assert_eq!(sample.errors, "a\na\n");
}

/// More than any pipe holds, faster than it is read four times a second.
#[test]
fn a_command_that_prints_much_does_not_wait_long() {
    let script = "head -c 200000000 /dev/zero; echo; echo end";
    let sample = runs(&workload(script)).unwrap();
    assert!(sample.output.ends_with("\nend\n"));
    assert!(sample.values[&Measured::Wall] < 10.0, "{:?}", sample.values);
}

#[test]
fn what_fails_says_how() {
    assert_eq!(
        failure("echo no luck >&2; exit 3"),
        "the command failed (exit status: 3); its last output: no luck"
    );
    assert_eq!(
        failure("echo so far; kill -SEGV $$"),
        "the command failed (signal: 11 (SIGSEGV)); its last output: so far"
    );
    assert_eq!(failure("exit 1"), "the command failed (exit status: 1)");
    let missing = |word: &str| {
        let missing = Workload {
            command: vec![word.into()],
            ..workload("")
        };
        runs(&missing).unwrap_err().to_string()
    };
    let none = "cannot be run: No such file or directory (os error 2)";
    assert_eq!(
        missing("/no/such/command"),
        format!("the command '/no/such/command' {none}")
    );
    assert_eq!(
        missing("sleep 1"),
        format!(
            "the command 'sleep 1' {none}; that is one word: quote each word by itself, or write sh -c 'sleep 1'"
        )
    );
}

#[test]
fn what_hangs_is_ended_with_all_that_it_started() {
    let begin = Instant::now();
    let hanging = Workload {
        timeout: Duration::from_millis(300),
        ..workload("sleep 7654 & setsid sleep 7654 & sleep 7654")
    };
    let told = runs(&hanging).unwrap_err().to_string();
    assert!(
        told.starts_with("the command did not end within 0.3 s and was ended"),
        "{told}"
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert!(!lives("7654"));
}

#[test]
fn what_is_stopped_is_ended() {
    let _alone = alone();
    become_subreaper().unwrap();
    let begin = Instant::now();
    let stopped = run(
        &workload("sleep 7655"),
        None,
        &|| None,
        &|| true,
        &mut |_| (),
    );
    assert!(matches!(stopped, Err(Failure::Stopped)), "{stopped:?}");
    assert!(begin.elapsed() < Duration::from_secs(10) && !lives("7655"));
}

/// Ctrl-Z does nothing to this process, and has its usual effect on the command. After this process
/// was stopped it cannot tell when the command ended.
#[test]
fn a_stop_of_this_process_is_no_time_of_the_command() {
    let mask = "kill -TSTP $PPID; sleep 0.3; grep SigIgn /proc/self/status";
    let sample = runs(&workload(mask)).unwrap();
    let ignored = sample.output.split_whitespace().last().unwrap();
    let ignored = u64::from_str_radix(ignored, 16).unwrap();
    assert_eq!(ignored & 1 << (libc::SIGTSTP - 1), 0, "{ignored:x}");
    let told = failure("kill -CONT $PPID; sleep 7657");
    assert!(
        told.starts_with("this process was continued (SIGCONT) while the command ran"),
        "{told}"
    );
    assert!(!lives("7657"));
}

#[test]
fn what_forks_away_or_daemonises_is_found_and_ended() {
    for (script, how) in [
        ("sleep 7656 &", "forked away"),
        ("(setsid sleep 7656 &) ; sleep 0.3", "daemonised"),
        // A name may be any bytes.
        (
            "d=$(mktemp -d); s=$d/$(printf 'sleep (\\n\\377'); cp $(command -v sleep) \"$s\"; \"$s\" 7656 & \
             sleep 0.3; rm -r $d",
            "sleep (\n\u{fffd} (",
        ),
    ] {
        let told = failure(script);
        assert!(
            told.starts_with("the command ended and left processes running"),
            "{told}"
        );
        assert!(told.contains("sleep (") && told.contains(how), "{told}");
        assert!(!lives("7656"));
    }
    // A process that ends right after the command is no leftover.
    runs(&workload("sleep 0.05 &")).unwrap();
}

/// Another user's command could type into root's terminal, if that were its controlling one.
#[test]
fn the_command_has_a_session_of_its_own() {
    runs(&workload(
        "set -- $(cat /proc/$$/stat); test $$ = $5 -a $$ = $6",
    ))
    .unwrap();
}

#[test]
fn what_is_said_as_an_error_is_kept_beside() {
    let sample = runs(&workload("echo one; echo took 5 >&2")).unwrap();
    assert_eq!(sample.output, "one\n");
    assert_eq!(sample.errors, "took 5\n");
}

#[test]
fn of_much_output_the_end_is_kept() {
    let sample = runs(&workload(
        "yes 0123456 | head -c 3000000; echo; echo last 5",
    ))
    .unwrap();
    assert_eq!(sample.output.len(), 1 << 20);
    assert!(sample.output.ends_with("\nlast 5\n"));
}

#[test]
fn waiting_for_a_stuck_process_ends() {
    let _alone = alone();
    let mut child = Command::new("sleep").arg("7666").spawn().unwrap();
    let pid = child.id() as i32;
    assert!(!reaped_within(pid, Duration::from_millis(50)));
    child.kill().unwrap();
    assert!(reaped_within(pid, Duration::from_secs(10)));
    // Its status has been collected.
    assert!(reaped_within(pid, Duration::ZERO));
    assert!(child.wait().is_err());
}
