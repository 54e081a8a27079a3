from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from core.tests.fake_cgroups import HYBRID, V1, V2, FakeCgroups

from fallow_core.errors import CgroupError
from fallow_core.model.control_file import ControlFile, file_name
from fallow_core.node.cgroups import cpu
from fallow_core.node.cgroups.files import Files
from fallow_core.node.cgroups.find import find
from fallow_core.node.cgroups.hierarchy import Hierarchy


@pytest.mark.parametrize(
    ("version", "mountinfo", "mount"),
    [
        (1, V1, "/sys/fs/cgroup/cpu,cpuacct"),
        (1, HYBRID, "/sys/fs/cgroup/cpu,cpuacct"),
        (2, V2, "/sys/fs/cgroup"),
        (2, V2 + "not a line of it\n\n", "/sys/fs/cgroup"),
    ],
)
def test_the_controller_is_found_where_it_is(version: int, mountinfo: str, mount: str) -> None:
    found = find("cpu", FakeCgroups(version, mountinfo))
    assert (found.version, found.mount, found.root) == (version, mount, "/")


def test_a_hybrid_host_may_have_a_controller_on_v2() -> None:
    v1 = "32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    v2 = "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    found = find("cpu", FakeCgroups(2, v1 + v2))
    assert (found.version, found.mount) == (2, "/sys/fs/cgroup/unified")


def test_in_a_container_the_hosts_tree_is_that_below_the_host_root() -> None:
    own = "50 1 0:29 /docker/c1 /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
    hosts = "60 1 0:29 / /my\\040host/sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    found = find("cpu", FakeCgroups(1, own + hosts), host_root="/my host")
    assert found.mount == "/my host/sys/fs/cgroup/cpu,cpuacct"
    with pytest.raises(CgroupError, match="cpu is mounted below /other"):
        find("cpu", FakeCgroups(1, own + hosts), host_root="/other")


@pytest.mark.parametrize("mountinfo", ["", "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro\n"])
def test_a_host_without_the_controller_says_so(mountinfo: str) -> None:
    with pytest.raises(CgroupError, match="no cgroup hierarchy with the controller cpu is mounted"):
        find("cpu", FakeCgroups(1, mountinfo))


def test_without_proc_it_says_so() -> None:
    with pytest.raises(CgroupError, match="/nowhere/self/mountinfo"):
        find("cpu", Files(), proc_root="/nowhere")


@pytest.mark.parametrize(
    ("root", "line", "group"),
    [
        ("/", "4:cpu,cpuacct:/yarn/c1", "yarn/c1"),
        ("/", "4:cpu,cpuacct:/", ""),
        ("/docker/c1", "4:cpu,cpuacct:/docker/c1/yarn", "yarn"),
        ("/../..", "4:cpu,cpuacct:/../../system.slice/nm.service", "system.slice/nm.service"),
    ],
)
def test_the_group_of_a_process_is_told_below_what_is_mounted(root: str, line: str, group: str) -> None:
    fake = FakeCgroups(1, V1.replace(" / /sys/fs/cgroup/cpu", f" {root} /sys/fs/cgroup/cpu"))
    fake.garbage["/proc/7/cgroup"] = f"9:memory:/x\n{line}\n0::/y\n"
    assert find("cpu", fake).group_of(7) == group


@pytest.mark.parametrize(
    ("root", "text", "why"),
    [
        ("/docker/c1", "4:cpu,cpuacct:/elsewhere\n", "not below /docker/c1"),
        ("/", "4:cpu,cpuacct:/../other\n", "not below /"),
        ("/", "4:cpu,cpuacct:/yarn/c1 (deleted)\n", "was removed"),
        ("/", "9:memory:/x\n", "no group of the controller cpu"),
        ("/", "nonsense\n\n", "no group of the controller cpu"),
    ],
)
def test_a_group_that_cannot_be_named_is_an_error_that_says_why(root: str, text: str, why: str) -> None:
    fake = FakeCgroups(1, V1.replace(" / /sys/fs/cgroup/cpu", f" {root} /sys/fs/cgroup/cpu"))
    fake.garbage["/proc/7/cgroup"] = text
    with pytest.raises(CgroupError, match=why):
        find("cpu", fake).group_of(7)


def test_groups_that_vanish_while_they_are_listed_are_left_out() -> None:
    fake = FakeCgroups()
    fake.add("yarn/c1/sub")
    fake.add("yarn/c2")
    names = fake.hierarchy.below("yarn")
    first = next(names)
    fake.vanish("yarn/c1")
    assert {first, *names} >= {"yarn/c2"}
    assert list(fake.hierarchy.below("gone")) == []


@pytest.mark.parametrize("text", ["", "-1\n", "12 garbage", "\ufffd"])
def test_a_list_of_processes_is_one_or_an_error(text: str) -> None:
    fake = FakeCgroups()
    fake.add("yarn")
    fake.garbage[f"{fake.mount}/yarn/cgroup.procs"] = text
    if text:
        with pytest.raises(CgroupError, match="expected pids"):
            fake.hierarchy.processes("yarn")
    else:
        assert fake.hierarchy.processes("yarn") == []


