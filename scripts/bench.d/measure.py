# SPDX-License-Identifier: GPL-2.0-only
"""One boot of the guest per scheduler, suite and seed; the results are plain dictionaries."""
import base64
import bisect
import collections
import gzip
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
sys.path.insert(0, str(TOP / "scripts/guest"))
from guest_tests import FAST_KERNEL    # noqa: E402
from lab import Boot, Image, Kernel, LabError, Qemu, boot, compile_static, say, topology    # noqa: E402
from memory import Memory, key    # noqa: E402

EEVDF = "eevdf"
# A meter of a longer run of the same command.
LONG = "long"
# The columns of plugin.c; the last six only with lines.
SUMS = ("user", "kernel", "bpf", *(f"{of}_{what}" for of in ("kernel", "bpf")
                                   for what in ("locked", "remote_reads", "remote_writes")))


@dataclass(frozen=True)
class Scheduler:
    name: str
    command: tuple = ()         # program and arguments; none for the kernel's own scheduler

    @staticmethod
    def parse(text):
        """NAME='PATH ARGS'"""
        name, _, command = text.partition("=")
        words = shlex.split(command)
        if not name or not words:
            raise LabError(f"--scheduler {text}: write NAME='PATH ARGS', as in cosmos='/usr/bin/scx_cosmos -s 1000'")
        if not os.access(words[0], os.X_OK):
            raise LabError(f"--scheduler {text}: {words[0]} is not a program: build or install it first")
        return Scheduler(name, (str(Path(words[0]).resolve()), *words[1:]))


@dataclass(frozen=True)
class Suite:
    topology: str
    limit_s: int                # on the host, per boot
    tools: tuple
    job: str = field(repr=False)
    helpers: tuple = ()         # programs of tests/guest
    lines: bool = False         # also count locked operations and accesses to lines of other CPUs; several times slower


# {seed} shifts what follows in time. The 8 CPUs are 2 LLCs x 2 cores x 2 threads, so 4 workers want
# one core each. 31 % of 8 CPUs are 2 or 3: 3 workers.
COST = Suite("8", 600, ("hackbench", "perf"), """
guest meter hackbench hackbench -T -p -g 2 -f 4 -l 400 -s 100
guest meter pipe perf bench -f simple sched pipe -l 1500
guest meter forks guest forks 2 150 /bin/nothing
guest meter workers50 guest workers 4 30 {seed}
guest meter workers31 guest workers 3 30 {seed}
guest meter longpipe perf bench -f simple sched pipe -l 4500
""")
# The workers alone, repeated often enough to even out the differences between runs.
CORES_RUNS = 12
CORES = Suite("8", 600, (), "".join(f"guest meter {meter}.{run} guest workers {count} 30 {{seed}}{run:02}\n"
                                    for meter, count in (("workers50", 4), ("workers31", 3))
                                    for run in range(CORES_RUNS)))
# A probe and two hogs for each CPU. On one CPU nothing else executes, so the figure is exact. On
# two it includes the turns that the virtual CPUs take (see deadlines() in guest.c). Samples that
# woke on the first CPU, which waits for no turn, are therefore reported separately.
PROBE = """
guest hogs {hogs} &
hogs=$!
sleep 0.5
guest meter probe guest probe {probes} 2000 {{seed}}
kill -KILL $hogs
"""
# What other CPUs feel. ticks: a task computes on each CPU, so there is little else than ticks. Each
# program is started once unmetered: the first start touches more lines than the next ones.
LINES = """
hackbench -T -p -g 2 -f 4 -l 50 -s 100 >/dev/null
guest meter hackbench hackbench -T -p -g 2 -f 4 -l 50 -s 100
guest meter longhackbench hackbench -T -p -g 2 -f 4 -l 250 -s 100
perf bench -f simple sched pipe -l 300 >/dev/null
guest meter pipe perf bench -f simple sched pipe -l 300
guest meter longpipe perf bench -f simple sched pipe -l 2700
sh -c 'guest hogs {cpus} & sleep 0.2; kill $!'
guest meter ticks sh -c 'guest hogs {cpus} & sleep 0.2; kill $!'
guest meter longticks sh -c 'guest hogs {cpus} & sleep 1.2; kill $!'
"""
# What the longer runs do beyond the shorter ones: 2 groups, 4 senders to 4 receivers each.
LINES_MESSAGES = 2 * 4 * 4 * (250 - 50)
LINES_ROUND_TRIPS = 2700 - 300
SUITES = {
    "cost": COST,
    "cores": CORES,
    "lines": Suite("8", 1200, ("hackbench", "perf"), LINES, lines=True),
    "lines64": Suite("64", 3000, ("hackbench", "perf"), LINES, lines=True),
    "latency": Suite("2", 600, (), PROBE.format(hogs=4, probes=2)),
    "latency1": Suite("1", 600, (), PROBE.format(hogs=2, probes=1)),
}

