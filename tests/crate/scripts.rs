// SPDX-License-Identifier: GPL-2.0-only
//! The scripts and what they are told: help is printed and nothing done, a wrong word is refused before anything starts.

use std::process::{Command, Output};

fn top(program: &str, args: &[&str]) -> Output {
    Command::new(program)
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the script starts")
}

/// The one line on stderr, after exit status 1 and no word on stdout.
fn refusal(output: &Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(output.stdout.is_empty(), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr.trim_end().to_string()
}

#[test]
fn help_is_printed_and_nothing_done() {
    for script in ["scripts/run", "scripts/setup", "scripts/test"] {
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
        refusal(&top("scripts/run", &["--topology", "3"])),
        "run: no topology 3; there are: 1 2 4 8 16 2node 64"
    );
    assert!(refusal(&top("scripts/run", &["--topology"])).contains("one of: 1 2 4"));
    assert_eq!(
        refusal(&top("scripts/setup", &["--no-bulid"])),
        "setup: unknown option --no-bulid; --help shows them"
    );
}

/// The demo with the binary under test, stopped where it would look for a kernel to boot.
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

/// The matrix without these kernels, `gone` from the archive or `unreachable`: the kernels it would boot, and what is
/// recorded of the others.
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
    const ALL: &str = "6.16 6.18 6.19 7.0 7.1 7.3";
    const REQUIRED: &str = "--require-vm";
    for (why, missing, options, outcome) in [
        ("gone", "6.16", "", "5 skipped"),
        ("gone", "6.16", REQUIRED, "5 skipped"),
        ("gone", "6.16 6.18", "", "4 skipped skipped"),
        ("gone", "6.16 6.18", REQUIRED, "4 failed failed"),
        ("unreachable", "6.16", REQUIRED, "5 failed"),
        (
            "unreachable",
            ALL,
            "",
            &format!("0{}", " skipped".repeat(6)),
        ),
        (
            "unreachable",
            ALL,
            REQUIRED,
            &format!("0{}", " failed".repeat(6)),
        ),
    ] {
        let said = matrix(why, missing, options);
        assert_eq!(said, outcome, "{why} {missing} {options}");
    }
}
