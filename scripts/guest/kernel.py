# SPDX-License-Identifier: GPL-2.0-only
"""Kernels with sched_ext, by version prefix: Debian's, or built from Debian's source. A QEMU that has plugins."""
import hashlib
import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from archive import CACHE, Archive, LabError, codename, fetching, say, version_key

DEFAULT_PREFIX = "7.2"
# The matrix of scripts/test: every kernel series in the archive that has sched_ext and working BTF,
# or that is built here with it; "-rt": built with PREEMPT_RT. 6.13 to 6.15 and 6.17 were never
# tried: no archive has them. Of 7.1 there is only Debian's, whose BTF no scheduler can use: the
# test doctor-btf boots it.
MATRIX = ("6.12", "6.16", "6.18", "6.19", "7.0", "7.2", "7.3", "7.2-rt")
OLDEST, NEWEST = "6.12", "7.3"
SUITES = ("sid", "forky", "trixie-backports", "experimental")
# Series that Debian builds without sched_ext, and the suite whose source package is built here.
BUILT = {"6.12": "trixie"}
HERE = Path(__file__).resolve().parent
RECIPE = (HERE / "build-kernel", HERE / "small-kernel.config")
# Newer series ship vmlinuz and config as two small packages, older ones everything in one.
NAMES = ("linux-binary-{}-{}-amd64", "linux-image-{}-{}-amd64")
RT = "-rt"
PLUGIN_QEMU = (9, 1)


class NoSuchKernel(LabError):
    """The archive answers but lacks this version: a rolling archive drops old ones."""


@dataclass(frozen=True)
class Kernel:
    release: str                # uname -r
    vmlinuz: Path
    config: Path | None         # some releases ship none; libbpf needs it only for kconfig externs

    @staticmethod
    def get(prefix=DEFAULT_PREFIX):
        """The newest Debian kernel whose version starts with prefix, of the rt flavour if that ends with -rt, else of
        the cloud flavour, or one that is built here (BUILT); once there it is kept.
        ROOST_KERNEL (and ROOST_KCONFIG) name an image to be used in place of the default kernel."""
        given = os.environ.get("ROOST_KERNEL")
        if given and prefix == DEFAULT_PREFIX:
            return _given(Path(given))
        if kept := _kept(prefix):
            return kept
        with fetching():
            return _kept(prefix) or _fetch(prefix)


def _kept(prefix):
    """The newest in the cache, or None."""
    if prefix in BUILT:
        return _load(_built(prefix))
    have = [k for k in _cached() if _matches(prefix, k.release)]
    return max(have, key=lambda k: version_key(k.release), default=None)


def _given(path):
    if not path.is_file():
        raise LabError(f"ROOST_KERNEL={path} is not a file: name a bzImage with sched_ext")
    config = os.environ.get("ROOST_KCONFIG")
    return Kernel(image_release(path), path, Path(config) if config else None)


def image_release(path):
    """uname -r of a bzImage, from the version string that its boot header points to."""
    head = path.read_bytes()[:0x10000]
    if head[0x202:0x206] != b"HdrS":
        raise LabError(f"{path} is not an x86 kernel image (no boot header): name a bzImage")
    at = struct.unpack_from("<H", head, 0x20e)[0] + 0x200
    return head[at:head.index(b"\0", at)].split()[0].decode()


def _flavour(prefix):
    return "rt" if prefix.endswith(RT) else "cloud"


def _matches(prefix, release):
    """Whether a release has the version and the flavour of prefix; a prefix without flavour matches any."""
    if RT in release and _flavour(prefix) != "rt" or "-cloud" in release and _flavour(prefix) != "cloud":
        return False
    version = prefix.removesuffix(RT)
    return release == version or (release.startswith(version) and not release[len(version)].isdigit())


def _cached():
    return [k for d in sorted(CACHE.glob("kernel/*")) if ".partial" not in d.name and (k := _load(d))]


def _load(root):
    images = [*root.glob("usr/lib/modules/*/vmlinuz"), *root.glob("boot/vmlinuz-*")]
    if not images:
        return None
    configs = [*root.glob("usr/lib/modules/*/config"), *root.glob("boot/config-*")]
    return Kernel(image_release(images[0]), images[0], configs[0] if configs else None)


def _built(series):
    """Where a kernel is that this recipe builds."""
    recipe = hashlib.sha256(b"".join(p.read_bytes() for p in RECIPE)).hexdigest()
    return CACHE / "built" / f"{series}-{recipe[:12]}"


