"""The plugin and `fallow run` against a real ResourceManager and NodeManager that ask for Kerberos."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.e2e.yarn.fallow_process import VCORE_MILLI, Fallow
from tests.e2e.yarn.rest import wait_for
from tests.e2e.yarn_kerberos.realm import NAME, Realm
from tests.e2e.yarn_kerberos.secure import ADMIN, PROTECTIONS, SecureCluster
from tests.e2e.yarn_kerberos.spec import kerberos_spec, spec_of

from fallow_hookspecs import ClusterConfig, Node, Offer, Resources, Role
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.plugin import YarnInstance
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.security.access import access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import rm_addresses

HERE = Node(name="here", addresses=("localhost", "127.0.0.1"))
MIB = 1 << 20
SECONDS = 10.0
LENT_MB = 1536
LIFE_SECONDS = 4
pytestmark = pytest.mark.timeout(120, func_only=True)  # the first fixture may fetch jars

Build = Callable[[YarnSpec], YarnInstance]


@pytest.fixture
def build() -> Iterator[Build]:
    with ExitStack() as stack:

        def build(spec: YarnSpec) -> YarnInstance:
            return stack.enter_context(
                closing(YarnInstance(ClusterConfig(name="secured", roles=frozenset(Role), spec=spec)))
            )

        yield build


def resize(yarn: YarnInstance, memory_mb: int) -> None:
    """Send a size and wait until it is in force."""
    (row,) = yarn.report_capacity((HERE,), (), SECONDS).rows
    total = Resources(cpu_milli=3000, memory_bytes=memory_mb * MIB)
    offer = Offer(node="here", framework_node=row.framework_node, total=total, take_back={})
    (answer,) = yarn.report_capacity((HERE,), (offer,), SECONDS).answers
    assert (answer.accepted, answer.reason) == (total, "")
    wait_for(
        lambda: [row.in_force for row in yarn.report_capacity((HERE,), (), SECONDS).rows] == [total], 20, "the size"
    )


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_sizes_are_read_and_sent_with_each_protection(secured: SecureCluster, build: Build, protection: str) -> None:
    resize(build(spec_of(secured, protection=[protection])), 1024 + PROTECTIONS.index(protection))


def test_of_all_protections_the_strongest_that_is_offered_is_taken(secured: SecureCluster, build: Build) -> None:
    resize(build(spec_of(secured)), 1100)


@pytest.mark.parametrize("host", ["localhost", "LocalHost"])
def test_letter_case_makes_no_difference_in_the_name_of_the_server(
    secured: SecureCluster, build: Build, host: str
) -> None:
    given = kerberos_spec(secured)
    rm = secured.rm
    addresses = {"client": rm.client, "admin": rm.admin, "web": rm.web}
    given["resourceManager"] = {key: f"{host}:{value.rpartition(':')[2]}" for key, value in addresses.items()}
    resize(build(YarnSpec.model_validate(given)), 1400)
    resize(build(YarnSpec.model_validate(given)), 1024)


def test_a_pattern_of_principals_is_used_as_hadoop_uses_it(
    secured: SecureCluster, build: Build, tmp_path: Path
) -> None:
    for file in (secured.folder / "client").iterdir():
        text = file.read_text()
        if file.name == "yarn-site.xml":
            text = text.replace("yarn.resourcemanager.principal<", "yarn.resourcemanager.principal.pattern<")
            text = text.replace(f"rm/_HOST@{NAME}", f"{{rm,yarn}}/local*@{NAME}")
        (tmp_path / file.name).write_text(text)
    added = {"kerberos": {"keytab": str(secured.admin_keytab)}, "tls": {"caFile": str(secured.authority)}}
    resize(build(YarnSpec.model_validate({"hadoopConfDir": str(tmp_path), **added})), 1350)


def test_a_ticket_cache_is_taken_without_a_keytab(
    secured: SecureCluster, realm: Realm, build: Build, tmp_path: Path
) -> None:
    cache = realm.ticket(secured.admin_keytab, ADMIN, tmp_path / "cache")
    resize(build(spec_of(secured, keytab=None, principal=None, ticketCache=f"FILE:{cache}")), 1200)


def test_to_a_folder_of_hadoops_only_keytab_and_authority_are_added(secured: SecureCluster, build: Build) -> None:
    added = {"kerberos": {"keytab": str(secured.admin_keytab)}, "tls": {"caFile": str(secured.authority)}}
    resize(build(YarnSpec.model_validate({"hadoopConfDir": f"{secured.folder}/client", **added})), 1300)


def test_a_node_managers_pages_are_read_too(secured: SecureCluster, build: Build) -> None:
    yarn = build(spec_of(secured))
    yarn.report_capacity((HERE,), (), SECONDS)
    listed = yarn.list_tasks(HERE, SECONDS)
    assert (listed.complete, listed.incomplete_reason) == (True, "")


def test_tickets_of_a_keytab_are_renewed_before_they_expire(secured: SecureCluster, realm: Realm) -> None:
    keytab = realm.keytab("brief", life=f"{LIFE_SECONDS}s")
    spec = spec_of(secured, principal="brief", keytab=str(keytab))
    with closing(ResourceManager(rm_addresses(spec)[0], access(spec))) as manager:
        end = time.monotonic() + 2 * LIFE_SECONDS + 1
        while time.monotonic() < end:
            manager.close()  # the next call logs in anew
            assert len(manager.nodes(Deadline.after(SECONDS))) == 1
            time.sleep(1)


def test_fallow_run_lends_by_the_clusters_own_files_and_doctor_shows_the_ticket(
    secured: SecureCluster, realm: Realm, tmp_path: Path
) -> None:
    spec = {
        "hadoopConfDir": f"{secured.folder}/client",
        "vcoreMilli": VCORE_MILLI,
        "kerberos": {"principal": ADMIN, "keytab": str(secured.admin_keytab)},
        "tls": {"caFile": str(secured.authority)},
    }
    with Fallow(tmp_path / "fallow", {"real": spec}, cpu_reserved_milli=0, memory_limit_mb=LENT_MB) as fallow:
        fallow.start()
        wait_for(lambda: [mb for mb, _ in fallow.in_force().values()] == [LENT_MB], 60, "what is lent")
        found = {finding["subject"]: finding for finding in json.loads(fallow.call("doctor", "--json").stdout)}
    # What this host could lend just now may be less than the vcores that the NodeManager is configured with.
    wrong = {subject for subject, finding in found.items() if finding["ok"] is False}
    assert all(subject.startswith("configured size of ") for subject in wrong), wrong
    assert [node.total_mb for node in secured.nodes().values()] == [LENT_MB]
    assert found["Kerberos"]["detail"].startswith(f"{ADMIN}@{NAME}, to rm/_HOST@{NAME}; its ticket is valid for")
    assert found["admin rights"]["ok"] is True