# Starts the scheduler, waits until the kernel reports it as enabled, runs the suite's job, stops
# it.
HARNESS = """
state=/sys/kernel/sched_ext/state
up() {{ cut -d' ' -f1 /proc/uptime; }}
# Several descriptors may be of one program, and that of a link has only the program's number.
verified() {{
    cat /proc/$1/fdinfo/* | awk '/^prog_id:/ {{ id = $2 }} /^verified_insns:/ {{ of[id] = $2 }}
        END {{ for (id in of) sum += of[id]; print sum + 0 }}'
}}
give_up() {{ echo "::failed $1"; tail -n 12 /tmp/log; dmesg | grep sched_ext | tail -n 12; exit 1; }}
guest deadlines
guest spin {spin}
begin=$(up)
if [ "{command}" ]; then
    {command} >/tmp/log 2>&1 &
    scheduler=$!
    n=0
    while [ "$(cat $state)" != enabled ]; do
        n=$((n + 1))
        [ -d /proc/$scheduler ] || give_up "the scheduler ended before it was enabled"
        [ $n -gt 600 ] && give_up "the scheduler was not enabled within 120 s"
        sleep 0.2
    done
fi
echo "::enabled $begin $(up)"
[ ! "{command}" ] || echo "::verified $(verified $scheduler)"
{symbols}
guest settle 8
{job}
if [ "{command}" ]; then
    [ "$(cat $state)" = enabled ] || give_up "the scheduler did not stay enabled"
    kill -TERM $scheduler
    wait $scheduler
    rc=$?
    tail -n 3 /tmp/log
    [ $rc = 0 ] || give_up "the scheduler's exit status was $rc"
fi
"""


# The addresses of all functions, including BPF's; packed, because the serial line is slow.
SYMBOLS = """
echo 1 >/proc/sys/net/core/bpf_jit_kallsyms
grep -i ' [tw] ' /proc/kallsyms | gzip -c | base64 | sed 's/^/::symbols /'
"""


class Bench:
    """Everything that all boots share. profile: also count the instructions of each function. counting: False counts no
    instructions; a boot then takes less time, and one that ended well before with the same bytes is not done again,
    unless recalls is False."""

    def __init__(self, kernel_prefix, build_dir, profile=False, counting=True, recalls=True):
        self.profile, self.memory, self.recalls = profile, Memory(), recalls
        self.kernel = Kernel.get(kernel_prefix)
        self.qemu = Qemu.with_plugins()
        self.build_dir = build_dir
        build_dir.mkdir(parents=True, exist_ok=True)
        self.plugin = self._compile_plugin() if counting else None
        self.guest = compile_static(HERE / "guest.c", build_dir / "guest")
        self.nothing = compile_static(HERE / "nothing.c", build_dir / "nothing", "-nostdlib", "-s")

    def _compile_plugin(self):
        out = self.build_dir / "plugin.so"
        cmd = [os.environ.get("CC", "gcc"), "-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden", "-o", str(out),
               str(HERE / "plugin.c")]
        if subprocess.run(cmd).returncode:
            raise LabError(f"plugin.c did not compile ({shlex.join(cmd)}): see the messages above")
        return out

    def image(self, scheduler, suite, seed):
        image = Image(self.kernel)
        image.program(self.guest, "bin/guest")
        image.program(self.nothing, "bin/nothing")
        for tool in suite.tools:
            image.program(tool, f"bin/{tool}")
        for name in suite.helpers:
            image.program(compile_static(TOP / f"tests/guest/{name}.c", self.build_dir / name))
        command = scheduler.command
        if command:
            image.program(command[0], "bin/scheduler")
            command = ("scheduler", *command[1:])
        image.job(HARNESS.format(command=" ".join(command), spin=seed * 40000 + 1,
                                 symbols=SYMBOLS if self.profile else "",
                                 job=suite.job.format(seed=seed, cpus=topology(suite.topology).cpus)))
        return image

    def run(self, scheduler, suite, seed):
        r, marks, block_lists = (self._counted if self.plugin else self._remembered)(scheduler, suite, seed)
        failed = " ".join(next((words for _, words in r.events("failed")), []))
        if not failed and (not r.complete or r.rc != 0):
            failed = f"no end within {suite.limit_s} s" if r.timed_out else "the guest did not end well"
        if failed:
            return {"seed": seed, "failed": failed, "tail": r.tail(), "wall_s": round(r.wall_s, 1)}
        begin, end = (float(w) for w in r.events("enabled")[0][1])
        meters = read_meters(r, marks)
        if self.profile:
            add_profiles(r, meters, block_lists)
        verified = sum(int(words[0]) for _, words in r.events("verified"))
        return {"seed": seed, "wall_s": round(r.wall_s, 1), "load_s": round(end - begin, 2), "verified": verified,
                "meters": meters}

    def _counted(self, scheduler, suite, seed):
        """The boot, the plugin's sums at each mark, and what each function executed between two."""
        with tempfile.TemporaryDirectory(prefix="roost-bench-") as tmp:
            sums, blocks = Path(tmp) / "sums", Path(tmp) / "blocks"
            plugin = f"{self.plugin},out={sums}" + (f",profile={blocks}" if self.profile else "")
            plugin += ",lines=on" if suite.lines else ""
            r = boot(self.kernel, self.image(scheduler, suite, seed), suite.topology, "icount", qemu=self.qemu,
                     seed=seed, extra=["-plugin", plugin], limit_s=suite.limit_s)
            marks = [[int(n) for n in line.split()] for line in sums.read_text().splitlines()] if sums.exists() else []
            return r, marks, blocks.read_text().split("\n\n") if blocks.exists() else []

    def _remembered(self, scheduler, suite, seed):
        """The boot, or what it printed when it was done before."""
        image = self.image(scheduler, suite, seed)
        known = key(self.kernel, image, suite.topology, "icount", self.qemu, FAST_KERNEL, seed)
        r = self.recalls and self.memory.recall(known, lambda kept: Boot(lines=kept["lines"], complete=True, rc=0))
        if not r:
            r = boot(self.kernel, image, suite.topology, "icount", qemu=self.qemu, seed=seed, append=FAST_KERNEL,
                     limit_s=suite.limit_s)
            good = r.complete and r.rc == 0 and not r.retried
            self.memory.settle(known, good, {"lines": [line for line in r.lines if line.startswith("::")]})
        return r, None, []


