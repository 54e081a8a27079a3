from google.protobuf import any_pb2 as _any_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Refusal(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REFUSAL_UNSPECIFIED: _ClassVar[Refusal]
    REFUSAL_UNKNOWN_NODE: _ClassVar[Refusal]
    REFUSAL_NOT_LEADER: _ClassVar[Refusal]
    REFUSAL_ACCESS_DENIED: _ClassVar[Refusal]
    REFUSAL_BAD_VALUE: _ClassVar[Refusal]
    REFUSAL_FAILED: _ClassVar[Refusal]

class NodeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NODE_STATE_UNSPECIFIED: _ClassVar[NodeState]
    NODE_STATE_NEW: _ClassVar[NodeState]
    NODE_STATE_RUNNING: _ClassVar[NodeState]
    NODE_STATE_UNHEALTHY: _ClassVar[NodeState]
    NODE_STATE_DRAINING: _ClassVar[NodeState]
    NODE_STATE_GONE: _ClassVar[NodeState]

class TaskState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_STATE_UNSPECIFIED: _ClassVar[TaskState]
    TASK_STATE_STARTING: _ClassVar[TaskState]
    TASK_STATE_RUNNING: _ClassVar[TaskState]
    TASK_STATE_TERMINATING: _ClassVar[TaskState]

class TaskRole(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TASK_ROLE_UNSPECIFIED: _ClassVar[TaskRole]
    TASK_ROLE_WORKER: _ClassVar[TaskRole]
    TASK_ROLE_MASTER: _ClassVar[TaskRole]

class KillResult(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KILL_RESULT_UNSPECIFIED: _ClassVar[KillResult]
    KILL_RESULT_TERMINATING: _ClassVar[KillResult]
    KILL_RESULT_ALREADY_GONE: _ClassVar[KillResult]
    KILL_RESULT_SPARED: _ClassVar[KillResult]
    KILL_RESULT_EVICT: _ClassVar[KillResult]
    KILL_RESULT_NO_ACCESS: _ClassVar[KillResult]
    KILL_RESULT_FAILED: _ClassVar[KillResult]
REFUSAL_UNSPECIFIED: Refusal
REFUSAL_UNKNOWN_NODE: Refusal
REFUSAL_NOT_LEADER: Refusal
REFUSAL_ACCESS_DENIED: Refusal
REFUSAL_BAD_VALUE: Refusal
REFUSAL_FAILED: Refusal
NODE_STATE_UNSPECIFIED: NodeState
NODE_STATE_NEW: NodeState
NODE_STATE_RUNNING: NodeState
NODE_STATE_UNHEALTHY: NodeState
NODE_STATE_DRAINING: NodeState
NODE_STATE_GONE: NodeState
TASK_STATE_UNSPECIFIED: TaskState
TASK_STATE_STARTING: TaskState
TASK_STATE_RUNNING: TaskState
TASK_STATE_TERMINATING: TaskState
TASK_ROLE_UNSPECIFIED: TaskRole
TASK_ROLE_WORKER: TaskRole
TASK_ROLE_MASTER: TaskRole
KILL_RESULT_UNSPECIFIED: KillResult
KILL_RESULT_TERMINATING: KillResult
KILL_RESULT_ALREADY_GONE: KillResult
KILL_RESULT_SPARED: KillResult
KILL_RESULT_EVICT: KillResult
KILL_RESULT_NO_ACCESS: KillResult
KILL_RESULT_FAILED: KillResult

class DescribeRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class DescribeResponse(_message.Message):
    __slots__ = ("name", "version", "distribution", "lowest_api_level", "highest_api_level", "hooks", "pod_selector")
    class PodSelectorEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    DISTRIBUTION_FIELD_NUMBER: _ClassVar[int]
    LOWEST_API_LEVEL_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_API_LEVEL_FIELD_NUMBER: _ClassVar[int]
    HOOKS_FIELD_NUMBER: _ClassVar[int]
    POD_SELECTOR_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    distribution: str
    lowest_api_level: int
    highest_api_level: int
    hooks: _containers.RepeatedScalarFieldContainer[str]
    pod_selector: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., distribution: _Optional[str] = ..., lowest_api_level: _Optional[int] = ..., highest_api_level: _Optional[int] = ..., hooks: _Optional[_Iterable[str]] = ..., pod_selector: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Resources(_message.Message):
    __slots__ = ("cpu_milli", "memory_bytes")
    CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    cpu_milli: int
    memory_bytes: int
    def __init__(self, cpu_milli: _Optional[int] = ..., memory_bytes: _Optional[int] = ...) -> None: ...

class Pod(_message.Message):
    __slots__ = ("uid", "namespace", "name", "labels", "annotations", "addresses")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    UID_FIELD_NUMBER: _ClassVar[int]
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    uid: str
    namespace: str
    name: str
    labels: _containers.ScalarMap[str, str]
    annotations: _containers.ScalarMap[str, str]
    addresses: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, uid: _Optional[str] = ..., namespace: _Optional[str] = ..., name: _Optional[str] = ..., labels: _Optional[_Mapping[str, str]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., addresses: _Optional[_Iterable[str]] = ...) -> None: ...

class Node(_message.Message):
    __slots__ = ("name", "addresses", "labels", "annotations", "pods", "lendable")
    class LabelsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    class AnnotationsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    ADDRESSES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    ANNOTATIONS_FIELD_NUMBER: _ClassVar[int]
    PODS_FIELD_NUMBER: _ClassVar[int]
    LENDABLE_FIELD_NUMBER: _ClassVar[int]
    name: str
    addresses: _containers.RepeatedScalarFieldContainer[str]
    labels: _containers.ScalarMap[str, str]
    annotations: _containers.ScalarMap[str, str]
    pods: _containers.RepeatedCompositeFieldContainer[Pod]
    lendable: Resources
    def __init__(self, name: _Optional[str] = ..., addresses: _Optional[_Iterable[str]] = ..., labels: _Optional[_Mapping[str, str]] = ..., annotations: _Optional[_Mapping[str, str]] = ..., pods: _Optional[_Iterable[_Union[Pod, _Mapping]]] = ..., lendable: _Optional[_Union[Resources, _Mapping]] = ...) -> None: ...

class TakeBack(_message.Message):
    __slots__ = ("cpu_milli", "memory_bytes")
    CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    cpu_milli: int
    memory_bytes: int
    def __init__(self, cpu_milli: _Optional[int] = ..., memory_bytes: _Optional[int] = ...) -> None: ...

class Offer(_message.Message):
    __slots__ = ("node", "framework_node", "total", "take_back")
    NODE_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_NODE_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    TAKE_BACK_FIELD_NUMBER: _ClassVar[int]
    node: str
    framework_node: str
    total: Resources
    take_back: TakeBack
    def __init__(self, node: _Optional[str] = ..., framework_node: _Optional[str] = ..., total: _Optional[_Union[Resources, _Mapping]] = ..., take_back: _Optional[_Union[TakeBack, _Mapping]] = ...) -> None: ...

class ReportCapacityRequest(_message.Message):
    __slots__ = ("nodes", "offers")
    NODES_FIELD_NUMBER: _ClassVar[int]
    OFFERS_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    offers: _containers.RepeatedCompositeFieldContainer[Offer]
    def __init__(self, nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ..., offers: _Optional[_Iterable[_Union[Offer, _Mapping]]] = ...) -> None: ...

class OfferAnswer(_message.Message):
    __slots__ = ("node", "framework_node", "accepted", "refusal", "reason")
    NODE_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_NODE_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    node: str
    framework_node: str
    accepted: Resources
    refusal: Refusal
    reason: str
    def __init__(self, node: _Optional[str] = ..., framework_node: _Optional[str] = ..., accepted: _Optional[_Union[Resources, _Mapping]] = ..., refusal: _Optional[_Union[Refusal, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class ReportRow(_message.Message):
    __slots__ = ("node", "framework_node", "age_seconds", "state", "allocated_cpu_milli", "allocated_memory_bytes", "in_force_cpu_milli", "in_force_memory_bytes", "unit_cpu_milli", "unit_memory_bytes", "floor_cpu_milli", "floor_memory_bytes", "maximum_cpu_milli", "maximum_memory_bytes", "started_age_seconds", "partitions")
    NODE_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_NODE_FIELD_NUMBER: _ClassVar[int]
    AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    ALLOCATED_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    IN_FORCE_CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    IN_FORCE_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    UNIT_CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    UNIT_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    FLOOR_CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    FLOOR_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    MAXIMUM_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    STARTED_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    node: str
    framework_node: str
    age_seconds: float
    state: NodeState
    allocated_cpu_milli: int
    allocated_memory_bytes: int
    in_force_cpu_milli: int
    in_force_memory_bytes: int
    unit_cpu_milli: int
    unit_memory_bytes: int
    floor_cpu_milli: int
    floor_memory_bytes: int
    maximum_cpu_milli: int
    maximum_memory_bytes: int
    started_age_seconds: float
    partitions: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, node: _Optional[str] = ..., framework_node: _Optional[str] = ..., age_seconds: _Optional[float] = ..., state: _Optional[_Union[NodeState, str]] = ..., allocated_cpu_milli: _Optional[int] = ..., allocated_memory_bytes: _Optional[int] = ..., in_force_cpu_milli: _Optional[int] = ..., in_force_memory_bytes: _Optional[int] = ..., unit_cpu_milli: _Optional[int] = ..., unit_memory_bytes: _Optional[int] = ..., floor_cpu_milli: _Optional[int] = ..., floor_memory_bytes: _Optional[int] = ..., maximum_cpu_milli: _Optional[int] = ..., maximum_memory_bytes: _Optional[int] = ..., started_age_seconds: _Optional[float] = ..., partitions: _Optional[_Iterable[str]] = ...) -> None: ...

class Pending(_message.Message):
    __slots__ = ("total", "smallest", "largest", "detail")
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    SMALLEST_FIELD_NUMBER: _ClassVar[int]
    LARGEST_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    total: Resources
    smallest: Resources
    largest: Resources
    detail: str
    def __init__(self, total: _Optional[_Union[Resources, _Mapping]] = ..., smallest: _Optional[_Union[Resources, _Mapping]] = ..., largest: _Optional[_Union[Resources, _Mapping]] = ..., detail: _Optional[str] = ...) -> None: ...

class Application(_message.Message):
    __slots__ = ("id", "name", "user", "queue", "kind", "priority", "progress", "master_task_ids")
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    USER_FIELD_NUMBER: _ClassVar[int]
    QUEUE_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    MASTER_TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    name: str
    user: str
    queue: str
    kind: str
    priority: int
    progress: float
    master_task_ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., name: _Optional[str] = ..., user: _Optional[str] = ..., queue: _Optional[str] = ..., kind: _Optional[str] = ..., priority: _Optional[int] = ..., progress: _Optional[float] = ..., master_task_ids: _Optional[_Iterable[str]] = ...) -> None: ...

class GangReport(_message.Message):
    __slots__ = ("id", "minimum", "running")
    ID_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    RUNNING_FIELD_NUMBER: _ClassVar[int]
    id: str
    minimum: int
    running: int
    def __init__(self, id: _Optional[str] = ..., minimum: _Optional[int] = ..., running: _Optional[int] = ...) -> None: ...

class ResourceCapability(_message.Message):
    __slots__ = ("honoured", "takes_back", "take_back_charged")
    HONOURED_FIELD_NUMBER: _ClassVar[int]
    TAKES_BACK_FIELD_NUMBER: _ClassVar[int]
    TAKE_BACK_CHARGED_FIELD_NUMBER: _ClassVar[int]
    honoured: bool
    takes_back: bool
    take_back_charged: bool
    def __init__(self, honoured: _Optional[bool] = ..., takes_back: _Optional[bool] = ..., take_back_charged: _Optional[bool] = ...) -> None: ...

class Capabilities(_message.Message):
    __slots__ = ("cpu", "memory", "ends_single_tasks", "ends_gracefully", "reports_progress", "has_gangs", "offer_lasts_seconds")
    CPU_FIELD_NUMBER: _ClassVar[int]
    MEMORY_FIELD_NUMBER: _ClassVar[int]
    ENDS_SINGLE_TASKS_FIELD_NUMBER: _ClassVar[int]
    ENDS_GRACEFULLY_FIELD_NUMBER: _ClassVar[int]
    REPORTS_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    HAS_GANGS_FIELD_NUMBER: _ClassVar[int]
    OFFER_LASTS_SECONDS_FIELD_NUMBER: _ClassVar[int]
    cpu: ResourceCapability
    memory: ResourceCapability
    ends_single_tasks: bool
    ends_gracefully: bool
    reports_progress: bool
    has_gangs: bool
    offer_lasts_seconds: int
    def __init__(self, cpu: _Optional[_Union[ResourceCapability, _Mapping]] = ..., memory: _Optional[_Union[ResourceCapability, _Mapping]] = ..., ends_single_tasks: _Optional[bool] = ..., ends_gracefully: _Optional[bool] = ..., reports_progress: _Optional[bool] = ..., has_gangs: _Optional[bool] = ..., offer_lasts_seconds: _Optional[int] = ...) -> None: ...

class CapacityReport(_message.Message):
    __slots__ = ("capabilities", "rows", "answers", "pending", "applications", "gangs", "detail", "largest_elsewhere", "scheduler_start", "pending_by_partition")
    class PendingByPartitionEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: Pending
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[Pending, _Mapping]] = ...) -> None: ...
    CAPABILITIES_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    PENDING_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONS_FIELD_NUMBER: _ClassVar[int]
    GANGS_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    LARGEST_ELSEWHERE_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_START_FIELD_NUMBER: _ClassVar[int]
    PENDING_BY_PARTITION_FIELD_NUMBER: _ClassVar[int]
    capabilities: Capabilities
    rows: _containers.RepeatedCompositeFieldContainer[ReportRow]
    answers: _containers.RepeatedCompositeFieldContainer[OfferAnswer]
    pending: Pending
    applications: _containers.RepeatedCompositeFieldContainer[Application]
    gangs: _containers.RepeatedCompositeFieldContainer[GangReport]
    detail: str
    largest_elsewhere: Resources
    scheduler_start: str
    pending_by_partition: _containers.MessageMap[str, Pending]
    def __init__(self, capabilities: _Optional[_Union[Capabilities, _Mapping]] = ..., rows: _Optional[_Iterable[_Union[ReportRow, _Mapping]]] = ..., answers: _Optional[_Iterable[_Union[OfferAnswer, _Mapping]]] = ..., pending: _Optional[_Union[Pending, _Mapping]] = ..., applications: _Optional[_Iterable[_Union[Application, _Mapping]]] = ..., gangs: _Optional[_Iterable[_Union[GangReport, _Mapping]]] = ..., detail: _Optional[str] = ..., largest_elsewhere: _Optional[_Union[Resources, _Mapping]] = ..., scheduler_start: _Optional[str] = ..., pending_by_partition: _Optional[_Mapping[str, Pending]] = ...) -> None: ...

class Process(_message.Message):
    __slots__ = ("pid", "start_ticks")
    PID_FIELD_NUMBER: _ClassVar[int]
    START_TICKS_FIELD_NUMBER: _ClassVar[int]
    pid: int
    start_ticks: int
    def __init__(self, pid: _Optional[int] = ..., start_ticks: _Optional[int] = ...) -> None: ...

class Daemon(_message.Message):
    __slots__ = ("process", "framework_node")
    PROCESS_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_NODE_FIELD_NUMBER: _ClassVar[int]
    process: Process
    framework_node: str
    def __init__(self, process: _Optional[_Union[Process, _Mapping]] = ..., framework_node: _Optional[str] = ...) -> None: ...

class Gang(_message.Message):
    __slots__ = ("id", "minimum", "members")
    ID_FIELD_NUMBER: _ClassVar[int]
    MINIMUM_FIELD_NUMBER: _ClassVar[int]
    MEMBERS_FIELD_NUMBER: _ClassVar[int]
    id: str
    minimum: int
    members: int
    def __init__(self, id: _Optional[str] = ..., minimum: _Optional[int] = ..., members: _Optional[int] = ...) -> None: ...

class Task(_message.Message):
    __slots__ = ("id", "application_id", "framework_node", "state", "requested_cpu_milli", "requested_memory_bytes", "role", "age_seconds", "terminating_age_seconds", "priority", "opportunistic", "progress", "ends_in_seconds", "kept_share", "gang", "pod_uid", "cgroups", "processes", "may_be_ended", "grace_seconds")
    ID_FIELD_NUMBER: _ClassVar[int]
    APPLICATION_ID_FIELD_NUMBER: _ClassVar[int]
    FRAMEWORK_NODE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_CPU_MILLI_FIELD_NUMBER: _ClassVar[int]
    REQUESTED_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    TERMINATING_AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    OPPORTUNISTIC_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    ENDS_IN_SECONDS_FIELD_NUMBER: _ClassVar[int]
    KEPT_SHARE_FIELD_NUMBER: _ClassVar[int]
    GANG_FIELD_NUMBER: _ClassVar[int]
    POD_UID_FIELD_NUMBER: _ClassVar[int]
    CGROUPS_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    MAY_BE_ENDED_FIELD_NUMBER: _ClassVar[int]
    GRACE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    id: str
    application_id: str
    framework_node: str
    state: TaskState
    requested_cpu_milli: int
    requested_memory_bytes: int
    role: TaskRole
    age_seconds: float
    terminating_age_seconds: float
    priority: int
    opportunistic: bool
    progress: float
    ends_in_seconds: float
    kept_share: float
    gang: Gang
    pod_uid: str
    cgroups: _containers.RepeatedScalarFieldContainer[str]
    processes: _containers.RepeatedCompositeFieldContainer[Process]
    may_be_ended: bool
    grace_seconds: float
    def __init__(self, id: _Optional[str] = ..., application_id: _Optional[str] = ..., framework_node: _Optional[str] = ..., state: _Optional[_Union[TaskState, str]] = ..., requested_cpu_milli: _Optional[int] = ..., requested_memory_bytes: _Optional[int] = ..., role: _Optional[_Union[TaskRole, str]] = ..., age_seconds: _Optional[float] = ..., terminating_age_seconds: _Optional[float] = ..., priority: _Optional[int] = ..., opportunistic: _Optional[bool] = ..., progress: _Optional[float] = ..., ends_in_seconds: _Optional[float] = ..., kept_share: _Optional[float] = ..., gang: _Optional[_Union[Gang, _Mapping]] = ..., pod_uid: _Optional[str] = ..., cgroups: _Optional[_Iterable[str]] = ..., processes: _Optional[_Iterable[_Union[Process, _Mapping]]] = ..., may_be_ended: _Optional[bool] = ..., grace_seconds: _Optional[float] = ...) -> None: ...

class ListTasksRequest(_message.Message):
    __slots__ = ("node",)
    NODE_FIELD_NUMBER: _ClassVar[int]
    node: Node
    def __init__(self, node: _Optional[_Union[Node, _Mapping]] = ...) -> None: ...

class TaskList(_message.Message):
    __slots__ = ("tasks", "age_seconds", "complete", "daemons", "incomplete_reason")
    TASKS_FIELD_NUMBER: _ClassVar[int]
    AGE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    DAEMONS_FIELD_NUMBER: _ClassVar[int]
    INCOMPLETE_REASON_FIELD_NUMBER: _ClassVar[int]
    tasks: _containers.RepeatedCompositeFieldContainer[Task]
    age_seconds: float
    complete: bool
    daemons: _containers.RepeatedCompositeFieldContainer[Daemon]
    incomplete_reason: str
    def __init__(self, tasks: _Optional[_Iterable[_Union[Task, _Mapping]]] = ..., age_seconds: _Optional[float] = ..., complete: _Optional[bool] = ..., daemons: _Optional[_Iterable[_Union[Daemon, _Mapping]]] = ..., incomplete_reason: _Optional[str] = ...) -> None: ...

class KillTasksRequest(_message.Message):
    __slots__ = ("node", "task_ids", "reason", "force")
    NODE_FIELD_NUMBER: _ClassVar[int]
    TASK_IDS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FORCE_FIELD_NUMBER: _ClassVar[int]
    node: Node
    task_ids: _containers.RepeatedScalarFieldContainer[str]
    reason: str
    force: bool
    def __init__(self, node: _Optional[_Union[Node, _Mapping]] = ..., task_ids: _Optional[_Iterable[str]] = ..., reason: _Optional[str] = ..., force: _Optional[bool] = ...) -> None: ...

class KillAnswer(_message.Message):
    __slots__ = ("result", "reason")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    result: KillResult
    reason: str
    def __init__(self, result: _Optional[_Union[KillResult, str]] = ..., reason: _Optional[str] = ...) -> None: ...

class KillOutcome(_message.Message):
    __slots__ = ("answers",)
    class AnswersEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: KillAnswer
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[KillAnswer, _Mapping]] = ...) -> None: ...
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    answers: _containers.MessageMap[str, KillAnswer]
    def __init__(self, answers: _Optional[_Mapping[str, KillAnswer]] = ...) -> None: ...

