// SPDX-License-Identifier: GPL-2.0-only
//! The doctor's findings on described machines.

use crate::support::{SMALL_SMT, Tree};
use scx_roost::doctor::{self, Check, Report, Verdict};
use scx_roost::machine::host::Host;
use scx_roost::wire::stats::source::CounterSource;
use std::fs;
use std::time::Duration;

/// A machine without findings.
struct Patient {
    tree: Tree,
    host: Host,
}

fn healthy() -> Patient {
    let tree = SMALL_SMT.tree();
    tree.write("kernel/sched_ext/state", "disabled");
    tree.write("kernel/sched_ext/hotplug_seq", "0");
    tree.write("fs/cgroup/cpu.max", "");
    tree.write("proc/sys/kernel/osrelease", "7.2.13");
    tree.write("proc/sys/kernel/ftrace_enabled", "1");
    tree.write("proc/sys/net/core/bpf_jit_enable", "1");
    tree.write("proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff");
    let host = Host::in_folder(tree.root());
    Patient { tree, host }
}

fn check<'a>(report: &'a Report, name: &str) -> &'a Check {
    report
        .checks
        .iter()
        .find(|c| c.name == name)
        .unwrap_or_else(|| panic!("no check '{name}'"))
}

fn check_start(host: &Host) -> anyhow::Result<()> {
    doctor::check_start(host, &CounterSource::default(), false)
}

/// The conditions that are active when a start begins.
fn conditions(host: &Host) -> Vec<String> {
    let source = CounterSource::default();
    doctor::check_start(host, &source, true).unwrap();
    let conditions = source.totals().conditions.into_iter();
    let active = conditions.filter(|(_, c)| c.active == 1);
    active.map(|(name, _)| name).collect()
}

fn start_error(host: &Host) -> String {
    let error = check_start(host).unwrap_err().to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}

#[test]
fn a_healthy_machine_can_run_it() {
    let patient = healthy();
    let report = doctor::examine(&patient.host);
    assert!(report.runnable, "{}", report.text());
    assert!(
        report.checks.iter().all(|c| c.verdict == Verdict::Ok),
        "{}",
        report.text()
    );
    assert_eq!(conditions(&patient.host), [""; 0]);
    assert!(
        check(&report, "machine")
            .found
            .starts_with("8 CPUs of 8 online")
    );
}

#[test]
fn no_sched_ext() {
    let patient = healthy();
    patient.tree.remove("kernel/sched_ext");
    assert!(!doctor::examine(&patient.host).runnable);
    assert_eq!(
        start_error(&patient.host),
        "this kernel has no sched_ext: Linux 7.2.13 is built without it, like Debian's 6.12: \
         boot Linux 6.12 or later, built with CONFIG_SCHED_CLASS_EXT=y (all checks: scx_roost doctor)"
    );
}

#[test]
fn another_scheduler_is_attached() {
    let patient = healthy();
    patient.tree.write("kernel/sched_ext/state", "enabled");
    patient
        .tree
        .write("kernel/sched_ext/root/ops", "bpfland_1.1.4");
    let error = start_error(&patient.host);
    assert!(
        error.starts_with("the sched_ext scheduler 'bpfland_1.1.4' is attached already"),
        "{error}"
    );
}

#[test]
fn our_own_scheduler_is_no_flaw_of_the_machine() {
    let patient = healthy();
    patient.tree.write("kernel/sched_ext/state", "enabled");
    patient
        .tree
        .write("kernel/sched_ext/root/ops", "roost_0.1.0");
    assert!(doctor::examine(&patient.host).runnable);
    assert!(start_error(&patient.host).contains("'roost_0.1.0' is attached already"));
}

#[test]
fn a_scheduler_that_is_leaving_is_waited_for() {
    let patient = healthy();
    let state = patient.tree.root().join("kernel/sched_ext/state");
    fs::write(&state, "disabling\n").unwrap();
    let leave = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        // Renamed into place: a file is empty for a moment while it is written. A file of sysfs
        // never is.
        let whole = state.with_extension("new");
        fs::write(&whole, "disabled\n").unwrap();
        fs::rename(&whole, &state).unwrap();
    });
    check_start(&patient.host).unwrap();
    leave.join().unwrap();
}

