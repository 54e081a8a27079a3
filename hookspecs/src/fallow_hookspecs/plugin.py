"""The object that an entry point of the group `fallow.plugins` names, and what it builds."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from fallow_hookspecs.capacity import Node

API_LEVEL = 0
"""The level of this contract. Level 0 may still change; core refuses a plugin that was not written for it."""

ENTRY_POINT_GROUP = "fallow.plugins"
WRAPPER_GROUP = "fallow.wrappers"


class Role(StrEnum):
    """What an instance does: a controller reports and publishes, an agent lists and terminates tasks of a node."""

    CONTROLLER = "controller"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """One cluster file, from which an instance is built. `spec` is the result of the plugin's config model."""

    name: str
    roles: frozenset[Role]
    spec: Any


class ConfigModel(Protocol):
    """A class that validates a mapping and has a JSON schema, such as a pydantic model.

    `model_validate` may raise an exception with an `errors()` method like that of pydantic (a list of mappings with
    `loc` and `msg`). Then each error is shown with its file, line and key. Any other exception is shown as one error.
    """

    @classmethod
    def model_validate(cls, obj: Any) -> Any:
        """The validated spec. Unknown keys are errors."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """A JSON schema of the spec."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a plugin needs on each host. `fallow doctor` checks it for each cluster of the plugin.

    Each text begins with the thing that is needed, and may say why: `pidfd, to terminate a container`. The doctor knows
    the kernel features `cgroup v1`, `cgroup v2`, `pidfd` and `psi`, the capabilities of capabilities(7) such as
    `CAP_SYS_PTRACE`, and files by their absolute path, which must be readable. It shows any other text unchecked, and
    RBAC rules too, because only Kubernetes can check them.
    """

    kernel_features: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    rbac_rules: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of `fallow doctor`. `ok` None: unknown, or not an error. `advice` says what to change and where."""

    subject: str
    ok: bool | None
    detail: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of an instance, for `fallow plugins info`. `value` is the effective value as text.

    `source` says where it comes from: a key of the cluster file (`spec.user`), another file and its key, or a default.
    The value is never a secret: name the file that contains the secret.
    """

    name: str
    value: str
    source: str


@runtime_checkable
class Instance(Protocol):
    """What `Plugin.build` returns: an object with hook implementations and these two methods.

    Core calls `diagnose` in the reads lane; it may take as long as a report.
    """

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """What an operator should know about the framework."""

    def close(self) -> None:
        """Close connections and files. Core calls no hook afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """The object that an entry point names. Loading it must be cheap; `config_model` and `build` import heavy modules.

    `name` is the name of the entry point, and the value of `plugin:` in a cluster file. `api_levels` are the lowest and
    the highest level of this contract that the plugin supports. `config_model` returns the model of `spec`. `build`
    opens one instance for one cluster file; if it raises, the operator sees the error and only this cluster has no
    instance. `config_template` is a commented example of `spec` in YAML. `needs` is checked by `fallow doctor`.
    `pod_selector`: labels of the pods that core passes with each node; only core on Kubernetes uses it. `settings`
    lists the effective settings of a cluster file for `fallow plugins info`; it may only read files, and the operator
    sees what it raises. `agent_model`: the model of `spec` for the agent role alone, if that requires less.
    """

    name: str
    api_levels: tuple[int, int]
    config_model: Callable[[], type[ConfigModel]]
    build: Callable[[ClusterConfig], Instance]
    config_template: str = ""
    needs: Needs = field(default_factory=Needs)
    pod_selector: Mapping[str, str] = field(default_factory=dict)
    settings: Callable[[ClusterConfig], Iterable[Setting]] | None = None
    agent_model: Callable[[], type[ConfigModel]] | None = None

    def model_for(self, roles: frozenset[Role]) -> type[ConfigModel]:
        """The model of `spec` for these roles."""
        if self.agent_model is not None and roles == {Role.AGENT}:
            return self.agent_model()
        return self.config_model()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """The object that an entry point of the group `fallow.wrappers` names: third-party code around a plugin's calls.

    `build` gets the name of a cluster (`plugin/name`) whose file lists this wrapper under `wrappers`. It returns an
    object with generator methods `kill_tasks` or `report_capacity`, each marked `@hookimpl(wrapper=True)`::

        @hookimpl(wrapper=True)
        def kill_tasks(self, order: KillOrder) -> Generator[None, KillOutcome, KillOutcome]:
            if spared := self.not_now(order):
                raise Veto(spared)       # before the call: these tasks are spared, the others are ordered again
            outcome = yield              # the call, wrappers further in included
            self.log(order, outcome)
            return outcome

    Around `report_capacity`, a `PluginError` raised before the call refuses it; its text is the reason. `fallow status`
    shows any other error of a wrapper; core makes the call anyway and uses its answer.
    """

    name: str
    api_levels: tuple[int, int]
    build: Callable[[str], object]
