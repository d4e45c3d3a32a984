# SPDX-License-Identifier: GPL-2.0-only
"""Boots that repeat to the byte. With icount a boot is a function of kernel, image, QEMU and arguments: when all of its
tests have passed, the same boot need not be done again. The key is the SHA-256 of these inputs, and of the scripts that
judge what the guest prints."""
import functools
import hashlib
import json
import os
import shutil
from pathlib import Path

from archive import CACHE
from machine import command

HERE = Path(__file__).resolve().parent
# Debian's QEMU 7.2 loads its emulation as modules.
QEMU_MODULES = "/usr/lib/x86_64-linux-gnu/qemu"


@functools.cache
def _digest(path, _mtime, _size):
    return hashlib.sha256(Path(path).read_bytes()).digest()


def digest_of_file(path):
    """Read again when the file has changed."""
    stat = os.stat(path)
    return _digest(str(path), stat.st_mtime_ns, stat.st_size)


def _files_of_qemu(cmd):
    """The program, its modules, and the firmware in the folders of its -L options."""
    program = Path(os.path.realpath(shutil.which(cmd[0]) or cmd[0]))
    folders = [Path(folder) for flag, folder in zip(cmd, cmd[1:]) if flag == "-L"]
    folders.append(Path(QEMU_MODULES))
    return [program, *(p for folder in folders for p in sorted(folder.rglob("*")) if p.is_file())]


def key(kernel, image, topology, accel, qemu, append, seed=0):
    """None: such a boot does not repeat."""
    if accel != "icount":
        return None
    words = [str(w) for w in command(kernel, "initrd", topology, accel, qemu, seed, append, (), "log", False)]
    judges = sorted(HERE.glob("*.py"))
    total = hashlib.sha256()
    for part in (digest_of_file(kernel.vmlinuz), image.digest(), *map(digest_of_file, _files_of_qemu(qemu.cmd)),
                 *map(digest_of_file, judges),
                 json.dumps([w for w in words if w not in (str(kernel.vmlinuz), *qemu.cmd)]).encode()):
        total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()


class Memory:
    """One small file for each boot that passed: the names of its tests, and how long they took in the guest. For
    scripts/chaos: what the guest printed, which is judged again."""

    def __init__(self, folder=CACHE / "passed"):
        self.folder = folder

    def recall(self, key, read):
        """What READ makes of the file. None: this boot is not known."""
        try:
            return read(json.loads((self.folder / key).read_text()))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def settle(self, key, good, what):
        """Keeps WHAT of a boot that is good, and forgets any other."""
        if not good:
            (self.folder / key).unlink(missing_ok=True)
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f"{key}.{os.getpid()}"
        part.write_text(json.dumps(what))
        part.rename(self.folder / key)
