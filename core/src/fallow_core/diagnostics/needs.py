"""Whether this host has what a plugin says that it needs (`Plugin.needs`)."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import hierarchies
from fallow_core.node.procfs import PROC_ROOT
from fallow_hookspecs import Finding, Needs

CAPABILITIES = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_FOWNER": 3,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_NET_ADMIN": 12,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_NICE": 23,
    "CAP_SYS_RESOURCE": 24,
}
"""The numbers of capabilities(7), without those that no plugin can have a use for."""


def findings(needs: Needs, host_root: Path) -> Iterator[Finding]:
    """One finding for each need."""
    for need in needs.kernel_features:
        check = next((check for name, check in FEATURES.items() if re.match(rf"{name}\b", need, re.IGNORECASE)), None)
        yield _finding("kernel feature", need, check and check(host_root), "use a kernel that has it")
    for need in needs.capabilities:
        name = _first_word(need)
        has = not missing_capabilities([name]) if name in CAPABILITIES else None
        yield _finding("capability", need, has, "run Fallow as root, or with this capability")
    for need in needs.files:
        path = _first_word(need)
        readable = os.access(path, os.R_OK) if path.startswith("/") else None
        yield _finding("file", need, readable, "create it, and let Fallow's user read it")
    for rule in needs.rbac_rules:
        text = "; ".join(f"{key}: {_words(value)}" for key, value in rule.items())
        yield Finding(subject="needs RBAC rule", ok=None, detail=f"{text}; is checked on Kubernetes")


def missing_capabilities(names: Iterable[str], proc_root: Path = PROC_ROOT) -> list[str]:
    """Those that this process does not have in effect."""
    status = (proc_root / "self" / "status").read_text()
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    effective = 0 if found is None else int(found[1], 16)
    return [name for name in names if not effective >> CAPABILITIES[name] & 1]


def _has_cgroup(version: int, host_root: Path) -> bool:
    found, _ = hierarchies(Files(), str(host_root))
    return any(hierarchy.version == version for hierarchy in found.values())


def _has_pidfd(_: Path) -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


FEATURES: dict[str, Callable[[Path], bool]] = {
    "cgroup v1": lambda host_root: _has_cgroup(1, host_root),
    "cgroup v2": lambda host_root: _has_cgroup(2, host_root),
    "pidfd": _has_pidfd,
    "psi": lambda _: os.access(PROC_ROOT / "pressure" / "memory", os.R_OK),
}
"""The kernel features that can be checked."""


def _finding(kind: str, need: str, ok: bool | None, advice: str) -> Finding:
    words = {True: "there", False: "missing", None: "cannot be checked here"}
    return Finding(subject=f"needs {kind}", ok=ok, detail=f"{need}: {words[ok]}", advice="" if ok else advice)


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _first_word(need: str) -> str:
    return re.split(r"[\s,]", need, maxsplit=1)[0]
