#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""scx_roost in a virtual machine with many LLCs: a picture of the machine, then samples of real work under the kernel's
own scheduler and under scx_roost in turns, a table of both and what it means. Called by scripts/run --vm; options that
are not listed here go to scx_roost."""
import argparse
import shlex
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lab import (DEFAULT_PREFIX, PROMPT, Image, Kernel, LabError, Qemu, boot,     # noqa: E402
                 clean_up_when_ended, compile_static, kvm_works, topology, topology_word)

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
ROOST = TOP / "target/release/scx_roost"
LIMIT_S = 1200
PROGRAMS = ("hackbench", "stress-ng")
# What scx_roost does instead of running.
NO_RUN = ("--monitor", "--help-stats", "--help-all", "-V", "--version", "topology", "doctor", "ctl", "exec", "status",
          "stop", "features", "presets", "profiles", "config", "completions", "man", "help", "monitor", "export", "ab",
          "tune")
WORKS = {"hackbench": "messages (hackbench)", "stress-ng": "computing (stress-ng)",
         "fork-wait": "forks (fork and wait)"}
# Of a hundred wakeups.
PLACES = {"idle_core_pct": "to a wholly idle core", "previous_pct": "to the CPU where it ran last",
          "other_llc_pct": "to another cache"}
NEXT = """Try next:
  scripts/run --shell                              a prompt in this virtual machine
  cargo run --release -p roost-sim -- x265         the same on a simulated Threadripper of 64 threads
  target/release/scx_roost doctor                  can your own machine run it, and 'ab': is it better there?"""

def check(options):
    """Reports wrong options before the boot: with --version everything is resolved and nothing runs."""
    for word in (o.split("=")[0] for o in options):
        if word in NO_RUN:
            raise LabError(f"'{word}' does not run the scheduler, and the virtual machine is there to run it: "
                           f"ask target/release/scx_roost, or take a prompt there with scripts/run --shell")
    p = subprocess.run([ROOST, "--version", *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        raise LabError(p.stderr.strip().removeprefix("scx_roost: "))


def guest_image(kernel, options):
    image = Image(kernel)
    image.program(ROOST)
    for p in PROGRAMS:
        image.program(p)
    image.program(compile_static(HERE / "placement.c", TOP / "target/guest/placement"))
    image.program(compile_static(TOP / "tests/guest/forks.c", TOP / "target/guest/forks"))
    image.data("demo.args", shlex.join(options).encode())
    return image


def measures(r):
    """{(arm, work): {name: [number of each sample]}}"""
    out = {}
    for _, (arm, work, name, value) in r.events("measure"):
        out.setdefault((arm, work), {}).setdefault(name, []).append(float(value))
    return out


def compared(values, work):
    """The times of both, the change in percent, and -1, 0, 1: less, no clear difference, more. It is clear if no sample
    of one lies among those of the other."""
    kernel, roost = (values[arm, work]["time_s"] for arm in ("kernel", "roost"))
    change = (median(roost) / median(kernel) - 1) * 100
    sign = -1 if max(roost) < min(kernel) else 1 if min(roost) > max(kernel) else 0
    return kernel, roost, change, sign


def spread(times):
    return f"{median(times):.2f} ({min(times):.2f} to {max(times):.2f})"


def table(values):
    lines = [f"{'time in s, less is better':28}{'kernel (EEVDF)':>24}{'scx_roost':>24}   change"]
    for work, title in WORKS.items():
        kernel, roost, change, sign = compared(values, work)
        arrow = {-1: "\u25bc better", 0: "= no clear difference", 1: "\u25b2 worse"}[sign]
        lines.append(f"{title:28}{spread(kernel):>24}{spread(roost):>24}   {change:+.0f} % {arrow}")
    lines.append("of 100 wakeups")
    for name, title in PLACES.items():
        cells = "".join(f"{placed(values, arm, name):>24.0f}" for arm in ("kernel", "roost"))
        lines.append(f"  {title:26}{cells}")
    lost = sum(sum(v["lost"]) for (arm, _), v in values.items() if arm != "warmup")
    if lost:
        lines.append(f"  ({lost:.0f} records of the trace were lost: these numbers are of the rest)")
    return "\n".join(lines)


def placed(values, arm, name):
    """Over all works, by their wakeups."""
    pairs = [(n, w) for work in WORKS
             for n, w in zip(values[arm, work][name], values[arm, work]["wakeups"])]
    return sum(n * w for n, w in pairs) / max(sum(w for _, w in pairs), 1)


def meaning(values, emulated):
    signs = {work: compared(values, work)[3] for work in WORKS}
    said = [f"{what} in {', '.join(WORKS[w].split(' (')[0] for w in WORKS if signs[w] == sign)}"
            for sign, what in ((-1, "faster"), (1, "slower"), (0, "no clear difference")) if sign in signs.values()]
    kernel, roost = (placed(values, arm, "idle_core_pct") for arm in ("kernel", "roost"))
    text = (f"scx_roost: {'; '.join(said)}. It placed {roost:.0f} of 100 woken tasks on a wholly idle core, the kernel "
            f"{kernel:.0f}.")
    if emulated:
        text += (" This machine is emulated: a cold cache or a shared core costs nothing here, so the table shows what "
                 "the scheduler itself costs, and not what a real machine gains.")
    return textwrap.fill(text, 100)


def shell(kernel, args, options):
    image = guest_image(kernel, options)
    # As in tests on the host's clock: a machine that the host holds up is no stall.
    image.job("export SCX_TIMEOUT_MS=30000\n"
              f"echo \"scx_roost $(cat /demo.args) starts it; 'poweroff -f' or Ctrl-A X leaves\"\n{PROMPT}")
    boot(kernel, image, args.topology, args.accel, interactive=True)
    return 0


class Progress:
    """Prints the guest's lines, and how far the samples are. A minute or more between lines looks like a hang."""

    def __init__(self):
        self.begin = None

    def __call__(self, line):
        if line.startswith("::sample "):
            n, of, arm = line.split()[1:]
            self.begin = self.begin or time.monotonic()
            done = int(n) - 1
            left = (time.monotonic() - self.begin) / done * (int(of) - done) if done else None
            print(f"sample {n} of {of}: {'the kernel' if arm == 'kernel' else 'scx_roost'}"
                  + (f", about {left:.0f} s left" if left else ""), flush=True)
        elif not line.startswith("::"):
            print(line, flush=True)


