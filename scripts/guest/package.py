# SPDX-License-Identifier: GPL-2.0-only
"""A guest with Debian's dpkg, and with two versions of our package for it to install."""
import os
import subprocess
import tempfile
from pathlib import Path

from archive import LabError

TOP = Path(__file__).resolve().parents[2]
# dpkg refuses to run without the first four.
PROGRAMS = ("ldconfig", "start-stop-daemon", "rm", "tar", "dpkg", "dpkg-deb", "dpkg-query", "dpkg-split")
REVISIONS = ("1", "2")


def add(image, scheduler):
    """The packages hold this scheduler. dpkg believes that the host's libraries are installed: they are there."""
    for program in PROGRAMS:
        image.program(program, f"usr/sbin/{program}")
    with tempfile.TemporaryDirectory() as folder:
        for revision in REVISIONS:
            deb = _built(scheduler, revision, folder)
            image.file(deb, f"tests/{revision}.deb")
        needs = _output("dpkg-deb", "--field", str(deb), "Depends")
    names = [need.split()[0] for need in needs.split(",")]
    image.data("var/lib/dpkg/status", "\n".join(map(_known, names)).encode())


def _known(name):
    """dpkg's record of a package; the guest's systemd is not the host's."""
    version = "252" if name == "systemd" else _output("dpkg-query", "--show", "--showformat", "${Version}", name)
    return (f"Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n"
            "Maintainer: none\nDescription: in the guest\n")


def _built(scheduler, revision, folder):
    cmd = [TOP / "scripts/deb", "--binary", os.path.abspath(scheduler), "--revision", revision, "--output", folder]
    # Same input, same bytes.
    p = subprocess.run(cmd, env={**os.environ, "SOURCE_DATE_EPOCH": "1"}, text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode:
        raise LabError(f"the package is not built: {p.stderr.strip()}")
    return p.stdout.strip()


def _output(*cmd):
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        raise LabError(f"{' '.join(cmd)}: {p.stderr.strip()}")
    return p.stdout
