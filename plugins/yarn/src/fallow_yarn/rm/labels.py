"""Reads the cluster's node labels by REST: whether each is exclusive."""

from collections.abc import Mapping
from typing import Final

from fallow_yarn.http.loose_json import objects, text
from fallow_yarn.http.web import Web
from fallow_yarn.net.deadline import Deadline

PAGE: Final = "/ws/v1/cluster/get-node-labels"


def read_labels(web: Web, deadline: Deadline) -> Mapping[str, bool]:
    """The labels, and whether the idle capacity of a node is closed to requests without its label: exclusive."""
    answer = web.decoded_if_found(PAGE, deadline, dict)
    entries = objects((answer or {}).get("nodeLabelInfo"))
    return {text(entry.get("name")): str(entry.get("exclusivity")).lower() != "false" for entry in entries}