class SetCgroupParentRequest(_message.Message):
    __slots__ = ("node", "parent")
    NODE_FIELD_NUMBER: _ClassVar[int]
    PARENT_FIELD_NUMBER: _ClassVar[int]
    node: Node
    parent: str
    def __init__(self, node: _Optional[_Union[Node, _Mapping]] = ..., parent: _Optional[str] = ...) -> None: ...

class TaskPlacement(_message.Message):
    __slots__ = ("task_id", "cgroups", "movable", "setting")
    TASK_ID_FIELD_NUMBER: _ClassVar[int]
    CGROUPS_FIELD_NUMBER: _ClassVar[int]
    MOVABLE_FIELD_NUMBER: _ClassVar[int]
    SETTING_FIELD_NUMBER: _ClassVar[int]
    task_id: str
    cgroups: _containers.RepeatedScalarFieldContainer[str]
    movable: _containers.RepeatedCompositeFieldContainer[Process]
    setting: str
    def __init__(self, task_id: _Optional[str] = ..., cgroups: _Optional[_Iterable[str]] = ..., movable: _Optional[_Iterable[_Union[Process, _Mapping]]] = ..., setting: _Optional[str] = ...) -> None: ...

class Placement(_message.Message):
    __slots__ = ("new_tasks_follow", "tasks", "reason")
    NEW_TASKS_FOLLOW_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    new_tasks_follow: bool
    tasks: _containers.RepeatedCompositeFieldContainer[TaskPlacement]
    reason: str
    def __init__(self, new_tasks_follow: _Optional[bool] = ..., tasks: _Optional[_Iterable[_Union[TaskPlacement, _Mapping]]] = ..., reason: _Optional[str] = ...) -> None: ...

