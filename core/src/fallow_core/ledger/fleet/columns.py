"""How some thousand nodes are laid out: a record for each node, and for each of its rows.

A node's rows lie in its first slots, sorted by key, each an account of its own. What has two values is by resource, in
the order of `RESOURCE_NAMES`. Times are NaN where there is none.
"""

import numpy as np

from fallow_core.ledger.fleet.arrays import Records

RESOURCES = 2

NODE = np.dtype(
    [
        ("capacity", np.int64, RESOURCES),
        ("outside", np.int64, RESOURCES),
        ("kept", np.int64, RESOURCES),
        ("online", np.int64, RESOURCES),
        ("measured_at", np.float64, RESOURCES),
        ("watched_since", np.float64),
        ("workloads_at", np.float64),
        ("policy", np.int32),
        ("zones", np.int8, RESOURCES),
        ("rows", np.int8),
        ("daemons", np.int8),
        ("unsure", np.bool_),
        ("awaited", np.bool_),
    ]
)
"""`outside`: used by neither batch nor pods and host applications. `kept`: what a kubelet does not give to pods.
`online`: what pods and host applications count with. `policy`: its number in `Policies`. `zones`, `rows`: how many.
`daemons`: rows that are not gone.
"""

ZONE = np.dtype([("capacity", np.int64, RESOURCES), ("outside", np.int64, RESOURCES), ("online", np.int64, RESOURCES)])
"""The same of a NUMA zone."""

ROW = np.dtype(
    [
        ("allocated", np.int64, RESOURCES),
        ("in_force", np.int64, RESOURCES),
        ("newest", np.int64, RESOURCES),
        ("belief", np.int64, RESOURCES),
        ("floor", np.int64, RESOURCES),
        ("maximum", np.int64, RESOURCES),
        ("measured_at", np.float64),
        ("refreshed_at", np.float64),
        ("refused_at", np.float64),
        ("account", np.int32),
        ("running", np.bool_),
        ("known", np.bool_),
        ("astray", np.bool_),
    ]
)
"""`in_force` is 0 where it is not known (`known`). `newest`, `belief`: as in `RowEntry`. `maximum`: the largest size
that the framework can use, in whole units. `account`: its number in `Accounts`. `astray`: the newest size is to be sent
again, and is not the one in force, or a deadline of somebody else may be running.
"""


def empty(nodes: int) -> Records:
    """Nodes without rows that were never measured."""
    found = np.zeros(nodes, NODE)
    found["measured_at"] = found["watched_since"] = found["workloads_at"] = np.nan
    return found
