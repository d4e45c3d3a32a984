#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Run tests/guest/*.sh in the virtual machine.

A test is a shell script whose first lines give its requirements:

  # topology: 8         the machines (lab.py boot --help); several: '1 4 3x5x2', on one line or more
  # accel: tcg          or icount, where time is counted in instructions; up to 64 CPUs
  # timeout: 120        guest seconds
  # quick: yes          also run on every kernel of the matrix; '6.16 7.3': on these. Of several
                        machines only on 8
  # odd: 3 3x2x2        these of the machines also on the oldest and the newest kernel of the matrix
  # own-boot: yes       it shares no boot
  # twice: yes          its own boot, done twice: both must print the same bytes
  # kernels: 7.1        only on that kernel, with the matrix
  # long: yes           only where it is named, or with --every-kernel; machines: on these
  # always: yes         on each commit; machines: on these. Others have a turn on one in SHARE, by
                        its hash, and run where a long test does; each machine has a turn of its own
  # append: WORDS       put on the kernel's command line
  # rustland: 4         another test, rustland-NAME, is the same with --backend rust, on that
                        machine; it takes long, and needs rustland
  # needs: policy       the native tests of the policy, and their tables
  # needs: faults       the scheduler with faults too, as scx_roost_spin and scx_roost_old
  # needs: embed        examples/embed.rs
  # needs: rustland     the scheduler with the cargo feature rustland, and with --backend rust
  # needs: replay       roost-replay
  # needs: rt-app       that, and the files tests/guest/*.json
  # needs: page         docs/tutorial/first-hour.md
  # needs: systemd      it is the first process, and has the unit of contrib/; with own-boot
  # needs: package      systemd, dpkg and two versions of the Debian package

Tests that want the same machine share a boot. What a test needs may be named instead of the test.
The last line is 'N passed, N failed, N skipped'.

  guest_tests.py nice shapes -v        these two, with all that they print
  guest_tests.py --kernel 6.18 load    on another kernel
  guest_tests.py rustland              all with --backend rust
  guest_tests.py --matrix              the quick ones on every kernel of the matrix
