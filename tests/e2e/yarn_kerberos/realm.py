"""A Kerberos realm of MIT krb5 on loopback: a KDC, principals and their keytabs, all below one folder."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.yarn.fallow_process import TIED
from tests.e2e.yarn.processes import free_ports
from tests.e2e.yarn.rest import wait_for

NAME = "FALLOW.TEST"
TOOLS = ("krb5kdc", "kdb5_util", "kadmin.local", "kinit")
SBIN = ":/usr/sbin:/sbin"

CLIENTS = """[libdefaults]
default_realm = {realm}
dns_lookup_kdc = false
dns_lookup_realm = false
dns_canonicalize_hostname = false
rdns = false
udp_preference_limit = 1
default_ccache_name = FILE:{folder}/cache
[realms]
{realm} = {{
  kdc = 127.0.0.1:{port}
}}
[domain_realm]
localhost = {realm}
"""
SERVER = """[kdcdefaults]
kdc_listen = ""
kdc_tcp_listen = 127.0.0.1:{port}
[realms]
{realm} = {{
  database_name = {folder}/kdc/principal
  key_stash_file = {folder}/kdc/stash
}}
[logging]
kdc = FILE:{folder}/kdc/log.txt
"""


class RealmError(Exception):
    """The KDC does not come up, or a tool of it fails."""


def missing_tools() -> list[str]:
    """Those of its programs that are not installed."""
    return [tool for tool in TOOLS if shutil.which(tool, path=os.environ["PATH"] + SBIN) is None]


class Realm:
    """The realm; a context manager that starts and stops its KDC. It ends with the test run, however that ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.port = free_ports(1)[0]
        self.config = self.folder / "krb5.conf"
        self._kdc: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        (self.folder / "kdc").mkdir(parents=True)
        values = {"realm": NAME, "port": self.port, "folder": self.folder}
        self.config.write_text(CLIENTS.format(**values))
        (self.folder / "kdc" / "kdc.conf").write_text(SERVER.format(**values))
        self._run("kdb5_util", "create", "-s", "-r", NAME, "-P", "for tests only")
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the KDC; return when it listens."""
        command = [*TIED, "krb5kdc", "-n", "-r", NAME]
        with (self.folder / "kdc" / "out.txt").open("ab") as out:
            self._kdc = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.environment(), cwd=self.folder
            )
        wait_for(self._listens, 20, f"the KDC; see {self.folder}/kdc")

    def stop(self) -> None:
        """End the KDC; safe to repeat."""
        if self._kdc is not None:
            self._kdc.terminate()
            self._kdc.wait(20)
            self._kdc = None

    @contextmanager
    def silent(self) -> Iterator[None]:
        """The KDC takes connections and answers nothing."""
        assert self._kdc is not None
        self._kdc.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._kdc.send_signal(signal.SIGCONT)

    @contextmanager
    def away(self) -> Iterator[None]:
        """The KDC does not run."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a program of this realm."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("KRB5")}
        own = {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(self.folder / "kdc" / "kdc.conf")}
        return {**inherited, "PATH": os.environ["PATH"] + SBIN, **own, **more}

    def keytab(self, principal: str, life: str = "10h", *, anew: bool = False) -> Path:
        """The keytab of a principal, which is made if there is none; `anew`: with new keys. `life`: of its tickets."""
        keytab = self.folder / f"{principal.replace('/', '-')}.keytab"
        if keytab.exists() and not anew:
            return keytab
        keytab.unlink(missing_ok=True)
        lines = f'addprinc -randkey -maxlife "{life}" {principal}\nktadd -k {keytab} {principal}\n'
        self._run("kadmin.local", "-r", NAME, text=lines)
        if not keytab.exists():
            raise RealmError(f"no keytab for {principal}")
        return keytab

    def ticket(self, keytab: Path, principal: str, cache: Path, services: Sequence[str] = ()) -> Path:
        """Get a ticket into a cache, and those for the services."""
        self._run("kinit", "-c", f"FILE:{cache}", "-k", "-t", str(keytab), principal)
        if services:
            self._run("kvno", "-c", f"FILE:{cache}", *services)
        return cache

    def _listens(self) -> bool:
        if self._kdc is None or self._kdc.poll() is not None:
            raise RealmError(f"the KDC has ended; see {self.folder}/kdc")
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def _run(self, *command: str, text: str | None = None) -> None:
        done = subprocess.run(command, input=text, text=True, env=self.environment(), capture_output=True, check=False)
        if done.returncode != 0:
            raise RealmError(f"{' '.join(command)}: {done.stderr or done.stdout}")
