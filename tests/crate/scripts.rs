// SPDX-License-Identifier: GPL-2.0-only
//! The scripts and their arguments: help only prints, and a wrong word is refused before anything
//! starts.

use std::process::{Command, Output};
use std::sync::OnceLock;

fn top(program: &str, args: &[&str]) -> Output {
    Command::new(program)
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the script starts")
}

/// The one line on stderr, with exit status 1 and nothing on stdout.
fn refusal(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(output.stdout.is_empty(), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr.trim_end().to_string()
}

#[test]
fn help_is_printed_and_nothing_done() {
    for script in [
        "scripts/deb",
        "scripts/deny",
        "scripts/freshdeps",
        "scripts/fuzz",
        "scripts/run",
        "scripts/setup",
        "scripts/test",
    ] {
        for option in ["--help", "-h"] {
            let output = top(script, &[option]);
            assert!(output.status.success(), "{script} {option}");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(text.contains(&format!("  {script} [")), "{script}: {text}");
            assert!(output.stderr.is_empty(), "{script} {option} did something");
        }
    }
}

#[test]
fn wrong_words_are_refused_at_once() {
    assert_eq!(
        refusal(&top("scripts/run", &["--topology", "3x"])),
        "run: --topology 3x: expected LLCs x cores x threads, for example 3x5x2, or a number of cores"
    );
    for empty_or_large in ["0", "3x0x2", "256", "99x99x99", "2:64x1x2"] {
        let said = refusal(&top("scripts/run", &["--topology", empty_or_large]));
        assert!(said.contains("expected LLCs x cores"), "{said}");
    }
    assert!(refusal(&top("scripts/run", &["--topology"])).contains("wants LLCs x cores"));
    assert_eq!(
        refusal(&top("scripts/setup", &["--no-bulid"])),
        "setup: unknown option --no-bulid; --help shows them"
    );
    assert_eq!(
        refusal(&top("scripts/deb", &["--revision", "x"])),
        "deb: --revision x: expected a number such as 1"
    );
    assert!(refusal(&top("scripts/fuzz", &["nothing"])).contains("no target nothing; there are:"));
    assert_eq!(
        refusal(&top("scripts/fuzz", &["--seconds", "0"])),
        "fuzz: --seconds wants a number above 0"
    );
}

/// The demo with the binary under test. It stops before it would boot a kernel.
fn demo(options: &str) -> Output {
    let script = format!(
        "import sys; sys.path.insert(0, 'scripts/guest'); import demo\n\
         def get(*_): raise demo.LabError('would boot')\n\
         demo.Kernel.get = get; demo.ROOST = {:?}; sys.argv = ['demo.py', *{options:?}.split()]\n\
         sys.exit(demo.main())",
        env!("CARGO_BIN_EXE_scx_roost")
    );
    top("python3", &["-B", "-c", &script])
}

#[test]
fn the_demo_tries_its_options_before_the_boot() {
    for (options, sentence) in [
        ("--preset nonsense", "unknown preset 'nonsense'"),
        ("--slice-us 5", "100 to 100000 us are possible"),
        ("doctor", "'doctor' does not run the scheduler"),
        ("--json topology", "'topology' does not run the scheduler"),
        ("--monitor 1", "'--monitor' does not run the scheduler"),
        ("--monitor=1", "'--monitor' does not run the scheduler"),
        ("--help-stats", "'--help-stats' does not run the scheduler"),
        ("-V", "'-V' does not run the scheduler"),
        ("--preset mainline --stats 1", "would boot"),
        ("--topology 8", "would boot"),
    ] {
        let said = refusal(&demo(options));
        assert!(said.starts_with("scripts/run: "), "{options}: {said}");
        assert!(said.contains(sentence), "{options}: {said}");
    }
}

/// Plans the matrix without the kernels in `missing`, which are `gone` from the archive or
/// `unreachable`. Returns the number of kernels that it would boot, and the verdicts on the others.
fn matrix(why: &str, missing: &str, options: &str) -> String {
    let script = format!(
        "import sys; sys.path.insert(0, 'scripts/guest'); import guest_tests as g\n\
         def get(prefix):\n\
         \x20   if prefix in {missing:?}.split():\n\
         \x20       raise (g.NoSuchKernel if {why:?} == 'gone' else g.LabError)({why:?})\n\
         \x20   return prefix\n\
         g.Kernel.get = get\n\
         class Run:\n\
         \x20   record = lambda self, outcome: verdicts.append(outcome.verdict)\n\
         verdicts, sys.argv = [], ['guest_tests.py', '--matrix', *{options:?}.split()]\n\
         args = g.parse_args()\n\
         kernels = {{k for k, _ in g.plan_boots(Run(), g.choose(args), args)}}\n\
         print(len(kernels), *verdicts)"
    );
    let output = top("python3", &["-B", "-c", &script]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_string()
}

#[test]
fn a_required_matrix_is_not_skipped() {
    const ALL: &str = "6.12 6.16 6.18 6.19 7.0 7.1 7.3 7.2-rt";
    const REQUIRED: &str = "--require-vm";
    for (why, missing, options, outcome) in [
        ("gone", "6.16", "", "7 skipped"),
        ("gone", "6.16", REQUIRED, "7 skipped"),
        ("gone", "6.16 6.18", "", "6 skipped skipped"),
        ("gone", "6.16 6.18", REQUIRED, "6 failed failed"),
        ("unreachable", "6.16", REQUIRED, "7 failed"),
        (
            "unreachable",
            ALL,
            "",
            &format!("0{}", " skipped".repeat(8)),
        ),
        (
            "unreachable",
            ALL,
            REQUIRED,
            &format!("0{}", " failed".repeat(8)),
        ),
    ] {
        let said = matrix(why, missing, options);
        assert_eq!(said, outcome, "{why} {missing} {options}");
    }
}

/// What scripts/chaos would do. Once the kernel is there, it says nothing but the plan.
fn chaos_plan(options: &[&str]) -> String {
    static FETCHED: OnceLock<Output> = OnceLock::new();
    let said = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let fetched = FETCHED.get_or_init(|| top("scripts/chaos", &["--plan"]));
    assert!(fetched.status.success(), "--plan: {}", said(fetched));
    let output = top("scripts/chaos", &[&["--plan"], options].concat());
    assert!(output.status.success(), "{options:?}: {}", said(&output));
    assert_eq!(said(&output), "", "{options:?} did something");
    String::from_utf8(output.stdout).expect("the plan is text")
}

#[test]
fn chaos_is_drawn_from_its_seed() {
    let plan = chaos_plan(&["--seed", "7"]);
    assert_eq!(plan, chaos_plan(&["--seed", "7"]));
    assert_ne!(plan, chaos_plan(&["--seed", "8"]));
    let mut last = 0;
    for line in plan.lines() {
        let at: u32 = line
            .split(' ')
            .next()
            .and_then(|w| w.parse().ok())
            .expect("a time");
        assert!((last..180_000).contains(&at), "{line}");
        last = at;
    }
    for class in "load fork real_time deadline pinned affinity cpuset cgroup hotplug signal kill reload switch memory \
                  frequencies clock ptrace audit"
        .split_whitespace()
    {
        assert!(plan.lines().any(|l| l.split(' ').nth(1) == Some(class)), "no {class}");
    }
    // The only CPU never goes offline.
    assert!(!chaos_plan(&["--seed", "7", "--topology", "1"]).contains("hotplug"));
}

#[test]
fn chaos_forks_a_million_times_an_hour() {
    let plan = chaos_plan(&["--seed", "1", "--minutes", "60"]);
    let forks = plan.lines().filter_map(|l| l.split_once(" fork fork "));
    let sum: u32 = forks
        .map(|(_, n)| n.split(' ').next().unwrap().parse::<u32>().unwrap())
        .sum();
    assert!((990_000..1_010_000).contains(&sum), "{sum}");
}

/// One line on stderr, and exit status 2.
fn refuses(script: &str, options: &[&str]) {
    let output = top(script, options);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{options:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{options:?}: {stderr}");
}

#[test]
fn chaos_refuses_wrong_words_at_once() {
    for options in [
        ["--minutes", "x"],
        ["--minutes", "0"],
        ["--seed", "-1"],
        ["--topology", "3x"],
        ["--topology", "0"],
        ["--topology", "1000"],
        ["--against", "cfs"],
        ["--jobs", "0"],
        ["--roost", "/nowhere"],
        ["--roost", ""],
    ] {
        refuses("scripts/chaos", &options);
    }
}

#[test]
fn fidelity_refuses_wrong_words_at_once() {
    for options in [
        ["--only", "F0"],
        ["--only", ""],
        ["--seeds", "1"],
        ["--jobs", "0"],
        ["--json", "/nowhere/figures.json"],
        ["--roost", "'"],
    ] {
        refuses("scripts/fidelity", &options);
    }
}

/// Its verdicts, on figures that are given.
#[test]
fn fidelity_knows_its_statistics() {
    let output = top("scripts/fidelity", &["--self-test"]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}
