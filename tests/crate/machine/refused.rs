// SPDX-License-Identifier: GPL-2.0-only
//! Machines that cannot be scheduled or read, and the error messages.

use super::*;

#[test]
fn a_root_that_is_none() {
    let empty = tempfile::tempdir().unwrap();
    let error = format!("{:#}", Machine::read(empty.path()).unwrap_err());
    assert!(
        error.contains("devices/system/cpu: No such file or directory"),
        "{error}"
    );
}

#[test]
fn more_cpus_than_are_handled() {
    let tree = Tree::new(&[0], &[0]);
    tree.write("devices/system/cpu/possible", "0-1024");
    assert!(
        error(&tree).contains("beyond the 1024 CPUs"),
        "{}",
        error(&tree)
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn garbage_names_the_file_and_what_is_expected() {
    let cpu0 = "devices/system/cpu/cpu0";
    for (path, text, expected) in [
        (
            "devices/system/cpu/possible".to_string(),
            "all",
            "expected a list of CPUs such as '0-3,8'",
        ),
        (
            "devices/system/cpu/online".to_string(),
            "",
            "expected at least one CPU",
        ),
        (
            "devices/system/cpu/online".to_string(),
            "0-8",
            "names CPU 8, but",
        ),
        (
            "devices/system/node/node0/cpulist".to_string(),
            "x",
            "a list of CPUs such as",
        ),
        (
            format!("{cpu0}/topology/core_cpus_list"),
            "1",
            "does not name CPU 0 itself",
        ),
        (
            format!("{cpu0}/topology/core_cpus_list"),
            "0",
            "CPUs 1 and 0 are threads of one core",
        ),
        (
            format!("{cpu0}/topology/core_cpus_list"),
            "0-8",
            "expected a core of at most 8",
        ),
        (
            format!("{cpu0}/cache/index3/shared_cpu_list"),
            "4-7",
            "does not name CPU 0 itself",
        ),
        (
            format!("{cpu0}/cpu_capacity"),
            "0",
            "expected a capacity of 1 to 1024",
        ),
        (
            format!("{cpu0}/cpu_capacity"),
            "fast",
            "expected a capacity of 1 to 1024",
        ),
    ] {
        let tree = if text == "0-8" && path.ends_with("core_cpus_list") {
            Shape {
                nodes: 1,
                llcs: 1,
                cores: 1,
                threads: 9,
                numbering: Numbering::Adjacent,
            }
            .tree()
        } else {
            SMALL_SMT.tree()
        };
        tree.write(&path, text);
        let error = error(&tree);
        assert!(error.contains(expected), "{path} '{text}': {error}");
        assert!(error.contains(tree.root().to_str().unwrap()), "{error}");
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    for path in [
        "devices/system/cpu/online",
        "devices/system/cpu/cpu0/cpu_capacity",
        "devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
    ] {
        let tree = SMALL_SMT.tree();
        tree.capacity(0, "1024");
        // A folder in place of a file: root could read a file without permissions.
        std::fs::create_dir(tree.remove(path)).unwrap();
        let error = error(&tree);
        assert!(
            error.contains("cannot read") && error.contains(path),
            "{error}"
        );
    }
}
