# SPDX-License-Identifier: GPL-2.0-only
"""The events of a run of scripts/chaos and their times, all drawn from the seed. Pure: same
arguments, same plan.

A run is made of cycles. In the first part of each the machine is overloaded; in the second it has
little to do, so that restarts of the scheduler cost what they cost on a machine of their own, and
sums can be compared while nothing moves."""
import random
import re
from dataclasses import dataclass, replace

CYCLE_S = 30
# Seconds of load in the first cycle, whose load needs 10 s to do its worst, and in the others. A
# second in which all CPUs work costs the host several.
FIRST_BURST_S, BURST_S = 13, 6
# The load of an earlier audit: it ended the scx_roost of that time, and scx_cosmos 1.1.7, after 10
# s.
AUDIT = ("--cpu 2 --fork 2 --exec 1 --futex 2 --pipe 2 --switch 2 --clone 1 --wait 1 --zombie 1 "
         "--sigsuspend 1 --session 1 --yield 2 --nice 1 --race-sched 1 --resched 1 --schedpolicy "
         "1 --cyclic 1 --affinity 2 --mutex 1 --sem 1 --poll 1 --timer 1 --vfork 1")
# stress-ng's stressors of the classes scheduler, fork, futex, affinity and signal that need no
# device and no network.
STRESSORS = ("affinity clone context cpu cyclic daemon eventfd exec exit-group fifo fork "
             "forkheavy futex hrtimers itimer kill membarrier mq msg mutex nanosleep nice pidfd "
             "pipe pipeherd poll pthread race-sched resched ring-pipe rseq schedpolicy sem "
             "sem-sysv session sigchld signal sigq sigsuspend sleep sockpair softlockup spawn "
             "switch timer timerfd vfork vforkmany wait waitcpu yield zombie").split()
FORKS_PER_HOUR = 1_000_000
# Names of methods of Plan.
DURING_A_BURST = ("real_time deadline affinity cpuset cgroup cgroup cgroup stop clients memory "
                  "switch switch rules frequencies clock ptrace pinned").split()


@dataclass(frozen=True)
class Event:
    at_ms: int
    kind: str           # the class that it is counted in
    command: str        # for the guest's events

    def line(self):
        return f"{self.at_ms} {self.kind} {self.command}"


