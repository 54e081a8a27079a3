"""Runs pytest as root in a throw-away guest: `python -m tests.e2e.guest.guest [ARGUMENTS OF PYTEST]`.

The guest is qemu without KVM, with a Debian kernel that has cgroup v2 alone, and PSI. It sees this host's files, so the
same Python runs there; what it writes stays in its own memory. Its output and its exit code are those of pytest.
"""

import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from tests.e2e.guest.kernel import GuestError, Kernel, archive, cache_folder, kernel
from tests.e2e.yarn import jars

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
HOSTILE = [ROOT / "tests" / "security" / f"test_task_{name}.py" for name in ("escapes", "hides_memory")]
"""Hostile tasks whose answer is another one on cgroup v2."""
QEMU = "qemu-system-x86_64"
TOOLS = (QEMU, "apt-get", "dpkg-deb")
SECONDS = 900
HADOOP = "3.5.0"
RUNS = "fallow_core.cli.main, fallow_core.cli.run, fallow_core.runtime.standalone, fallow_core.runtime.restore"
MEMORY_MIB, SWAP_MIB = 1024, 256
END = "the guest ends with"
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
set -ex
mkdir -p /proc /sys /dev /host /layer /root
mount -t devtmpfs dev /dev
for module in /*.ko; do insmod $module; done
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=524288,cache=loose host /host
mount -t tmpfs layer /layer
mkdir /layer/new /layer/work
mount -t overlay -o lowerdir=/host,upperdir=/layer/new,workdir=/layer/work root /root
mount -t proc proc /root/proc
mount -t sysfs sys /root/sys
mount -t devtmpfs dev /root/dev
mkdir -p /root/dev/shm
mount -t tmpfs shm /root/dev/shm
mount -t tmpfs run /root/run
mount -t cgroup2 -o nsdelegate cgroup2 /root/sys/fs/cgroup
ip link set lo up
hostname localhost
mkswap /dev/vda
swapon /dev/vda
while [ ! -e /dev/vport0p1 ]; do sleep 0.02; done
exec 3>/dev/vport0p1
{command} </dev/null >&3 2>&3 && code=0 || code=$?
echo "{end} $code" >&3
sleep 600
"""


def main(arguments: list[str]) -> int:
    """Run the tests of this folder in the guest; without qemu say that they are skipped."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    missing += [] if platform.machine() == "x86_64" else ["an x86_64 host"]
    if missing:
        is_failure = os.environ.get("CI") == "true"
        print(f"{'FAILED' if is_failure else 'SKIPPED'} tests/e2e/guest: needs {', '.join(missing)}")
        return int(is_failure)
    pytest = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--confcutdir=tests", "-o", "timeout=180"]
    pytest += [str(HERE), *map(str, HOSTILE), *arguments]
    # Here, so that the guest finds all modules compiled.
    for command in ([*pytest, "--collect-only", "-q"], [sys.executable, "-c", f"import {RUNS}"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stdout, done.stderr)
            return done.returncode
    if all(map(shutil.which, jars.TOOLS)):
        jars.fetch(HADOOP, cache_folder())  # the guest has no network
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the guest ends too
    try:
        return run(kernel(cache_folder()), pytest, SECONDS)
    except GuestError as error:
        print(f"FAILED tests/e2e/guest: {error}")
        return 1


def run(booted: Kernel, command: list[str], seconds: float) -> int:
    """Run a command in a guest, print what it prints, and return its exit code.

    :raises GuestError: the guest came to no end.
    """
    with tempfile.TemporaryDirectory(prefix="fallow-guest-") as folder:
        files = Path(folder)
        init = INIT.format(command=shlex.join(_in_guest(command)), end=END)
        (files / "initrd").write_bytes(booted.base.read_bytes() + archive([("init", 0o100755, init.encode())]))
        with (files / "swap").open("wb") as swap:
            swap.truncate(SWAP_MIB << 20)
        with subprocess.Popen(
            _qemu(booted.image, files), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
        ) as qemu:
            limit = threading.Timer(seconds, qemu.kill)
            limit.start()
            try:
                assert qemu.stdout is not None
                for line in qemu.stdout:
                    if line.startswith(END):
                        return int(line.removeprefix(END))
                    print(line, end="", flush=True)
            finally:
                limit.cancel()
                qemu.kill()
        last = (files / "console").read_text(errors="replace").splitlines()[-30:]
        raise GuestError("\n".join([f"the guest came to no end within {seconds} s; its console says last:", *last]))


def _in_guest(command: list[str]) -> list[str]:
    path = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment = [f"PATH={path}", "HOME=/root", "LANG=C.UTF-8", "FALLOW_GUEST=1", f"CI={os.environ.get('CI', '')}"]
    environment += [f"FALLOW_CACHE={cache_folder().resolve()}"]
    # Imports are slow there: nothing is loaded that is not used.
    environment += ["PYTHONDONTWRITEBYTECODE=1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1", "PYTEST_PLUGINS=pytest_timeout"]
    return ["chroot", "/root", "/usr/bin/env", "-i", "-C", str(ROOT), *environment, *command]


def _qemu(image: Path, files: Path) -> list[str]:
    append = (
        "console=ttyS0 quiet panic=-1 psi=1 cgroup_no_v1=all mitigations=off nokaslr nowatchdog random.trust_cpu=on"
    )
    # fmt: off
    return [
        QEMU, "-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "Nehalem,+rdrand", "-smp", "2",
        "-m", str(MEMORY_MIB), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
        "-kernel", str(image), "-initrd", str(files / "initrd"), "-append", append,
        "-serial", f"file:{files / 'console'}",
        "-device", "virtio-serial-pci",
        "-chardev", "file,id=out,path=/dev/stdout", "-device", "virtserialport,nr=1,chardev=out",
        "-fsdev", "local,id=host,path=/,security_model=none,multidevs=remap,readonly=on",
        "-device", "virtio-9p-pci,fsdev=host,mount_tag=host",
        "-drive", f"file={files / 'swap'},format=raw,if=virtio,cache=unsafe",
    ]
    # fmt: on


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