class DiagnoseRequest(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[Node]
    def __init__(self, nodes: _Optional[_Iterable[_Union[Node, _Mapping]]] = ...) -> None: ...

class DiagnoseResponse(_message.Message):
    __slots__ = ("findings",)
    FINDINGS_FIELD_NUMBER: _ClassVar[int]
    findings: _containers.RepeatedCompositeFieldContainer[Finding]
    def __init__(self, findings: _Optional[_Iterable[_Union[Finding, _Mapping]]] = ...) -> None: ...

class Finding(_message.Message):
    __slots__ = ("subject", "ok", "detail", "advice")
    SUBJECT_FIELD_NUMBER: _ClassVar[int]
    OK_FIELD_NUMBER: _ClassVar[int]
    DETAIL_FIELD_NUMBER: _ClassVar[int]
    ADVICE_FIELD_NUMBER: _ClassVar[int]
    subject: str
    ok: bool
    detail: str
    advice: str
    def __init__(self, subject: _Optional[str] = ..., ok: _Optional[bool] = ..., detail: _Optional[str] = ..., advice: _Optional[str] = ...) -> None: ...

class TryLater(_message.Message):
    __slots__ = ("after_seconds",)
    AFTER_SECONDS_FIELD_NUMBER: _ClassVar[int]
    after_seconds: float
    def __init__(self, after_seconds: _Optional[float] = ...) -> None: ...

class Broken(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class Status(_message.Message):
    __slots__ = ("code", "message", "details")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    DETAILS_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    details: _containers.RepeatedCompositeFieldContainer[_any_pb2.Any]
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ..., details: _Optional[_Iterable[_Union[_any_pb2.Any, _Mapping]]] = ...) -> None: ...
