# SPDX-License-Identifier: GPL-2.0-only
"""Plants a fault for each watch; each must be found, and nothing else may be reported."""
from dataclasses import dataclass

from guests import subject
from plan import Event

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


def known_again(guests, first):
    """The same boot is not done again, and what is remembered of it is judged alike."""
    again = guests.run(subject("eevdf"), Fixed(FAULTS[0].events), 1, keep=False)
    other = guests.known(subject("eevdf"), Fixed(FAULTS[0].events, SECONDS + 1), 1)
    return (again.remembered and other != again.remembered
            and (again.bad, again.watches, again.probes) == (first.bad, first.watches, first.probes))


def run(guests, roost):
    """The number of faults that were not found."""
    missed = 0
    subjects = {"eevdf": subject("eevdf"), "roost": subject("roost", roost)}
    for fault in FAULTS:
        record = guests.run(subjects[fault.under], Fixed(fault.events), 1, keep=False)
        if guests.memory and fault is FAULTS[0]:
            good = known_again(guests, record)
            missed += not good
            print(f"{'ok' if good else 'not ok'} - a boot is known by its bytes", flush=True)
        wrong = verdict(fault, record)
        missed += bool(wrong)
        who = ", ".join(sorted(fault.watches)) or "none"
        known = f" (remembered, {record.remembered[:16]})" if record.remembered else ""
        print(f"{'not ok' if wrong else 'ok'} - planted: {fault.name}; to be found by: {who}"
              + known + (f". {wrong}" if wrong else ""), flush=True)
    print(f"{len(FAULTS)} faults planted, {missed} not as expected")
    return missed
