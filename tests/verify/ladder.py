# SPDX-License-Identifier: GPL-2.0-only
"""The bounds of the ladder, by cbmc: which parts are proved, on which machines, with what in the place of what."""
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "scripts" / "guest"))
from archive import CACHE, Archive, LabError

SUITE = "trixie"
PACKAGES = ["cbmc", "libc6", "libstdc++6", "libgcc-s1", "minisat"]
UNWIND = "5"
CHECKS = ["--no-standard-checks", "--bounds-check", "--pointer-check", "--div-by-zero-check", "--signed-overflow-check",
          "--undefined-shift-check", "--unwinding-assertions", "--verbosity", "6"]
TIMEOUT_S = 600

# Core, LLC and node of each of the four CPUs.
MACHINES = {
    "two LLCs, each of one core": "{0,0,0},{0,0,0},{1,1,0},{1,1,0}",
    "two nodes, CPU 3 offline": "{0,0,0},{1,0,0},{2,1,1},{9,0,0}",
}

# Functions that place() calls, each with its summary: any answer that it may give.
SUMMARIES = ["scan_and_take:scan_and_take_summary", "scan_llc:scan_and_take_summary",
             "scan_llcs_and_take:scan_llcs_summary", "scan_cores:scan_llcs_summary", "claim_live:claim_live_summary",
             "core_unclaimed:core_unclaimed_summary", "claim_take:claim_take_summary",
             "claim_core_take:claim_take_summary", "core_vacant:core_vacant_summary",
             "take_in_machine:take_in_machine_summary"]
PARTS = {
    "prove_claims": [],
    "prove_scan_cores": ["scan_llc:scan_and_take_summary", "scan_and_take:scan_and_take_summary"],
    "prove_capacity": ["claim_live:claim_live_summary"],
    "prove_fork": SUMMARIES,
    "prove_wakeup": SUMMARIES,
}


@dataclass(frozen=True)
class Proof:
    part: str
    machine: str  # of MACHINES
    asym: bool = False

    def __str__(self):
        unequal = ", unequal CPUs" if self.asym else ""
        return f"{self.part.removeprefix('prove_')} on {self.machine}{unequal}"


FIRST = next(iter(MACHINES))
# The machine that is also taken with unequal CPUs.
ASYM = "two nodes, CPU 3 offline"
PROOFS = [*(Proof(part, machine) for machine in MACHINES for part in PARTS),
          *(Proof(part, ASYM, True) for part in PARTS)]


class Missing(Exception):
    """Why there is no cbmc."""


class Tools:
    """cbmc and its companions: the system's, or Debian's of another suite, unpacked into the cache beside its own C library."""

    def __init__(self, tmp):
        self.tmp = tmp
        self.root = None
        if all(shutil.which(t) for t in ("cbmc", "goto-cc", "goto-instrument")):
            return
        try:
            self.root = Archive("cbmc", (SUITE,)).fetched(CACHE / "cbmc", lambda: PACKAGES)
            self.run("cbmc", "--version")
        except (LabError, OSError, subprocess.CalledProcessError) as e:
            raise Missing(f"no cbmc: {e}") from e

    def run(self, tool, *args, ok=(0,)):
        command = [tool]
        if self.root:
            usr = self.root / "usr"
            command = [usr / "lib64/ld-linux-x86-64.so.2", "--library-path", f"{usr}/lib/x86_64-linux-gnu:{usr}/lib",
                       usr / "bin" / tool]
        p = subprocess.run([*command, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                           timeout=TIMEOUT_S)
        if p.returncode not in ok:
            raise subprocess.CalledProcessError(p.returncode, tool, p.stdout)
        return p.stdout


def compiled(tools, top, proof, tmp):
    out = tmp / "ladder.gb"
    here = top / "tests" / "verify"
    tools.run("goto-cc", f'-DROOST_PORT="{here}/port.cbmc.h"', f"-DASYM={int(proof.asym)}",
              f"-DMACHINE={MACHINES[proof.machine]}", "-o", out, here / "ladder.cbmc.c")
    return out


def replaced(tools, program, calls, tmp):
    for i, call in enumerate(calls):
        out = tmp / f"replaced.{i}.gb"
        tools.run("goto-instrument", "--replace-calls", call, program, out)
        program = out
    return program


def asked(tools, top, proof, tmp):
    """What cbmc says of the proof."""
    program = replaced(tools, compiled(tools, top, proof, tmp), PARTS[proof.part], tmp)
    said = tools.run("cbmc", "--function", proof.part, "--unwind", UNWIND, *CHECKS, program, ok=(0, 10))
    return said.splitlines()


def prove(tools, top, proof):
    """Whether it holds; how much was asked, or what is wrong."""
    with tempfile.TemporaryDirectory(dir=tools.tmp) as tmp:
        try:
            lines = asked(tools, top, proof, Path(tmp))
        except subprocess.TimeoutExpired:
            return False, f"not solved in {TIMEOUT_S} s"
        except subprocess.CalledProcessError as e:
            return False, f"{e}: {e.output}"
    sums = [line.split()[3] for line in lines if line.startswith("** ") and " failed" in line]
    if "VERIFICATION SUCCESSFUL" in lines and sums:
        return True, f"holds ({sums[0]} assertions)"
    wrong = [line for line in lines if line.endswith(": FAILURE")]
    return False, "; ".join(wrong[:3]) or "\n".join(lines[-3:])
