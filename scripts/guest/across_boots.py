#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compares two kernels by 'scx_roost ab --across-boots', to see that it works: each boot is a guest, which gets the
result file of the one before and continues it with --resume, as a machine does after each boot. Prints the report.
The last line is 'N passed, N failed, N skipped'."""
import base64
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from lab import Image, Kernel, LabError, NoSuchKernel, boot, say      # noqa: E402
from sums import Sums                                                 # noqa: E402

ROOST = Path(__file__).resolve().parents[2] / "target/release/scx_roost"
KERNELS = ("7.0", "7.2")
# Boots of each kernel on average, after one of each.
ROUNDS = 3
# The exit status of 'ab' when another boot is due.
DUE = 3

# What a boot does: the result so far comes as base64, and goes out the same way.
JOB = """export PATH=/bin:/sbin
{given}
scx_roost ab --across-boots 2 {variants} -n {rounds} --seed 1 --result /tmp/ab.jsonl {resume} \\
    --next-boot 'echo ::next {{kernel}}' -- stress-ng -q --switch 2 --switch-ops 300 </dev/null >/tmp/log 2>&1
status=$?
grep -h ::next /tmp/log
echo "::status $status"
sed 's/^/# /' /tmp/log
base64 -w 900 /tmp/ab.jsonl | sed 's/^/::file /'
exit 0
"""


def job(result, releases):
    given = "" if result is None else f"base64 -d >/tmp/ab.jsonl <<'END'\n{base64.encodebytes(result).decode()}END"
    variants = " ".join(f"--variant eevdf@kernel={release}" for release in releases)
    return JOB.format(given=given, rounds=ROUNDS, variants=variants, resume="" if result is None else "--resume")


def one_boot(kernel, script, seed):
    image = Image(kernel)
    for program in (ROOST, "stress-ng", "base64"):
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


def compared():
    """The result file, after all boots."""
    by_release = {k.release: k for k in map(Kernel.get, KERNELS)}
    now, result, boots = next(iter(by_release.values())), None, []
    # The first boot may be of a kernel that is not due yet.
    for seed in range((ROUNDS + 1) * len(KERNELS) + 1):
        status, following, result = one_boot(now, job(result, by_release), seed)
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
    sums = Sums()
    try:
        with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
            file.write(compared())
            file.flush()
            shown = subprocess.run([ROOST, "ab", "show", file.name])
        sums.say(shown.returncode == 0, "a comparison across boots")
    except NoSuchKernel as e:
        sums.skip(f"across boots: {e}")
    except LabError as e:
        sums.say(False, f"across boots: {e}")
    return sums.end()


if __name__ == "__main__":
    sys.exit(main())
