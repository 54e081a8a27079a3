"""The part of `fallow status` that is about the process: its files, its plugin instances, and its host."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fallow_hookspecs import ResourceName


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """`building` and `failed`: clusters whose plugin instance is not there, and why. `not_selected`: clusters whose
    `nodeSelector` does not match this host, and why. `changed_groups`: the control
    groups that differ from how they were found, each with what went wrong with its last change.
    """

    uptime_seconds: float
    config_file: str
    config_problems: list[str]
    refused_files: list[dict[str, Any]]
    building: list[str]
    failed: Mapping[str, str]
    not_selected: Mapping[str, str]
    sample_problems: Mapping[ResourceName, str]
    probe_problems: list[str]
    throttle_problems: list[str]
    changed_groups: Mapping[str, str]
