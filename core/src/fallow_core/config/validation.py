"""Turns the errors of a model into problems with file, line and key.

It handles the models of core and of plugins alike. An exception with an `errors()` method like pydantic's becomes one
problem for each error; any other exception becomes one problem.
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from fallow_core.config.allowed_values import allowed_keys, allowed_values
from fallow_core.config.document import Document
from fallow_core.config.problems import KeyPath, Problem, shown


def validate(model: Any, data: Any, document: Document, at: KeyPath = ()) -> tuple[Any, list[Problem]]:
    """The validated `data`, which is the part of the document at `at`; or `None` and the problems."""
    try:
        return model.model_validate(data), []
    except (Exception, SystemExit) as error:
        return None, _Translation(model, document, at).problems(error)


class _Translation:
    def __init__(self, model: Any, document: Document, at: KeyPath) -> None:
        self._model = model
        self._document = document
        self._at = at

    def problems(self, error: BaseException) -> list[Problem]:
        try:
            problems = [self._problem(detail) for detail in error.errors()]  # type: ignore[attr-defined]
        except Exception:  # no such method, or not as pydantic's: a plugin may have any
            problems = []
        return problems or [self._document.problem(self._at, str(error) or type(error).__name__)]

    def _problem(self, detail: Mapping[str, Any]) -> Problem:
        kind, context = detail.get("type", ""), detail.get("ctx", {})
        location = tuple(detail["loc"])
        if kind == "mismatch":
            location += context["key"]
        place = self._place(location)
        if kind == "missing":
            place = (*place, location[-1])
        return self._document.problem((*self._at, *place), self._message(kind, detail, place))

    def _place(self, location: KeyPath) -> KeyPath:
        """The location without parts that are no keys of the file, such as the branch of a union."""
        place: KeyPath = ()
        for part in location:
            if (*self._at, *place, part) in self._document.lines:
                place = (*place, part)
        return place

    def _message(self, kind: str, detail: Mapping[str, Any], place: KeyPath) -> str:
        if kind == "missing":
            allowed = allowed_values(self._schema, place)
            return "this required key is missing" + (f"; expected {allowed}" if allowed else "")
        if kind == "extra_forbidden":
            return _unknown(str(place[-1]), allowed_keys(self._schema, place[:-1]))
        text = _plain_text(kind, str(detail["msg"]))
        value = detail.get("input")
        if "input" not in detail or kind == "mismatch" or (kind == "value_error" and isinstance(value, dict | list)):
            return text
        if kind == "string_type" and isinstance(value, bool | int | float):
            text += "; put it in quotes"
        return f"found {shown(value)}; {text}"

    @cached_property
    def _schema(self) -> Mapping[str, Any]:
        try:
            schema = self._model.model_json_schema()
        except Exception:  # then there is no hint
            return {}
        return schema if isinstance(schema, Mapping) else {}


def _unknown(key: str, allowed: list[str]) -> str:
    if not allowed:
        return "unknown key"
    import difflib  # needed only for this error

    words = {name.lower(): name for name in allowed}
    near = difflib.get_close_matches(key.lower().replace("_", "").replace("-", ""), words, n=1)
    advice = f"did you mean {words[near[0]]!r}? " if near else ""
    return f"unknown key; {advice}allowed here: {', '.join(allowed)}"


def _plain_text(kind: str, text: str) -> str:
    if kind in {"model_type", "dict_type"}:
        return "expected a mapping"
    for beginning in ("Value error, ", "Assertion failed, "):
        text = text.removeprefix(beginning)
    expected = "expected a value " if kind.startswith(("greater_than", "less_than")) else "expected "
    return text.replace("Input should be ", expected).replace("a valid ", "a ")
