"""Starts and ends the process of a container, like YARN's DefaultContainerExecutor.

The NodeManager starts a launcher, a shell script named after the container, which stays in its session. The launcher
starts the container in a session of its own and leaves its exit code in a file: so a NodeManager that is started again
finds both what runs and what has ended.
"""

import json
import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Self

from fallow_yarn.embedded.process_guard import MARK

SPEC, PID, EXIT = "container.json", "pid", "exitcode"
SIGNALLED: Final = 128
KILLED_BY_MANAGER: Final = -106
LOST_ON_RECOVERY: Final = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A NodeManager's own: its name for the ResourceManager, the address of its pages, its folders, the time
    from SIGTERM to SIGKILL, the mark of its processes.
    """

    host: str
    port: int
    web_port: int
    local: Path
    logs: Path
    sigkill_seconds: float
    mark: str

    @property
    def node_id(self) -> str:
        """Its name."""
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """What a container is: see `tracker`."""

    id: str
    application: str
    user: str
    memory_mb: int
    vcores: int
    command: str


@dataclass(slots=True)
class Launched:
    """A container on this NodeManager. `ordered_at`: when the ResourceManager first ordered its end; `told_at`: when it
    had heard of it.
    """

    spec: Spec
    folder: Path
    sigkill_seconds: float
    launcher: "subprocess.Popen[bytes] | None" = None
    ordered_at: float | None = None
    told_at: float | None = None
    _lost: bool = False
    _is_cleaned: bool = False

    @classmethod
    def start(cls, spec: Spec, place: Place) -> Self:
        """Start it."""
        folder = _folder(spec, place)
        logs = place.logs / spec.application / spec.id
        folder.mkdir(parents=True)
        logs.mkdir(parents=True)
        (folder / SPEC).write_text(json.dumps(asdict(spec)))
        quoted = {name: shlex.quote(str(folder / name)) for name in (PID, EXIT, "session.sh", "launch_container.sh")}
        (folder / "launch_container.sh").write_text(f"{spec.command}\n")
        # Files are renamed into place: nobody reads half a number.
        (folder / "session.sh").write_text(
            f"echo $$ >{quoted[PID]}.tmp\nmv -f {quoted[PID]}.tmp {quoted[PID]}\n"
            f"exec setsid /bin/sh {quoted['launch_container.sh']}\n"
        )
        script = folder / "default_container_executor.sh"
        script.write_text(
            f"/bin/sh {quoted['session.sh']}\ncode=$?\n"
            f"echo $code >{quoted[EXIT]}.tmp\nmv -f {quoted[EXIT]}.tmp {quoted[EXIT]}\nexit $code\n"
        )
        with (logs / "stdout").open("wb") as out, (logs / "stderr").open("wb") as err:
            launcher = subprocess.Popen(  # noqa: S603 - what a container is for
                ["/bin/sh", str(script)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=_environment(spec, place, folder, logs),
            )
        return cls(spec, folder, place.sigkill_seconds, launcher)

    @classmethod
    def recover(cls, place: Place) -> list[Self]:
        """The containers that an earlier process of this NodeManager started and whose end was not reported."""
        found = []
        for file in sorted(place.local.glob(f"usercache/*/appcache/*/*/{SPEC}")):
            container = cls(Spec(**json.loads(file.read_text())), file.parent, place.sigkill_seconds)
            container._lost = container.exit_code is None and not container._is_alive()
            found.append(container)
        return found

    @property
    def exit_code(self) -> int | None:
        """How it ended; None while it runs."""
        if self.launcher is not None:
            self.launcher.poll()  # else it would stay as a zombie
        if self._lost:
            return LOST_ON_RECOVERY
        with suppress(OSError, ValueError):
            return int((self.folder / EXIT).read_text())
        return None

    @property
    def has_begun(self) -> bool:
        """Whether its process leads a session, so that it can be signalled; also once it has ended."""
        if (pid := self.pid) is None:
            return False
        try:
            return os.getsid(pid) == pid
        except ProcessLookupError:
            return True

    @property
    def pid(self) -> int | None:
        """The leader of its session and process group; None before it is there."""
        with suppress(OSError, ValueError):
            return int((self.folder / PID).read_text())
        return None

    def end(self) -> None:
        """SIGTERM, and after a while SIGKILL; also at a later order, for it may have had no process yet."""
        now = time.monotonic()
        if self.ordered_at is None:
            self.ordered_at = now
            self.signal(signal.SIGTERM)
            self._later(lambda: self.signal(signal.SIGKILL))
        elif now - self.ordered_at > self.sigkill_seconds:
            self.signal(signal.SIGKILL)

    def clean_up(self) -> None:
        """Once its first process has ended, end the rest of it."""
        if not self._is_cleaned and self.exit_code is not None:
            self._is_cleaned = True
            self._signal_rest(signal.SIGTERM)
            self._later(lambda: self._signal_rest(signal.SIGKILL))

    def signal(self, number: int) -> None:
        """A signal to its process group; nothing if it has no process (yet)."""
        pid = self.pid
        if pid is not None and self.exit_code is None:
            with suppress(ProcessLookupError):
                os.killpg(pid, number)

    def forget(self) -> None:
        """Forget it after its end was reported, so that the next process of this NodeManager does not find it."""
        (self.folder / SPEC).unlink(missing_ok=True)

    @property
    def diagnostics(self) -> str:
        """The diagnostics of its end."""
        code = self.exit_code
        if code is None or code == 0:
            return ""
        if self.ordered_at is not None:
            return f"Container killed by the ResourceManager. Exit code is {code}"
        if code == SIGNALLED + signal.SIGKILL or code == SIGNALLED + signal.SIGTERM:
            return f"Container killed on request. Exit code is {code}"
        return f"Exception from container-launch. Exit code: {code}"

    def _later(self, act: Callable[[], None]) -> None:
        timer = threading.Timer(self.sigkill_seconds, act)
        timer.daemon = True
        timer.start()

    def _signal_rest(self, number: int) -> None:
        """A signal to the rest of its process group. The number of the group may have been reused."""
        group = self.pid
        for entry in os.scandir("/proc"):
            with suppress(OSError, ValueError):
                if entry.name.isdigit() and os.getpgid(int(entry.name)) == group and self._owns(int(entry.name)):
                    os.kill(int(entry.name), number)

    def _is_alive(self) -> bool:
        return self.pid is not None and self._owns(self.pid)

    def _owns(self, pid: int) -> bool:
        with suppress(OSError):
            return f"CONTAINER_ID={self.spec.id}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return False


def _folder(spec: Spec, place: Place) -> Path:
    return place.local / "usercache" / spec.user / "appcache" / spec.application / spec.id


def _environment(spec: Spec, place: Place, folder: Path, logs: Path) -> dict[str, str]:
    """A new one, as a NodeManager gives it."""
    users = place.local / "usercache" / spec.user
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "CONTAINER_ID": spec.id,
        "NM_HOST": place.host,
        "NM_PORT": f"{place.port}",
        "NM_HTTP_PORT": f"{place.web_port}",
        "LOCAL_DIRS": f"{users}/appcache/{spec.application}",
        "LOCAL_USER_DIRS": f"{users}/",
        "LOG_DIRS": f"{logs}",
        "USER": spec.user,
        "LOGNAME": spec.user,
        "HOME": "/home/",
        "PWD": f"{folder}",
        MARK: place.mark,
    }
