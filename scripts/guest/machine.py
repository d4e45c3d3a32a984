# SPDX-License-Identifier: GPL-2.0-only
"""One boot of the guest in QEMU: its topology, how time passes, and what came out of it."""
import argparse
import ctypes
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from archive import CACHE, LabError, say
from image import Image
from kernel import Qemu

# TCG of QEMU 7.2 may run a stale byte while the guest patches its own code. The scheduler does
# not cause that, so only a boot with this mark is repeated, once; Boot.retried says so.
TCG_PATCHING_RACE = "Oops: int3"


@dataclass(frozen=True)
class Topology:
    """Nodes of last-level caches (LLCs) of cores of threads, as many in each."""
    nodes: int
    llcs_per_node: int
    cores: int
    threads: int
    spare: int = 0              # CPUs more that are possible and not present
    bare_node: str = ""         # one node more, 'nomemory' (which takes the last CPU) or 'nocpus'
    kernel_words: str = ""

    @property
    def llcs(self):
        return self.nodes * self.llcs_per_node

    @property
    def cpus(self):
        return self.llcs * self.cores * self.threads

    @property
    def online(self):
        """CPUs that the kernel brings up, with its words."""
        limits = [int(n) for n in re.findall(r"=(\d+)", self.kernel_words)]
        smt = self.threads if "nosmt" in self.kernel_words else 1
        return max(1, min([self.cpus // smt, *limits]))

    @property
    def memories(self):
        """Nodes that have memory."""
        return self.nodes + (self.bare_node == "nocpus")

    @property
    def memory_mib(self):
        """Divides by the number of memories."""
        return -(-max(1024, 32 * self.cpus) // self.memories) * self.memories

    @property
    def last_apic_id(self):
        """Each level has bits of its own."""
        out = 0
        for count in (self.nodes, self.llcs_per_node, self.cores, self.threads):
            out = (out << (count - 1).bit_length()) + count - 1
        return out

    def qemu_args(self):
        """A die is an LLC, and a socket a node."""
        cores = self.cores + self.spare
        smp = f"{self.cpus},maxcpus={self.cpus + self.spare},sockets={self.nodes},dies={self.llcs_per_node}"
        out = ["-m", str(self.memory_mib), "-smp", f"{smp},cores={cores},threads={self.threads}"]
        cpus = self.cpus + self.spare - (self.bare_node == "nomemory")
        first = [cpus * i // self.nodes for i in range(self.nodes + 1)]
        nodes = [f"memdev=m{i},cpus={first[i]}-{first[i + 1] - 1}" for i in range(self.nodes)]
        nodes += {"nomemory": [f"cpus={cpus}"], "nocpus": [f"memdev=m{self.nodes}"]}.get(self.bare_node, [])
        if len(nodes) == 1:
            return out
        for i in range(self.memories):
            out += ["-object", f"memory-backend-ram,id=m{i},size={self.memory_mib // self.memories}M"]
        for i, words in enumerate(nodes):
            out += ["-numa", f"node,nodeid={i},{words}"]
        return out


# Short names of the machines that most tests use.
SHORT = {"8": "2x2x2", "16": "4x2x2", "64": "8x4x2", "2node": "2:1x2x2"}
SHAPE = re.compile(r"(?:(\d+):)?(\d+)x(\d+)x(\d+)|(\d+)")
SHAPES = ("LLCs x cores x threads, as 3x5x2; with nodes before it, as 2:1x2x2; or a number of cores with one LLC, as "
          f"12. Short: {', '.join(f'{name} is {shape}' for name, shape in SHORT.items())}. After it: +spare=6, cores "
          "of one LLC that are possible and not present; +nomemory or +nocpus, a node without them; +maxcpus=5, "
          "+nr_cpus=9 or +nosmt, for the kernel")
MAX_APIC_ID = 254               # of QEMU's machine without an interrupt remapper


def topology(word):
    """The machine that a word describes."""
    base, *more = word.split("+")
    shape = SHAPE.fullmatch(SHORT.get(base, base))
    if shape:
        nodes, llcs, cores, threads, flat = (int(n) if n else 1 for n in shape.groups())
        spare = sum(int(m[6:]) for m in more if re.fullmatch(r"spare=\d+", m))
        bare = [m for m in more if m in ("nomemory", "nocpus")]
        kernel = [m for m in more if re.fullmatch(r"(maxcpus|nr_cpus)=\d+|nosmt", m)]
        out = Topology(nodes, llcs, cores * flat, threads, spare, "".join(bare), " ".join(kernel))
        known = len(kernel) + len(bare) + bool(spare) == len(more) and len(bare) <= 1
        # Spare CPUs are cores of the only LLC.
        known = known and (not spare or llcs * nodes * threads == 1)
        if known and out.cpus and out.last_apic_id + spare <= MAX_APIC_ID:
            return out
    raise LabError(f"{word!r} is no machine of 1 to some 250 CPUs: write {SHAPES}")


def topology_word(word):
    """For argparse: the word, if it describes a machine."""
    try:
        topology(word)
    except LabError as e:
        raise argparse.ArgumentTypeError(str(e)) from e
    return word


COMMON_ARGS = ("console=ttyS0 loglevel=5 panic=-1 mitigations=off tsc=reliable nokaslr norandmaps "
               "random.trust_cpu=off")
PR_SET_PDEATHSIG = 1
# After a resume QEMU 7.2 may not power off; the result is complete by then.
POWEROFF_LIMIT_S = 20
ACCELS = ("tcg", "icount", "kvm")


@dataclass
class Boot:
    """What a boot gave. lines is what the job printed; kernel_log is the kernel's console."""
    lines: list = field(default_factory=list)
    kernel_log: str = ""
    wall_s: float = 0.0
    timed_out: bool = False
    complete: bool = False      # the job ended and init said so
    rc: int | None = None       # exit status of the job
    retried: bool = False

    def events(self, name=None):
        """Lines of the form '::name words...' as (name, [words])."""
        out = []
        for line in self.lines:
            if line.startswith("::"):
                head, *words = line[2:].split()
                if name in (None, head):
                    out.append((head, words))
        return out

    def hit_tcg_race(self):
        return TCG_PATCHING_RACE in self.kernel_log

    def tail(self, count=25):
        kernel = [f"kernel: {line}" for line in self.kernel_log.splitlines()[-count:]]
        return "\n".join(self.lines[-count:] + kernel)


def _accel_args(accel, qemu, seed):
    # level=30 hides CPUID leaf 0x1f, with which QEMU 10 fails an assertion when dies > 1. Leaf 4
    # still gives one L3 per die.
    level = ",level=30" if qemu.version >= (10, 0) else ""
    if accel == "kvm":
        return ["-accel", "kvm", "-cpu", "host"]
    if accel == "icount":
        return ["-accel", "tcg,thread=single", "-cpu", f"max,vendor=GenuineIntel,-rdrand,-rdseed{level}",
                "-icount", "shift=1,sleep=off,align=off",
                "-rtc", f"base=2026-01-{1 + seed % 28:02d}T00:00:00,clock=vm"]
    return ["-accel", "tcg,thread=single", "-cpu", f"max,vendor=GenuineIntel{level}"]


def command(kernel, initrd, shape, accel, qemu, seed, append, extra, kernel_log, interactive):
    stdio = ["-serial", "mon:stdio"] if interactive else ["-serial", "stdio", "-monitor", "none"]
    return [*qemu.cmd, "-M", "q35", *_accel_args(accel, qemu, seed), *topology(shape).qemu_args(),
            "-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{kernel_log}", *stdio,
            "-kernel", str(kernel.vmlinuz), "-initrd", str(initrd),
            "-append", f"{COMMON_ARGS} roost_seed={seed} {topology(shape).kernel_words} {append}".strip(), *extra]


def boot(kernel, image, shape="8", accel="tcg", qemu=None, append="", seed=0, extra=(), limit_s=300,
         on_line=None, interactive=False, retry=True):
    """Boot the image, run its job, power off. extra: more QEMU arguments (-plugin ...). on_line is called with each
    line of the job as it comes; a number that it returns is how many seconds of the host the guest has from then on,
    in place of what is left of limit_s. interactive: the terminal is the guest's, and nothing is recorded but the
    kernel log. retry: repeat a boot that QEMU's patching race spoilt (on_line then hears both)."""
    args = (kernel, image, shape, accel, qemu or Qemu.for_tests(), seed, append, extra, limit_s, on_line, interactive)
    r = _boot_once(*args)
    if retry and r.hit_tcg_race():
        say(f"QEMU's '{TCG_PATCHING_RACE}' (a race of TCG while the guest patches its code): this boot is repeated")
        r = _boot_once(*args)
        r.retried = True
    return r


def _end_by_exception(number, _frame):
    raise SystemExit(128 + number)


def clean_up_when_ended():
    """By SIGTERM, and by SIGHUP as a terminal is closed: what 'with' and 'finally' clean up is cleaned up."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        # nohup ignores the second.
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _end_by_exception)


def _boot_once(kernel, image, shape, accel, qemu, seed, append, extra, limit_s, on_line, interactive):
    r = Boot()
    with tempfile.TemporaryDirectory(prefix="roost-guest-") as tmp:
        log = Path(tmp) / "kernel.log"
        initrd = image.write(Path(tmp) / "initrd")
        cmd = command(kernel, initrd, shape, accel, qemu, seed, append, extra, log, interactive)
        start = time.monotonic()
        if interactive:
            subprocess.run(cmd, preexec_fn=_die_with_parent)
        else:
            _run_recorded(cmd, r, limit_s, on_line)
        r.wall_s = time.monotonic() - start
        r.kernel_log = log.read_text(errors="replace").replace("\r", "") if log.exists() else ""
    for name, words in r.events("end"):
        r.complete, r.rc = True, int(words[0])
    return r


def _die_with_parent():
    """No guest outlives this process, however it ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _run_recorded(cmd, r, limit_s, on_line):
    p = subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         preexec_fn=_die_with_parent)
    deadline = time.monotonic() + limit_s

    def read():
        nonlocal deadline
        for raw in p.stdout:
            line = raw.decode(errors="replace").rstrip("\r\n")
            r.lines.append(line)
            more_s = on_line and on_line(line)
            if more_s is not None:
                deadline = time.monotonic() + more_s
            if line.startswith("::end "):
                job_ended.set()

    job_ended = threading.Event()
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while p.poll() is None and not job_ended.wait(0.2) and time.monotonic() < deadline:
            pass
        r.timed_out = p.poll() is None and not job_ended.is_set()
        if job_ended.is_set():
            p.wait(POWEROFF_LIMIT_S)
    except subprocess.TimeoutExpired:
        say(f"the guest did its job but did not power off within {POWEROFF_LIMIT_S} s: ended")
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()
    reader.join(10)


def kvm_works(kernel, shape="8"):
    """Whether KVM really boots this kernel with the wanted topology. Seen in practice: a /dev/kvm that does not.
    The answer is kept until the machine restarts."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    memo = CACHE / "kvm" / f"{boot_id}-{kernel.release}-{shape}"
    if not memo.exists():
        say("trying a short boot with KVM")
        image = Image()
        image.job("exit 0\n")
        want, qemu = topology(shape), Qemu.for_tests()
        r = _boot_once(kernel, image, shape, "kvm", qemu, 0, "", (), 20, None, False)
        facts = dict(w.split("=", 1) for _, words in r.events("boot") for w in words)
        good = r.complete and facts.get("cpus") == str(want.online) and facts.get("llcs") == str(want.llcs)
        memo.parent.mkdir(parents=True, exist_ok=True)
        memo.write_text("yes" if good else "no")
        if not good:
            say("KVM is there but does not boot this guest as wanted: emulating (slower)")
    return memo.read_text() == "yes"
