#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs a comparison of kernels by 'scx_roost ab --across-boots': each boot is a guest, which gets the result file of the
one before and continues it with --resume, as a machine does after each boot.

  across_boots.py --check                          Linux 7.0 against 7.2, 3 boots of each on average: whether it works
  across_boots.py --kernel 7.0 --kernel 7.2 -n 6 --result ab.jsonl -- hackbench -p -g 4 -l 200

Prints the report. Exit status 1 if the boots were not as planned. --check also prints 'N passed, N failed, N skipped'.
"""
import argparse
import base64
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lab import Image, Kernel, LabError, NoSuchKernel, boot, say      # noqa: E402

TOP = Path(__file__).resolve().parents[2]
WORKLOAD = "stress-ng -q --switch 2 --switch-ops 300"
DUE, WIDTH = 3, 900

# What a boot does: the result so far comes as base64, and goes out the same way.
JOB = """export PATH=/bin:/sbin
{given}
scx_roost ab --across-boots {runs} {variants} -n {rounds} --seed 1 --result /tmp/ab.jsonl {resume} \\
    --next-boot 'echo ::next {{kernel}}' -- {command} </dev/null >/tmp/log 2>&1
status=$?
grep -h ::next /tmp/log
echo "::status $status"
sed 's/^/# /' /tmp/log
base64 -w {width} /tmp/ab.jsonl | sed 's/^/::file /'
exit 0
"""


def job(result, args, variants):
    given = "" if result is None else f"base64 -d >/tmp/ab.jsonl <<'END'\n{base64.encodebytes(result).decode()}END"
    return JOB.format(given=given, runs=args.runs, rounds=args.rounds, command=args.command, width=WIDTH,
                      variants=" ".join(f"--variant {v}" for v in variants), resume="" if result is None else "--resume")


def one_boot(kernel, script, args, seed):
    image = Image(kernel)
    image.program(args.scheduler, "bin/scx_roost")
    for program in {shlex.split(args.command)[0], "base64"}:
        image.program(program)
    image.job(script)
    r = boot(kernel, image, "4", "icount", seed=seed, limit_s=600)
    status = r.events("status")
    if not status:
        raise LabError(f"a boot of {kernel.release} did not end:\n{r.tail()}")
    for line in r.lines:
        if line.startswith("# "):
            say(f"{kernel.release}: {line[2:]}")
    result = base64.b64decode("".join(words[0] for _, words in r.events("file")))
    following = [words[0] for _, words in r.events("next")]
    return int(status[0][1][0]), following, result


def run(args):
    kernels = [Kernel.get(prefix) for prefix in args.kernel or ["7.0", "7.2"]]
    by_release = {k.release: k for k in kernels}
    variants = [f"eevdf@kernel={release}" for release in by_release]
    now, result, boots = kernels[0], None, []
    planned = (args.rounds + 1) * len(kernels)
    # The first boot may be of a kernel that is not due yet.
    for seed in range(planned + 1):
        status, following, result = one_boot(now, job(result, args, variants), args, seed)
        boots.append(now.release)
        say(f"boot {len(boots)}, {now.release}: status {status}, then {' '.join(following) or 'nothing'}")
        if status != DUE:
            break
        now = by_release[following[0]]
    if status != 0:
        raise LabError(f"the comparison ended with status {status} after {len(boots)} boots")
    print(f"{len(boots)} boots: {' '.join(boots)}")
    return result


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--kernel", action="append", help="version prefix; give two or more (default: 7.0 and 7.2)")
    ap.add_argument("-n", "--rounds", type=int, default=3, help="boots of each kernel on average, after one of each (default: 3)")
    ap.add_argument("--runs", type=int, default=2, help="counted runs of each boot (default: 2)")
    ap.add_argument("--result", help="keep the result file here")
    ap.add_argument("--scheduler", default=str(TOP / "target/release/scx_roost"), help="the binary under test")
    ap.add_argument("--check", action="store_true", help="a test: the last line has its sums")
    ap.add_argument("command", nargs="*", help="the command that is compared")
    args = ap.parse_args()
    args.command = shlex.join(args.command) if args.command else WORKLOAD
    try:
        result = run(args)
    except NoSuchKernel as e:
        return outcome(args, 0, f"skip across boots: {e}", "0 passed, 0 failed, 1 skipped")
    except LabError as e:
        return outcome(args, 1, str(e), "0 passed, 1 failed, 0 skipped")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(args.result or Path(folder) / "ab.jsonl")
        path.write_bytes(result)
        shown = subprocess.run([args.scheduler, "ab", "show", path]).returncode
    return outcome(args, shown, "", f"{int(not shown)} passed, {int(bool(shown))} failed, 0 skipped")


def outcome(args, status, why, sums):
    if why:
        say(why)
    if args.check:
        print(sums, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
