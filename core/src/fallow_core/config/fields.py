"""What the models of all files share: strict models with the keys that users write, and fields with units."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetPydanticSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError, core_schema

from fallow_core.config.problems import KeyPath
from fallow_core.model import quantities


def written(parse: Callable[[object], object]) -> BeforeValidator:
    """A value that files have with its unit: as text, or as a number where none is needed."""
    return BeforeValidator(parse, json_schema_input_type=str | int | float)


def made(parse: Callable[[object], object]) -> GetPydanticSchema:
    """As `written`, for a value of core's own: what was made of it is not checked as one of pydantic's would be."""
    texts = core_schema.union_schema([core_schema.str_schema(), core_schema.int_schema(), core_schema.float_schema()])
    schema = core_schema.no_info_plain_validator_function(parse, json_schema_input_schema=texts)
    return GetPydanticSchema(lambda _source, _handler: schema)


Percent = Annotated[int, written(quantities.percent)]


class Model(BaseModel):
    """A mapping of a file: unknown keys are refused, and nothing is converted in silence.

    Only those of whole files are ever built, each with all that is below it.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel, defer_build=True)


def section() -> Any:
    """A mapping that may be left out; then it is as one without keys."""
    return Field(default_factory=dict, validate_default=True)


def within(least: str, most: str) -> Callable[[object], float]:
    """A parser of durations from `least` to `most`."""
    low, high = quantities.duration_seconds(least), quantities.duration_seconds(most)

    def parse(value: object) -> float:
        seconds = quantities.duration_seconds(value)
        if not low <= seconds <= high:
            raise ValueError(f"expected a duration from {least} to {most}")
        return seconds

    return parse


def mismatch(key: KeyPath, message: str) -> PydanticCustomError:
    """Two keys that do not fit together, told at the one that is in the file."""
    return PydanticCustomError("mismatch", "{message}", {"key": key, "message": message})
