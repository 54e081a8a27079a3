"""Says what a node's label means for what is lent there. Pure."""

from collections.abc import Iterable

from fallow_hookspecs import Finding
from fallow_yarn.rm.applications import Request


def label(node_id: str, name: str, exclusive: bool | None, requests: Iterable[Request] | None) -> Finding:
    """The finding about a node with a label.

    :param exclusive: whether idle capacity there is closed to requests without the label; `None` if that is unknown.
    :param requests: what is pending in the cluster; `None` if that is unknown.
    """
    subject = f"label of {node_id}"
    waiting = "what is pending is unknown"
    if requests is not None:
        found = list(requests)
        own, default = (sum(r.containers for r in found if r.label == wanted) for wanted in (name, ""))
        waiting = f"pending now: {own} containers for {name}, {default} for the default partition"
    if exclusive is False:
        detail = f"{name}, not exclusive: requests for {name} are served first, others use what is idle; {waiting}"
        return Finding(subject=subject, ok=True, detail=detail)
    kind = "exclusive" if exclusive else "taken for exclusive, as it could not be read"
    return Finding(
        subject=subject,
        ok=None,
        detail=f"{name}, {kind}: only requests for {name} can use what is lent here; {waiting}",
        advice=f"let the queues of batch access {name} and their applications request it, or let all applications use"
        f" idle capacity there by a label that is not exclusive: yarn rmadmin -addToClusterNodeLabels"
        f" '{name}(exclusive=false)', after it was removed",
    )