"""
import argparse
import concurrent.futures
import dataclasses
import difflib
import functools
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import types
import zlib
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import package                                                              # noqa: E402
import systemd                                                              # noqa: E402
from lab import (DEFAULT_PREFIX, MATRIX, NEWEST, OLDEST, Image, Kernel, LabError, NoSuchKernel, Qemu,    # noqa: E402
                 boot, compile_static, topology, topology_word)
from image import PROGRAM_MODE                                               # noqa: E402
from memory import Memory, key                                              # noqa: E402
from sums import Sums                                                       # noqa: E402

TOP = Path(__file__).resolve().parents[2]
TESTS = TOP / "tests/guest"
TOOLS = ("stress-ng", "hackbench", "rtcwake")
TESTS_PER_BOOT = 9
# All of them take longer than the CI may.
SHARE = 6
# Needs for which systemd is the first process.
OF_SYSTEMD = ("systemd", "package")
RUSTLAND = "rustland"
# A run decides in userspace; commands are as they are.
IN_RUST = b"""#!/bin/sh
case "$1" in '' | -*) exec rustland --backend rust "$@" ;; esac
exec rustland "$@"
"""
# Host seconds for a boot, and for the clean-up between two tests.
BOOT_LIMIT_S = 300
# With more, a boot with counted instructions takes over ten minutes.
ICOUNT_CPUS = 64
# TCG executes string instructions a byte at a time, so the kernel uses loops of moves instead. No
# SMAP switch at each access to user memory, and pages are not cleared twice. This halves the time
# of a load or fork. The tests of the kernel's cryptography are off: they cost as much as a load.
FAST_KERNEL = "clearcpuid=erms,fsrm,rep_good,smap init_on_alloc=0 cryptomgr.notests"
# Under icount the guest's second can last several of the host's.
ICOUNT_STRETCH = 4


@dataclass(frozen=True)
class Test:
    name: str
    topology: str
    accel: str
    timeout_s: int
    quick: str = ""             # kernels of the matrix that it runs on too: 'yes' is all of them, or prefixes
    usual: bool = True          # its machine has 8 CPUs, or is the test's only one
    odd: bool = False           # its machine is tried on the oldest and the newest kernel too
    own_boot: bool = False
    twice: bool = False
    kernel: str = ""            # prefix of the only kernel it is for
    long: bool = False
    needs: str = ""
    append: str = ""            # more words for the kernel's command line


@dataclass
class Outcome:
    name: str                   # what is printed: kernel, machine and test
    verdict: str                # passed, failed, skipped
    reason: str = ""
    output: list = field(default_factory=list)
    seconds: float = 0.0        # of the guest
    host_s: float = 0.0


def read_tests():
    """One Test for each script and topology it asks for."""
    out = []
    for path in sorted(TESTS.glob("*.sh")):
        if path.name == "lib.sh":
            continue
        head = {}
        for word, value in re.findall(r"^# ([a-z-]+): *(.*)$", path.read_text(), re.M):
            head[word] = f"{head[word]} {value}" if word == "topology" and word in head else value
        for key in ("topology", "accel", "timeout"):
            if key not in head:
                raise LabError(f"{path.name} has no line '# {key}: ...': add it below the licence line")
        shapes = head["topology"].split()
        odd, long, always = (head.get(key, "").split() for key in ("odd", "long", "always"))
        for shape in [s for s in shapes + odd + long + always if s != "yes"]:
            try:
                topology(shape)
            except LabError as e:
                raise LabError(f"{path.name}: {e}") from e
            if shape not in shapes:
                raise LabError(f"{path.name}: '# topology:' lacks {shape} of '# odd:', '# long:' or '# always:'")
        for shape in shapes:
            yes = {key for key, value in head.items() if value == "yes"}
            turn = "always" in yes or shape in always or has_turn(f"{path.stem}/{shape}")
            late = "long" in yes or shape in long or not turn
            usual = shape in ("8", head["topology"])
            accel = head["accel"] if topology(shape).cpus <= ICOUNT_CPUS else "tcg"
            test = Test(path.stem, shape, accel, int(head["timeout"]),
                        head.get("quick", ""), usual, shape in odd, bool({"own-boot", "twice"} & yes), "twice" in yes,
                        head.get("kernels", ""), late, head.get("needs", ""), head.get("append", ""))
            out.append(test)
            if shape in head.get("rustland", "").split():
                name = f"{RUSTLAND}-{test.name}"
                out.append(dataclasses.replace(test, name=name, quick="", long=True, needs=RUSTLAND))
    return out


@functools.cache
def commit():
    """The hash of the tree's commit; without git ''."""
    git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=TOP, capture_output=True, text=True)
    return git.stdout.strip()


def has_turn(name):
    """Whether this commit is the one of SHARE that runs the test."""
    return commit() != "" and zlib.crc32(f"{commit()} {name}".encode()) % SHARE == 0


def script_of(test):
    """Over --backend rust it is the same script, with another scx_roost."""
    text = (TESTS / f"{test.name.removeprefix(f'{RUSTLAND}-')}.sh").read_bytes()
    return (b"PATH=/rustland:$PATH in_rust=1\n" if test.needs == RUSTLAND else b"") + text


def build_tools():
    """tests/guest/*.c and the workloads of scripts/bench, compiled for the guest."""
    sources = [*sorted(TESTS.glob("*.c")), TOP / "scripts/bench.d/guest.c"]
    return [compile_static(src, TOP / "target/guest" / src.stem) for src in sources]


def test_program(name, *command):
    """Builds a test or example of this name with cargo, for the guest to run."""
    # With the whole workspace, as the unit tests are: dependencies have the same features then.
    cmd = ["cargo", *command, name, "--workspace", "--release", "--locked", "--message-format=json"]
    out = subprocess.run(cmd, cwd=TOP, stdout=subprocess.PIPE, text=True)
    built = [m for m in map(json.loads, out.stdout.splitlines()) if m.get("executable")]
    exes = [m["executable"] for m in built if m["target"]["name"] == name]
    if out.returncode or not exes:
        raise LabError(f"{name} does not build: see the messages above")
    return exes[0]


