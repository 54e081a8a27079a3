"""For `fallow doctor`: what wakes the loop, and what quick looks can see."""

from pathlib import Path

from fallow_core.node.kernel_events import KernelEvents
from fallow_core.node.quick_probe import QuickProbe
from fallow_hookspecs import Finding


def finding(host_root: Path) -> Finding:
    """Whether danger is noticed at once."""
    subject = "reaction"
    wakes, quick = KernelEvents(lambda _: None, lambda: None), QuickProbe(host_root=str(host_root))
    try:
        missing = [f"{what}: {why}" for what, why in wakes.missing.items()]
        missing += [f"CPU besides batch: {quick.missing}"] if quick.missing else []
    finally:
        wakes.close()
        quick.close()
    if not missing:
        return Finding(subject=subject, ok=True, detail="pressure and new tasks wake Fallow")
    return Finding(
        subject=subject,
        ok=None,
        detail=f"it looks by the clock alone where the kernel does not wake it: {'; '.join(missing)}",
        advice="give Fallow CAP_SYS_RESOURCE, on a kernel with CONFIG_PSI that was not booted with psi=0",
    )
