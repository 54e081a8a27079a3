"""Fetching, with tools that are not the real ones: failures and interruptions, which real downloads show too seldom."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.e2e.yarn.jars import JarsError, fetch

JAVAC = """#!/bin/sh
while [ "$1" != -d ]; do shift; done
echo class >"$2/Launch.class"
"""
MVN = """#!/bin/sh
echo try >>"{tries}"
if [ $(wc -l <"{tries}") -le {failures} ]; then echo 'Could not transfer artifact'; exit 1; fi
sleep 0.1
for option; do case "$option" in -DoutputDirectory=*) echo jar >"${{option#*=}}/hadoop.jar";; esac; done
"""


def put_tools(folder: Path, monkeypatch: pytest.MonkeyPatch, failures: int) -> Path:
    """Put stand-ins for mvn and javac on the PATH; mvn fails as often as told. Returns the file with a line a try."""
    tries = folder / "tries"
    for name, text in (("javac", JAVAC), ("mvn", MVN.format(tries=tries, failures=failures))):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return tries


def test_a_failed_download_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = put_tools(tmp_path, monkeypatch, failures=2)
    jars = fetch("9.9.9", tmp_path / "cache", pause_seconds=0)
    assert [file.name for file in jars.lib.iterdir()] == ["hadoop.jar"]
    assert tries.read_text().count("try") == 3


def test_a_download_that_goes_on_failing_is_reported_with_mavens_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_tools(tmp_path, monkeypatch, failures=99)
    with pytest.raises(JarsError, match="mvn failed:\nCould not transfer artifact"):
        fetch("9.9.9", tmp_path / "cache", pause_seconds=0)


def test_an_interrupted_fetch_is_done_again_and_a_complete_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = put_tools(tmp_path, monkeypatch, failures=0)
    jars = fetch("9.9.9", tmp_path / "cache")
    jars.lib.rename(f"{jars.lib}.part")
    (jars.lib.with_name(jars.lib.name + ".part") / "half.jar").touch()
    jars.helper.rename(f"{jars.helper}.part")
    for _ in range(2):
        fetch("9.9.9", tmp_path / "cache")
        assert [file.name for file in jars.lib.iterdir()] == ["hadoop.jar"]
        assert jars.helper.exists()
    assert tries.read_text().count("try") == 2


def test_of_two_fetches_at_once_one_waits_for_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries = put_tools(tmp_path, monkeypatch, failures=0)
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(fetch, "9.9.9", tmp_path / "cache") for _ in range(2)]
    assert both[0].result() == both[1].result()
    assert tries.read_text().count("try") == 1
