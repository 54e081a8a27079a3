"""Tests on a real kernel with cgroup v2 alone. They run as root in a guest that `guest.py` boots."""

import os

import pytest

from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy


@pytest.fixture(scope="session")
def hierarchy() -> Hierarchy:
    """The CPU controller of the guest's kernel."""
    if "FALLOW_GUEST" not in os.environ:
        pytest.skip("runs in the guest: tox -e guest")
    return find("cpu", Files())
