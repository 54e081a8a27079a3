import os
from pathlib import Path

import pytest

from fallow_core.diagnostics import needs
from fallow_hookspecs import Finding, Needs

HOST = Path("/")


def found(**changes: tuple[object, ...]) -> list[Finding]:
    return list(needs.findings(Needs(**changes), HOST))  # type: ignore[arg-type] # of the right types


@pytest.mark.parametrize(
    ("need", "ok"),
    [
        ("pidfd", True),
        ("pidfd (Linux 5.3), to terminate a container", True),
        ("PSI, to notice pressure", False),
        ("cgroup v3", None),
        ("pidfds", None),
        ("a kernel of ours", None),
    ],
)
def test_a_kernel_feature_is_checked_by_the_words_that_it_begins_with(
    need: str, ok: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pidfd_open", lambda _: os.open("/dev/null", os.O_RDONLY))
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    (finding,) = found(kernel_features=(need,))
    words = {True: "there", False: "missing", None: "cannot be checked here"}
    assert (finding.subject, finding.ok, finding.detail) == ("needs kernel feature", ok, f"{need}: {words[ok]}")
    assert bool(finding.advice) is (ok is not True)


def test_a_kernel_without_pidfd_lacks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> int:
        raise OSError("no such call")

    monkeypatch.setattr(os, "pidfd_open", fail)
    assert found(kernel_features=("pidfd",))[0].ok is False


def test_exactly_the_mounted_versions_of_cgroups_are_there() -> None:
    mounted = Path("/proc/self/mountinfo").read_text()
    expected = " - cgroup2 " in mounted or " - cgroup " in mounted
    assert any(finding.ok for finding in found(kernel_features=("cgroup v1", "cgroup v2"))) is expected


def test_capabilities_are_those_in_effect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text(f"CapEff:\t{1 << 5:016x}\n")
    assert needs.missing_capabilities(["CAP_KILL", "CAP_SYS_ADMIN"], tmp_path) == ["CAP_SYS_ADMIN"]
    monkeypatch.setattr(needs, "missing_capabilities", lambda names: [name for name in names if name != "CAP_KILL"])
    findings = found(capabilities=("CAP_KILL, to end jobs", "CAP_SYS_ADMIN", "CAP_OF_MINE"))
    assert [finding.ok for finding in findings] == [True, False, None]


def test_a_file_must_be_readable(tmp_path: Path) -> None:
    (tmp_path / "there").touch()
    findings = found(files=(f"{tmp_path}/there", f"{tmp_path}/gone, the token", "the token of the framework"))
    assert [finding.ok for finding in findings] == [True, False, None]


def test_rbac_rules_are_named_only() -> None:
    (finding,) = found(rbac_rules=({"resources": ["pods"], "verbs": ["get", "list"]},))
    assert (finding.ok, finding.detail) == (None, "resources: pods; verbs: get, list; is checked on Kubernetes")