@pytest.mark.parametrize(
    ("version", "period", "limit", "text"),
    [
        (1, 100_000, Fraction(8), "800000"),
        (1, 100_000, Fraction(5, 1000), "1000"),
        (1, 50_000, Fraction(3, 2), "75000"),
        (2, 100_000, Fraction(2), "200000 100000"),
        (2, 100_000, Fraction(1, 3), "33333 100000"),
    ],
)
def test_a_limit_is_a_quota_in_the_period_that_is_there(version: int, period: int, limit: Fraction, text: str) -> None:
    fake = FakeCgroups(version)
    fake.add("yarn", period=period)
    assert cpu.limit_text(fake.hierarchy, "yarn", limit) == text
    back = cpu.limit_of(fake.hierarchy, "yarn", text)
    assert back is not None
    assert back <= max(limit, Fraction(1000, period))


@pytest.mark.parametrize(("version", "text"), [(1, "-1"), (2, "max 100000"), (2, "max")])
def test_no_limit_is_none(version: int, text: str) -> None:
    fake = FakeCgroups(version)
    fake.add("yarn")
    assert cpu.limit_of(fake.hierarchy, "yarn", text) is None


@pytest.mark.parametrize("text", ["", "0", "-5", "lots", "1.5", "0 100000"])
def test_what_no_kernel_writes_is_an_error_with_the_file(text: str) -> None:
    fake = FakeCgroups()
    fake.add("yarn")
    with pytest.raises(CgroupError, match=r"/cpu,cpuacct/yarn/cpu\.cfs_quota_us: expected a number of microseconds"):
        cpu.limit_of(fake.hierarchy, "yarn", text)
    fake.garbage[f"{fake.mount}/yarn/cpu.cfs_period_us"] = text
    if text != "0 100000":
        with pytest.raises(CgroupError, match="cfs_period_us"):
            cpu.limit_text(fake.hierarchy, "yarn", Fraction(1))


@pytest.mark.parametrize("version", [1, 2])
def test_the_time_that_a_limit_kept_a_group_waiting_is_told_in_seconds(version: int) -> None:
    fake = FakeCgroups(version)
    fake.add("yarn", throttled=3)
    assert cpu.throttled_seconds(fake.hierarchy, "yarn") == 3.0
    assert cpu.throttled_seconds(fake.hierarchy, "gone") is None
    fake.garbage[f"{fake.mount}/yarn/cpu.stat"] = "garbage\nthrottled_time x"
    assert cpu.throttled_seconds(fake.hierarchy, "yarn") is None


def test_a_group_to_which_the_controller_is_not_passed_on_is_not_made() -> None:
    fake = FakeCgroups(2)
    fake.add("system.slice/nm.service", passes_on=False)
    before = fake.values()
    with pytest.raises(CgroupError, match=r"nm\.service does not pass cpu on"):
        fake.hierarchy.make("system.slice/nm.service/fallow.n1", file_name(ControlFile.LIMIT, 2))
    assert fake.values() == before


def test_the_calls_reach_real_files(tmp_path: Path) -> None:
    files, folder = Files(), str(tmp_path / "group")
    files.make(folder)
    files.make(folder)
    (tmp_path / "group" / "value").write_bytes(b"1 \xff\n")
    text = files.read(f"{folder}/value")
    files.write(f"{folder}/value", text)
    assert (tmp_path / "group" / "value").read_bytes() == b"1 \xff\n"
    assert files.folders(str(tmp_path)) == ["group"]
    assert files.identity(folder) == Path(folder).stat().st_ino
    (tmp_path / "group" / "value").unlink()
    files.remove(folder)
    with pytest.raises(FileNotFoundError):
        files.read(f"{folder}/value")


@pytest.mark.parametrize("group", ["..", "../etc", "yarn/../../etc", "yarn/.."])
def test_no_path_of_a_group_leads_out_of_the_hierarchy(tmp_path: Path, group: str) -> None:
    """Whoever names it: a plugin, a file of the state directory, or /proc."""
    (tmp_path / "cgroup" / "yarn").mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "cgroup.procs").write_text("1\n")
    tree = Hierarchy(
        controller="cpu", version=2, mount=str(tmp_path / "cgroup"), root="/", files=Files(), proc_root="/proc"
    )
    calls: list[Callable[[], object]] = [
        lambda: tree.write(group, "cgroup.procs", "2"),
        lambda: tree.read(group, "cgroup.procs"),
        lambda: tree.files.make(tree.path(f"{group}/new")),
        lambda: tree.remove(group),
    ]
    for call in calls:
        with pytest.raises(FileNotFoundError, match="leads out of the hierarchy"):
            call()
    assert (tree.identity(group), tree.has(group, "cgroup.procs")) == (None, False)
    assert (tmp_path / "etc" / "cgroup.procs").read_text() == "1\n"


def test_two_dots_within_a_name_are_a_name() -> None:
    tree = Hierarchy(controller="cpu", version=2, mount="/m", root="/", files=Files(), proc_root="/proc")
    assert tree.path("a..b/..c", "cpu.max") == "/m/a..b/..c/cpu.max"
