# SPDX-License-Identifier: GPL-2.0-only
"""A guest whose first process is systemd: Debian's package and the libraries it needs, unpacked into the cache.
There is no journal and no bus: systemctl talks to systemd itself."""
import os
import re
import subprocess
from pathlib import Path

from archive import CACHE, Archive, LabError, codename
from image import PROGRAM_MODE

PROGRAMS = ("lib/systemd/systemd", "lib/systemd/systemd-executor", "bin/systemctl", "bin/systemd-sysusers")
# A default path of the dynamic loader.
LIBRARIES = "lib/x86_64-linux-gnu"
# The guest's other programs bring these from the host.
OF_THE_HOST = {"libc6", "libc-bin", "libgcc-s1"}

MANAGER = b"[Manager]\nLogLevel=warning\nLogTarget=kmsg\nShowStatus=no\n"
BOOT = b"[Unit]\nRequires=basic.target job.service\nAfter=basic.target\n"
# The job kills all processes before each test, except itself and the first process.
JOB = b"""[Unit]
After=basic.target
[Service]
ExecStart=/bin/sh -c 'exec </dev/null >/dev/ttyS1 2>&1; exec sh /job'
ExecStopPost=/bin/sh -c 'echo "::end $EXIT_STATUS" >/dev/ttyS1; poweroff -f'
Environment=PATH=/bin:/usr/bin:/usr/sbin HOME=/root
LimitNOFILE=65536
LimitMEMLOCK=infinity
"""


def add(image):
    """init goes over to systemd where the image has it, and systemd runs the job."""
    tree = _tree()
    search = [tree / LIBRARIES, tree / "usr" / LIBRARIES, tree / "usr" / LIBRARIES / "systemd"]
    for name in PROGRAMS:
        # Newer suites have all of it below /usr; systemd before 254 has no executor.
        src = next((p for p in (tree / name, tree / "usr" / name) if p.exists()), None)
        if src:
            image.file(src, name, PROGRAM_MODE)
            for lib in _libraries(src, search):
                image.file(lib, f"{LIBRARIES}/{Path(lib).name}", PROGRAM_MODE)
    for target in sorted(tree.glob("**/lib/systemd/system/*.target")):
        if not target.is_symlink():
            image.file(target, f"lib/systemd/system/{target.name}")
    image.data("etc/machine-id", b"0" * 31 + b"1\n")
    image.data("etc/systemd/system.conf", MANAGER)
    image.data("etc/systemd/system/default.target", BOOT)
    image.data("etc/systemd/system/job.service", JOB)


def _tree():
    archive = Archive("systemd", (codename(),))

    def packages():
        return [p for p in archive.needed_by("systemd")
                if p == "systemd" or p.startswith("lib") and p not in OF_THE_HOST]

    return archive.fetched(CACHE / "systemd" / codename(), packages)


def _libraries(program, search):
    env = {**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, search))}
    p = subprocess.run(["ldd", str(program)], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    missing = re.findall(r"(\S+) => not found", p.stdout)
    if p.returncode or missing:
        raise LabError(f"{program.name} of the package systemd lacks {', '.join(missing) or 'its loader'}: "
                       f"remove {CACHE / 'systemd'}, so that it is fetched again")
    return re.findall(r"=> (/\S+)", p.stdout) + re.findall(r"^\s*(/\S+)", p.stdout, re.M)
