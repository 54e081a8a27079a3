"""The enumerations of the contract beside those of the .proto file. Zero is "unspecified" there, and nothing here."""

from enum import StrEnum
from typing import TypeVar

from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper

from fallow_hookspecs import KillResult, NodeState, Refusal, TaskRole, TaskState
from fallow_hookspecs.copilot.v0 import copilot_pb2 as pb

_E = TypeVar("_E", bound=StrEnum)


def _numbers(values: type[_E], wire: EnumTypeWrapper, prefix: str) -> dict[_E, int]:
    return {each: wire.Value(f"{prefix}_{each.name}") for each in values}


def _values(numbers: dict[_E, int]) -> dict[int, _E]:
    return {number: value for value, number in numbers.items()}


NODE_STATE_NUMBERS = _numbers(NodeState, pb.NodeState, "NODE_STATE")
REFUSAL_NUMBERS = _numbers(Refusal, pb.Refusal, "REFUSAL")
TASK_STATE_NUMBERS = _numbers(TaskState, pb.TaskState, "TASK_STATE")
TASK_ROLE_NUMBERS = _numbers(TaskRole, pb.TaskRole, "TASK_ROLE")
KILL_RESULT_NUMBERS = _numbers(KillResult, pb.KillResult, "KILL_RESULT")

NODE_STATES = _values(NODE_STATE_NUMBERS)
REFUSALS = _values(REFUSAL_NUMBERS)
TASK_STATES = _values(TASK_STATE_NUMBERS)
TASK_ROLES = _values(TASK_ROLE_NUMBERS)
KILL_RESULTS = _values(KILL_RESULT_NUMBERS)
