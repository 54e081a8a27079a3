"""A Debian kernel for the guest, and the first file system that it boots from, in a cache shared by all runs.

The packages are downloaded by the host's apt and unpacked; nothing is installed.
"""

import fcntl
import lzma
import os
import re
import shutil
import struct
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MODULES = ("virtio_pci", "virtio_console", "virtio_blk", "9pnet_virtio", "9p", "overlay")
"""What the guest loads before it has its files, besides what these need themselves."""
XZ = b"\xfd7zXZ\0"


class GuestError(Exception):
    """The guest could not be made or did not come up."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel, and an archive with busybox and the modules in it, in the order in which they are loaded."""

    image: Path
    base: Path


def cache_folder() -> Path:
    """Where downloads are kept: $FALLOW_CACHE, else ~/.cache/fallow."""
    return Path(os.environ.get("FALLOW_CACHE") or Path.home() / ".cache" / "fallow")


def kernel(cache: Path) -> Kernel:
    """The kernel in the cache; the first time it is downloaded.

    :raises GuestError: it could not be.
    """
    folder = cache / "guest"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "guest.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            with tempfile.TemporaryDirectory(dir=cache, prefix="guest-") as part:
                _make(Path(part), Path(part) / "done")
                (Path(part) / "done").rename(folder)
    return Kernel(folder / "kernel", folder / "base.cpio")


def archive(files: Iterable[tuple[str, int, bytes]]) -> bytes:
    """An archive that the kernel unpacks at boot, of (path, mode, content), in the format that it calls `newc`."""
    out = bytearray()
    for number, (path, mode, content) in enumerate([*files, ("TRAILER!!!", 0, b"")], 1):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        for part in (b"070701" + b"".join(b"%08x" % field for field in fields) + name, content):
            out += part + b"\0" * (-len(part) % 4 if part is content else -(len(out) + len(part)) % 4)
    return bytes(out)


def output(*command: str, folder: Path | None = None) -> str:
    """What a command prints.

    :raises GuestError: it failed, with what it says.
    """
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise GuestError(f"needs {command[0]}, of Debian") from error
    if done.returncode:
        raise GuestError(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def _make(part: Path, done: Path) -> None:
    try:
        packages = _download(part)
    except GuestError:
        output("apt-get", "-q", "update")  # a new machine has no lists of packages yet
        packages = _download(part)
    for package in packages:
        _unpack(package, part / "tree")
    tree = {path.name: path for path in (part / "tree").rglob("*") if path.is_file()}
    done.mkdir()
    image = next(path for name, path in tree.items() if name.startswith("vmlinuz-"))
    (done / "kernel").write_bytes(_uncompressed(image.read_bytes()))
    names = _in_order(tree)
    files = [("bin", 0o040755, b""), ("bin/busybox", 0o100755, tree["busybox"].read_bytes())]
    files += [(f"{at:02}-{name}.ko", 0o100644, _module(tree, name)) for at, name in enumerate(names)]
    (done / "base.cpio").write_bytes(archive(files))
    shutil.rmtree(part / "tree")


def _download(folder: Path) -> list[Path]:
    newest = re.search(
        r"Depends: (linux-image-\S+)", output("apt-cache", "depends", "--important", "linux-image-amd64")
    )
    if newest is None:
        raise GuestError("apt-cache knows no kernel that linux-image-amd64 stands for")
    for name in (newest[1], "busybox-static"):
        output("apt-get", "-o", "APT::Sandbox::User=root", "download", name, folder=folder)
    return list(folder.glob("*.deb"))


def _unpack(package: Path, into: Path) -> None:
    """The kernel, its modules and busybox of a package, as far as they are in it."""
    with (
        subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as reading,
        tarfile.open(fileobj=reading.stdout, mode="r|") as members,
    ):
        for member in members:
            if member.isfile() and re.search(r"/(busybox|vmlinuz-[^/]*|[^/]*\.ko(\.xz)?)$", member.name):
                members.extract(member, into, filter="data")


def _uncompressed(image: bytes) -> bytes:
    """The kernel proper, if the image holds it in a format that Python knows: a guest without KVM would unpack it for
    many seconds. Where it is, the boot protocol says: Documentation/arch/x86/boot.rst."""
    start = (image[0x1F1] + 1) * 512 + struct.unpack_from("<I", image, 0x248)[0]
    return lzma.LZMADecompressor().decompress(image[start:]) if image[start:].startswith(XZ) else image


def _module(tree: dict[str, Path], name: str) -> bytes:
    for file in (f"{name}.ko", f"{name}.ko.xz"):
        if file in tree:
            content = tree[file].read_bytes()
            return lzma.decompress(content) if content.startswith(XZ) else content
    return b""  # it is built in


def _in_order(tree: dict[str, Path]) -> list[str]:
    """The modules that are loaded, each after those that it names as needed."""
    order: list[str] = []

    def add(name: str) -> None:
        content = _module(tree, name)
        needed = re.search(rb"\0depends=([^\0]*)\0", content)
        for other in needed[1].decode().split(",") if needed else ():
            add(other)
        if content and name not in order:
            order.append(name)

    for name in MODULES:
        add(name)
    return order