#[test]
fn privileges_are_needed() {
    let patient = healthy();
    for (caps, enough) in [
        ("0000000000000000", false),
        ("0000008000000000", false), // CAP_BPF alone
        ("000000c000000000", true),  // and CAP_PERFMON
        ("0000000000200000", true),  // CAP_SYS_ADMIN
    ] {
        patient
            .tree
            .write("proc/self/status", &format!("CapEff:\t{caps}"));
        assert_eq!(check_start(&patient.host).is_ok(), enough, "{caps}");
    }
}

#[test]
fn the_kept_privileges_are_named() {
    let patient = healthy();
    for (caps, kept) in [
        ("000001ffffffffff", "CAP_BPF and CAP_PERFMON"),
        ("0000000000200000", "CAP_SYS_ADMIN"),
    ] {
        let status = format!("CapEff:\t{caps}");
        patient.tree.write("proc/self/status", &status);
        let report = doctor::examine(&patient.host);
        let told = format!("this user may load a scheduler, which then keeps only {kept}");
        assert_eq!(check(&report, "privileges").found, told);
    }
}

#[test]
fn jit_and_tracer_are_needed() {
    let patient = healthy();
    patient.tree.write("proc/sys/net/core/bpf_jit_enable", "0");
    assert!(start_error(&patient.host).contains("sysctl net.core.bpf_jit_enable=1"));
    patient.tree.write("proc/sys/net/core/bpf_jit_enable", "1");
    patient.tree.remove("proc/sys/kernel/ftrace_enabled");
    assert!(start_error(&patient.host).contains("CONFIG_FUNCTION_TRACER=y"));
}

#[test]
fn a_realtime_kernel_runs_with_a_warning() {
    let patient = healthy();
    patient.tree.write("kernel/realtime", "1");
    let report = doctor::examine(&patient.host);
    assert!(report.runnable && patient.host.preempt_rt());
    assert_eq!(check(&report, "realtime").verdict, Verdict::Warn);
    assert_eq!(conditions(&patient.host), ["no_timers"]);
}

#[test]
fn a_kernel_without_sched_ext_is_distinguished_from_an_old_one() {
    let patient = healthy();
    patient.tree.remove("kernel/sched_ext");
    for (release, why) in [
        (
            "6.12.117+deb12-cloud-amd64",
            "Linux 6.12.117+deb12-cloud-amd64 is built without it",
        ),
        ("6.1.0-56-amd64", "Linux 6.1.0-56-amd64 is older than 6.12"),
        ("7.2.13", "is built without it"),
        ("odd", "its release is unknown"),
    ] {
        patient.tree.write("proc/sys/kernel/osrelease", release);
        let error = start_error(&patient.host);
        assert!(
            error.starts_with("this kernel has no sched_ext: ") && error.contains(why),
            "{error}"
        );
    }
}

/// Not every such kernel has the file `realtime`.
#[test]
fn a_realtime_kernel_is_known_by_its_version_too() {
    let patient = healthy();
    let version = |text| patient.tree.write("proc/sys/kernel/version", text);
    version("#1 SMP PREEMPT_DYNAMIC Debian 7.2.13-1");
    assert!(!patient.host.preempt_rt());
    version("#1 SMP PREEMPT_RT Debian 7.2.13-1");
    assert!(patient.host.preempt_rt());
}

#[test]
fn isolcpus_prevents_a_start_and_a_cpuset_does_not() {
    let patient = healthy();
    patient.tree.write("devices/system/cpu/isolated", "2-3");
    patient.tree.write("proc/cmdline", "quiet");
    check_start(&patient.host).unwrap();
    patient
        .tree
        .write("proc/cmdline", "quiet isolcpus=nohz,domain,2-3");
    assert!(start_error(&patient.host).contains("isolcpus=, which isolates CPUs 2-3"));
    // Without `domain` these flags isolate no CPU; here a cpuset does.
    for flags in ["nohz", "managed_irq", "nohz,managed_irq"] {
        let words = format!("quiet isolcpus={flags},2-3");
        patient.tree.write("proc/cmdline", &words);
        check_start(&patient.host).unwrap();
    }
    for value in ["2-3", "unknown,2-3"] {
        let words = format!("quiet isolcpus={value}");
        patient.tree.write("proc/cmdline", &words);
        start_error(&patient.host);
    }
    patient.tree.write("devices/system/cpu/isolated", "");
    check_start(&patient.host).unwrap();
}

