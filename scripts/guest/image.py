# SPDX-License-Identifier: GPL-2.0-only
"""The guest's root file system: an initramfs with fixed times, owners and inode numbers. Same input, same bytes."""
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path, PurePath

from archive import CACHE, LabError

INIT = Path(__file__).resolve().parent / "init"
TABLES = Path(__file__).resolve().parents[2] / "src/bpf"
EMPTY_DIRS = "bin sbin proc sys dev tmp run var etc boot root".split()
# A default path of the dynamic loader.
LIBRARIES = "lib/x86_64-linux-gnu"
# Packages whose files the guest has of the host: they come with its other programs.
OF_THE_HOST = {"libc6", "libc-bin", "libgcc-s1"}
DIR_MODE, PROGRAM_MODE, FILE_MODE = 0o040755, 0o100755, 0o100644


class Image:
    """The content of the guest. A job is a shell script that init runs; then the guest powers off."""

    def __init__(self, kernel=None):
        self.files = {}         # path without leading slash -> (mode, bytes)
        # The static one: the guest has no other shell.
        self.program("busybox")
        self.file(INIT, "init", PROGRAM_MODE)
        self.data("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
        self.data("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
        if kernel and kernel.config:
            self.file(kernel.config, f"boot/config-{kernel.release}")

    def data(self, dst, content, mode=FILE_MODE):
        self.files[dst.strip("/")] = (mode, content)

    def file(self, src, dst, mode=FILE_MODE):
        self.data(dst, Path(src).read_bytes(), mode)

    def program(self, src, dst=None):
        """A program and the libraries that the host's loader finds for it. src may be a name on PATH."""
        path = shutil.which(str(src))
        if not path:
            raise LabError(f"the program {src} was not found: run scripts/setup, which installs what the guest needs")
        self.file(os.path.realpath(path), dst or f"bin/{Path(path).name}", PROGRAM_MODE)
        out = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        for lib in re.findall(r"(/\S+)", out):
            if os.path.exists(lib):
                self.file(lib, lib, PROGRAM_MODE)

    def unpacked(self, tree, name):
        """A program of the packages that were unpacked to the folder tree, with its libraries."""
        search = [tree / LIBRARIES, tree / "usr" / LIBRARIES, tree / "usr" / LIBRARIES / "systemd"]
        # Newer suites have all of it below /usr; systemd before 254 has no executor.
        src = next((p for p in (tree / name, tree / "usr" / name) if p.exists()), None)
        if src:
            self.file(src, name, PROGRAM_MODE)
            for lib in _libraries(src, search):
                self.file(lib, f"{LIBRARIES}/{Path(lib).name}", PROGRAM_MODE)

    def job(self, script):
        self.data("job", script.encode(), PROGRAM_MODE)

    def _entries(self):
        folders = {str(p) for name in self.files for p in PurePath(name).parents if p.name}
        names = sorted({*EMPTY_DIRS, *self.files, *folders})
        for ino, name in enumerate(names, 1):
            mode, content = self.files.get(name, (DIR_MODE, b""))
            yield _entry(name, ino, mode, content)
        yield _entry("TRAILER!!!", 0, 0, b"")

    def write(self, path):
        with open(path, "wb") as f:
            f.writelines(self._entries())
        return path

    def digest(self):
        """SHA-256 of the output of write()."""
        total = hashlib.sha256()
        for entry in self._entries():
            total.update(entry)
        return total.digest()


def compile_static(src, exe, *flags):
    """A C program for the guest, which has none of the host's libraries. Compiled again when the source, a header
    beside it, a table of the BPF half or this file is newer. Whole at any time, because another run may read it."""
    inputs = (src, Path(__file__), *src.parent.glob("*.h"), *TABLES.glob("*.tbl.h"))
    if exe.exists() and exe.stat().st_mtime > max(p.stat().st_mtime for p in inputs):
        return exe
    exe.parent.mkdir(parents=True, exist_ok=True)
    part = exe.with_suffix(f".{os.getpid()}")
    cmd = [os.environ.get("CC", "gcc"), "-O2", "-Wall", "-Werror", "-static", "-pthread", *flags]
    if subprocess.run([*cmd, "-o", part, src, "-lm"]).returncode:
        raise LabError(f"{src.name} does not compile: see the messages above")
    part.replace(exe)
    return exe


def _libraries(program, search):
    env = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, search))}
    p = subprocess.run(["ldd", str(program)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    missing = re.findall(r"(\S+) => not found", p.stdout)
    if p.returncode or missing:
        raise LabError(f"{program} lacks {', '.join(missing) or 'its loader'}: remove the folder of {CACHE} that it is "
                       "in, so that it is fetched again")
    return re.findall(r"=> (/\S+)", p.stdout) + re.findall(r"^\s*(/\S+)", p.stdout, re.M)


def _entry(name, ino, mode, content):
    """One record of the newc format: thirteen hexadecimal words, the name, the content, each padded to four bytes."""
    label = name.encode() + b"\0"
    words = (ino, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(label), 0)
    head = b"070701" + b"".join(b"%08x" % w for w in words) + label
    return head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4)
