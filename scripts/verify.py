#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Model checking of the policy's C: every order of its races, and the bounds of its ladder; planted
bugs, which both must find. See docs/explanation/testing.md.

    scripts/verify.py [races] [mutants] [ladder]

The last line is 'N passed, N failed, N skipped'."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOP / "tests/verify"), str(TOP / "scripts/guest")]
import ladder                   # noqa: E402
import mutants                  # noqa: E402
from sums import Sums           # noqa: E402

# A search that takes longer than this is considered endless.
TIMEOUT_S = 600


def compiled(out, *words):
    """The compiler makes `out`."""
    command = [os.environ.get("CC") or "cc", "-std=gnu11", "-Wall", "-Wextra", *words, "-o", out]
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if p.returncode:
        raise RuntimeError(f"{out.name}: {p.stdout}")
    return out


def build_explorer(out):
    """The parts without code of the policy."""
    here = TOP / "tests" / "verify"
    return [compiled(out / f"{name}.o", "-O2", "-c", here / f"{name}.c")
            for name in ("explore", "tsan")]


def build_races(explorer, top, out):
    """The explorer with the C of a tree: the compiler marks each access to memory for it."""
    policy = compiled(out / "races.o", "-DROOST_NATIVE", "-Wno-unused-function", "-O1",
                      "-fsanitize=thread", "-c", top / "tests" / "verify" / "races.c")
    return compiled(out / "races", *explorer, policy)


def explored(races, scenario, memory, quiet):
    """The explorer's result of a scenario: '' or the error, and the number of states seen."""
    env = {**os.environ, **({"EXPLORE_QUIET": "1"} if quiet else {})}
    try:
        p = subprocess.run([races, scenario, memory], stdout=subprocess.PIPE, text=True, env=env,
                           timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"not explored in {TIMEOUT_S} s", ""
    verdict, _, counts = p.stdout.strip().partition(": ")[2].rpartition(" (")
    if p.returncode not in (0, 1) or not verdict or (p.returncode == 0) != (verdict == "holds"):
        return f"ended with {p.returncode}", ""
    return ("" if verdict == "holds" else verdict), counts.rstrip(")")


def side_by_side(sums, check, items):
    """Runs as many checks at once as there are CPUs; each returns whether it passed, and a text. What
    ends first is said first."""
    def timed(item):
        began = time.monotonic()
        good, text = check(item)
        return good, f"{text}, {time.monotonic() - began:.1f} s"

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for done in as_completed([pool.submit(timed, item) for item in items]):
            sums.say(*done.result())


def check_races(sums, tmp):
    races = build_races(build_explorer(tmp), TOP, tmp)
    names = subprocess.run([races], stdout=subprocess.PIPE, text=True, check=True).stdout.split()

    def check(scenario):
        wrong, counts = explored(races, scenario, "tso", False)
        return not wrong, f"{scenario} tso: {wrong or 'holds'} ({counts})"

    if not names:
        raise RuntimeError("there are no scenarios")
    side_by_side(sums, check, names)


def planted(m, tmp):
    """A copy of the tree with that bug."""
    tree = Path(tempfile.mkdtemp(dir=tmp))
    for part in ("src/bpf", "src/native", "tests/verify"):
        shutil.copytree(TOP / part, tree / part)
    m.plant(tree)
    return tree


def check_mutants(sums, tmp):
    explorer = build_explorer(tmp)

    def check(m):
        tree = planted(m, tmp)
        wrong, _ = explored(build_races(explorer, tree, tree), m.scenario, m.memory, True)
        found = wrong or "not found"
        return wrong == m.found, f"mutant '{m.name}', {m.scenario} {m.memory}: {found}"

    side_by_side(sums, check, mutants.MUTANTS)


def check_ladder(sums, tmp):
    try:
        tools = ladder.Tools(tmp)
    except ladder.Missing as e:
        sums.skip(f"ladder: {e}")
        return

    def check_proof(proof):
        good, said = ladder.prove(tools, TOP, proof)
        return good, f"ladder: {proof}: {said}"

    def check_mutant(m):
        proof = ladder.Proof(m.scenario, ladder.FIRST)
        good, said = ladder.prove(tools, planted(m, tmp), proof)
        return not good and m.found in said, f"ladder, mutant '{m.name}': {said}"

    side_by_side(sums, lambda check: check[0](check[1]), [
        *((check_proof, p) for p in ladder.PROOFS),
        *((check_mutant, m) for m in mutants.LADDER)])


CHECKS = {"races": check_races, "mutants": check_mutants, "ladder": check_ladder}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", nargs="*", choices=[[], *CHECKS], default=[])
    args = parser.parse_args()
    sums = Sums()
    for name in args.check or CHECKS:
        with tempfile.TemporaryDirectory() as tmp:
            try:
                CHECKS[name](sums, Path(tmp))
            except (RuntimeError, OSError, subprocess.SubprocessError) as e:
                sums.say(False, f"{name}: {e}")
    return sums.end()


sys.exit(main())
