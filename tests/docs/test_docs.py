"""What the documentation, as `tox -e docs` has just built it, must not lack."""

import html
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from docs import generated

import fallow_hookspecs
from fallow_core.config.file_schemas import cluster_schema, core_schema
from fallow_core.model.policy import NodePolicy
from fallow_core.plugins import discovery
from fallow_hookspecs import KillOrder, Veto, hooks
from fallow_hookspecs.testing import CLAUSES

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CORE = ROOT / "core" / "src" / "fallow_core"
BUILT = DOCS / "_build"


def page(name: str) -> str:
    return (BUILT / f"{name}.html").read_text()


def words(name: str) -> str:
    """The text of a page."""
    return html.unescape(re.sub(r"<[^>]+>", "", page(name)))


def keys(schema: Any) -> Iterator[str]:
    """The keys of all mappings of a schema, those of its definitions included."""
    if isinstance(schema, Mapping):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from keys(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from keys(part)


HOOKS = [name for name, value in vars(hooks).items() if hasattr(value, f"{hooks.PROJECT}_spec")]
VALUES = [name for name in fallow_hookspecs.__all__ if inspect.isclass(getattr(fallow_hookspecs, name))]
SCHEMAS = [core_schema(), *(cluster_schema(discovery.load(each.name).plugin) for each in discovery.installed())]


def test_all_four_hooks_are_found() -> None:
    assert HOOKS == ["report_capacity", "list_tasks", "kill_tasks", "set_cgroup_parent"]


@pytest.mark.parametrize("hook", HOOKS)
def test_the_reference_has_every_hook(hook: str) -> None:
    assert f'id="fallow_hookspecs.hooks.{hook}"' in page("reference/hooks")


def test_the_reference_has_every_field_of_json() -> None:
    text = page("reference/json")
    types = generated.json_types()[1]
    fields = [field for schema in types.values() for field in schema.get("properties", {})]
    assert len(fields) > 100
    assert [name for name in types if f'id="{name.lower()}"' not in text] == []
    assert [field for field in fields if f">{field}<" not in text] == []


def test_the_reference_has_every_clause() -> None:
    text = words("reference/conformance").replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    assert [
        clause.id for clause in CLAUSES.values() if clause.id not in text or clause.text.replace("`", "") not in text
    ] == []


@pytest.mark.parametrize("name", VALUES)
def test_the_reference_has_every_class_of_the_contract(name: str) -> None:
    assert re.search(rf'id="fallow_hookspecs\.\w+\.{name}"', page("reference/values") + page("reference/hooks"))


@pytest.mark.parametrize("key", sorted({key for schema in SCHEMAS for key in keys(schema)}))
def test_the_reference_has_every_key_of_the_files(key: str) -> None:
    assert re.search(rf"\b{key}\b", words("reference/configuration"))


@pytest.mark.parametrize("command", [path for path, _ in generated.commands()])
def test_the_reference_has_every_command(command: str) -> None:
    assert re.search(rf"<h\d>{command}<a", page("reference/commands"))


def test_the_reference_has_every_metric() -> None:
    text = words("reference/metrics")
    assert [name for name in generated.metric_families() if name not in text] == []


def test_the_wrapper_of_the_page_about_wrappers_spares_what_it_says() -> None:
    text = (DOCS / "how-to" / "write-a-wrapper.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    wrapper = names["AUDIT"].build("alpha/a")
    order = KillOrder(task_ids=("nightly-1", "other"), reason="pressure", force=False)
    with pytest.raises(Veto) as veto:
        next(wrapper.kill_tasks(order))
    assert veto.value.spared == {"nightly-1": "the nightly run is not interrupted"}


def missing_paths(text: str) -> list[str]:
    """The files (`ledger/rows.py`) and packages (`ledger/`) of core in a text that are not in the tree."""
    found = re.findall(r"(?<![\w./-])(?:[a-z_]+/)+(?:[a-z_]+\.py)?(?![\w*])", text)
    assert len(found) > 15
    return sorted({path for path in found if not (CORE / path).exists() and not (ROOT / path).exists()})


def test_the_architecture_page_names_paths_that_exist() -> None:
    assert missing_paths((DOCS / "explanation" / "architecture.md").read_text()) == []


def test_the_architecture_page_has_every_package_of_core() -> None:
    text = (DOCS / "explanation" / "architecture.md").read_text()
    packages = [path.parent.name for path in CORE.glob("*/__init__.py")]
    assert [name for name in packages if f"| `{name}/` |" not in text] == []


def test_the_map_names_files_that_exist() -> None:
    (section,) = re.findall(r"^## Map\n(.*?)^## ", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE | re.DOTALL)
    questions = re.findall(r"^\| .+\? ?.*\| `.+` \|$", section, re.MULTILINE)
    assert len(questions) >= 20
    assert missing_paths("\n".join(questions)) == []


def test_the_calculation_of_the_readme_is_right_and_that_of_a_default_installation() -> None:
    text = (ROOT / "README.md").read_text()

    def numbers(pattern: str) -> list[float]:
        return [float(number) for number in re.findall(pattern, text)[0]]

    n = r"(\d+\.\d\d)"
    system, used, batch_used = numbers(rf"system  {n} = the larger of: in use {n} − its batch {n}; reserved 0.00")
    margin, capacity, watermark = numbers(rf"margin  {n} = {n} × \(100 − watermark (\d+)\) %")
    batch, from_capacity = numbers(rf"batch   {n} = {n} − margin − system")
    cores = numbers(rf"CPU, cores +{n} +{n} +{n} +{n}")
    assert watermark == NodePolicy().cpu.watermark_percent
    assert f"{NodePolicy().memory.watermark_percent} % of the memory" in text
    assert cores == [capacity, used, batch_used, batch]
    assert from_capacity == capacity
    assert system == pytest.approx(used - batch_used)
    assert margin == pytest.approx(capacity * (100 - watermark) / 100)
    assert batch == pytest.approx(capacity - margin - system)


def test_every_row_of_the_security_page_names_a_test_that_exists() -> None:
    rows = re.findall(r"^\|.*\|$", (DOCS / "explanation" / "security.md").read_text(), re.MULTILINE)
    proofs = [row.rpartition("`")[0].rpartition("`")[2] for row in rows if "`" in row]
    for proof in proofs:
        file, _, name = proof.partition("::")
        assert f"def {name}(" in (ROOT / file).read_text(), proof
