"""`fallow plugins check`: run the conformance suite of a plugin in a separate process, and show the report.

A plugin names the module with its suites by an entry point of the group `fallow.conformance`, under its own name.
"""

import importlib.util
import json
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from fallow_core.errors import PluginLoadError
from fallow_core.node.addresses import host_addresses
from fallow_core.plugins import discovery

ENTRY_POINT_GROUP = "fallow.conformance"
THROUGH_COPILOT = "fallow_core.cli.through_copilot:opened"
LIVE_SUITE = "fallow_hookspecs.testing.live"
TESTS_FAILED = 1  # pytest's own exit codes: 0 and 1 say that it has run
NAMES = {"passed": "passed", "skipped": "not tried", "failed": "FAILED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """The result of one clause. `notes`: why it was not tried, or how it failed."""

    clause: str
    text: str
    outcome: str
    notes: tuple[str, ...]


@click.command("check")
@click.argument("name")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Test against the live cluster of this file: changes nothing there, and skips the tests that need changes.",
)
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Also write the results as JUnit XML.")
@click.option("--copilot", is_flag=True, help="Call the plugin through a copilot instead of in the same process.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def check(name: str, config: Path | None, junit: Path | None, copilot: bool, as_json: bool) -> int:
    """Run the conformance suite of the plugin NAME, and show the result of each clause of the contract."""
    source = discovery.load(name).source
    live = None if config is None else _live(name, config)
    module = suite_of(name) if live is None else LIVE_SUITE
    if importlib.util.find_spec("pytest") is None:
        raise PluginLoadError("the suite needs pytest: pip install 'fallow-hookspecs[testing]'")
    if copilot and importlib.util.find_spec("grpc") is None:
        raise PluginLoadError("a copilot needs grpcio: pip install 'fallow-core[copilot]'")
    more = ["--fallow-open", THROUGH_COPILOT] if copilot else []
    more += ["--junitxml", str(junit.resolve())] if junit else []
    tried = list(by_clause(_run(module, live, more)))
    failed = sum(each.outcome == "failed" for each in tried)
    if as_json:
        entries = [{"clause": t.clause, "text": t.text, "outcome": t.outcome, "notes": t.notes} for t in tried]
        click.echo(json.dumps({"plugin": str(source), "clauses": entries}, indent=2))
    else:
        click.echo("\n".join([f"{source}{', through a copilot' if copilot else ''}", *_lines(tried)]))
    return int(failed > 0)


def suite_of(name: str) -> str:
    """The module with the suites of a plugin.

    :raises PluginLoadError: it ships none.
    """
    for entry in metadata.entry_points(group=ENTRY_POINT_GROUP):
        if entry.name == name:
            return entry.module
    raise PluginLoadError(
        f"plugin {name!r} ships no conformance suite; its pyproject.toml names the module of its suites as\n"
        f'    [project.entry-points."{ENTRY_POINT_GROUP}"]\n    {name} = "my_package.testing.suite"'
    )


def _live(name: str, file: Path) -> dict[str, Any]:
    """What the suite needs to know about the cluster of a file, and about this host.

    :raises ConfigError: the file is wrong.
    """
    from fallow_core.config.load import load_cluster  # brings in pydantic, which `fallow plugins list` need not load

    cluster, spec = load_cluster(file, discovery.load)
    if cluster.plugin.source.name != name:
        raise click.BadParameter(f"{file} is for the plugin {cluster.plugin.source.name!r}", param_hint="--config")
    node = {"name": socket.gethostname(), "addresses": host_addresses()}
    return {"plugin": name, "spec": spec, "roles": sorted(cluster.config.roles), "node": node}


def by_clause(entries: Iterable[dict[str, str]]) -> Iterator[Tried]:
    """The clauses in the order of the report: failed if one test of it failed, else passed if one passed."""
    tests: dict[str, list[dict[str, str]]] = {}
    for entry in entries:
        tests.setdefault(entry["clause"], []).append(entry)
    for clause, found in tests.items():
        outcomes = {entry["outcome"] for entry in found}
        outcome = next(each for each in ("failed", "passed", "skipped") if each in outcomes)
        notes = [_note(entry) for entry in found if entry["outcome"] == outcome and entry["message"]]
        yield Tried(clause=clause, text=found[0]["text"], outcome=outcome, notes=tuple(dict.fromkeys(notes)))


def _note(entry: dict[str, str]) -> str:
    """How a test failed, with its name, or why it was skipped."""
    lines = [line for line in entry["message"].splitlines() if not line.startswith("clause ")]
    text = lines[0] if lines else ""
    return text if entry["outcome"] == "skipped" else f"{entry['test'].rpartition('::')[2]}: {text}"


def _lines(tried: list[Tried]) -> Iterator[str]:
    for each in tried:
        yield f"  {NAMES[each.outcome]:9}  {each.clause:22}  {each.text}"
        yield from (f"{'':13}{note}" for note in each.notes)
    counts = Counter(each.outcome for each in tried)
    parts = ", ".join(f"{counts[outcome]} {name.lower()}" for outcome, name in NAMES.items())
    yield f"{len(tried)} clauses: {parts}"


def _run(module: str, live: dict[str, Any] | None, more: list[str]) -> list[dict[str, str]]:
    """The report of the suites, run in a folder where no file of the caller can change how pytest runs."""
    with tempfile.TemporaryDirectory(prefix="fallow-check-") as folder:
        report, described = Path(folder) / "report.json", Path(folder) / "live.json"
        described.write_text(json.dumps(live), encoding="utf-8")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--rootdir",
            folder,
            "-c",
            "/dev/null",
        ]
        command += [
            "--basetemp",
            str(Path(folder) / "work"),
            "--fallow-report",
            str(report),
            "--fallow-live",
            str(described),
            "--pyargs",
            module,
            *more,
        ]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - itself
        if run.returncode > TESTS_FAILED or not report.exists():
            raise PluginLoadError(f"the suite {module} cannot be run:\n{(run.stdout + run.stderr).strip()}")
        entries: list[dict[str, str]] = json.loads(report.read_text(encoding="utf-8"))
    if not entries:
        raise PluginLoadError(
            f"{module} has no test of a clause: subclass the suites of fallow_hookspecs.testing there"
        )
    return entries
