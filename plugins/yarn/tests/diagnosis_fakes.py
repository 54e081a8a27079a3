"""What a diagnosis looks at, as a test wants it to be."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from plugins.yarn.tests.yarn_fakes import GIB, HOST, NODE_ID, FakeManager, entry, reading, spec

from fallow_hookspecs import Daemon, Finding, Node, Process, Resources
from fallow_yarn.diagnosis.daemon_conf import DaemonConf
from fallow_yarn.diagnosis.diagnose import diagnose
from fallow_yarn.diagnosis.probes import Page, Probes
from fallow_yarn.errors import YarnError
from fallow_yarn.model.node_matching import by_host, own_ids
from fallow_yarn.model.size import Size
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.facts import Identity
from fallow_yarn.rm.readings import Facts, Reading
from fallow_yarn.security.access import Access, access
from fallow_yarn.security.web_access import WebAccess
from fallow_yarn.settings.rm_addresses import RmAddresses, are_local, rm_addresses

EXECUTORS = "org.apache.hadoop.yarn.server.nodemanager."
LENDABLE = Resources(8_999, 22 * GIB)
CONF = DaemonConf({"some.key": "some value"})
LARGEST = entry("big:1", capability=Size(99_000, 99), in_force=Size(99_000, 99))

Found = dict[str, Finding]


class Manager(FakeManager):
    """One whose facts and whose reading can fail alone."""

    def __init__(self) -> None:
        super().__init__()
        self.reading_now = reading(entry(http_address="worker-1:8042"), LARGEST)
        self.facts_failure: YarnError | None = None
        self.read_failure: YarnError | None = None

    def facts(self, deadline: Deadline) -> Facts:
        if self.facts_failure is not None:
            raise self.facts_failure
        return super().facts(deadline)

    def read(self, deadline: Deadline) -> Reading:
        if self.read_failure is not None:
            raise self.read_failure
        return super().read(deadline)


def inactive_in(state: str) -> Facts:
    """A ResourceManager that is in another state than the active one."""
    return Facts(identity=Identity(version="3.5.0", active=False, ha_state=state, started_on=None), setup=None)


def manager_page(ahead: float | None = 0.0, /, **settings: str) -> Page:
    """The ResourceManager's page, with its defaults and these settings."""
    return Page(settings=DaemonConf({"yarn.admin.acl": "*"} | settings), ahead_seconds=ahead)


def node_page(version: str = "3.5.0", /, **settings: str) -> Page:
    """The page of a NodeManager with nothing to mend, but for these settings."""
    fine = {
        "yarn.nodemanager.address": "${yarn.nodemanager.hostname}:45454",
        "yarn.nodemanager.hostname": "worker-1",
        "yarn.nodemanager.resource.memory-mb": "256",
        "yarn.nodemanager.resource.cpu-vcores": "1",
        "yarn.nodemanager.container-executor.class": EXECUTORS + "DefaultContainerExecutor",
        "yarn.nodemanager.sleep-delay-before-sigkill.ms": "30000",
        "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "90.0",
        "yarn.nodemanager.disk-health-checker.enable": "true",
        "yarn.nodemanager.local-dirs": "[SSD]file:///data/local",
        "yarn.nodemanager.log-dirs": "/data/logs",
    }
    return Page(settings=DaemonConf(fine | settings), ahead_seconds=0.0, info={"nodeManagerVersion": version})


@dataclass
class Fakes:
    """A ResourceManager and a host; `asked` are the pages in the order in which they were read."""

    manager: Manager = field(default_factory=Manager)
    manager_says: Page = field(default_factory=manager_page)
    node_says: Page = field(default_factory=node_page)
    lendable: Resources | None = LENDABLE
    disk: float | None = 50.0
    cgroups: tuple[str, ...] = ()
    running: list[str | None] = field(default_factory=lambda: [NODE_ID])
    asked: list[str] = field(default_factory=list)

    def findings(self, **settings: object) -> Found:
        """All findings by their subjects, each of which is there once; what is wrong has advice."""
        wanted = spec(**settings)
        self.manager.addresses = rm_addresses(wanted)[0]

        def own(node: Node, ids: Collection[str]) -> list[str]:
            return own_ids(by_host(ids), node, wanted.rules(manager_is_local=are_local((self.manager.addresses,))))

        host = replace(HOST, lendable=self.lendable)
        found = diagnose(self.manager, wanted, access(wanted), own, (host,), Deadline.after(5), self._probes())
        by_subject = {finding.subject: finding for finding in found}
        assert len(by_subject) == len(found)
        assert all(finding.advice for finding in found if finding.ok is False)
        return by_subject

    def _probes(self) -> Probes:
        return Probes(
            manager_page=self._manager_page,
            node_page=self._node_page,
            disk_used_percent=lambda _: self.disk,
            has_cgroup=self.cgroups.__contains__,
            processes=self._processes,
        )

    def _manager_page(self, _addresses: RmAddresses, _access: Access, _deadline: Deadline) -> Page:
        self.asked.append("manager")
        return self.manager_says

    def _node_page(self, address: str, _access: WebAccess, _deadline: Deadline) -> Page:
        self.asked.append(address)
        return self.node_says

    def _processes(self, ids: Collection[str]) -> tuple[Daemon, ...]:
        process = Process(1, 1)
        if not ids:
            return tuple(Daemon(process=process) for _ in self.running)
        return tuple(Daemon(process=process, framework_node=node) for node in self.running if node in {*ids, None})