class Contents:
    """The guests' files, built and read before the first boot: later edits and builds change no test."""

    def __init__(self, scheduler, tests, require):
        self.scripts = {t.name: script_of(t) for t in tests}
        needs = {t.needs for t in tests}
        # In each guest; and in those alone that need it.
        self.common, self.special = Image(), {need: Image() for need in ("policy", *OF_SYSTEMD)}
        if "policy" in needs:
            self.special["policy"].program(test_program("policy", "test", "--no-run", "--test"), "bin/policy")
            for table in sorted((TOP / "tests/cases").glob("*.txt")):
                self.special["policy"].file(table, f"tests/cases/{table.name}")
        self.common.program(scheduler, "bin/scx_roost")
        if "faults" in needs:
            faulty = test_program("faulty", "build", "--features", "faults", "--example")
            self.common.program(faulty, "bin/scx_roost_spin")
            self.common.program(faulty, "bin/scx_roost_old")
        if "embed" in needs:
            self.common.program(test_program("embed", "build", "--example"), "bin/embed")
        if RUSTLAND in needs:
            rustland = test_program(RUSTLAND, "build", "--features", RUSTLAND, "--example")
            self.common.program(rustland, "bin/rustland")
            self.common.data("rustland/scx_roost", IN_RUST, PROGRAM_MODE)
        if "rt-app" in needs:
            self.common.program("rt-app")
            self.common.program(test_program("roost-sim", "build", "--bin"), "bin/roost-sim")
            for file in sorted(TESTS.glob("*.json")):
                self.common.file(file, f"tests/{file.name}")
        if "replay" in needs:
            self.common.program(test_program("roost-replay", "build", "--bin"), "bin/roost-replay")
        if "page" in needs:
            self.common.file(TOP / "docs/tutorial/first-hour.md", "tests/first-hour.md")
        for program in (*TOOLS, *build_tools()):
            self.common.program(program)
        self.common.file(TESTS / "lib.sh", "tests/lib.sh")
        self.common.file(Path(__file__).resolve().parent / "run-tests", "job")
        if needs.intersection(OF_SYSTEMD):
            files = files_of_systemd(require)
            for need in OF_SYSTEMD:
                self.special[need].files.update(files)
        self.special["systemd"].file(TOP / "contrib/scx_roost.service", "etc/systemd/system/scx_roost.service")
        if "package" in needs:
            package.add(self.special["package"], scheduler)


def files_of_systemd(require):
    """If its packages are unavailable, the test skips itself and gives the reason."""
    image = Image()
    try:
        systemd.add(image)
    except LabError as e:
        if require:
            raise
        image = Image()
        image.data("tests/no-systemd", f"{e}\n".encode())
    return image.files


def image_for(kernel, contents, tests, times):
    image = Image(kernel)
    image.files.update(contents.common.files)
    for need in contents.special.keys() & {t.needs for t in tests}:
        image.files.update(contents.special[need].files)
    for name in {t.name for t in tests}:
        image.data(f"tests/{name}.sh", contents.scripts[name])
    image.data("tests/list", "".join(f"{t.name} {t.timeout_s}\n" for t in tests).encode())
    image.data("tests/accel", tests[0].accel.encode())
    image.data("tests/times", str(times).encode())
    return image


