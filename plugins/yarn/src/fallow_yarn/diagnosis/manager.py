"""Judges the ResourceManager itself: state, release, clock, and the rights of this user. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from fallow_hookspecs import Finding
from fallow_yarn.diagnosis import connection_errors
from fallow_yarn.diagnosis.probes import Page
from fallow_yarn.errors import AccessDeniedError, NoSuchCallError, StandbyError, YarnError
from fallow_yarn.rm.facts import Identity
from fallow_yarn.rm.manager import RmState
from fallow_yarn.rm.status import Status
from fallow_yarn.settings.rm_addresses import RmAddresses, Server

TRIED: Final = ((3, 2), (3, 5))
"""The oldest and the newest tested release."""

MOST_APART_SECONDS: Final = 5.0
ADMIN_ACL: Final = "yarn.admin.acl"


def state(identity: Identity, addresses: RmAddresses) -> Finding:
    """Which ResourceManager answers, and whether it is active."""
    detail = f"{identity.version} at {addresses.web.authority} is {identity.ha_state or 'unknown'}"
    if identity.active:
        return Finding(subject="ResourceManager", ok=True, detail=detail)
    if identity.ha_state == "STANDBY":
        advice = (
            "configure the active one, or all in spec.resourceManagers: yarn rmadmin -getAllServiceState lists them"
        )
        return Finding(subject="ResourceManager", ok=False, detail=f"{detail}: it accepts no node sizes", advice=advice)
    advice = "it is starting or stopping: ask again in a few seconds"
    return Finding(subject="ResourceManager", ok=None, detail=detail, advice=advice)


def rm_states(found: Iterable[RmState]) -> Iterator[Finding]:
    """The state of each of several: one should be active, and all others standby."""
    found = tuple(found)
    active = [rm_state for rm_state in found if rm_state.status is Status.ACTIVE]
    for rm_state in found:
        subject, detail = f"ResourceManager {rm_state.addresses.name}", str(rm_state)
        if rm_state.error is not None:
            advice = "it cannot take over: start it, or correct its addresses"
            yield Finding(subject=subject, ok=False, detail=detail, advice=advice)
        elif rm_state.status is Status.ACTIVE and len(active) > 1:
            advice = "one of them does not know yet that it was replaced: the one that became active later is used"
            yield Finding(subject=subject, ok=None, detail=f"{detail}, but another one is active too", advice=advice)
        else:
            is_fine = rm_state.status in (Status.ACTIVE, Status.STANDBY)
            yield Finding(subject=subject, ok=True if is_fine else None, detail=detail)


def addresses(addresses: RmAddresses) -> Finding:
    """The addresses of its servers with their sources."""
    servers = "; ".join(f"{kind} {addresses.of(kind)}" for kind in Server)
    return Finding(subject=f"addresses{' of ' if addresses.name else ''}{addresses.name}", ok=True, detail=servers)


def release(identity: Identity) -> Finding:
    """What its release supports, and whether it is tested."""
    subject = "release of the ResourceManager"
    if identity.release == (0, 0):
        advice = "check that spec.resourceManager.web is a ResourceManager's address"
        return Finding(subject=subject, ok=None, detail=f"{identity.version!r} is not a known release", advice=advice)
    oldest, newest = TRIED
    if not oldest <= identity.release <= newest:
        span = f"{oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}"
        advice = f"stay in the mode observe until it has been tested; tested are {span}"
        return Finding(subject=subject, ok=None, detail=f"{identity.version}: not tested with it", advice=advice)
    does = (
        "it can take back what exceeds a size, and NodeManagers keep their sizes when it restarts"
        if identity.takes_back
        else "before 3.3 it terminates nothing (takeBack has no effect), and a restart restores the configured sizes"
    )
    return Finding(subject=subject, ok=True, detail=f"{identity.version}: {does}")


def clock(page: Page) -> Finding:
    """The difference between its clock and this host's."""
    subject = "clocks"
    apart = page.ahead_seconds
    if apart is None:
        return Finding(subject=subject, ok=None, detail=f"not compared: {page.problem or 'it sends no Date header'}")
    if abs(apart) <= MOST_APART_SECONDS:
        return Finding(subject=subject, ok=True, detail="this host and the ResourceManager agree")
    way = "ahead of" if apart > 0 else "behind"
    return Finding(
        subject=subject,
        ok=False,
        detail=f"the ResourceManager's is {abs(apart):.0f} s {way} this host's: the times of events cannot be compared,"
        " and Kerberos fails from 300 s on",
        advice="synchronize both with NTP (timedatectl, chronyc tracking)",
    )


def rights(
    error: YarnError | None, page: Page, identity: Identity, user: str, addresses: RmAddresses
) -> Iterator[Finding]:
    """Whether the user may change sizes, and who else may. `error`: the result of the check."""
    subject = "admin rights"
    acl = page.settings.text(ADMIN_ACL)
    if isinstance(error, AccessDeniedError):
        advice = (
            f"add {user!r} to {ADMIN_ACL} in the ResourceManager's yarn-site.xml and run yarn rmadmin"
            " -refreshAdminAcls, or set spec.user to a user in it"
        )
        shown = "" if acl is None else f"; {ADMIN_ACL} is {acl!r}"
        yield Finding(subject=subject, ok=False, detail=f"{error}{shown}", advice=advice)
    elif isinstance(error, StandbyError):
        yield Finding(subject=subject, ok=None, detail="unknown until it is active")
    elif error is not None:
        yield connection_errors.failed(subject, addresses.admin, error)
    else:
        others = ", and so may everyone who reaches the port" if acl == "*" else ""
        yield Finding(subject=subject, ok=True, detail=f"user {user!r} may change node sizes{others}")
    if identity.takes_back and acl not in (None, "*"):
        yield Finding(
            subject="sizes by REST",
            ok=None,
            detail=f"POST /ws/v1/cluster/nodes/ID/resource ignores {ADMIN_ACL}: its web port lets others set sizes",
            advice="let only hosts and users you trust reach the web port",
        )


def ports(errors: Mapping[Server, YarnError], addresses: RmAddresses) -> Iterator[Finding]:
    """The ports that failed."""
    if connection_errors.are_all_away(errors):
        advice = "start it, or correct spec.resourceManager.host; its address may also be bound to another interface"
        yield Finding(
            subject="ResourceManager", ok=False, detail=f"it does not run: {errors[Server.WEB]}", advice=advice
        )
        return
    yield from mixed_up(errors.get(Server.CLIENT), errors.get(Server.ADMIN))
    for port, error in errors.items():
        yield connection_errors.failed(f"{port} port", addresses.of(port), error)


def mixed_up(client: YarnError | None, admin: YarnError | None) -> Iterator[Finding]:
    """Whether both ports refuse the protocol expected there: they may be swapped."""
    if isinstance(client, NoSuchCallError) and isinstance(admin, NoSuchCallError):
        yield Finding(
            subject="ports",
            ok=False,
            detail="the client port and the admin port both serve another protocol, as if they were swapped",
            advice="swap spec.resourceManager.client and spec.resourceManager.admin",
        )
