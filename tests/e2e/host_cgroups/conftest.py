"""Tests on this host's own control groups. They need root and cgroup v1 with the CPU controller."""

import os

import pytest

from fallow_core.errors import CgroupError
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy


@pytest.fixture(scope="session")
def hierarchy() -> Hierarchy:
    """The CPU controller of this host."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    try:
        found = find("cpu", Files())
    except CgroupError as error:
        pytest.skip(str(error))
    if found.version != 1:
        pytest.skip("needs the CPU controller on cgroup v1")
    if not os.access(found.path("", "cgroup.procs"), os.W_OK):
        pytest.skip(f"{found.mount} cannot be written")
    return found
