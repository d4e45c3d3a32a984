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
from lab import Image, Kernel, LabError, Qemu, boot, compile_static, say, topology    # noqa: E402
from memory import Memory, key    # noqa: E402
from record import Record    # noqa: E402

KEPT = TOP / "target/chaos"
# Host seconds allowed for each second of the guest, and for the work around it, on a busy host. A
# guest that hangs ends itself (chaos.c).
STRETCH, AROUND_S = 20, 900
PROGRESS_S = 30
HELPERS = ("hog", "forks", "toggle", "totals")
# Suppresses messages of the kernel that come because the guest is this slow, and only concern the
# emulator.
KERNEL = f"{FAST_KERNEL} nowatchdog"


@dataclass(frozen=True)
class Subject:
    """A scheduler under test."""
    name: str               # roost or eevdf
    program: str = ""
    command: str = ""       # in the guest


EEVDF = Subject("eevdf")


def roost(text):
    """TEXT: the program and its options."""
    try:
        path, *options = shlex.split(text)
    except ValueError as e:
        raise LabError(f"{text!r}: a program and its options are wanted, as one word") from e
    if not Path(path).is_file():
        raise LabError(f"{path} is not there: build it (cargo build --release), or name another file")
    return Subject("roost", path, shlex.join(["scx_roost", "--freq-source", "/run/chaos/freqs", *options]))


class Guests:
    def __init__(self, kernel, shape, quiet=False, recalls=True):
        """quiet: print nothing while a guest runs. recalls: False does each boot."""
        self.memory, self.recalls = Memory(), recalls
        self.kernel, self.shape, self.quiet = Kernel.get(kernel), shape, quiet
        self.qemu, self.cpus = Qemu.for_tests(), topology(shape).online
        self.common = Image()
        self.common.program("stress-ng")
        for name in HELPERS:
            self.common.program(compile_static(TOP / f"tests/guest/{name}.c", TOP / "target/guest" / name))
        self.common.program(compile_static(HERE / "chaos.c", TOP / "target/guest/chaos"))
        self.common.file(HERE / "events", "chaos/events")
        self.common.file(HERE / "job", "job")

    def image(self, subject, plan):
        image = Image(self.kernel)
        image.files.update(self.common.files)
        if subject.program:
            image.program(subject.program, "bin/scx_roost")
        texts = {"under": subject.name, "command": subject.command, "plan": plan.text(),
                 "seconds": str(plan.seconds)}
        for name, text in texts.items():
            image.data(f"chaos/{name}", text.encode())
        return image

    def run(self, subject, plan, seed, wanted=None, keep=True):
        """wanted: says of a record whether it is as it should be; only then is the boot remembered
        (default: of scx_roost if it is good, else always). keep: leave a log of one that is not."""
        wanted = wanted or (Record.good if subject.name == "roost" else lambda _: True)
        good = lambda record: record.ended and wanted(record)                     # noqa: E731
        image = self.image(subject, plan)
        known = self.key(image, seed)
        record = self._recalled(known, subject, seed)
        if record and good(record):
            return record
        record, progress, lines = Record(subject.name, seed), Progress(subject), []

        def hear(line):
            lines.append(line)
            record.feed(line)
            if not self.quiet:
                progress.hear(line)

        r = self.boot(image, plan, seed, hear)
        record.finish(r.wall_s, r.timed_out)
        printed = [line for line in lines if line.startswith("::")]
        self.memory.settle(known, good(record) and not r.retried and known == self.key(image, seed),
                           {"lines": printed, "host_s": record.host_s})
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
        def read(kept):
            record = Record(subject.name, seed, remembered=known)
            for line in kept["lines"]:
                record.feed(str(line))
            return record.finish(float(kept["host_s"]))

        return self.memory.recall(known, read) if self.recalls else None

    def keep(self, record, lines, r):
        KEPT.mkdir(parents=True, exist_ok=True)
        path = KEPT / f"seed-{record.seed}-{record.name}.log"
        path.write_text("\n".join([*lines, "", "the kernel's log", r.kernel_log]))
        say(f"{record.name}: what guest, daemon and kernel said is in {path.relative_to(TOP)}")


class Progress:
    """Prints a line now and then, and failures as they come: the first three of each watch."""

    def __init__(self, subject):
        self.subject, self.begin, self.told = subject, time.monotonic(), Counter()
        self.last = self.begin

    def hear(self, line):
        head, word, *_ = [*line.split(), "", ""]
        if head == "::ejected" or head == "::bad" and self.subject.name == "roost":
            self.told[word] += 1
            if self.told[word] <= 3:
                say(f"{self.subject.name}: {line[2:]}")
        elif head == "::event" and time.monotonic() - self.last > PROGRESS_S:
            self.last = time.monotonic()
            say(f"{self.subject.name}: {word} s of the guest after {self.last - self.begin:.0f} s of the host")
