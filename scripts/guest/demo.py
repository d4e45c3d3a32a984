#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""scx_roost in a virtual machine with many LLCs: live statistics under real work, then a table beside the kernel's own
scheduler in the same boot. Called by scripts/run --vm; options that are not listed here go to scx_roost."""
import argparse
import shlex
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lab import DEFAULT_PREFIX, TOPOLOGIES, Image, Kernel, LabError, Qemu, boot, compile_static, kvm_works    # noqa: E402

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
ROOST = TOP / "target/release/scx_roost"
LIMIT_S = 1200
PROGRAMS = ("hackbench", "stress-ng")
# What scx_roost does instead of running.
NO_RUN = ("--monitor", "--help-stats", "-V", "--version", "topology", "doctor", "ctl", "exec")
ROWS = (("time, s", "time_s"), ("context switches", "switches"), ("migrations", "migrations"),
        ("wakeups", "wakeups"), ("  on the previous CPU, %", "previous_pct"), ("  on an idle CPU, %", "idle_cpu_pct"),
        ("  on an idle core, %", "idle_core_pct"), ("  in another LLC, %", "other_llc_pct"))


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
    """{(arm, work): {name: text}}"""
    out = {}
    for _, (arm, work, name, value) in r.events("measure"):
        out.setdefault((arm, work), {})[name] = value
    return out


def table(values):
    lines = [f"{'':28}{'kernel (EEVDF)':>16}{'scx_roost':>16}"]
    for work in dict.fromkeys(w for _, w in values):
        lines.append(work)
        pair = [values.get((arm, work), {}) for arm in ("kernel", "roost")]
        for title, name in ROWS:
            lines.append(f"  {title:26}" + "".join(f"{v.get(name, '-'):>16}" for v in pair))
        lost = [v.get("lost", "0") for v in pair]
        if lost != ["0", "0"]:
            lines.append(f"  (trace records lost: {lost[0]} and {lost[1]}; the counts above are of the rest)")
    return "\n".join(lines)


def shell(kernel, args, options):
    image = guest_image(kernel, options)
    image.job("stty sane\necho \"scx_roost $(cat /demo.args) starts it; 'poweroff -f' or Ctrl-A X leaves\"\n"
              "setsid cttyhack sh\n")
    boot(kernel, image, args.topology, args.accel, qemu=Qemu.for_tests(), interactive=True)
    return 0


def show(line):
    if not line.startswith("::measure"):
        print(line, flush=True)


def demo(kernel, args, options):
    if not any(o == "--stats" or o.startswith("--stats=") for o in options):
        options = [*options, "--stats", "1"]
    image = guest_image(kernel, options)
    image.file(HERE / "demo", "job")
    qemu = Qemu.for_tests()
    print(f"booting Linux {kernel.release} with {TOPOLOGIES[args.topology].cpus} CPUs and "
          f"{TOPOLOGIES[args.topology].llcs} LLCs in QEMU {'.'.join(map(str, qemu.version))} ({args.accel})", flush=True)
    r = boot(kernel, image, args.topology, args.accel, qemu=qemu, limit_s=LIMIT_S, on_line=show)
    if r.retried:
        print("(booted twice: QEMU's int3 race)")
    values = measures(r)
    if values:
        print("\n" + table(values))
        if args.accel != "kvm":
            print("An emulated machine: times are meaningful only as ratios, caches and SMT are not modelled.")
        print("One sample: runs differ by about 15 %. scripts/bench repeats and compares.")
    if not r.complete or r.rc != 0:
        print("FAILED: " + ("the guest hung" if r.timed_out else "see above") +
              ("" if r.complete else f"; its last output:\n{r.tail()}"))
        return 1
    return 0


def main():
    ap = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    ap.add_argument("--shell", action="store_true", help="a prompt in the guest")
    ap.add_argument("--topology", choices=TOPOLOGIES, default="16")
    ap.add_argument("--kernel", default=DEFAULT_PREFIX, help=f"version prefix of the Debian kernel (default {DEFAULT_PREFIX})")
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