def _build(series):
    """A small kernel with sched_ext, from Debian's source: some ten minutes of CPU time, once."""
    archive, package = Archive(f"source-{series}", (BUILT[series],)), f"linux-source-{series}"
    archive.update()
    if not archive.has(package):
        raise NoSuchKernel(f"{package} is not in Debian's suite {BUILT[series]}: set ROOST_KERNEL to a kernel image")
    dest = _built(series)
    # What an interrupted build has left goes; its make may still write there.
    for left in dest.parent.glob("*.building.*"):
        shutil.rmtree(left, ignore_errors=True)
    work = dest.with_name(f"{dest.name}.building.{os.getpid()}")
    try:
        archive.unpack([package], work)
        say(f"building Linux {series} with sched_ext (once, some 15 minutes of CPU time)")
        tar = next((work / "usr/src").glob("*.tar.xz"))
        subprocess.run(["tar", "-C", work, "--strip-components=1", "-xf", tar], check=True)
        subprocess.run([RECIPE[0], work], check=True)
        (work / "kept/boot").mkdir(parents=True)
        image = work / "arch/x86/boot/bzImage"
        release = image_release(image)
        image.rename(work / f"kept/boot/vmlinuz-{release}")
        (work / ".config").rename(work / f"kept/boot/config-{release}")
        shutil.rmtree(dest, ignore_errors=True)
        (work / "kept").rename(dest)
    except (subprocess.CalledProcessError, OSError) as e:
        raise LabError(f"Linux {series} does not build ({e}): see the messages above, and 'df {CACHE}'") from e
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"kernel {release} is in {dest}")
    return _load(dest)


def _fetch(prefix):
    if prefix in BUILT:
        return _build(prefix)
    archive = Archive("kernels", SUITES)
    archive.update()
    flavour = _flavour(prefix)
    for pattern in NAMES:
        head, tail = pattern.format("|", flavour).split("|")
        found = [n[len(head):-len(tail)] for n in archive.names(head) if n.endswith(tail)]
        found = [v for v in found if _matches(prefix, v)]
        if not found:
            continue
        version = max(found, key=version_key)
        packages = [pattern.format(version, flavour)]
        base = f"linux-base-{version}-{flavour}-amd64"
        if archive.has(base):
            packages.append(base)
        dest = CACHE / "kernel" / (version if flavour == "cloud" else f"{version}-{flavour}")
        archive.unpack(packages, dest)
        kernel = _load(dest)
        if kernel is None:
            raise LabError(f"the packages {' '.join(packages)} hold no vmlinuz: set ROOST_KERNEL to a kernel image")
        shutil.rmtree(dest / "usr/lib/modules" / kernel.release / "kernel", ignore_errors=True)
        say(f"kernel {kernel.release} is in {dest}")
        return kernel
    raise NoSuchKernel(f"no kernel package for version {prefix} is in the Debian suites {', '.join(SUITES)}: "
                       "name another version, or set ROOST_KERNEL to a kernel image")


@dataclass(frozen=True)
class Qemu:
    cmd: tuple                  # program, and -L options if its data are beside it
    version: tuple

    @staticmethod
    def system():
        """The QEMU of this machine's own distribution."""
        exe = os.environ.get("ROOST_QEMU") or shutil.which("qemu-system-x86_64")
        if not exe:
            raise LabError("qemu-system-x86_64 was not found: install it (Debian: apt-get install qemu-system-x86), "
                           "or set ROOST_QEMU")
        return Qemu((exe,), _qemu_version((exe,)))

    @staticmethod
    def with_plugins():
        """A QEMU whose plugin interface is reliable (9.1 or later): the system's, else one kept in the cache.
        From 8.1 on icount's time is divided among the virtual CPUs. Before, one of them could use up the time until
        the next timer: in QEMU 7.2 with 2 CPUs, the other had no event for up to 956 ms; in QEMU 10.0 for 2.9 ms."""
        if os.environ.get("ROOST_QEMU") or shutil.which("qemu-system-x86_64"):
            q = Qemu.system()
            if q.version >= PLUGIN_QEMU:
                return q
        archive = Archive("qemu", (f"{codename()}-backports",))
        dest = archive.fetched(CACHE / "qemu", lambda: ["qemu-system-x86", "qemu-system-data", "seabios"])
        cmd = (str(dest / "usr/bin/qemu-system-x86_64"),
               "-L", str(dest / "usr/share/qemu"), "-L", str(dest / "usr/share/seabios"))
        return Qemu(cmd, _qemu_version(cmd))

    @staticmethod
    def for_tests():
        """ROOST_QEMU; else the one with plugins, for the sake of its fair icount; else the system's."""
        if os.environ.get("ROOST_QEMU"):
            return Qemu.system()
        try:
            return Qemu.with_plugins()
        except LabError as e:
            old = Qemu.system()
            say(f"QEMU {old.version[0]}.{old.version[1]} does the tests, which may starve a virtual CPU: {e}")
            return old


def _qemu_version(cmd):
    p = subprocess.run([*cmd, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    m = re.search(r"version (\d+)\.(\d+)", p.stdout)
    if not m:
        raise LabError(f"{cmd[0]} does not start ({p.stdout.strip().splitlines()[:1]}): "
                       "install the libraries of qemu-system-x86, or set ROOST_QEMU")
    return int(m.group(1)), int(m.group(2))
