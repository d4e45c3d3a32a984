# SPDX-License-Identifier: GPL-2.0-only
"""Boots a guest for each scheduler under test and records its output. A boot that ended well
before, with the same bytes (memory.py), is not done again: what it printed is judged again."""
import shlex
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(TOP / "scripts/guest"))
from guest_tests import FAST_KERNEL    # noqa: E402
from lab import Boot, SHAPES, Image, Kernel, LabError, Qemu, boot, compile_static, topology, topology_word    # noqa: E402,F401
from memory import Memory, key    # noqa: E402
from record import Record    # noqa: E402

KEPT = TOP / "target/chaos"
# Host seconds allowed for each second of the guest, and for the work around it, on a busy host. A
# guest that hangs ends itself (chaos.c).
STRETCH, AROUND_S = 20, 900
PROGRESS_S = 30
PROGRAMS = ("stress-ng", "hackbench")
HELPERS = ("hog", "forks", "toggle", "totals")
# Suppresses messages of the kernel that come because the guest is this slow, and only concern the
# emulator.
KERNEL = f"{FAST_KERNEL} nowatchdog"


@dataclass(frozen=True)
class Subject:
    """A scheduler under test."""
    name: str
    under: str              # roost, peer or eevdf
    program: str = ""
    command: str = ""       # in the guest


def subject(name, text=""):
    """TEXT: a program and its options; none: the kernel's own scheduler."""
    if not text:
        return Subject(name, "eevdf")
    path, *options = shlex.split(text)
    if not Path(path).is_file():
        what_to_do = ("build it (cargo build --release), or name another with --roost"
                      if name == "roost" else "name the file of a scheduler")
        raise LabError(f"{path} is not there: {what_to_do}")
    if name == "roost":
        options = ["--freq-source", "/run/chaos/freqs", *options]
        return Subject(name, "roost", path, shlex.join(["scx_roost", *options]))
    return Subject(name, "peer", path, shlex.join([Path(path).name, *options]))


class Guests:
    def __init__(self, kernel, shape, say, quiet=False, recalls=True):
        """quiet: print nothing while a guest runs. recalls: False does each boot."""
        self.memory, self.recalls = Memory(), recalls
        self.kernel, self.shape, self.say, self.quiet = Kernel.get(kernel), shape, say, quiet
        self.qemu, self.cpus = Qemu.for_tests(), topology(shape).online
        self.common = Image()
        for program in PROGRAMS:
            self.common.program(program)
        for name in HELPERS:
            exe = compile_static(TOP / f"tests/guest/{name}.c", TOP / "target/guest" / name)
            self.common.program(exe)
        self.common.program(compile_static(HERE / "chaos.c", TOP / "target/guest/chaos"))
        self.common.file(HERE / "events", "chaos/events")
        self.common.file(HERE / "job", "job")

    def image(self, subject, plan):
        image = Image(self.kernel)
        image.files.update(self.common.files)
        if subject.program:
            image.program(subject.program, f"bin/{subject.command.split()[0]}")
        texts = {"under": subject.under, "command": subject.command, "plan": plan.text(),
                 "seconds": str(plan.seconds)}
        for name, text in texts.items():
            image.data(f"chaos/{name}", text.encode())
        return image

    def run(self, subject, plan, seed, wanted=None, keep=True):
        """wanted: says of a record whether it is as it should be; only then is the boot remembered
        (default: of scx_roost if it is good, else always). keep: leave a log of one that is not."""
        wanted = wanted or (Record.good if subject.under == "roost" else lambda _: True)
        good = lambda record: record.ended and wanted(record)                     # noqa: E731
        image = self.image(subject, plan)
        known = self.key(image, seed)
        record = self._recalled(known, subject, seed)
        if record and good(record):
            return record
        record, progress, lines = Record(subject.name, seed), Progress(subject, self.say), []

        def hear(line):
            lines.append(line)
            record.feed(line)
            if not self.quiet:
                progress.hear(line)

        r = self.boot(image, plan, seed, hear)
        record.finish(r.wall_s, r.timed_out)
        if good(record) and not r.retried and known == self.key(image, seed):
            printed = [line for line in lines if line.startswith("::")]
            self.memory.keep(known, {"lines": printed, "host_s": record.host_s})
        else:
            self.memory.forget(known)
        if keep and not good(record):
            self.keep(record, lines, r)
        return record

    def boot(self, image, plan, seed, hear):
        return boot(self.kernel, image, self.shape, "icount", self.qemu, seed=seed % 28,
                    append=KERNEL, limit_s=AROUND_S + STRETCH * plan.seconds, on_line=hear)

    def key(self, image, seed):
        return key(self.kernel, image, self.shape, "icount", self.qemu, KERNEL, seed % 28)

    def _recalled(self, known, subject, seed):
        """The record of the same boot, when it was done before; None: it was not."""
        kept = self.recalls and self.memory.recall_lines(known)
        if not kept:
            return None
        record = Record(subject.name, seed, remembered=known)
        lines, host_s = kept
        for line in lines:
            record.feed(line)
        record.finish(host_s)
        return record

    def keep(self, record, lines, r):
        KEPT.mkdir(parents=True, exist_ok=True)
        path = KEPT / f"seed-{record.seed}-{record.name}.log"
        path.write_text("\n".join([*lines, "", "the kernel's log", r.kernel_log]))
        self.say(f"{record.name}: what guest, daemon and kernel said is in {path.relative_to(TOP)}")


class Progress:
    """Prints a line now and then, and failures as they come: the first few of each watch."""
    EACH = 3

    def __init__(self, subject, say):
        self.name, self.say, self.begin = subject.name, say, time.monotonic()
        self.last, self.told = self.begin, Counter()
        self.judged = subject.under == "roost"

    def hear(self, line):
        head, *words = line.split()[:3] or [""]
        if head == "::ejected":
            self.say(f"{self.name}: {line[2:]}")
        elif head == "::bad" and self.judged:
            self.told[words[0]] += 1
            if self.told[words[0]] <= self.EACH:
                more = " (and so on)" if self.told[words[0]] == self.EACH else ""
                self.say(f"{self.name}: {line[2:]}{more}")
        elif head == "::event" and time.monotonic() - self.last > PROGRESS_S:
            self.last = time.monotonic()
            self.say(f"{self.name}: {words[0]} s of the guest after "
                     f"{self.last - self.begin:.0f} s of the host")
