# SPDX-License-Identifier: GPL-2.0-only
"""A guest's output as a Record: events by class, findings of watches."""
import re
from collections import Counter
from dataclasses import dataclass, field

# The watches, in the order of the table.
WATCHES = {
    "enabled": "still enabled, or back in time after what takes it away",
    "kernel": "no SCX error, no warning in the kernel's log",
    "waits": "no runnable task waits longer than 2.5 s by our class",
    "affinity": "tasks run only where they may",
    "sums": "the sums of CPUs are exact",
    "memory": "the daemon's memory and files stay",
    "counters": "no task without context, no lost claim, no bad event of sched_ext",
}
# How much the daemon may grow between two quiet moments: arms and rules come and go.
MEMORY_SLACK_KB = 1024
FILES_SLACK = 8


@dataclass
class Record:
    name: str                                       # roost or eevdf
    seed: int = 0
    events: Counter = field(default_factory=Counter)
    watches: dict = field(default_factory=dict)     # each watch's report about itself
    bad: list = field(default_factory=list)         # (watch, seconds, text)
    ejected: tuple | None = None                    # (seconds, reason)
    seconds: float = 0.0                            # of the guest's time
    host_s: float = 0.0
    sums: list = field(default_factory=list)
    memory: list = field(default_factory=list)      # (pid, kB, files)
    known: Counter = field(default_factory=Counter)     # warnings with causes in the kernel itself
    ended: bool = False
    remembered: str = ""                            # the key by which the boot was known

    def feed(self, line):
        head, _, rest = line.removeprefix("::").partition(" ")
        read = getattr(self, f"_{head}", None)
        if read and line.startswith("::"):
            try:
                read(rest)
            except (ValueError, IndexError):
                self.bad.append(("guest", 0.0, f"a line that means nothing: {line}"))

    def _event(self, rest):
        self.events[rest.split()[1]] += 1

    def _watch(self, rest):
        name, _, said = rest.partition(" ")
        self.watches[name] = said

    def _bad(self, rest):
        watch, at, text = rest.split(" ", 2)
        self.bad.append((watch, float(at), text))

    def _known(self, rest):
        self.known[re.sub(r"[0-9]+$", "N", rest.partition(" ")[2])] += 1

    def _ejected(self, rest):
        at, _, why = rest.partition(" ")
        self.ejected = (float(at), why)

    def _ran(self, rest):
        self.seconds = float(rest.split()[0])

    def _sums(self, rest):
        self.sums.append(rest)
        if rest.strip() != "0":
            self.bad.append(("sums", 0.0, f"drift {rest or 'missing'}, expected 0"))

    def _counter(self, rest):
        name, _, n = rest.strip().rpartition(" ")
        if n != "0":
            text = f"{name.strip(':')} is {n or 'missing'}, expected 0"
            self.bad.append(("counters", 0.0, text))

    def _memory(self, rest):
        self.memory.append(tuple(map(int, rest.split())))

    def _end(self, _rest):
        self.ended = True

    def judge_memory(self):
        """Compares the first quiet moment of each process of the daemon with its last."""
        for pid in dict.fromkeys(m[0] for m in self.memory):
            of_pid = [m for m in self.memory if m[0] == pid]
            (_, kb, files), (_, last_kb, last_files) = of_pid[0], of_pid[-1]
            if last_kb > kb + MEMORY_SLACK_KB or last_files > files + FILES_SLACK:
                grew = f"from {kb} to {last_kb} kB and from {files} to {last_files} files"
                self.bad.append(("memory", 0.0, f"the daemon grew {grew}"))
        if self.memory:
            kb = [m[1] for m in self.memory]
            self.watches["memory"] = f"{min(kb)} to {max(kb)} kB in {len(kb)} quiet moments"
        if self.sums:
            self.watches["sums"] = f"drift {', '.join(self.sums)}"

    def finish(self, host_s, timed_out=False):
        self.host_s = host_s
        if not self.ended:
            how = "the guest hung" if timed_out else "the guest stopped"
            self.bad.append(("guest", 0.0, f"{how} after {host_s:.0f} s of the host"))
        self.judge_memory()
        return self

    def good(self):
        return not self.bad
