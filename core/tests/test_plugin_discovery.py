import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from fallow_core.errors import PluginLoadError
from fallow_core.model.plugin import PluginSource
from fallow_core.plugins import discovery

GOOD = """
    from fallow_hookspecs import Plugin
    PLUGIN = Plugin(name="alpha", api_levels=(0, 0), config_model=dict, build=print)
"""


def failure(name: str) -> str:
    with pytest.raises(PluginLoadError) as caught:
        discovery.load(name)
    return str(caught.value)


def test_listing_reads_metadata_and_imports_nothing(install: Any) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", "raise AssertionError('imported')")
    assert (
        PluginSource(name="alpha", distribution="fallow-alpha", version="1.2", target="fake_alpha:PLUGIN")
        in discovery.installed()
    )
    assert "fake_alpha" not in sys.modules


def test_only_the_plugin_asked_for_is_imported(install: Any) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", GOOD)
    install("fallow-beta", "beta = fake_beta:PLUGIN", "raise AssertionError('imported')")
    loaded = discovery.load("alpha")
    assert loaded.plugin.name == "alpha"
    assert str(loaded.source) == "plugin 'alpha' of fallow-alpha 1.2 (fake_alpha:PLUGIN)"
    assert "fake_beta" not in sys.modules


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import module_that_is_nowhere", "ModuleNotFoundError: No module named 'module_that_is_nowhere'"),
        ("\n\n1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("PLUGIN = (", "SyntaxError: '(' was never closed"),
        ("", "AttributeError"),
    ],
)
def test_a_failing_import_names_distribution_version_and_reason(install: Any, source: str, reason: str) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", source)
    text = failure("alpha")
    assert "plugin 'alpha' of fallow-alpha 1.2 (fake_alpha:PLUGIN) cannot be imported" in text
    assert reason in text


def test_a_failing_import_names_the_line_in_the_plugins_file(install: Any, tmp_path: Path) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", "x = 1\n1 / 0\n")
    assert f"({tmp_path / 'site' / 'fake_alpha.py'}:2)" in failure("alpha")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('name="alpha", api_levels=(1, 2)', "written for API levels 1 to 2, this Fallow has level 0"),
        ('name="alpha", api_levels=None', "has the api_levels None"),
        ('name="other", api_levels=(0, 0)', "it calls itself 'other'"),
    ],
)
def test_a_plugin_that_does_not_fit_is_refused(install: Any, arguments: str, reason: str) -> None:
    source = f"from fallow_hookspecs import Plugin\nPLUGIN = Plugin({arguments}, config_model=dict, build=print)\n"
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", source)
    assert reason in failure("alpha")


def test_an_entry_point_that_names_something_else_is_refused(install: Any) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", "PLUGIN = 'alpha'")
    assert "it names a str, not a fallow_hookspecs.Plugin" in failure("alpha")


def test_a_name_that_two_distributions_claim_is_refused_with_both(install: Any) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", GOOD)
    install("other-alpha", "alpha = fake_other:PLUGIN", GOOD)
    text = failure("alpha")
    assert "fallow-alpha 1.2 (fake_alpha:PLUGIN) and other-alpha 1.2 (fake_other:PLUGIN)" in text
    assert {"fake_alpha", "fake_other"}.isdisjoint(sys.modules)


def test_a_name_that_is_not_installed_is_answered_with_the_nearest(install: Any) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", GOOD)
    assert failure("alhpa") == "plugin 'alhpa' is not installed; did you mean 'alpha'?"


def test_damaged_metadata_of_one_distribution_hides_no_other(
    install: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", GOOD)
    damaged = tmp_path / "site" / "damaged-1.0.dist-info"
    damaged.mkdir()
    (damaged / "entry_points.txt").write_text("[fallow.plugins]\nno equals sign\n")
    with caplog.at_level(logging.WARNING):
        assert "alpha" in [source.name for source in discovery.installed()]
    assert "damaged-1.0.dist-info" in caplog.text


@pytest.mark.parametrize("spelling", ["fallow-alpha", "fallow_alpha", "Fallow.Alpha"])
def test_a_shadowed_copy_of_a_distribution_is_no_second_claim_however_its_name_is_spelled(
    install: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    install("fallow-alpha", "alpha = fake_alpha:PLUGIN", GOOD)
    older = tmp_path / "older" / "fallow_alpha-1.0.dist-info"
    older.mkdir(parents=True)
    (older / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {spelling}\nVersion: 1.0\n")
    (older / "entry_points.txt").write_text("[fallow.plugins]\nalpha = fake_alpha:PLUGIN\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "older")])
    assert discovery.load("alpha").source.version == "1.2"
