"""The breaks that `tools/breakages.py` makes on purpose; that tests find them is shown by running it."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def breakages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("breakages", ROOT / "tools" / "breakages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_break_finds_its_place_in_the_source_and_names_tests_that_are_there(breakages: ModuleType) -> None:
    assert [problem for b in breakages.BREAKAGES if (problem := b.problem(ROOT))] == []
    for breakage in breakages.BREAKAGES:
        file, _, name = breakage.tests.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text() if name else (ROOT / file).exists(), breakage.tests


def test_a_break_whose_place_is_gone_says_so(breakages: ModuleType, tmp_path: Path) -> None:
    breakage = breakages.Breakage(rule="a rule", path="a.py", old="x > 1", new="x > 2")
    (tmp_path / "a.py").write_text("x > 1 or x > 1")
    assert "found 2 times" in breakage.problem(tmp_path)
    (tmp_path / "a.py").write_text("if x > 1:")
    assert breakage.problem(tmp_path) == ""
    breakage.apply(tmp_path)
    assert (tmp_path / "a.py").read_text() == "if x > 2:"
