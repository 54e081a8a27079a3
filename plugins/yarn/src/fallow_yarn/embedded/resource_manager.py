"""The embedded ResourceManager: its ports, its HA state, and its answers."""

import getpass
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from fallow_yarn.embedded import pages
from fallow_yarn.embedded.application import Application, Order
from fallow_yarn.embedded.http_server import Request, Response, failure, page, plain, serve_http, settings_page
from fallow_yarn.embedded.ipc_server import Protocols, refused, serve_ipc, serve_token_only
from fallow_yarn.embedded.listener import HOST, Listener
from fallow_yarn.embedded.node_lists import NodeLists
from fallow_yarn.embedded.resize import resize
from fallow_yarn.embedded.rpc_calls import admin_protocol, client_protocol, ha_protocol
from fallow_yarn.embedded.scheduler import Scheduler
from fallow_yarn.embedded.settings import Settings
from fallow_yarn.embedded.tracker import serve_tracker

PORTS: Final = 5
STANDBY_EXCEPTION: Final = "org.apache.hadoop.ipc.StandbyException"
STATES: Final = {"INITIALIZING": 0, "ACTIVE": 1, "STANDBY": 2}


@dataclass(slots=True)
class Store:
    """The state store, which outlives a ResourceManager: the applications, and how often one became active.

    The lock is held whenever the state of the embedded YARN is read or changed.
    """

    lock: threading.RLock = field(default_factory=threading.RLock)
    applications: list[Application] = field(default_factory=list)
    terms: int = 0