#[test]
fn groups_that_lose_their_limit_are_listed_once() {
    let patient = healthy();
    patient
        .tree
        .write("fs/cgroup/a.slice/cpu.max", "50000 100000");
    patient
        .tree
        .write("fs/cgroup/a.slice/b/cpu.max", "max 100000");
    patient
        .tree
        .write("fs/cgroup/a.slice/b/c/cpu.max", "300000 100000");
    let report = doctor::examine(&patient.host);
    let check = check(&report, "cpu.max");
    assert!(!report.runnable);
    assert_eq!(conditions(&patient.host), ["quota_ignored"]);
    let error = start_error(&patient.host);
    for part in ["--ignore-cpu-max", "Linux 6.17", "/a.slice (50 %"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(
        check.items,
        ["/a.slice (50 % of a CPU)", "/a.slice/b/c (300 % of a CPU)"]
    );
    assert!(
        report
            .text()
            .contains("the CPU limit (cpu.max) of 2 control groups would not be enforced")
    );
}

#[test]
fn limits_are_enforced_where_the_kernel_tells_of_them() {
    let mut patient = healthy();
    patient
        .tree
        .write("fs/cgroup/a.slice/cpu.max", "50000 100000");
    patient.host.reports_limits = true;
    let report = doctor::examine(&patient.host);
    assert!(report.runnable);
    let found = &check(&report, "cpu.max").found;
    assert!(found.contains("1 control group is enforced"), "{found}");
    check_start(&patient.host).unwrap();
    // Without timers a slice cannot end with its budget.
    patient.tree.write("kernel/realtime", "1");
    let error = start_error(&patient.host);
    assert!(error.contains("PREEMPT_RT"), "{error}");
}

#[test]
fn a_long_list_of_groups_is_cut_in_the_text_only() {
    let patient = healthy();
    for i in 0..30 {
        patient
            .tree
            .write(&format!("fs/cgroup/g{i:02}/cpu.max"), "50000 100000");
    }
    let report = doctor::examine(&patient.host);
    assert_eq!(check(&report, "cpu.max").items.len(), 30);
    let text = report.text();
    assert!(
        text.contains("/g19 ") && !text.contains("/g20 ") && text.contains("and 10 more"),
        "{text}"
    );
}

#[test]
fn the_governor_is_named() {
    let patient = healthy();
    for (policy, governor) in [(0, "schedutil"), (4, "schedutil")] {
        let dir = format!("devices/system/cpu/cpufreq/policy{policy}");
        patient
            .tree
            .write(&format!("{dir}/scaling_governor"), governor);
        patient
            .tree
            .write(&format!("{dir}/scaling_driver"), "acpi-cpufreq");
    }
    let report = doctor::examine(&patient.host);
    assert_eq!(
        check(&report, "cpufreq").found,
        "governor schedutil, driver acpi-cpufreq: --cpuperf auto follows each CPU's utilisation"
    );
}

#[test]
fn a_sysfs_that_cannot_be_understood() {
    let patient = healthy();
    patient.tree.write("devices/system/cpu/online", "many");
    let error = start_error(&patient.host);
    assert!(
        error.contains("online reads 'many': expected a list of CPUs such as '0-3,8'"),
        "{error}"
    );
}

#[test]
fn a_doubt_about_the_machine_is_a_warning() {
    let patient = healthy();
    for cpu in 4..8 {
        let path = format!("devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list");
        patient
            .tree
            .write(&path, if cpu < 6 { "0-7" } else { "6-7" });
    }
    let report = doctor::examine(&patient.host);
    let machine = check(&report, "machine");
    assert_eq!((report.runnable, machine.verdict), (true, Verdict::Warn));
    assert_eq!(
        machine.items,
        [
            "the files of CPUs 4-5 say that CPUs 0-7 share an L3, those of CPUs 0-3,6-7 say \
          otherwise: the smaller groups count"
        ]
    );
    check_start(&patient.host).unwrap();
}

/// The lines of CPUs 0 to 7, of which two are a core: name and map of each wider domain.
fn schedstat(version: usize, wider: impl Fn(usize) -> String) -> String {
    let cpu = |cpu| {
        let core = 3 << (cpu / 2 * 2);
        format!("cpu{cpu} 0 0 0\ndomain0 SMT {core:02x} 0 0\n{}", wider(cpu))
    };
    let cpus: String = (0..8).map(cpu).collect();
    format!("version {version}\ntimestamp 1\n{cpus}")
}

#[test]
fn the_domains_of_the_kernel_are_a_second_witness() {
    let patient = healthy();
    let domains = |text: &str| {
        patient.tree.write("proc/schedstat", text);
        let report = doctor::examine(&patient.host);
        let check = report.checks.into_iter().find(|c| c.name == "domains");
        check.map(|c| (c.verdict, c.items.join("; ")))
    };
    let llc = |cpu: usize| if cpu < 4 { "0f" } else { "f0" };
    let agrees = Some((Verdict::Ok, String::new()));
    let whole = |cpu| format!("domain1 MC {} 0\ndomain2 PKG ff 0\n", llc(cpu));
    assert_eq!(domains(&schedstat(17, whole)), agrees);
    assert_eq!(domains(&schedstat(16, whole)), None);
    // A partition of CPUs 2 to 7.
    let part = |cpu| match cpu {
        2..4 => "domain1 PKG fc 0\n".to_string(),
        _ => format!("domain1 MC {} 0\ndomain2 PKG fc 0\n", llc(cpu)),
    };
    let partition = schedstat(17, part);
    let others = partition.find("cpu2").unwrap();
    assert_eq!(
        domains(&format!("version 17\n{}", &partition[others..])),
        agrees
    );
    let one = |_| "domain1 MC ff 0\n".to_string();
    let differ = "CPUs 0-3 here, CPUs 0-7 for the kernel; CPUs 4-7 here, CPUs 0-7 for the kernel";
    let warns = |items: &str| Some((Verdict::Warn, items.to_string()));
    assert_eq!(domains(&schedstat(17, one)), warns(differ));
    let none = |_| "domain1 PKG ff 0\n".to_string();
    let cores = domains(&schedstat(17, none)).unwrap().1;
    assert!(
        cores.starts_with("CPUs 0-3 here, CPUs 0-1 for the kernel; "),
        "{cores}"
    );
    // Neither knows of a cache.
    for cpu in 0..8 {
        patient
            .tree
            .remove(&format!("devices/system/cpu/cpu{cpu}/cache"));
    }
    assert_eq!(domains(&schedstat(17, none)), agrees);
    assert_eq!(domains(&schedstat(17, one)), agrees);
    assert_eq!(domains(&schedstat(17, whole)).unwrap().0, Verdict::Warn);
}

#[test]
fn json_says_what_text_says() {
    let patient = healthy();
    patient.tree.remove("kernel/sched_ext");
    let report = doctor::examine(&patient.host);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["runnable"], false);
    assert_eq!(
        json["checks"].as_array().unwrap().len(),
        report.checks.len()
    );
    assert_eq!(json["checks"][2]["verdict"], "fail");
}

