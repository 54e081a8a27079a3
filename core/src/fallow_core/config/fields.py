"""What the models of all files share: strict models with the keys that users write, and fields with units."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetPydanticSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, core_schema

from fallow_core.config.problems import KeyPath
from fallow_core.model import quantities


def written(parse: Callable[[object], object]) -> BeforeValidator:
    """A value that a file holds as text with a unit, or as a number where no unit is needed."""
    return BeforeValidator(parse, json_schema_input_type=str | int | float)


def made(parse: Callable[[object], object]) -> GetPydanticSchema:
    """The same for a class of core, such as `Limit`: pydantic does not check what `parse` returns."""
    texts = core_schema.union_schema([core_schema.str_schema(), core_schema.int_schema(), core_schema.float_schema()])
    schema = core_schema.no_info_plain_validator_function(parse, json_schema_input_schema=texts)
    return GetPydanticSchema(lambda _source, _handler: schema)


def within(least: str, most: str) -> Callable[[object], float]:
    """A parser of durations from `least` to `most`."""
    low, high = quantities.duration_seconds(least), quantities.duration_seconds(most)

    def parse(value: object) -> float:
        seconds = quantities.duration_seconds(value)
        if not low <= seconds <= high:
            raise ValueError(f"expected a duration from {least} to {most}")
        return seconds

    return parse


Percent = Annotated[int, written(quantities.percent)]
UpToHour = Annotated[float, written(within("0s", "1h"))]
UpToDay = Annotated[float, written(within("1s", "24h"))]


def _key(name: str) -> str:
    """The key of a field: `after_seconds` is `after`, because the value in the file has its unit."""
    return to_camel(re.sub("_(percent|seconds)$", "", name))


class Model(BaseModel):
    """A mapping of a file. Unknown keys are refused, and no type is converted silently.

    A field has the name of the policy's field that it becomes, its alias is the key in the file. Pydantic builds a
    model when it is first used: only the models of whole files are.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=_key, defer_build=True)


def section() -> Any:
    """A mapping that may be left out. Then all of its keys have their defaults."""
    return Field(default_factory=dict, validate_default=True)


def mismatch(key: KeyPath, message: str) -> PydanticCustomError:
    """An error about two keys that contradict each other, shown at the key that is in the file."""
    return PydanticCustomError("mismatch", "{message}", {"key": key, "message": message})
