# SPDX-License-Identifier: GPL-2.0-only
"""A guest whose first process is systemd: Debian's package and the libraries it needs, unpacked into the cache.
There is no journal and no bus: systemctl talks to systemd itself."""
from archive import CACHE, Archive, codename
from image import OF_THE_HOST

PROGRAMS = ("lib/systemd/systemd", "lib/systemd/systemd-executor", "bin/systemctl", "bin/systemd-sysusers")

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
    for name in PROGRAMS:
        image.unpacked(tree, name)
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
