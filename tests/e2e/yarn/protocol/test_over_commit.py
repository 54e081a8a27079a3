"""What becomes of containers on a node that shrinks below them: on the embedded YARN as on a real one.

The node has 4096 MB: a master of 256 MB, and four containers of 512 MB.
"""

import getpass
import time
from collections.abc import Callable, Iterator

import pytest
from tests.e2e.yarn import rest
from tests.e2e.yarn.protocol.clusters import MASTER_MB, VERSION, App, Shape, Yarn
from tests.e2e.yarn.protocol.conftest import StartYarn
from tests.e2e.yarn.rest import wait_for

from fallow_hookspecs import Offer, Resources
from fallow_yarn.model.container_id import ContainerId
from fallow_yarn.model.size import MIB_BYTES
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.publishing.publisher import Publisher
from fallow_yarn.publishing.resend import Resend
from fallow_yarn.reports.capabilities import capabilities
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.settings.config import YarnSpec

FULL_MB, VCORES, TASK_MB = 4096, 8, 512
SMALL_MB = MASTER_MB + TASK_MB  # room for the master and one container
FAR_MS, NEVER, AT_ONCE = 2147483647, -1, 0
TAKES_BACK = not VERSION.startswith("3.2.")
QUIET_HEARTBEATS = 2.5  # after one it is decided, and after two it is done

pytestmark = pytest.mark.skipif(not TAKES_BACK, reason="this release takes nothing back, and has no REST for sizes")


@pytest.fixture(scope="module")
def yarn(start_yarn: StartYarn) -> Yarn:
    return start_yarn(Shape(memory_mb=FULL_MB, vcores=VCORES))


@pytest.fixture
def app(yarn: Yarn) -> Iterator[App]:
    """An application with four containers; in the end it is gone, and the node has its deadline far away."""
    made = yarn.submit(4, TASK_MB, 1, "exec sleep 600")
    wait_for(lambda: len(made.running()) == 4, 60, "the containers")
    wait_for(lambda: node(yarn).used_mb == MASTER_MB + 4 * TASK_MB, 20, "what they use")
    yield made
    end(yarn, made)
    wait_for(lambda: node(yarn).containers == 0, 30, "the end of the application")
    resize(yarn, FULL_MB, FAR_MS)


def end(yarn: Yarn, app: App) -> None:
    """Have its master killed, so that it fails."""
    client = ResourceManager.at(client=yarn.rm.client, admin=yarn.rm.admin, web=yarn.rm.web, user=getpass.getuser())
    for application in client.applications(Deadline.after(10)):
        master = ContainerId.parse(application.master or "")
        if application.id == app.app_id and master is not None:
            client.signal(master, Deadline.after(10), force=True)
    client.close()


def node(yarn: Yarn) -> rest.Node:
    (found,) = rest.nodes(yarn.rm.web).values()
    return found


def resize(yarn: Yarn, memory_mb: int, timeout_ms: int) -> None:
    """A new size, in force when this returns."""
    body = {"resource": {"memory": memory_mb, "vCores": VCORES}, "overCommitTimeout": timeout_ms}
    rest.call(yarn.rm.web, f"/ws/v1/cluster/nodes/{yarn.nodes['nm1'].node_id}/resource", body)
    wait_for(lambda: node(yarn).total_mb == memory_mb, 20, "the size")


def stays(yarn: Yarn, test: Callable[[], bool]) -> None:
    until = time.monotonic() + QUIET_HEARTBEATS * yarn.heartbeat_seconds
    while time.monotonic() < until:
        assert test()
        time.sleep(0.05)


def rest_a_while(yarn: Yarn) -> None:
    time.sleep(QUIET_HEARTBEATS * yarn.heartbeat_seconds)


@pytest.mark.parametrize("timeout_ms", [NEVER, FAR_MS])
def test_without_a_timeout_that_comes_nothing_ends(yarn: Yarn, app: App, timeout_ms: int) -> None:
    resize(yarn, SMALL_MB, timeout_ms)
    stays(yarn, lambda: app.exits() == {} and node(yarn).used_mb == MASTER_MB + 4 * TASK_MB)


