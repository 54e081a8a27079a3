"""What Fallow itself needs of this host and its user."""

import os
from collections.abc import Iterator
from pathlib import Path

from fallow_core.diagnostics.needs import missing_capabilities
from fallow_core.node.kernel_events import KernelEvents
from fallow_core.node.procfs import PROC_ROOT
from fallow_core.node.quick_probe import QuickProbe
from fallow_core.state import directory
from fallow_core.state.run_marker import RunMarker
from fallow_hookspecs import Finding, trusted_path

NEEDED_CAPABILITIES = ("CAP_DAC_READ_SEARCH", "CAP_SYS_PTRACE")
"""What reading `/proc/PID/fd` of other users takes."""


def findings(state_dir: Path, host_root: Path) -> Iterator[Finding]:
    """All findings."""
    yield processes_of_others(PROC_ROOT)
    yield _state_dir(state_dir)
    yield _reaction(host_root)


def last_run(state_dir: Path) -> Iterator[Finding]:
    """How the last run ended, if not in order. To be asked while none runs."""
    if (last := RunMarker(state_dir).last_run()) is not None:
        detail = (
            f"process {last.pid or '(unknown)'}, begun {last.since or '(unknown)'}, did not stop in order: {last.why}"
        )
        advice = "see the last lines of its log; with too little memory, raise MemoryMax= of its unit"
        yield Finding(subject="last run", ok=None, detail=detail, advice=advice)


def processes_of_others(proc_root: Path) -> Finding:
    """Whether this process may inspect the processes of other users."""
    subject = "processes of other users"
    missing = missing_capabilities(NEEDED_CAPABILITIES, proc_root)
    if not missing:
        return Finding(subject=subject, ok=True, detail="can be inspected")
    return Finding(
        subject=subject,
        ok=None,
        detail=f"cannot be inspected without {' and '.join(missing)}: their NodeManagers are found by name only",
        advice=f"run Fallow as root, as the NodeManager's user, or with {' and '.join(NEEDED_CAPABILITIES)}",
    )


def _state_dir(path: Path) -> Finding:
    subject = "state directory"
    try:
        trusted_path.make_folder(path, directory.MODE, directory.user_of(path))
        probe = path / ".doctor"
        os.close(trusted_path.create(probe))
        probe.unlink()
    except OSError as error:
        advice = "set stateDir to a directory that Fallow's user can write, and that outlives a restart"
        return Finding(subject=subject, ok=False, detail=f"{path}: {error.strerror}", advice=advice)
    return Finding(subject=subject, ok=True, detail=f"{path} can be written")


def _reaction(host_root: Path) -> Finding:
    """Whether Fallow notices pressure and new tasks at once."""
    subject = "reaction"
    events, quick = KernelEvents(lambda _: None, lambda: None), QuickProbe(host_root=str(host_root))
    try:
        missing = [f"{what}: {why}" for what, why in events.missing.items()]
        missing += [f"CPU besides batch: {quick.missing}"] if quick.missing else []
    finally:
        events.close()
        quick.close()
    if not missing:
        return Finding(subject=subject, ok=True, detail="kernel events report pressure and new tasks")
    return Finding(
        subject=subject,
        ok=None,
        detail=f"without these kernel events Fallow only probes at intervals: {'; '.join(missing)}",
        advice="give Fallow CAP_SYS_RESOURCE, on a kernel with CONFIG_PSI that was not booted with psi=0",
    )
