# SPDX-License-Identifier: GPL-2.0-only
"""Plants a fault for each watch; each must be found, and nothing else may be reported. Also tests,
with boots that are only acted, which of them are remembered."""
import tempfile
from dataclasses import dataclass
from pathlib import Path

from guests import EEVDF, Guests, Memory, Subject, roost
from lab import Boot, topology
from plan import Event
from sums import Sums

SECONDS = 8


def at(ms, command):
    return Event(ms, "plant", command)


@dataclass(frozen=True)
class Fault:
    name: str
    watches: frozenset      # those that must find it; all others must stay silent
    events: tuple
    under: str = "eevdf"    # faults that need no scheduler are found faster without one


FAULTS = (
    # Real-time tasks cause the wait, so nothing must be found.
    Fault("tasks that wait for a real-time hog", frozenset(),
          (at(500, "pinned 7 n=2,cpus=1"), at(600, "real_time 1 50 6"))),
    # Most of these tasks do not run while the real-time tasks do. Nor does the watcher: when it
    # looks again, the real-time tasks are gone.
    Fault("tasks that wait for real-time tasks that end before the watcher's next look",
          frozenset(), (at(500, "pinned 7 n=450,cpus=1"),
                        at(2500, "real_time 0 99 4"), at(2500, "real_time 1 99 4"))),
    # Without scx_roost nothing bounds the wait of a light task: its share here is 3 of 15,363. All
    # are in one session, since the kernel's own scheduler gives each session the same share.
    Fault("a task of SCHED_IDLE beside fifteen hogs", frozenset({"waits"}),
          (at(500, "pinned 7 n=15,cpus=1 n=1,cpus=1,idle=1"),)),
    Fault("a warning, a task outside its mask, a sum that is off, a daemon that grows, "
          "a lost context, a machine that hangs",
          frozenset({"kernel", "affinity", "sums", "memory", "counters", "guest"}),
          tuple(at(500, f"plant {what}")
                for what in ("log", "affinity", "sums", "memory", "counter", "hang"))),
    # The kernel log also reports that SysRq ended a scheduler.
    Fault("SysRq-S", frozenset({"enabled", "kernel"}), (at(2000, "plant sysrq"),), "roost"),
    Fault("a daemon that is killed", frozenset({"enabled"}), (at(2000, "plant gone"),), "roost"),
)


@dataclass(frozen=True)
class Fixed:
    """A plan of these events and no others."""
    events: tuple
    seconds: int = SECONDS

    def text(self):
        return "".join(f"{e.line()}\n" for e in self.events)


def verdict(fault, record):
    """'' or what is wrong."""
    found = {watch for watch, _, _ in record.bad}
    missed, more = fault.watches - found, found - fault.watches
    if missed:
        return f"not found by: {', '.join(sorted(missed))}"
    if more:
        return f"{', '.join(sorted(more))} spoke too: {[b for b in record.bad if b[0] in more][:2]}"
    return ""


class Acted(Guests):
    """Guests that print LINES at each boot, and remember in FOLDER."""

    def __init__(self, folder, lines, recalls=True, repeated=False):
        self.memory, self.recalls, self.quiet = Memory(folder), recalls, True
        self.lines, self.repeated, self.boots = lines, repeated, 0

    def image(self, subject, plan):
        return None

    def key(self, image, seed):
        return "key"

    def boot(self, image, plan, seed, hear):
        self.boots += 1
        for line in self.lines:
            hear(line)
        return Boot(wall_s=1.0, retried=self.repeated)


GOOD, BAD = ["::ran 8 8", "::end 0"], ["::bad waits 3.0 a task", "::end 0"]
RUN, PEER = ((subject, Fixed(()), 1) for subject in (Subject("roost"), EEVDF))


def boots(lines, *runs, **how):
    """How many of these runs boot, if each boot prints these lines."""
    with tempfile.TemporaryDirectory() as folder:
        guests = Acted(Path(folder), lines, **how)
        for run in runs:
            guests.run(*run, keep=False)
        return guests.boots


def judged_as_before():
    with tempfile.TemporaryDirectory() as folder:
        guests = Acted(Path(folder), BAD)
        first, second = (guests.run(*PEER, keep=False) for _ in range(2))
        return second.remembered and first.bad == second.bad == [("waits", 3.0, "a task")]


def broken_is_unknown():
    """A kept file without the output of a whole boot is no boot, whichever scheduler it is of."""
    with tempfile.TemporaryDirectory() as folder:
        guests = Acted(Path(folder), GOOD)
        kept = ("", "[]", '{"lines": "::end 0", "host_s": 1}', '{"lines": [], "host_s": 1}')
        for text in kept:
            (Path(folder) / "key").write_text(text)
            guests.run(*PEER, keep=False)
        return guests.boots == len(kept)


def memory_rules():
    """What is remembered, as (claim, holds)."""
    refused = (*RUN, lambda _: False)
    return (("a good boot is remembered", boots(GOOD, RUN, RUN) == 1),
            ("a bad one of scx_roost is not", boots(BAD, RUN, RUN) == 2),
            ("of the kernel's own scheduler it is", boots(BAD, PEER, PEER) == 1),
            ("one that did not end is not", boots(GOOD[:1], RUN, RUN) == 2),
            ("one that QEMU spoilt and that was repeated is not", boots(GOOD, RUN, RUN, repeated=True) == 2),
            ("without memory each boot is done", boots(GOOD, RUN, RUN, recalls=False) == 2),
            ("a broken file is no boot", broken_is_unknown()),
            ("what is remembered is judged as it was", judged_as_before()),
            ("one that is judged bad now is done again and forgotten", boots(GOOD, RUN, refused, RUN) == 3))


def online():
    """A plan must not use CPUs that the kernel is told to leave alone."""
    words = ("12", "12+maxcpus=5", "12+nr_cpus=9", "2+maxcpus=5", "3x2x2+nosmt", "6+spare=6")
    return [topology(word).online for word in words] == [12, 5, 9, 2, 6, 6]


def run(guests, program):
    """The exit status: 0 if all claims hold and all faults were found."""
    sums = Sums()
    for claim, holds in memory_rules():
        sums.say(holds, f"memory: {claim}")
    sums.say(online(), "plan: only of CPUs that are online")
    subjects = {"eevdf": EEVDF, "roost": roost(program)}
    for fault in FAULTS:
        record = guests.run(subjects[fault.under], Fixed(fault.events), 1, keep=False,
                            wanted=lambda r, fault=fault: not verdict(fault, r))
        wrong = verdict(fault, record)
        watches = ", ".join(sorted(fault.watches)) or "none"
        known = f" (remembered, {record.remembered[:16]})" if record.remembered else ""
        sums.say(not wrong, f"planted: {fault.name}; to be found by: {watches}{known}{wrong and f'. {wrong}'}")
    return sums.end()