class Plan:
    def __init__(self, seed, minutes, cpus):
        self.rng, self.cpus, self.events = random.Random(seed), cpus, []
        self.seconds = round(minutes * 60)
        self.cycles = max(1, self.seconds // CYCLE_S)
        self.length = self.seconds / self.cycles
        for i in range(self.cycles):
            self._cycle(i, i * self.length)
        self.events.sort(key=lambda e: e.at_ms)

    def leave_out(self, kinds, stressors):
        """No events of KINDS, and none of STRESSORS in the load. All else stays as it is."""
        option = re.compile(rf" --({'|'.join(stressors)}) \d+")
        self.events = [replace(e, command=option.sub("", e.command))
                       for e in self.events if e.kind not in kinds]

    def text(self):
        return "".join(f"{e.line()}\n" for e in self.events)

    def _add(self, at_s, kind, command):
        self.events.append(Event(round(at_s * 1000), kind, command))

    def _cycle(self, i, begin):
        burst = self.length * (BURST_S if i else FIRST_BURST_S) / CYCLE_S
        rng, end = self.rng, begin + burst
        within = lambda: begin + rng.uniform(0.5, burst * 0.8)                     # noqa: E731
        self._add(begin, "load", f"load {self._stressors(i)} -t {burst:.0f}")
        self._add(within(), "fork", f"fork {round(FORKS_PER_HOUR / 3600 * self.length)} 2")
        for kind in DURING_A_BURST:
            self._add(within(), *getattr(self, f"_{kind}")())
        self._restart(i, end)
        self._add(begin + self.length - 1.5, "audit", "audit")

    def _restart(self, i, end):
        """Events that end the scheduler. Hotplug begins while the load still runs. A daemon lives for
        three cycles at least, later for twenty: its memory is compared from cycle to cycle."""
        if i % 3 == 0 and self.cpus > 1:
            self._add(end - 1, "hotplug", self._hotplug())
        elif i % 24 == 1:
            self._add(end + 0.5, "kill", "kill_daemon")
        elif i % 24 == 4:
            self._add(end + 0.5, "reload", "reload 2")

    def _stressors(self, i):
        if i == 0:
            return AUDIT
        chosen = self.rng.sample(STRESSORS, 14)
        return " ".join(f"--{name} {self.rng.choice((1, 1, 2))}" for name in chosen)

    def _cpu(self):
        return self.rng.randrange(self.cpus)

    def _cpu_list(self):
        some = self.rng.sample(range(self.cpus), self.rng.randint(1, self.cpus))
        return ",".join(map(str, sorted(some)))

    def _seed(self):
        return self.rng.randrange(1 << 16)

    def _span(self, least, most):
        """Seconds."""
        return f"{self.rng.uniform(least, most):.1f}"

    def _real_time(self):
        cpu, priority = self._cpu(), self.rng.randint(1, 60)
        return "real_time", f"real_time {cpu} {priority} {self._span(0.2, 2)}"

    def _deadline(self):
        period = self.rng.choice((5_000, 20_000, 100_000))
        runtime = round(period * self.rng.uniform(0.1, 0.5))
        tasks = self.rng.randint(1, 3)
        return "deadline", f"deadline {tasks} {self._span(1, 4)} {runtime} {period}"

    def _affinity(self):
        return "affinity", f"affinity {self.rng.randint(2, 8)} {self._span(1, 4)} {self._seed()}"

    def _cpuset(self):
        kind = self.rng.choice(("member", "member", "root", "isolated"))
        lists = (self._cpu_list() for _ in range(self.rng.randint(2, 6)))
        return "cpuset", " ".join(["cpuset", kind, *lists])

    def _step(self):
        """A name for what is done with a cgroup."""
        rng = self.rng
        return rng.choice((
            f"weight={rng.choice((1, 10, 100, 1000, 10000))}",
            "idle=1",
            f"freeze={self._span(0.1, 1)}",
            f"limit={rng.choice((5000, 20000, 150000))}",
            f"pids={rng.randint(20, 200)}",
            f"memory={rng.randint(16, 128)}",
            f"nest={rng.choice((1, 100, 10000))}",
            "move=4",
            "pause=0.3",
        ))

    def _cgroup(self):
        steps = [self._step() for _ in range(self.rng.randint(2, 5))]
        return "cgroup", " ".join(["cgroup", f"move={self.rng.randint(2, 8)}", *steps, "pause=0.5"])

    def _stop(self):
        return "signal", f"stop {self._span(0.3, 3)}"

    def _clients(self):
        return "signal", f"clients {self._span(0.2, 1.5)}"

    def _memory(self):
        mib, secs = self.rng.randint(100, 400), self.rng.randint(2, 4)
        return "memory", f"load --vm 1 --vm-bytes {mib}M -t {secs}"

    def _switch(self):
        count, together = self.rng.randint(20, 200), self.rng.choice((5, 20))
        return "switch", f"switch {count} {together} {self._seed()}"

    def _rules(self):
        comm = self.rng.choice(("stress-ng*", "chaos-*", "forks"))
        return "switch", f"rules {comm} {self.rng.choice((1, 50, 400))}"

    def _frequencies(self):
        khz = (400_000, 800_000, 1_200_000, 2_000_000, 4_000_000)
        steps = (str(self.rng.choice(khz)) for _ in range(8))
        return "frequencies", " ".join(["frequencies", *steps])

    def _clock(self):
        steps = (str(self.rng.choice((-86400, -3600, -1, 1, 3600, 86400))) for _ in range(3))
        return "clock", " ".join(["clock", *steps])

    def _ptrace(self):
        return "ptrace", f"trace {self._span(0.5, 2)}"

    def _pinned(self):
        what = self.rng.choice(("idle=1", "nice=19", "nice=10", "slice_us=100000"))
        secs, tasks = self.rng.randint(3, 8), self.rng.randint(1, 3)
        return "pinned", f"pinned {secs} n={tasks},cpus={self._cpu()},{what}"

    def _hotplug(self):
        most = min(3, self.cpus - 1)
        gone = self.rng.sample(range(1, self.cpus), self.rng.randint(1, most))
        return " ".join(["hotplug", f"{self._span(0.1, 1)}", *map(str, gone)])
