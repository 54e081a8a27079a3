from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RpcKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RPC_PROTOCOL_BUFFER: _ClassVar[RpcKind]
RPC_PROTOCOL_BUFFER: RpcKind

class RequestHeader(_message.Message):
    __slots__ = ("rpc_kind", "rpc_op", "call_id", "client_id", "retry_count")
    class Operation(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        RPC_FINAL_PACKET: _ClassVar[RequestHeader.Operation]
    RPC_FINAL_PACKET: RequestHeader.Operation
    RPC_KIND_FIELD_NUMBER: _ClassVar[int]
    RPC_OP_FIELD_NUMBER: _ClassVar[int]
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    CLIENT_ID_FIELD_NUMBER: _ClassVar[int]
    RETRY_COUNT_FIELD_NUMBER: _ClassVar[int]
    rpc_kind: RpcKind
    rpc_op: RequestHeader.Operation
    call_id: int
    client_id: bytes
    retry_count: int
    def __init__(self, rpc_kind: _Optional[_Union[RpcKind, str]] = ..., rpc_op: _Optional[_Union[RequestHeader.Operation, str]] = ..., call_id: _Optional[int] = ..., client_id: _Optional[bytes] = ..., retry_count: _Optional[int] = ...) -> None: ...

class ResponseHeader(_message.Message):
    __slots__ = ("call_id", "status", "exception_class", "error_message", "error_code")
    class Status(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SUCCESS: _ClassVar[ResponseHeader.Status]
        ERROR: _ClassVar[ResponseHeader.Status]
        FATAL: _ClassVar[ResponseHeader.Status]
    SUCCESS: ResponseHeader.Status
    ERROR: ResponseHeader.Status
    FATAL: ResponseHeader.Status
    class ErrorCode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        ERROR_APPLICATION: _ClassVar[ResponseHeader.ErrorCode]
        ERROR_NO_SUCH_METHOD: _ClassVar[ResponseHeader.ErrorCode]
        ERROR_NO_SUCH_PROTOCOL: _ClassVar[ResponseHeader.ErrorCode]
        ERROR_RPC_SERVER: _ClassVar[ResponseHeader.ErrorCode]
        ERROR_SERIALIZING_RESPONSE: _ClassVar[ResponseHeader.ErrorCode]
        ERROR_RPC_VERSION_MISMATCH: _ClassVar[ResponseHeader.ErrorCode]
        FATAL_UNKNOWN: _ClassVar[ResponseHeader.ErrorCode]
        FATAL_UNSUPPORTED_SERIALIZATION: _ClassVar[ResponseHeader.ErrorCode]
        FATAL_INVALID_RPC_HEADER: _ClassVar[ResponseHeader.ErrorCode]
        FATAL_DESERIALIZING_REQUEST: _ClassVar[ResponseHeader.ErrorCode]
        FATAL_VERSION_MISMATCH: _ClassVar[ResponseHeader.ErrorCode]
        FATAL_UNAUTHORIZED: _ClassVar[ResponseHeader.ErrorCode]
    ERROR_APPLICATION: ResponseHeader.ErrorCode
    ERROR_NO_SUCH_METHOD: ResponseHeader.ErrorCode
    ERROR_NO_SUCH_PROTOCOL: ResponseHeader.ErrorCode
    ERROR_RPC_SERVER: ResponseHeader.ErrorCode
    ERROR_SERIALIZING_RESPONSE: ResponseHeader.ErrorCode
    ERROR_RPC_VERSION_MISMATCH: ResponseHeader.ErrorCode
    FATAL_UNKNOWN: ResponseHeader.ErrorCode
    FATAL_UNSUPPORTED_SERIALIZATION: ResponseHeader.ErrorCode
    FATAL_INVALID_RPC_HEADER: ResponseHeader.ErrorCode
    FATAL_DESERIALIZING_REQUEST: ResponseHeader.ErrorCode
    FATAL_VERSION_MISMATCH: ResponseHeader.ErrorCode
    FATAL_UNAUTHORIZED: ResponseHeader.ErrorCode
    CALL_ID_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    EXCEPTION_CLASS_FIELD_NUMBER: _ClassVar[int]
    ERROR_MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ERROR_CODE_FIELD_NUMBER: _ClassVar[int]
    call_id: int
    status: ResponseHeader.Status
    exception_class: bytes
    error_message: bytes
    error_code: ResponseHeader.ErrorCode
    def __init__(self, call_id: _Optional[int] = ..., status: _Optional[_Union[ResponseHeader.Status, str]] = ..., exception_class: _Optional[bytes] = ..., error_message: _Optional[bytes] = ..., error_code: _Optional[_Union[ResponseHeader.ErrorCode, str]] = ...) -> None: ...

class UserInformation(_message.Message):
    __slots__ = ("effective_user",)
    EFFECTIVE_USER_FIELD_NUMBER: _ClassVar[int]
    effective_user: str
    def __init__(self, effective_user: _Optional[str] = ...) -> None: ...

class ConnectionContext(_message.Message):
    __slots__ = ("user", "protocol")
    USER_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    user: UserInformation
    protocol: str
    def __init__(self, user: _Optional[_Union[UserInformation, _Mapping]] = ..., protocol: _Optional[str] = ...) -> None: ...

class SaslAuth(_message.Message):
    __slots__ = ("method", "mechanism", "protocol", "server_id", "challenge")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SERVER_ID_FIELD_NUMBER: _ClassVar[int]
    CHALLENGE_FIELD_NUMBER: _ClassVar[int]
    method: str
    mechanism: str
    protocol: str
    server_id: str
    challenge: bytes
    def __init__(self, method: _Optional[str] = ..., mechanism: _Optional[str] = ..., protocol: _Optional[str] = ..., server_id: _Optional[str] = ..., challenge: _Optional[bytes] = ...) -> None: ...

class SaslMessage(_message.Message):
    __slots__ = ("version", "state", "token", "auths")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        SUCCESS: _ClassVar[SaslMessage.State]
        NEGOTIATE: _ClassVar[SaslMessage.State]
        INITIATE: _ClassVar[SaslMessage.State]
        CHALLENGE: _ClassVar[SaslMessage.State]
        RESPONSE: _ClassVar[SaslMessage.State]
        WRAP: _ClassVar[SaslMessage.State]
    SUCCESS: SaslMessage.State
    NEGOTIATE: SaslMessage.State
    INITIATE: SaslMessage.State
    CHALLENGE: SaslMessage.State
    RESPONSE: SaslMessage.State
    WRAP: SaslMessage.State
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    AUTHS_FIELD_NUMBER: _ClassVar[int]
    version: int
    state: SaslMessage.State
    token: bytes
    auths: _containers.RepeatedCompositeFieldContainer[SaslAuth]
    def __init__(self, version: _Optional[int] = ..., state: _Optional[_Union[SaslMessage.State, str]] = ..., token: _Optional[bytes] = ..., auths: _Optional[_Iterable[_Union[SaslAuth, _Mapping]]] = ...) -> None: ...

class CallHeader(_message.Message):
    __slots__ = ("method", "protocol", "protocol_version")
    METHOD_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    method: str
    protocol: str
    protocol_version: int
    def __init__(self, method: _Optional[str] = ..., protocol: _Optional[str] = ..., protocol_version: _Optional[int] = ...) -> None: ...