def demo(kernel, args, options):
    image = guest_image(kernel, options)
    image.file(HERE / "demo", "job")
    qemu = Qemu.for_tests()
    machine = topology(args.topology)
    print(f"booting Linux {kernel.release} with {machine.cpus} CPUs and {machine.llcs} LLCs in "
          f"QEMU {'.'.join(map(str, qemu.version))} ({args.accel})", flush=True)
    r = boot(kernel, image, args.topology, args.accel, qemu=qemu, limit_s=LIMIT_S, on_line=Progress())
    if r.retried:
        print("(booted twice: QEMU's int3 race)")
    if not r.complete or r.rc != 0:
        print("FAILED: " + ("the guest hung" if r.timed_out else "see above") +
              ("" if r.complete else f"; its last output:\n{r.tail()}"))
        return 1
    values = measures(r)
    print(f"\n{table(values)}\n\n{meaning(values, args.accel != 'kvm')}\n\n{NEXT}")
    return 0


def main():
    clean_up_when_ended()
    ap = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    ap.add_argument("--shell", action="store_true", help="a prompt in the guest")
    ap.add_argument("--topology", type=topology_word, default="16")
    ap.add_argument("--kernel", default=DEFAULT_PREFIX, help=f"version of the Debian kernel (default {DEFAULT_PREFIX})")
    args, options = ap.parse_known_args()
    try:
        check(options)
        kernel = Kernel.get(args.kernel)
        args.accel = "kvm" if kvm_works(kernel, args.topology) else "tcg" if args.shell else "icount"
        return (shell if args.shell else demo)(kernel, args, options)
    except LabError as e:
        print(f"scripts/run: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nscripts/run: interrupted; the virtual machine has been ended", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