def say_end(what, r, start):
    """Progress of a boot that began at START, and the end of its output if it failed."""
    say(f"{what}: {r.get('failed', 'ok')}, {time.monotonic() - start:.0f} s")
    if "failed" in r:
        print(r["tail"], file=sys.stderr)


def read_meters(r, marks):
    """name -> what `guest meter` printed, the command's own figures, and the instructions between its two marks, which
    are None where nothing counts."""
    rows = [dict(w.split("=", 1) for w in words) for _, words in r.events("meter")]
    if marks is None:
        marks = [()] * (2 * len(rows))
    elif len(marks) != 2 * len(rows):
        raise LabError(f"the plugin saw {len(marks)} marks for {len(rows)} meters: "
                       "its marker and the one of guest.c differ, or QEMU's plugin interface does")
    meters = {}
    for row, before, after in zip(rows, marks[::2], marks[1::2]):
        name = row.pop("name")
        m = {k: int(v) for k, v in row.items()}
        if m["status"] != 0:
            raise LabError(f"the command of {name} ended with status {m['status']} in the guest:\n{r.tail()}")
        m.update(zip(SUMS, (b - a for a, b in zip(before, after))))
        text = "\n".join(" ".join(words[1:]) for _, words in r.events("out") if words[0] == name)
        m.update(own_figures(name, text))
        meters[name] = m
    for long in [name for name in meters if name.startswith(LONG)]:
        short = long.removeprefix(LONG)
        meters[f"steady {short}"] = difference(meters.pop(long), meters[short])
    return meters


def difference(long, short):
    """The longer run minus the shorter one: this removes the program's start, which both include."""
    return {k: long[k] - short[k] for k in ("ns", "machine_switches", *SUMS) if k in long}


def own_figures(name, text):
    """What the command itself prints: its time (it knows its start better), or pairs of a key and a value."""
    if name.endswith("hackbench"):
        return {"ns": round(float(re.search(r"Time: ([\d.]+)", text).group(1)) * 1e9)}
    if name.endswith("pipe"):
        return {"ns": round(float(text.split()[0]) * 1e9)}
    return {k: int(v) for k, v in re.findall(r"(\w+)[= ](\d+)", text)}


def read_symbols(r):
    """Addresses in ascending order, and the names that belong to them."""
    packed = "".join(words[0] for _, words in r.events("symbols"))
    lines = gzip.decompress(base64.b64decode(packed)).decode().splitlines()
    pairs = sorted((int(w[0], 16), w[2]) for w in (line.split() for line in lines))
    return [a for a, _ in pairs], [n for _, n in pairs]


def add_profiles(r, meters, block_lists):
    """profile: instructions of each function between a meter's two marks. A BPF program appears by its own name."""
    addresses, names = read_symbols(r)
    for meter, blocks in zip(meters.values(), block_lists[1::2]):
        if "status" not in meter:
            continue        # a difference of two meters
        sums = collections.Counter()
        for line in blocks.splitlines():
            at, insns = line.split()
            name = names[bisect.bisect_right(addresses, int(at, 16)) - 1]
            sums[re.sub(r"^bpf_prog_[0-9a-f]{16}_", "bpf: ", name)] += int(insns)
        top = sums.most_common()
        meter["profile"] = {f: n for i, (f, n) in enumerate(top) if i < 60 or f.startswith("bpf")}
