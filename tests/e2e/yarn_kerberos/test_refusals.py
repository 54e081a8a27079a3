"""What goes wrong with Kerberos: each is a clear error that says what to do, and comes in time."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from tests.e2e.yarn.rest import wait_for
from tests.e2e.yarn_kerberos.realm import NAME, Realm
from tests.e2e.yarn_kerberos.secure import ADMIN, SecureCluster
from tests.e2e.yarn_kerberos.spec import spec_of

from fallow_yarn.errors import AccessDeniedError, AuthenticationRefusedError, CredentialsError, DeadlineError
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.rm.client import ResourceManager
from fallow_yarn.security.access import Access, access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.settings.rm_addresses import rm_addresses

SECONDS = 10.0
CLIENT = """
import sys
from fallow_yarn.security.access import access
from fallow_yarn.settings.config import YarnSpec
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.settings.rm_addresses import rm_addresses
from fallow_yarn.rm.client import ResourceManager
spec = YarnSpec.model_validate_json(sys.argv[1])
for call in ("check_rights", "facts"):
    try:
        getattr(ResourceManager(rm_addresses(spec)[0], access(spec)), call)(Deadline.after(10))
    except Exception as error:
        print(call, type(error).__name__, error)
"""
pytestmark = pytest.mark.timeout(120, func_only=True)  # the first fixture may fetch jars

Manager = Callable[..., ResourceManager]


@pytest.fixture
def manager(secured: SecureCluster) -> Iterator[Manager]:
    """The ResourceManager as somebody sees it who has other settings of Kerberos."""
    with ExitStack() as stack:

        def build(**kerberos: object) -> ResourceManager:
            spec = spec_of(secured, **kerberos)
            return stack.enter_context(closing(ResourceManager(rm_addresses(spec)[0], access(spec))))

        yield build


def soon(seconds: float = SECONDS) -> Deadline:
    return Deadline.after(seconds)


def test_simple_authentication_is_refused_with_the_setting_that_is_missing(secured: SecureCluster) -> None:
    spec = spec_of(secured)
    with closing(ResourceManager(rm_addresses(spec)[0], Access.simple("operator", access(spec).tls))) as simple:
        for call in (simple.check_rights, simple.nodes, simple.facts):
            with pytest.raises(AuthenticationRefusedError, match=r"set spec\.kerberos"):
                call(soon())


def test_a_principal_without_admin_rights_is_told_from_one_that_is_not_let_in(manager: Manager, realm: Realm) -> None:
    stranger = manager(principal="stranger", keytab=str(realm.keytab("stranger")))
    assert len(stranger.nodes(soon())) == 1
    with pytest.raises(AccessDeniedError, match=r"the user 'stranger' needs the right: see yarn\.admin\.acl"):
        stranger.check_rights(soon())


def test_a_keytab_with_old_keys_is_told(manager: Manager, realm: Realm, tmp_path: Path) -> None:
    old = tmp_path / "old.keytab"
    old.touch(0o600)
    old.write_bytes(realm.keytab("rekeyed").read_bytes())
    realm.keytab("rekeyed", anew=True)
    with pytest.raises(CredentialsError, match=r"old\.keytab: .*key in the keytab is not that of the KDC"):
        manager(principal="rekeyed", keytab=str(old)).check_rights(soon())


def test_a_keytab_without_the_principal_is_told(manager: Manager) -> None:
    with pytest.raises(CredentialsError, match=r"nobody of .*klist -k -t"):
        manager(principal="nobody").check_rights(soon())


def test_a_keytab_that_is_not_there_is_told(manager: Manager) -> None:
    with pytest.raises(CredentialsError, match=r"spec\.kerberos\.keytab: /no/keytab is not there"):
        manager(keytab="/no/keytab").check_rights(soon())


def test_without_a_ticket_it_says_how_to_get_one(manager: Manager) -> None:
    with pytest.raises(CredentialsError, match="kinit"):
        manager(keytab=None, principal=None).check_rights(soon())


def test_an_expired_ticket_is_told(manager: Manager, realm: Realm, tmp_path: Path) -> None:
    cache = realm.ticket(realm.keytab("brief2", life="1s"), "brief2", tmp_path / "cache")
    time.sleep(2.3)  # both ends are whole seconds
    with pytest.raises(CredentialsError, match="Ticket expired; get a new ticket: kinit, or set"):
        manager(keytab=None, principal=None, ticketCache=f"FILE:{cache}").check_rights(soon())


def test_a_kdc_that_is_away_is_told_and_tickets_that_are_there_still_serve(
    manager: Manager, realm: Realm, secured: SecureCluster
) -> None:
    served, unserved = manager(), manager(principal="late", keytab=str(realm.keytab("late")))
    served.check_rights(soon())
    served.close()
    with realm.away():
        served.check_rights(soon())
        with pytest.raises(CredentialsError, match=r"Cannot contact any KDC .*look whether the KDC runs"):
            unserved.check_rights(soon())
    unserved.nodes(soon())


def test_a_silent_kdc_takes_no_more_than_the_time_that_is_given(manager: Manager, realm: Realm) -> None:
    waiting = manager(principal="patient", keytab=str(realm.keytab("patient")))
    with realm.silent():
        for call in (waiting.check_rights, waiting.nodes, waiting.facts):
            with pytest.raises(DeadlineError, match="the KDC does not answer in the time given"):
                call(soon(0.3))
    waiting.nodes(soon())


def test_tickets_for_old_keys_of_the_services_are_replaced_by_the_call_after(
    manager: Manager, realm: Realm, secured: SecureCluster
) -> None:
    known = manager()
    known.check_rights(soon())
    known.close()
    for service in ("rm/localhost", "HTTP/localhost"):
        realm.keytab(service, anew=True)
    with pytest.raises(AuthenticationRefusedError, match="GSS initiate failed"):
        known.check_rights(soon())
    known.check_rights(soon())
    assert known.facts(soon()).identity.active
    wait_for(lambda: bool(secured.nodes()), 10, "the pages, which ask for tickets of the new keys too")


def test_another_service_than_the_expected_one_is_refused_before_a_ticket_is_shown(manager: Manager) -> None:
    with pytest.raises(AuthenticationRefusedError, match=r"its principal is 'rm/localhost', expected 'yarn/localhost@"):
        manager(resourceManagerPrincipal=f"yarn/_HOST@{NAME}").check_rights(soon())


@pytest.mark.parametrize(
    ("services", "by_rpc", "by_web"),
    [
        ((), "Clock skew too great; this host's clock and the KDC's", "Clock skew too great; this host's clock"),
        (
            ("rm/localhost", "HTTP/localhost"),
            "GSS initiate failed; it gives no reason: its clock and this host's may be",
            "Clock skew too great",
        ),
    ],
    ids=["told by the KDC", "told by the ResourceManager"],
)
def test_a_clock_that_is_wrong_is_named(
    secured: SecureCluster, realm: Realm, tmp_path: Path, services: tuple[str, ...], by_rpc: str, by_web: str
) -> None:
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
    if library is None:
        pytest.skip("needs Debian's faketime")
    cache = realm.ticket(secured.admin_keytab, ADMIN, tmp_path / "cache", services=services)
    spec: YarnSpec = spec_of(secured, keytab=None, principal=None, ticketCache=f"FILE:{cache}")
    done = subprocess.run(
        [sys.executable, "-c", CLIENT, spec.model_dump_json(by_alias=True, exclude_none=True)],
        env=realm.environment(LD_PRELOAD=str(library), FAKETIME="+10m"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    rpc, web = done.stdout.splitlines()
    assert by_rpc in rpc
    assert by_web in web
