from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class NodeState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NEW: _ClassVar[NodeState]
    RUNNING: _ClassVar[NodeState]
    UNHEALTHY: _ClassVar[NodeState]
    DECOMMISSIONED: _ClassVar[NodeState]
    LOST: _ClassVar[NodeState]
    REBOOTED: _ClassVar[NodeState]
    DECOMMISSIONING: _ClassVar[NodeState]
    SHUTDOWN: _ClassVar[NodeState]

class DecommissionType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NORMAL: _ClassVar[DecommissionType]
    GRACEFUL: _ClassVar[DecommissionType]
    FORCEFUL: _ClassVar[DecommissionType]

class SignalCommand(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    OUTPUT_THREAD_DUMP: _ClassVar[SignalCommand]
    GRACEFUL_SHUTDOWN: _ClassVar[SignalCommand]
    FORCEFUL_SHUTDOWN: _ClassVar[SignalCommand]
NEW: NodeState
RUNNING: NodeState
UNHEALTHY: NodeState
DECOMMISSIONED: NodeState
LOST: NodeState
REBOOTED: NodeState
DECOMMISSIONING: NodeState
SHUTDOWN: NodeState
NORMAL: DecommissionType
GRACEFUL: DecommissionType
FORCEFUL: DecommissionType
OUTPUT_THREAD_DUMP: SignalCommand
GRACEFUL_SHUTDOWN: SignalCommand
FORCEFUL_SHUTDOWN: SignalCommand

class NodeId(_message.Message):
    __slots__ = ("host", "port")
    HOST_FIELD_NUMBER: _ClassVar[int]
    PORT_FIELD_NUMBER: _ClassVar[int]
    host: bytes
    port: int
    def __init__(self, host: _Optional[bytes] = ..., port: _Optional[int] = ...) -> None: ...

class ResourceInformation(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    value: int
    def __init__(self, key: _Optional[bytes] = ..., value: _Optional[int] = ...) -> None: ...

class Resource(_message.Message):
    __slots__ = ("memory_mb", "virtual_cores", "values")
    MEMORY_MB_FIELD_NUMBER: _ClassVar[int]
    VIRTUAL_CORES_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    memory_mb: int
    virtual_cores: int
    values: _containers.RepeatedCompositeFieldContainer[ResourceInformation]
    def __init__(self, memory_mb: _Optional[int] = ..., virtual_cores: _Optional[int] = ..., values: _Optional[_Iterable[_Union[ResourceInformation, _Mapping]]] = ...) -> None: ...

class NodeReport(_message.Message):
    __slots__ = ("node_id", "http_address", "used", "capability", "containers", "state", "labels", "decommissioning_timeout")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    HTTP_ADDRESS_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    CONTAINERS_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    DECOMMISSIONING_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    node_id: NodeId
    http_address: bytes
    used: Resource
    capability: Resource
    containers: int
    state: NodeState
    labels: _containers.RepeatedScalarFieldContainer[bytes]
    decommissioning_timeout: int
    def __init__(self, node_id: _Optional[_Union[NodeId, _Mapping]] = ..., http_address: _Optional[bytes] = ..., used: _Optional[_Union[Resource, _Mapping]] = ..., capability: _Optional[_Union[Resource, _Mapping]] = ..., containers: _Optional[int] = ..., state: _Optional[_Union[NodeState, str]] = ..., labels: _Optional[_Iterable[bytes]] = ..., decommissioning_timeout: _Optional[int] = ...) -> None: ...

class GetClusterNodesRequest(_message.Message):
    __slots__ = ("states",)
    STATES_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[NodeState]
    def __init__(self, states: _Optional[_Iterable[_Union[NodeState, str]]] = ...) -> None: ...

class GetClusterNodesResponse(_message.Message):
    __slots__ = ("reports",)
    REPORTS_FIELD_NUMBER: _ClassVar[int]
    reports: _containers.RepeatedCompositeFieldContainer[NodeReport]
    def __init__(self, reports: _Optional[_Iterable[_Union[NodeReport, _Mapping]]] = ...) -> None: ...

class ResourceOption(_message.Message):
    __slots__ = ("resource", "over_commit_timeout")
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    OVER_COMMIT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    resource: Resource
    over_commit_timeout: int
    def __init__(self, resource: _Optional[_Union[Resource, _Mapping]] = ..., over_commit_timeout: _Optional[int] = ...) -> None: ...

class NodeResource(_message.Message):
    __slots__ = ("node_id", "option")
    NODE_ID_FIELD_NUMBER: _ClassVar[int]
    OPTION_FIELD_NUMBER: _ClassVar[int]
    node_id: NodeId
    option: ResourceOption
    def __init__(self, node_id: _Optional[_Union[NodeId, _Mapping]] = ..., option: _Optional[_Union[ResourceOption, _Mapping]] = ...) -> None: ...

class UpdateNodeResourceRequest(_message.Message):
    __slots__ = ("nodes",)
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[NodeResource]
    def __init__(self, nodes: _Optional[_Iterable[_Union[NodeResource, _Mapping]]] = ...) -> None: ...

class RefreshNodesRequest(_message.Message):
    __slots__ = ("kind", "timeout")
    KIND_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    kind: DecommissionType
    timeout: int
    def __init__(self, kind: _Optional[_Union[DecommissionType, str]] = ..., timeout: _Optional[int] = ...) -> None: ...

class ApplicationId(_message.Message):
    __slots__ = ("id", "cluster_timestamp")
    ID_FIELD_NUMBER: _ClassVar[int]
    CLUSTER_TIMESTAMP_FIELD_NUMBER: _ClassVar[int]
    id: int
    cluster_timestamp: int
    def __init__(self, id: _Optional[int] = ..., cluster_timestamp: _Optional[int] = ...) -> None: ...

class ApplicationAttemptId(_message.Message):
    __slots__ = ("application", "attempt")
    APPLICATION_FIELD_NUMBER: _ClassVar[int]
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    application: ApplicationId
    attempt: int
    def __init__(self, application: _Optional[_Union[ApplicationId, _Mapping]] = ..., attempt: _Optional[int] = ...) -> None: ...

class ContainerId(_message.Message):
    __slots__ = ("attempt", "id")
    ATTEMPT_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    attempt: ApplicationAttemptId
    id: int
    def __init__(self, attempt: _Optional[_Union[ApplicationAttemptId, _Mapping]] = ..., id: _Optional[int] = ...) -> None: ...

class SignalContainerRequest(_message.Message):
    __slots__ = ("container", "command")
    CONTAINER_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    container: ContainerId
    command: SignalCommand
    def __init__(self, container: _Optional[_Union[ContainerId, _Mapping]] = ..., command: _Optional[_Union[SignalCommand, str]] = ...) -> None: ...
