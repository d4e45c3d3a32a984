#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The virtual machine lab: real sched_ext kernels in QEMU, without installing any.

  lab.py kernel [PREFIX...]              fetch the newest kernel of each version, print release and path
  lab.py check                           say what a boot would use; exit status 1 and the reason when there can be none
  lab.py boot [--topology T] [--accel A] [--program P]... [--script FILE]   boot, run the script (default: a prompt)

As a library: Kernel.get(prefix), Qemu.for_tests(), Qemu.with_plugins(), Image(kernel), boot(...).
"""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from archive import CACHE, LabError, say                                    # noqa: E402,F401
from image import Image, compile_static                                     # noqa: E402,F401
from kernel import DEFAULT_PREFIX, MATRIX, NEWEST, OLDEST, Kernel, NoSuchKernel, Qemu       # noqa: E402,F401
from machine import (ACCELS, SHAPES, Boot, boot, clean_up_when_ended, kvm_works, topology,      # noqa: E402,F401
                     topology_word)

# A shell with the terminal as its own: jobs and Ctrl-C work.
PROMPT = "stty sane\nexec setsid -c sh\n"


def _cmd_kernel(args):
    for prefix in args.prefix or [DEFAULT_PREFIX]:
        k = Kernel.get(prefix)
        print(f"{k.release} {k.vmlinuz}")


def _cmd_check(_args):
    try:
        print(f"Linux {Kernel.get().release}, QEMU {'.'.join(map(str, Qemu.for_tests().version))}")
    except LabError as e:
        print(e)
        return 1


def _cmd_boot(args):
    kernel = Kernel.get(args.kernel)
    image = Image(kernel)
    for p in args.program:
        image.program(p)
    image.job(Path(args.script).read_text() if args.script else PROMPT)
    r = boot(kernel, image, args.topology, args.accel, seed=args.seed, limit_s=args.limit, append=args.append,
             on_line=lambda line: print(line, flush=True), interactive=not args.script)
    if args.script and not r.complete:
        raise LabError(f"the guest did not end by itself within {args.limit} s; its last output:\n{r.tail()}")
    return r.rc


def main():
    clean_up_when_ended()
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sub = ap.add_subparsers(required=True)
    k = sub.add_parser("kernel", help="fetch kernels")
    k.add_argument("prefix", nargs="*", help=f"version prefix (default {DEFAULT_PREFIX})")
    k.set_defaults(run=_cmd_kernel)
    c = sub.add_parser("check", help="print what a boot would use")
    c.set_defaults(run=_cmd_check)
    b = sub.add_parser("boot", help="boot a guest", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    b.add_argument("--kernel", default=DEFAULT_PREFIX, help="version prefix of the kernel")
    b.add_argument("--topology", type=topology_word, default="8", help=f"the guest's machine: {SHAPES}")
    b.add_argument("--accel", choices=ACCELS, default="tcg", help="how time passes: emulated on the host's clock, "
                   "emulated with a clock that counts instructions, or KVM")
    b.add_argument("--program", action="append", default=[], help="a program for the guest's PATH; may be repeated")
    b.add_argument("--script", help="shell script that the guest runs before it powers off; without one, a prompt")
    b.add_argument("--seed", type=int, default=0, help="with icount: another date and command line, so another course")
    b.add_argument("--append", default="", help="more words for the kernel's command line")
    b.add_argument("--limit", type=int, default=300, help="seconds of the host that a script may take")
    b.set_defaults(run=_cmd_boot)
    args = ap.parse_args()
    try:
        return args.run(args)
    except LabError as e:
        say(e)
        return 1


if __name__ == "__main__":
    sys.exit(main())
