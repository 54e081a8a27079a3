from pathlib import Path

import pytest
from plugins.yarn.tests.proc_fakes import FakeProc

from fallow_yarn.nm import procfs
from fallow_yarn.nm.procfs import ProcessReader, Stat, read_all


def test_a_process_whose_text_is_the_same_is_not_parsed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, reader, parse = FakeProc(tmp_path), ProcessReader(tmp_path), procfs._parsed
    parsed: list[bytes] = []

    def parsing(raw: bytes) -> Stat | None:
        parsed.append(raw)
        return parse(raw)

    monkeypatch.setattr(procfs, "_parsed", parsing)
    first = reader.read_all()
    host.add(400, start=901)
    parsed.clear()
    second = reader.read_all()
    assert len(parsed) == 1
    assert second[1] is first[1]
    assert second[400].start_ticks == 901
    assert second == read_all(tmp_path)


def test_an_ended_process_is_forgotten(tmp_path: Path) -> None:
    host, reader = FakeProc(tmp_path), ProcessReader(tmp_path)
    reader.read_all()
    host.end(400)
    assert 400 not in reader.read_all()
    assert "400" not in reader._read
