import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
# In parts, so that this file does not hold the names that it looks for.
REGISTRY_HOSTS = [
    ".".join(parts).encode()
    for parts in [
        ("pypi", "org"),
        ("files", "pythonhosted", "org"),
        ("repo1", "maven", "org"),
        ("repo", "maven", "apache", "org"),
        ("registry", "npmjs", "org"),
        ("proxy", "golang", "org"),
        ("crates", "io"),
        ("deb", "debian", "org"),
    ]
]


def files_in_git() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    paths = [ROOT / name for name in listed.decode().split("\0") if name]
    assert paths
    return [path for path in paths if path.is_file()]


def test_no_file_names_the_host_of_a_package_registry() -> None:
    # Which registry serves a build is the business of the machine that builds.
    found = [
        f"{path.relative_to(ROOT)}: {host.decode()}"
        for path in files_in_git()
        for host in REGISTRY_HOSTS
        if host in path.read_bytes()
    ]
    assert found == []


def test_no_lock_file_is_in_git() -> None:
    assert [path for path in files_in_git() if path.name == "uv.lock"] == []


def test_all_distributions_have_the_version_of_the_file() -> None:
    checked = subprocess.run(
        [sys.executable, "tools/version.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stdout) == (0, "")
