"""Prints at the end of the run which wrong plugin broke which clause, and what the suite said of it."""

import pytest

SAID = pytest.StashKey[list[str]]()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(SAID, [])
    if lines:
        terminalreporter.section("clauses, the plugins that break them, and what the suite said")
        for line in lines:
            terminalreporter.write_line(line)
