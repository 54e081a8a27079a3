from fallow_core.node.cgroups.hierarchy import Hierarchy


def test_found(hierarchy: Hierarchy) -> None:
    assert (hierarchy.version, hierarchy.mount) == (2, "/sys/fs/cgroup")