def test_a_timeout_of_zero_ends_as_many_as_suffice_as_preempted_and_spares_the_master(yarn: Yarn, app: App) -> None:
    tasks = app.running()  # of those that were allocated in one millisecond any may be the newest
    resize(yarn, SMALL_MB, AT_ONCE)
    wait_for(lambda: sorted(app.exits().values()) == [-102] * 3, 20, "their ends")
    assert app.exits().keys() <= tasks
    wait_for(lambda: node(yarn).used_mb == SMALL_MB, 20, "what is left")
    stays(yarn, lambda: len(app.exits()) == 3)


def test_a_timeout_ends_them_when_it_is_over_and_not_before(yarn: Yarn, app: App) -> None:
    sent = time.monotonic()
    seconds = 3 * yarn.heartbeat_seconds
    resize(yarn, SMALL_MB, round(seconds * 1000))
    wait_for(lambda: app.exits() != {}, 20, "the first end")
    assert time.monotonic() - sent >= seconds
    wait_for(lambda: sorted(app.exits().values()) == [-102] * 3, 20, "their ends")


def test_a_deadline_once_stored_ends_containers_of_a_later_change_without_one(yarn: Yarn, app: App) -> None:
    resize(yarn, FULL_MB - 1, round(yarn.heartbeat_seconds * 1000))
    rest_a_while(yarn)
    resize(yarn, FULL_MB, NEVER)
    stays(yarn, lambda: app.exits() == {})
    resize(yarn, SMALL_MB, NEVER)
    wait_for(lambda: list(app.exits().values()) == [-102] * 3, 20, "their ends")


def test_a_far_timeout_takes_a_stored_deadline_away(yarn: Yarn, app: App) -> None:
    resize(yarn, FULL_MB - 1, round(yarn.heartbeat_seconds * 1000))
    rest_a_while(yarn)
    resize(yarn, SMALL_MB, FAR_MS)
    stays(yarn, lambda: app.exits() == {})


def test_the_same_size_with_another_timeout_is_ignored(yarn: Yarn, app: App) -> None:
    resize(yarn, SMALL_MB, FAR_MS)
    resize(yarn, SMALL_MB, AT_ONCE)
    stays(yarn, lambda: app.exits() == {})


def test_the_plugin_takes_back_as_far_as_an_offer_says_and_leaves_the_node_without_a_deadline(
    yarn: Yarn, app: App
) -> None:
    client = ResourceManager.at(client=yarn.rm.client, admin=yarn.rm.admin, web=yarn.rm.web, user=getpass.getuser())
    publisher = Publisher(client, YarnSpec.model_validate({"resourceManager": {"host": "localhost"}}), Resend())
    kept_mb = MASTER_MB + 3 * TASK_MB
    offer = Offer(
        node="n1",
        framework_node=yarn.nodes["nm1"].node_id,
        total=Resources(1000, SMALL_MB * MIB_BYTES),
        take_back={"memory": kept_mb * MIB_BYTES},
    )
    found = capabilities(client.facts(Deadline.after(10)))
    (answer,) = publisher.publish([offer], found, {}, Deadline.after(10))
    assert answer.accepted == offer.total
    wait_for(lambda: list(app.exits().values()) == [-102], 20, "the end of one")
    assert node(yarn).total_mb == SMALL_MB
    stays(yarn, lambda: len(app.exits()) == 1)
    resize(yarn, MASTER_MB, NEVER)
    stays(yarn, lambda: len(app.exits()) == 1 and node(yarn).used_mb == kept_mb)
    client.close()


def test_over_a_restart_of_the_resource_manager_containers_live_and_the_size_stays(yarn: Yarn, app: App) -> None:
    resize(yarn, SMALL_MB, FAR_MS)
    rest_a_while(yarn)  # until the NodeManager has heard of it
    yarn.kill("rm")
    yarn.start("rm")
    wait_for(lambda: node(yarn).used_mb == MASTER_MB + 4 * TASK_MB, 20, "the containers")
    assert (node(yarn).total_mb, app.exits()) == (SMALL_MB, {})


def test_over_a_restart_of_the_node_manager_containers_live_and_the_size_is_the_configured_one(
    yarn: Yarn, app: App
) -> None:
    resize(yarn, SMALL_MB, FAR_MS)
    yarn.kill("nm1")
    yarn.start("nm1")
    wait_for(lambda: node(yarn).total_mb == FULL_MB, 20, "the configured size")
    wait_for(lambda: node(yarn).used_mb == MASTER_MB + 4 * TASK_MB, 20, "the containers")
    assert app.exits() == {}
