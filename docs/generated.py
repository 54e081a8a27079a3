"""The parts of the reference that come from the code, as Markdown: commands, files, metrics, JSON, clauses."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import msgspec
from prometheus_client.core import Metric

from fallow_core.api.explain import Explanation
from fallow_core.api.operations import Adopted, CheckResult, Forgotten, LostStateAccepted, Restored, Switched
from fallow_core.api.status import Status
from fallow_core.api.tasks import Tasks
from fallow_core.cli.main import fallow
from fallow_core.config.load import load
from fallow_core.config.template import CORE_TEMPLATE, cluster_template
from fallow_core.plugins import discovery
from fallow_core.runtime.agent import AgentProcess
from fallow_core.runtime.standalone import Standalone
from fallow_hookspecs.testing import CLAUSES

ANSWERS: Mapping[str, Any] = {
    "status": Status,
    "explain": Explanation,
    "tasks": Tasks,
    "switch": Switched,
    "adopt": Adopted,
    "accept-lost-state": LostStateAccepted,
    "forget": Forgotten,
    "restore": Restored,
    "doctor": tuple[CheckResult, ...],
}
"""What each command prints with `--json`."""


def commands() -> Iterator[tuple[str, str]]:
    """Every command and its help."""
    yield from _commands(fallow, "fallow", None)


def _commands(command: click.Command, path: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    context = click.Context(command, info_name=path.rsplit(" ", 1)[-1], parent=parent)
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from _commands(below, f"{path} {name}", context)


def cluster_files() -> Iterator[tuple[str, str]]:
    """Every installed plugin and the commented cluster file to start from."""
    for name in sorted(source.name for source in discovery.installed()):
        yield name, cluster_template(discovery.load(name).plugin)


def metric_families() -> dict[str, Metric]:
    """Every metric by the name that it is served with, from a Fallow and an agent that have measured nothing yet."""
    with TemporaryDirectory() as name:
        file = Path(name) / "fallow.yaml"
        file.write_text("apiVersion: fallow/v1\nkind: Fallow\nstateDir: state\n")
        fallow = Standalone(load(file, discovery.load))
        found = fallow.metrics()
        fallow.close()
        agent = AgentProcess(load(file, discovery.load))
        found += agent.metrics()
        agent.close()
        return {f"{each.name}_total" if each.type == "counter" else each.name: each for each in found}


def json_types() -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """The JSON schema of each answer, and of each type that is a part of one, by name."""
    return msgspec.json.schema_components(ANSWERS.values(), ref_template="{name}")


def _json_words(schema: Mapping[str, Any]) -> str:
    """A type as words, with links to other types."""
    match schema:
        case {"$ref": name}:
            return f"[{name}](#{name.lower()})"
        case {"anyOf": parts}:
            return " or ".join(map(_json_words, parts))
        case {"enum": words}:
            return " or ".join(f"`{word}`" for word in words)
        case {"prefixItems": parts}:
            return f"array of {', '.join(map(_json_words, parts))}"
        case {"items": items}:
            return f"array of {_json_words(items)}"
        case {"additionalProperties": values}:
            return f"object of {_json_words(values)}"
    return str(schema["type"])


def _json_page() -> str:
    answers, types = json_types()
    lines = ["| command | prints |", "| --- | --- |"]
    lines += [f"| `fallow {name} --json` | {_json_words(it)} |" for name, it in zip(ANSWERS, answers, strict=True)]
    for name, schema in types.items():
        lines += ["", f"## {name}", "", schema.get("description", "").replace("`None`", "`null`"), ""]
        if fields := schema.get("properties"):
            rows = [f"| `{field}` | {_json_words(part)} |" for field, part in fields.items()]
            lines += ["| field | type |", "| --- | --- |", *rows]
        else:
            lines.append(_json_words(schema))
    return "\n".join(lines)


def _commands_page() -> str:
    return "\n".join(f"## {path}\n\n```text\n{text}\n```\n" for path, text in commands())


def _core_file_page() -> str:
    return f"```yaml\n{CORE_TEMPLATE}```"


def _cluster_files_page() -> str:
    return "\n".join(f"## plugin: {name}\n\n```yaml\n{text}```\n" for name, text in cluster_files())


def _metrics_page() -> str:
    rows = [
        f"| `{name}` | {family.type} | {', '.join(family._labelnames)} | {family.documentation} |"  # type: ignore[attr-defined]  # noqa: SLF001 - told only with samples, and there are none yet
        for name, family in metric_families().items()
    ]
    return "\n".join(["| metric | type | labels | what it says |", "| --- | --- | --- | --- |", *rows])


def _clauses_page() -> str:
    rows = [f"| `{clause.id}` | {clause.text} |" for clause in CLAUSES.values()]
    return "\n".join(["| clause | what it says |", "| --- | --- |", *rows])


PAGES: Mapping[str, Callable[[], str]] = {
    "commands": _commands_page,
    "core_file": _core_file_page,
    "cluster_files": _cluster_files_page,
    "metrics": _metrics_page,
    "json": _json_page,
    "clauses": _clauses_page,
}
"""What a line `% generated: NAME` of a page stands for."""