def split_into_boots(tests):
    groups = {}
    for t in tests:
        groups.setdefault((t.topology, t.accel, t.append, t.name if t.own_boot else ""), []).append(t)
    for group in groups.values():
        boots = -(-len(group) // TESTS_PER_BOOT)
        for i in range(boots):
            yield group[i::boots]


def expected_s(tests):
    """A rough measure of how long a boot lasts: the long ones begin first. Each CPU costs seconds to boot."""
    return (2 if tests[0].twice else 1) * (sum(t.timeout_s for t in tests) + 10 * topology(tests[0].topology).cpus)


class Run:
    """All tests of one call; boots run side by side, outcomes are printed as they come."""

    def __init__(self, contents, times, verbose, recalls):
        self.contents, self.times, self.verbose = contents, times, verbose
        self.recalls, self.memory, self.remembered = recalls, Memory(), 0
        self.qemu, self.outcomes, self.lock = Qemu.for_tests(), [], threading.Lock()

    def record(self, outcome):
        with self.lock:
            self.outcomes.append(outcome)
            mark = {"passed": "ok", "failed": "not ok", "skipped": "skip"}[outcome.verdict]
            why = f": {outcome.reason}" if outcome.reason else ""
            print(f"{mark} {outcome.name} ({outcome.seconds:.1f} s, host {outcome.host_s:.1f} s){why}", flush=True)
            if outcome.verdict == "failed" or self.verbose:
                for line in outcome.output:
                    print(f"    {line}", flush=True)

    def inputs(self, kernel, tests):
        """The arguments of a boot, for boot() and for the key of the memory."""
        image = image_for(kernel, self.contents, tests, self.times)
        append = f"{FAST_KERNEL} {tests[0].append}".strip()
        return kernel, image, tests[0].topology, tests[0].accel, self.qemu, append

    def boot_or_recall(self, kernel, tests):
        """A boot that has passed before, with the same bytes, is not repeated. A failed one is forgotten. A test
        whose boot is done twice compares two boots, so it always runs."""
        known = None if tests[0].twice else key(*self.inputs(kernel, tests))
        seconds = known and self.recalls and self.memory.recall(
            known, lambda kept: {t.name: float(kept[t.name]) for t in tests})
        label = f"{kernel.release} {tests[0].topology}/{tests[0].accel}"
        if seconds:
            for t in tests:
                self.remembered += 1
                self.record(Outcome(f"{label} {t.name}", "passed", f"remembered, {known[:16]}", [], seconds[t.name]))
            return
        mine = {}
        boots = self.boot_tests(kernel, tests, mine)
        if not known:
            return
        passed = {name: outcome.seconds for name, outcome in mine.items() if outcome.verdict == "passed"}
        good = boots == 1 and len(passed) == len(tests) and known == key(*self.inputs(kernel, tests))
        self.memory.settle(known, good, passed)

    def boot_tests(self, kernel, tests, mine):
        """One boot; a test that hangs it fails, and the later tests get another boot. mine: the outcomes, by test.
        The number of boots."""
        raced, boots = False, 0
        while tests:
            boots += 1
            first = tests[0]
            label = f"{kernel.release} {first.topology}/{first.accel}"
            sections = Sections(tests, lambda *section, label=label: self.judge(label, mine, *section))
            r = boot(*self.inputs(kernel, tests), limit_s=boot_limit_s(first), on_line=sections.feed, retry=False)
            done = sections.ended
            if done < len(tests) and r.hit_tcg_race() and not raced:
                print(f"# {label}: QEMU's int3 race spoilt {tests[done].name}: running it again, once", flush=True)
                raced = True
            elif done < len(tests):
                how = f"no end after {r.wall_s:.0f} s" if r.timed_out else "the guest stopped"
                self.record(Outcome(f"{label} {tests[done].name}", "failed", f"hang or crash: {how}",
                                    r.tail().splitlines(), host_s=r.wall_s))
                done += 1
            elif first.twice:
                self.compare(label, kernel, tests, r)
            tests = tests[done:]
        return boots

    def compare(self, label, kernel, tests, first):
        again = boot(*self.inputs(kernel, tests), limit_s=boot_limit_s(tests[0]) + test_limit_s(tests[0]))
        diff = list(difflib.unified_diff(first.lines, again.lines, "first boot", "second boot", lineterm="", n=0))
        self.record(Outcome(f"{label} {tests[0].name}: second boot prints the same", "failed" if diff else "passed",
                            f"{len(diff)} lines of difference" if diff else "", diff[:20], host_s=again.wall_s))

    def judge(self, label, mine, name, lines, rc, seconds, host_s):
        verdict, reason = verdict_of(lines, rc)
        mine[name] = Outcome(f"{label} {name}", verdict, reason, lines, seconds, host_s)
        self.record(mine[name])


def boot_limit_s(test):
    """Seconds of the host from the start to the first test, and from the last test to the end."""
    return BOOT_LIMIT_S * max(1, topology(test.topology).cpus // 50)


def test_limit_s(test):
    """Seconds of the host that a test may take: a guest that hangs is ended after one test's time, not all tests'."""
    stretch = ICOUNT_STRETCH if test.accel == "icount" else 1
    many_cpus = max(2 if topology(test.topology).cpus > 16 else 1, topology(test.topology).cpus // 25)
    return stretch * many_cpus * (test.timeout_s + 15)


class Sections:
    """Cuts the guest's output into tests, as it comes."""

    def __init__(self, tests, on_end):
        self.tests, self.on_end, self.ended, self.body = tests, on_end, 0, []
        self.begin = time.monotonic()

    def feed(self, line):
        """Where a test begins or ends: the seconds until the next such line."""
        if line.startswith("::test-begin "):
            self.body, self.begin = [], time.monotonic()
            return test_limit_s(self.tests[self.ended])
        if line.startswith("::test-end "):
            name, rc, seconds = line.split()[1:]
            self.ended += 1
            self.on_end(name, self.body, int(rc), float(seconds), time.monotonic() - self.begin)
            return boot_limit_s(self.tests[0])
        self.body.append(line)
        return None


def verdict_of(lines, rc):
    """A test passes if it checked something, nothing failed, and it reached its end."""
    bad = [line[7:] for line in lines if line.startswith("not ok ")]
    skipped = [line[7:] for line in lines if line.startswith("# skip ")]
    if bad:
        return "failed", bad[0].lstrip("- ")
    if rc:
        return "failed", f"the script ended with status {rc}"
    if skipped:
        return "skipped", skipped[0]
    if not any(line.startswith("ok ") for line in lines):
        return "failed", "it checked nothing"
    return "passed", ""


def choose(args):
    """(kernel prefix, tests) pairs of this call."""
    tests = read_tests()
    if args.test:
        unknown = set(args.test) - {t.name for t in tests} - {t.needs for t in tests}
        if unknown:
            raise LabError(f"no such guest test: {', '.join(sorted(unknown))}; --list shows them")
        tests = [t for t in tests if {t.name, t.needs} & set(args.test)]
    if args.topology:
        tests = [t for t in tests if topology(t.topology) == topology(args.topology)]
    if not args.test and not args.every_kernel:
        tests = [t for t in tests if not t.long]
    common = [t for t in tests if not t.kernel]
    special = [(t.kernel, [t]) for t in tests if t.kernel]
    if args.every_kernel:
        return [(k, common) for k in args.kernel or MATRIX] + special
    if args.matrix:
        def quick(kernel):
            wanted = {"yes", kernel}
            end = kernel in (OLDEST, NEWEST)
            return [t for t in common if t.usual and wanted & set(t.quick.split()) or end and t.odd]
        # The default kernel runs all of them anyway.
        return [(k, quick(k)) for k in args.kernel or MATRIX if k != DEFAULT_PREFIX] + special
    return [(k, common if not args.test else tests) for k in args.kernel or [DEFAULT_PREFIX]]


def plan_boots(run, plan, args):
    """(kernel, tests) of each boot. An unavailable kernel of the matrix is a skip; with --require-vm only one is,
    and only if the archive no longer has it."""
    boots, missing = [], []
    for prefix, tests in plan:
        try:
            kernel = Kernel.get(prefix)
            boots += [(kernel, part) for part in split_into_boots(tests)]
        except LabError as e:
            if not (args.matrix or args.every_kernel):
                raise
            missing.append((prefix, e))
    for prefix, e in missing:
        fine = not args.require_vm or (isinstance(e, NoSuchKernel) and len(missing) == 1 and boots)
        run.record(Outcome(f"kernel {prefix}", "skipped" if fine else "failed", str(e)))
    return boots


def parse_args():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("test", nargs="*", help="names of tests (default: all)")
    ap.add_argument("--kernel", action="append", help=f"version prefix (default {DEFAULT_PREFIX})")
    ap.add_argument("--matrix", action="store_true",
                    help=f"the quick tests on {', '.join(MATRIX)}, less {DEFAULT_PREFIX}")
    ap.add_argument("--every-kernel", action="store_true", help="all tests on each kernel of the matrix")
    ap.add_argument("--times", type=int, default=1,
                    help="factor for the time of random tests (shapes); reload repeats 50 times")
    ap.add_argument("--topology", type=topology_word, help="only tests that need this machine")
    ap.add_argument("--scheduler", default=str(TOP / "target/release/scx_roost"), help="the binary under test")
    ap.add_argument("--require-vm", action="store_true", help="of the matrix, at most one kernel may be missing")
    ap.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="guests side by side")
    ap.add_argument("--no-memory", action="store_true",
                    help="do all boots, also those that have passed before with the same bytes")
    ap.add_argument("--self-test", action="store_true", help="test the memory of boots that passed, and boot none")
    ap.add_argument("--list", action="store_true", help="show the tests and their requirements, and run none")
    ap.add_argument("-v", "--verbose", action="store_true", help="show what passing tests printed too")
    return ap.parse_args()


def self_test():
    """Each input of a boot, changed by a byte, is another key; only a boot that passed as a whole, at once, is kept."""
    sums = Sums()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        qemu = folder / "qemu"
        qemu.write_text("q")

        def inputs(kernel="k", content=b"a", shape="8", accel="icount", append="quiet"):
            image, vmlinuz = Image(), folder / f"vmlinuz-{kernel}"
            image.data("bin/program", content)
            vmlinuz.write_text(kernel)
            return Kernel("7.2", vmlinuz, None), image, shape, accel, Qemu((str(qemu),), (9, 0)), append

        first = key(*inputs())
        others = {"kernel": inputs(kernel="K"), "image": inputs(content=b"A"), "topology": inputs(shape="4"),
                  "arguments": inputs(append="quieT")}
        for what, other in others.items():
            sums.say(key(*other) != first, f"another byte of the {what} is another boot")
        sums.say(key(*inputs(), seed=1) != first, "another seed is another boot")
        sums.say(key(*inputs(accel="tcg")) is None, "without icount there is no key")
        remembered_boots(sums, folder, inputs())
        qemu.write_text("Q2")
        sums.say(key(*inputs()) != first, "another byte of QEMU is another boot")
    return sums.end()


def remembered_boots(sums, folder, inputs):
    """What Run stores and recalls of boots that are only acted."""
    good, failed = (1, "passed", "passed"), (1, "passed", "failed")
    tests = [Test(name, "8", "icount", 10) for name in ("one", "two")]

    def boots(*acts, tests=tests):
        """How many of these boots are done. Of each: how often QEMU starts, and the verdicts on the tests."""
        done = []

        def act(_kernel, tests, mine):
            done.append(now)
            mine.update({t.name: Outcome(t.name, verdict) for t, verdict in zip(tests, now[1:])})
            return now[0]

        run = types.SimpleNamespace(memory=Memory(Path(tempfile.mkdtemp(dir=folder))), remembered=0, boot_tests=act,
                                    inputs=lambda *_: inputs, record=lambda _: None)
        for now in acts:
            run.recalls = now == good
            Run.boot_or_recall(run, inputs[0], tests)
        return len(done)

    sums.say(boots(good, good) == 1, "a boot that passed is recalled")
    sums.say(boots(failed, good) == 2, "one that failed is not")
    sums.say(boots((1, "passed", "skipped"), good) == 2, "nor one that was skipped in part")
    sums.say(boots((2, "passed", "passed"), good) == 2, "nor one that took two boots")
    sums.say(boots(good, failed, good) == 3, "a failure forgets an earlier pass")
    compared = [dataclasses.replace(tests[0], twice=True)]
    sums.say(boots(good, good, tests=compared) == 2, "what compares two boots is always done")


def main():
    args = parse_args()
    if args.self_test:
        return self_test()
    try:
        plan = choose(args)
        left = sorted({f"{t.name}/{t.topology}" for t in read_tests() if t.long and t not in plan[0][1]})
        if left and not args.test:
            print(f"# left out because they take long, or left to other commits: {' '.join(left)}; "
                  "scripts/test --full runs them")
        if args.list:
            for _, tests in plan:
                for t in tests:
                    kind = "quick" if t.quick else "long" if t.long else ""
                    print(t.name, t.topology, t.accel, f"{t.timeout_s}s", kind)
            return 0
        contents = Contents(args.scheduler, [t for _, tests in plan for t in tests], args.require_vm)
        # A test that is named, or whose output is wanted, is done.
        recalls = not (args.no_memory or args.every_kernel or args.test or args.verbose)
        run = Run(contents, args.times, args.verbose, recalls)
        boots = plan_boots(run, plan, args)
        boots.sort(key=lambda b: -expected_s(b[1]))
        start = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for f in [pool.submit(run.boot_or_recall, *b) for b in boots]:
                f.result()
    except LabError as e:
        print(f"guest tests: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        os._exit(130)           # without waiting for the boots: QEMU ends with us
    counts = {v: sum(o.verdict == v for o in run.outcomes) for v in ("passed", "failed", "skipped")}
    for o in run.outcomes:
        if o.verdict == "failed":
            print(f"FAILED {o.name}: {o.reason}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.remembered:
        print(f"# {run.remembered} of the passed are remembered from boots with the same bytes; --no-memory repeats")
    print(f"# {len(boots)} boots, {time.monotonic() - start:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of CPU time")
    print(", ".join(f"{n} {v}" for v, n in counts.items()))
    return 1 if counts["failed"] or not run.outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