class ResourceManager:
    """One ResourceManager. `ports` are those of clients, administrators, masters, NodeManagers and the web.

    `active_web` tells the web address of the active one, if any: a standby redirects to it.
    """

    def __init__(
        self,
        name: str,
        ports: list[int],
        settings: Settings,
        store: Store,
        active_web: Callable[[], str | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.client_address, self.admin_address, self.scheduler_address, self.tracker_address, self.web_address = (
            f"{HOST}:{port}" for port in ports
        )
        self.ha_state = "INITIALIZING"
        self.started_ms = 0
        self.scheduler: Scheduler | None = None
        self._settings = settings
        self._store = store
        self._active_web = active_web
        self._clock = clock
        client, admin, masters, tracker, web = ports
        self._lists = NodeLists(settings.exclude_file, settings.include_file)
        admin_protocols = admin_protocol(self._state, self._may_change, self._lists, clock)
        if settings.ha:
            admin_protocols = {**admin_protocols, **ha_protocol(lambda: STATES[self.ha_state], self._transition)}
        self._always = (
            Listener(web, serve_http(self._locked_page)),
            Listener(admin, serve_ipc(self._locked(admin_protocols))),
        )
        self._while_active = (
            Listener(client, serve_ipc(self._locked(client_protocol(self._state, clock)))),
            Listener(masters, serve_token_only),
            Listener(tracker, serve_tracker(self._tracked, clock, settings.heartbeat_seconds)),
        )

    @property
    def is_active(self) -> bool:
        """Whether it is the one that acts."""
        return self.scheduler is not None

    def start(self, *, standby: bool) -> None:
        """Listen; return when it is active or a standby."""
        with self._store.lock:
            self.ha_state = "INITIALIZING"
            self._new_start()
        for listener in self._always:
            listener.start()
        time.sleep(self._settings.starting_seconds)
        if standby:
            self.ha_state = "STANDBY"
        else:
            self.become_active()

    def stop(self) -> None:
        """End at once, like a killed process: close all connections, and forget all that is not stored."""
        for listener in (*self._always, *self._while_active):
            listener.stop()
        with self._store.lock:
            self.scheduler = None

    def become_active(self) -> None:
        """Become active with the stored state; the NodeManagers register by themselves."""
        with self._store.lock:
            epoch = self._store.terms
            self._store.terms += 1
            self._new_start()
            self._lists.read()
            self.scheduler = Scheduler(self._settings, self._store.applications, epoch, self._lists)
            self.ha_state = "ACTIVE"
        for listener in self._while_active:
            listener.start()

    def become_standby(self) -> None:
        """Become a standby: only administrators and web requests are answered from now on."""
        with self._store.lock:
            self.scheduler, self.ha_state = None, "STANDBY"
        for listener in self._while_active:
            listener.stop()

    def submit(self, order: Order) -> Application:
        """A new application; RuntimeError if it is not active."""
        with self._store.lock:
            if self.scheduler is None:
                raise RuntimeError(f"ResourceManager {self.name} is not active: nothing can be submitted")
            number = len(self._store.applications) + 1
            application = Application(
                id=f"application_{self.started_ms}_{number:04d}", order=order, started_ms=round(time.time() * 1000)
            )
            self._store.applications.append(application)
            self.scheduler.submit(application, self._clock())
            return application

    def _new_start(self) -> None:
        self.started_ms = max(round(time.time() * 1000), self.started_ms + 1)

    def _transition(self, active: bool) -> None:
        if active and not self.is_active:
            self.become_active()
        elif not active and self.is_active:
            threading.Thread(target=self.become_standby).start()  # it ends the very connections that ask for it

    def _may_change(self, user: str) -> bool:
        admins = self._settings.admins
        return admins is None or user in admins or user == getpass.getuser()

    def _state(self) -> Scheduler:
        if self.scheduler is None:
            name = self.name if self._settings.ha and self.ha_state == "STANDBY" else "null"
            raise refused(STANDBY_EXCEPTION, f"ResourceManager {name} is not Active!")
        return self.scheduler

    @contextmanager
    def _tracked(self) -> Iterator[Scheduler | None]:
        with self._store.lock:
            yield self.scheduler

    def _locked(self, protocols: Protocols) -> Protocols:
        """The same methods, one at a time."""

        def locked(method: Callable[[bytes, str], bytes]) -> Callable[[bytes, str], bytes]:
            def call(argument: bytes, user: str) -> bytes:
                with self._store.lock:
                    return method(argument, user)

            return call

        return {name: {key: locked(method) for key, method in methods.items()} for name, methods in protocols.items()}

    def _locked_page(self, request: Request) -> Response:
        with self._store.lock:
            return self._page(request)

    def _page(self, request: Request) -> Response:
        match request.path:
            case "/ws/v1/cluster/info":
                return page({"clusterInfo": self._info()})
            case "/conf":
                return settings_page(pages.settings_of(self._settings), request)
            case "/stacks":
                is_asynchronous = self._settings.release.is_asynchronous
                return plain("Process Thread Dump:\n" + "CapacityScheduler$AsyncScheduleThread\n" * is_asynchronous)
        if self.scheduler is None:
            if self.ha_state == "STANDBY":
                return self._redirected(request)
            # While it starts it has neither nodes nor applications.
            return pages.answer(Scheduler(self._settings, (), 0), request, self._clock())
        if request.method == "POST":
            if not self._settings.release.takes_back:
                return failure(HTTPStatus.NOT_FOUND, "NotFoundException", f"HTTP 404 Not Found: {request.path}")
            return resize(self.scheduler, request, self._clock())
        return pages.answer(self.scheduler, request, self._clock())

    def _redirected(self, request: Request) -> Response:
        active = self._active_web()
        if active is None:
            text = "There is no active RM right now.\nIt will be tried again."
            return plain(text, HTTPStatus.TEMPORARY_REDIRECT, {"Refresh": f"4; url={request.path}"})
        target = f"http://{active}{request.path}"
        text = f"This is standby RM. The redirect url is: {target}\n"
        return plain(text, HTTPStatus.TEMPORARY_REDIRECT, {"Location": target})

    def _info(self) -> dict[str, object]:
        version = self._settings.version
        return {
            "id": self.started_ms,
            "startedOn": self.started_ms,
            "state": "STARTED",
            "haState": self.ha_state,
            "rmStateStoreName": "embedded",
            "resourceManagerVersion": version,
            "resourceManagerBuildVersion": f"{version} embedded",
            "hadoopVersion": version,
            "hadoopBuildVersion": f"{version} embedded",
        }
