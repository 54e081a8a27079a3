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
    """What an instance is for: the controller reports and publishes, the agent lists and terminates tasks of a node."""

    CONTROLLER = "controller"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """What an instance is built from: one cluster file. `spec` is what the plugin's config model made of the file."""

    name: str
    roles: frozenset[Role]
    spec: Any


class ConfigModel(Protocol):
    """Anything that validates a mapping and gives a JSON schema; a pydantic model fits as it is.

    If `model_validate` raises an exception with an `errors()` method as pydantic's has it (a list of mappings with
    `loc` and `msg`), each error is shown with its file and line; any other exception is shown as one error.
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
    """One line of `fallow doctor`. `ok` None: cannot be told from here. `advice` says what to change and where."""

    subject: str
    ok: bool | None
    detail: str
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting that an instance works with, for `fallow plugins info`. `value` is what is used, in words.

    `source`: where it comes from, in words: a key of the cluster file (`spec.user`), another file and its key, or a
    default. A secret is never a value: name the file that it is read from.
    """

    name: str
    value: str
    source: str


@runtime_checkable
class Instance(Protocol):
    """What `Plugin.build` returns: an object with hook implementations, and these two methods.

    `diagnose` may take as long as a report; it is called in the reads lane.
    """

    def diagnose(self, nodes: tuple[Node, ...], timeout_seconds: float) -> tuple[Finding, ...]:
        """What an operator should know of the framework as this instance sees it."""

    def close(self) -> None:
        """Give back connections and files. No hook is called afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A plugin as its entry point names it. Loading it is cheap: heavy imports belong into `config_model` and `build`.

    `name` is the entry point's name, used as `plugin:` in a cluster file. `api_levels` are the lowest and the highest
    level of this contract that it was written for. `config_model` returns the model of `spec`. `build` opens one
    instance for one cluster file; what it raises is shown to the operator, and only this cluster is without an
    instance. `config_template` is a commented example of `spec` in YAML. `pod_selector`: the labels of the pods that
    core hands over with each node. `settings` tells what an instance of a cluster file would work with, for `fallow
    plugins info`; it reads files at most, and what it raises is shown to the operator. `agent_model`: the model of
    `spec` where the role is that of an agent alone, if it may say less there.
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
        """The model of `spec` in a cluster file with these roles."""
        if self.agent_model is not None and roles == {Role.AGENT}:
            return self.agent_model()
        return self.config_model()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """What an entry point of the group `fallow.wrappers` names: code of a third party around a plugin's calls.

    `build` is given the name of a cluster (`plugin/name`) whose file names this wrapper under `wrappers`. It returns
    an object with generator methods `kill_tasks` or `report_capacity`, each marked `@hookimpl(wrapper=True)`::

        @hookimpl(wrapper=True)
        def kill_tasks(self, order: KillOrder) -> Generator[None, KillOutcome, KillOutcome]:
            if spared := self.not_now(order):
                raise Veto(spared)       # before the call: these tasks are spared, the others are ordered again
            outcome = yield              # the call, wrappers further in included
            self.log(order, outcome)
            return outcome

    Around `report_capacity` any `PluginError` raised before the call refuses it, with its text as the reason. Whatever
    else goes wrong in a wrapper is shown by `fallow status` and changes nothing: the call is made, its answer counts.
    """

    name: str
    api_levels: tuple[int, int]
    build: Callable[[str], object]
