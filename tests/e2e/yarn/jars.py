"""The jars of one Hadoop release, the compiled helpers and the class archives, in a cache shared by all runs."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
POM = HERE / "pom.xml"
SOURCES = sorted((HERE / "java").glob("*.java"))
TOOLS = ("java", "javac", "mvn")

Kind = Literal["rm", "nm"]
KINDS: tuple[Kind, ...] = ("rm", "nm")

# The small compiler and collector: these daemons live for a minute. The packages are opened for Hadoop before 3.4.
JVM = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xss512k", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true"]
JVM += [
    f"--add-opens=java.base/{package}=ALL-UNNAMED"
    for package in ("java.lang", "java.lang.reflect", "java.util", "java.net", "java.nio", "java.io", "java.math")
]


class JarsError(Exception):
    """The jars could not be fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    """What it takes to run a class of one Hadoop release.

    With `dump`, a daemon leaves at its orderly exit an archive of the classes that it loaded (see archives.py).
    """

    version: str
    home: Path
    dump: bool = False

    @property
    def lib(self) -> Path:
        """The folder of the release's jars."""
        return self.home / f"lib-{_digest(POM)}"

    @property
    def helper(self) -> Path:
        """The jar of the compiled helpers."""
        return self.home / f"helper-{_digest(*SOURCES)}.jar"

    def archive(self, kind: Kind) -> Path:
        """The shared class archive of one kind of daemon; it fits one class path only."""
        return self.home / f"{kind}-{_digest(POM, *SOURCES)}.jsa"

    def command(
        self, kind: Kind, conf: Path, main: str, args: Sequence[str] = (), *, heap_mb: int, options: Sequence[str] = ()
    ) -> list[str]:
        """The command that runs class `main` with the configuration in folder `conf`; `kind` chooses the archive."""
        archive = self.archive(kind)
        shared = [f"-XX:ArchiveClassesAtExit={_part(archive)}"] if self.dump else []
        if archive.exists() and not self.dump:
            shared = [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]
        class_path = ":".join(map(str, [self.helper, *sorted(self.lib.glob("*.jar"))]))
        java = shutil.which("java") or "java"
        log = f"-Dlog4j.configuration=file:{conf}/log4j.properties"
        heap = f"-Xmx{heap_mb}m"
        return [java, heap, *JVM, *shared, *options, log, "-cp", class_path, "Launch", str(conf), main, *args]

    def keep_archives(self) -> None:
        """Put the archives in use that daemons have dumped."""
        for kind in KINDS:
            if _part(self.archive(kind)).exists():
                _part(self.archive(kind)).replace(self.archive(kind))

    @contextmanager
    def lock(self) -> Iterator[int]:
        """Only one process at a time adds to the cache. The lock is free when nobody has the given descriptor open."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home.parent / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file.fileno()


def cache_folder() -> Path:
    """Where jars are kept: $FALLOW_CACHE, else ~/.cache/fallow."""
    return Path(os.environ.get("FALLOW_CACHE") or Path.home() / ".cache" / "fallow")


def cached(version: str) -> Jars | None:
    """The jars and the helpers of a release, if they are in the cache."""
    jars = Jars(version=version, home=cache_folder().resolve() / "yarn" / f"hadoop-{version}")
    return jars if jars.lib.exists() and jars.helper.exists() else None


def fetch(version: str, cache: Path, pause_seconds: float = 5) -> Jars:
    """Fetch and compile what is missing. Everything appears under its name only when it is complete."""
    jars = Jars(version=version, home=cache.resolve() / "yarn" / f"hadoop-{version}")
    with jars.lock() as lock:
        if not jars.lib.exists():
            _download(jars, cache.resolve() / "yarn" / "maven", pause_seconds, lock)
        if not jars.helper.exists():
            _compile(jars)
    return jars


def _download(jars: Jars, repository: Path, pause_seconds: float, lock: int) -> None:
    part = _part(jars.lib)
    command = ["mvn", "-B", "-q", "-U", "-f", str(POM), f"-Dmaven.repo.local={repository}"]
    command += [f"-Dhadoop.version={jars.version}", "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={part}", "-DincludeScope=runtime"]
    for attempt in range(4):  # a repository may refuse or stall for a moment; what has come is kept
        time.sleep(pause_seconds * attempt)
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        try:
            _run(command, lock)
        except JarsError as error:
            failure = error
        else:
            part.rename(jars.lib)
            return
    raise failure


def _compile(jars: Jars) -> None:
    with tempfile.TemporaryDirectory() as classes:
        sources = map(str, SOURCES)
        _run(["javac", "-nowarn", "-proc:none", "-d", classes, "-cp", f"{jars.lib}/*", *sources])
        with zipfile.ZipFile(_part(jars.helper), "w") as jar:
            for file in sorted(Path(classes).rglob("*.class")):
                jar.write(file, file.relative_to(classes))
    _part(jars.helper).replace(jars.helper)


def _run(command: list[str], *descriptors: int) -> None:
    """Run a command that keeps `descriptors`: with the lock, it stays alone even if this process dies before it."""
    try:
        subprocess.run(
            command,
            check=True,
            timeout=900,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            pass_fds=descriptors,
        )
    except subprocess.CalledProcessError as error:
        raise JarsError(f"{command[0]} failed:\n{error.stdout[-2000:]}{error.stderr[-2000:]}") from error
    except subprocess.TimeoutExpired as error:
        raise JarsError(f"{command[0]} was not done after {error.timeout} s") from error


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


def _digest(*files: Path) -> str:
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
