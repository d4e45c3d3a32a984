# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts of boots that repeat to the byte. With icount a boot is a function of kernel, image, QEMU and arguments: when
all of its tests have passed, the same boot need not be done again. The key is the SHA-256 of these inputs."""
import functools
import hashlib
import json
import os
from pathlib import Path

from archive import CACHE
from machine import command


@functools.cache
def _digest_of_file(path):
    return hashlib.sha256(Path(path).read_bytes()).digest()


def key(kernel, image, topology, accel, qemu, append):
    """None: such a boot does not repeat."""
    if accel != "icount":
        return None
    words = command(kernel, "initrd", topology, accel, qemu, 0, append, (), "log", False)
    total = hashlib.sha256()
    for part in (_digest_of_file(kernel.vmlinuz), _digest_of_file(os.path.realpath(qemu.cmd[0])), image.digest(),
                 json.dumps([str(w) for w in words if str(w) != str(kernel.vmlinuz)]).encode()):
        total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()


class Memory:
    """One small file for each boot that passed: the names of its tests, and how long they took in the guest."""

    def __init__(self, folder=CACHE / "passed"):
        self.folder = folder

    def recall(self, key, names):
        """Seconds of each test. None: this boot is not known."""
        try:
            seconds = json.loads((self.folder / key).read_text())
            return {name: float(seconds[name]) for name in names}
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def keep(self, key, seconds):
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f"{key}.{os.getpid()}"
        part.write_text(json.dumps(seconds))
        part.rename(self.folder / key)
