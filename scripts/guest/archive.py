# SPDX-License-Identifier: GPL-2.0-only
"""Packages of other Debian suites, fetched with apt's own client and unpacked into the cache. Nothing is installed."""
import contextlib
import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

CACHE = Path(os.environ.get("ROOST_CACHE") or "~/.cache/scx_roost").expanduser()
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
INDEX_MAX_AGE_S = 12 * 3600


class LabError(Exception):
    """One sentence for the user: the expectation, the finding, and the remedy."""


def say(text):
    print(f"{Path(sys.argv[0]).stem}: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def fetching():
    """One process fetches at a time. Whoever waited looks again whether it still has to. A process that fetches inside
    of another fetch would wait for itself."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "fetching", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that fetches packages")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def mirror():
    """The Debian archive that this machine's own apt uses; no script names a host."""
    given = os.environ.get("ROOST_MIRROR")
    if given:
        return given.rstrip("/")
    fmt = "$(LABEL)|$(REPO_URI)"
    out = subprocess.run(["apt-get", "indextargets", "--format", fmt, "Created-By: Packages"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    rows = [line.split("|", 1) for line in out.splitlines() if "|" in line]
    for label, uri in rows:
        # The label is known only after the lists were updated; the path is the fallback.
        if label == "Debian" or uri.rstrip("/").endswith("/debian"):
            return uri.rstrip("/")
    raise LabError("no Debian archive was found in this machine's apt sources: "
                   "set ROOST_MIRROR to one, or ROOST_KERNEL to a sched_ext kernel image of your own")


def codename():
    """The Debian release of this machine."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "stable")


class Archive:
    """A private package index over some suites: its own source list, lists and cache."""

    def __init__(self, name, suites):
        self.dir = CACHE / "apt" / name
        self.suites = suites

    def _options(self):
        return ["-o", f"Dir::Etc::sourcelist={self.dir}/sources.list", "-o", "Dir::Etc::sourceparts=/dev/null",
                "-o", f"Dir::State::Lists={self.dir}/lists", "-o", f"Dir::Cache={self.dir}/cache",
                "-o", "Dir::State::status=/dev/null", "-o", "Acquire::Languages=none",
                "-o", "APT::Sandbox::User=root", "-o", "APT::Architecture=amd64"]

    def _run(self, *cmd, cwd=None):
        p = subprocess.run([cmd[0], *self._options(), *cmd[1:]], cwd=cwd, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if p.returncode:
            why = (p.stderr.strip().splitlines() or ["no message"])[-1]
            raise LabError(f"'{cmd[0]} {cmd[1]}' on the Debian suites {', '.join(self.suites)} failed ({why}): "
                           "check the network and the apt sources of this machine")
        return p.stdout

    def update(self, force=False):
        stamp = self.dir / "updated"
        if not force and stamp.exists() and time.time() - stamp.stat().st_mtime < INDEX_MAX_AGE_S:
            return
        for d in ("lists/partial", "cache/archives/partial"):
            (self.dir / d).mkdir(parents=True, exist_ok=True)
        signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
        base = mirror()
        (self.dir / "sources.list").write_text(
            "".join(f"deb {signed}{base} {suite} main\n" for suite in self.suites))
        say(f"reading the package index of {', '.join(self.suites)}")
        self._run("apt-get", "update", "-q")
        stamp.touch()

    def names(self, prefix):
        return self._run("apt-cache", "pkgnames", prefix).split()

    def has(self, package):
        return package in self.names(package)

    def needed_by(self, package):
        """It and all packages that it depends on, one of each alternative."""
        kinds = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
        cmd = ("apt-cache", "depends", "--recurse", *(f"--no-{kind}" for kind in kinds), package)
        try:
            out = self._run(*cmd)
        except LabError:
            # An index could not be read whole.
            self.update(force=True)
            out = self._run(*cmd)
        return sorted(set(re.findall(r"^([a-z0-9][^\s:]*)$", out, re.M)))

    def fetched(self, dest, packages):
        """The folder dest with the packages that the function names, fetched once."""
        if not dest.exists():
            with fetching():
                if not dest.exists():
                    self.update()
                    self.unpack(packages(), dest)
        return dest

    def unpack(self, packages, dest):
        """Download the packages and unpack them under dest, which never holds a partial result."""
        tmp = Path(f"{dest}.partial.{os.getpid()}")
        shutil.rmtree(tmp, ignore_errors=True)
        debs = tmp / "debs"
        debs.mkdir(parents=True)
        say(f"downloading {' '.join(packages)}")
        try:
            self._run("apt-get", "download", "-q", *packages, cwd=debs)
        except LabError:
            # The suites roll: an older index may name files that are gone.
            self.update(force=True)
            self._run("apt-get", "download", "-q", *packages, cwd=debs)
        for deb in sorted(debs.glob("*.deb")):
            subprocess.run(["dpkg-deb", "-x", str(deb), str(tmp)], check=True)
        shutil.rmtree(debs)
        shutil.rmtree(dest, ignore_errors=True)
        tmp.rename(dest)


def version_key(text):
    """Sort key of a kernel release: 7.2.13+deb14 after 7.2.9+deb13."""
    return [int(n) for n in re.findall(r"\d+", text)]
