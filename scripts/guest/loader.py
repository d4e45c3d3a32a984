# SPDX-License-Identifier: GPL-2.0-only
"""A guest with scx_loader of the crate registry, built with our patch, and what it talks to: Debian's message bus and
polkit."""
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from archive import CACHE, Archive, LabError, codename
from image import OF_THE_HOST

TOP = Path(__file__).resolve().parents[2]
PATCH = TOP / "contrib/scx/scx_loader.patch"
CRATE, VERSION = "scx_loader", "1.1.3"
PACKAGES = ("dbus-bin", "dbus-daemon", "polkitd")
PROGRAMS = ("bin/dbus-daemon", "bin/dbus-send", "lib/polkit-1/polkitd")
# A package of this name and no content, to have cargo fetch the crate.
FETCH = f"""[package]
name = "fetch"
version = "0.0.0"
edition = "2024"
[lib]
path = "lib.rs"
[dependencies]
{CRATE} = "={VERSION}"
"""


def add(image):
    image.program(_built(), f"bin/{CRATE}")
    tree = _tree()
    for name in PROGRAMS:
        image.unpacked(tree, name)


def _tree():
    archive = Archive("loader", (codename(),))

    def packages():
        needed = {p for package in PACKAGES for p in archive.needed_by(package)}
        return sorted(p for p in needed
                      if p in PACKAGES or p.startswith("lib") and "perl" not in p and p not in OF_THE_HOST)

    return archive.fetched(CACHE / "loader" / codename(), packages)


def _built():
    """The program. It is built again when the patch or this file is newer."""
    folder = TOP / "target/guest" / f"{CRATE}-{VERSION}"
    exe = folder / "target/release" / CRATE
    if exe.exists() and exe.stat().st_mtime > max(p.stat().st_mtime for p in (PATCH, Path(__file__))):
        return exe
    shutil.rmtree(folder, ignore_errors=True)
    # New times, so that cargo builds what was patched.
    shutil.copytree(_source(), folder, copy_function=shutil.copyfile)
    # Git must not take it for a folder of our repository.
    _run("git", "apply", str(PATCH), cwd=folder, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)})
    _run("cargo", "build", "--release", "--locked", "--quiet", "--target-dir", "target", cwd=folder)
    return exe


def _source():
    """The crate as the registry has it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Cargo.toml").write_text(FETCH)
        Path(folder, "lib.rs").touch()
        described = json.loads(_run("cargo", "metadata", "--format-version", "1", cwd=folder))
    found = (p["manifest_path"] for p in described["packages"] if p["name"] == CRATE)
    return Path(next(found)).parent


def _run(*cmd, **how):
    p = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
    if p.returncode:
        raise LabError(f"{' '.join(cmd)} failed for {CRATE} {VERSION}: {p.stderr.strip()}")
    return p.stdout
