"""The JSON schemas of whole files, for editors and other tools."""

from collections.abc import Mapping
from typing import Any

from fallow_core.config.models import ClusterFile, CoreFile
from fallow_hookspecs import Plugin

DIALECT = "https://json-schema.org/draft/2020-12/schema"
DEFINITIONS = "$defs"


def core_schema() -> dict[str, Any]:
    """The schema of a core file."""
    return _of_file("Fallow: the core file", CoreFile.model_json_schema())


def cluster_schema(plugin: Plugin) -> dict[str, Any]:
    """The schema of the cluster files of a plugin, including its `spec`."""
    schema = ClusterFile.model_json_schema()
    spec = plugin.config_model().model_json_schema()
    definitions = schema.get(DEFINITIONS, {}) | {
        f"spec.{name}": part for name, part in _renamed(spec.pop(DEFINITIONS, {})).items()
    }
    schema["properties"] |= {"plugin": {"const": plugin.name}, "spec": _renamed(spec)}
    return _of_file(f"Fallow: a cluster file of {plugin.name}", schema | {DEFINITIONS: definitions})


def _of_file(title: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"$schema": DIALECT, **_as_written(schema), "title": title}


def _renamed(part: Any) -> Any:
    """The part with renamed references to the definitions of `spec`, whose names may equal those of core."""
    if isinstance(part, Mapping):
        prefix = f"#/{DEFINITIONS}/"
        return {
            key: value.replace(prefix, f"{prefix}spec.") if key == "$ref" else _renamed(value)
            for key, value in part.items()
        }
    return [_renamed(each) for each in part] if isinstance(part, list) else part


def _as_written(part: Any) -> Any:
    """The part without the defaults of values with a unit, which are numbers in models and text in files."""
    if isinstance(part, Mapping):
        kinds = {each.get("type") for each in part.get("anyOf", ()) if isinstance(each, Mapping)}
        left_out = {"default"} if "string" in kinds and not isinstance(part.get("default"), str) else set()
        return {key: _as_written(value) for key, value in part.items() if key not in left_out}
    return [_as_written(each) for each in part] if isinstance(part, list) else part
