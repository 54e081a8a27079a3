"""The pytest plugin: fixtures of the suites, the clause in each failure, and a report as JSON.

Every pytest run loads it where this distribution is installed. So it imports nothing heavy, and its names begin with
`fallow`.
"""

import json
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from fallow_hookspecs.testing.calling import Opener

OPEN_OPTION, REPORT_OPTION, LIVE_OPTION = "--fallow-open", "--fallow-report", "--fallow-live"
IN_PROCESS = "fallow_hookspecs.testing.calling:in_process"
UNABLE = ("UnableError", "NotImplementedHereError")
"""By name, so that only users of the suites import them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the suites."""
    group = parser.getgroup("fallow", "conformance of plugins for Fallow")
    group.addoption(
        OPEN_OPTION,
        default=IN_PROCESS,
        metavar="MODULE:NAME",
        help="the opener of the instances that the suites call (default: in this process)",
    )
    group.addoption(LIVE_OPTION, metavar="FILE", help="the live cluster for fallow_hookspecs.testing.live, as JSON")
    group.addoption(REPORT_OPTION, metavar="FILE", help="write the tested clauses and their results as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark and the report."""
    config.addinivalue_line("markers", "fallow_clause(clause): the clause of the contract that a test tries")
    if target := config.getoption(REPORT_OPTION):
        config.pluginmanager.register(_Report(Path(target)), "fallow-report")


@pytest.fixture(scope="session")
def fallow_open(pytestconfig: pytest.Config) -> "Opener":
    """The opener of instances. Override the fixture, or name another opener with --fallow-open."""
    module, _, name = pytestconfig.getoption(OPEN_OPTION).partition(":")
    opener: Opener = getattr(import_module(module), name)
    return opener


@pytest.fixture
def fallow_framework() -> object:
    """The framework of the suites; the author's tests must provide it."""
    pytest.fail("a suite needs a fixture fallow_framework that gives a fallow_hookspecs.testing.Framework", False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    """Like `pytest_runtest_call`, because an instance may fail before its test begins."""
    if (clause := _clause(item)) is not None:
        item.user_properties.append(("clause", clause.id))
    return (yield from _with_clause(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Skip a test if the framework cannot be brought into its state, and add the clause to a failure."""
    return (yield from _with_clause(item))


def _with_clause(item: pytest.Item) -> Generator[None, Any, Any]:
    try:
        return (yield)
    except (Exception, pytest.fail.Exception) as error:
        clause = _clause(item)
        if clause is not None and type(error).__name__ in UNABLE:
            pytest.skip(str(error))
        if clause is not None:
            error.add_note(str(clause))
        raise


def _clause(item: pytest.Item) -> Any:
    mark = item.get_closest_marker("fallow_clause")
    return None if mark is None else mark.args[0]


class _Report:
    """Collects the result of each test of a clause, and writes all of them at the end."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._entries: list[dict[str, str]] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        clause = _clause(item)
        if clause is not None and (report.when == "call" or not report.passed):
            self._entries.append(
                {
                    "clause": clause.id,
                    "text": clause.text,
                    "test": item.nodeid,
                    "outcome": report.outcome,
                    "message": _message(report),
                }
            )
        return report

    def pytest_sessionfinish(self) -> None:
        from fallow_hookspecs.testing.clauses import CLAUSES

        order = list(CLAUSES)
        entries = sorted(self._entries, key=lambda entry: order.index(entry["clause"]))
        self._target.write_text(json.dumps(entries, indent=2), encoding="utf-8")


def _message(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(getattr(crash, "message", report.longrepr or ""))
