import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def section(heading: str) -> str:
    found = re.findall(rf"^## {heading}\n(.*?)(?=^## |\Z)", README, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"README.md: expected one heading {heading!r}, found {len(found)}"
    return str(found[0])


def blocks(text: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def readme_line(readme: Path, heading: str) -> "subprocess.CompletedProcess[str]":
    script = readme.parent / "tools" / "readme-line"
    if not script.exists():
        script.parent.mkdir()
        script.write_text((ROOT / "tools" / "readme-line").read_text())
    return subprocess.run(["sh", script, heading], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("heading", ["Try it", "Test it"])
def test_a_heading_of_the_readme_has_one_command_line(heading: str) -> None:
    (block,) = blocks(section(heading))
    assert block.count("\n") == 1
    assert readme_line(ROOT / "README.md", heading).stdout == block


def test_ci_runs_the_line_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert 'line=$(sh tools/readme-line "Test it")' in script
    assert 'exec sh -c "$line"' in script


@pytest.mark.parametrize(
    "text",
    [
        "# Test\n",
        "## Test it\nno block\n## Next\n```sh\ntrue\n```\n",
        "## Test it\n```sh\ntrue\nfalse\n```\n",
        "## Test it\n```sh\ntrue\n```\n```sh\nfalse\n```\n",
        "## Test it\n```sh\n```\n",
        "```sh\n## Test it\n```\n```sh\ntrue\n```\n",
    ],
    ids=["no heading", "no block", "two lines", "two blocks", "empty block", "heading in a block"],
)
def test_a_readme_without_the_one_line_fails_loudly(tmp_path: Path, text: str) -> None:
    (tmp_path / "README.md").write_text(text)
    result = readme_line(tmp_path / "README.md", "Test it")
    assert result.returncode != 0
    assert result.stdout == ""
    assert 'expected one heading "Test it"' in result.stderr