#[test]
fn a_kernel_that_is_locked_down_is_named() {
    let patient = healthy();
    let lockdown = "kernel/security/lockdown";
    patient
        .tree
        .write(lockdown, "none [integrity] confidentiality");
    assert!(doctor::examine(&patient.host).runnable);
    patient
        .tree
        .write(lockdown, "none integrity [confidentiality]");
    assert!(start_error(&patient.host).contains("locked down for confidentiality"));
    let line = "ro lockdown=confidentiality quiet";
    patient.tree.write("proc/cmdline", line);
    patient
        .tree
        .write(lockdown, "[none] integrity confidentiality");
    assert!(doctor::examine(&patient.host).runnable);
    fs::remove_file(patient.tree.root().join(lockdown)).unwrap();
    assert!(!doctor::examine(&patient.host).runnable);
}

/// A load is the last check: what it finds decides.
#[test]
fn a_refused_load_is_a_failure() {
    let mut report = doctor::examine(&healthy().host);
    report.add(doctor::loads(Ok(Ok(Duration::from_millis(7)))));
    assert!(report.runnable && report.text().contains("nothing was attached"));
    let refused =
        anyhow::anyhow!("Invalid argument (os error 22)").context("the kernel rejects it");
    report.add(doctor::loads(Ok(Err(refused))));
    assert!(!report.runnable && report.text().contains("Invalid argument"));
}

#[test]
fn a_limit_is_no_refusal_of_the_kernel() {
    let low = anyhow::anyhow!("the limit of open files is 24").context("cannot load");
    let check = doctor::loads(Err(low));
    let text = "cannot load: the limit of open files is 24";
    assert_eq!((check.verdict, &*check.found), (Verdict::Fail, text));
}
