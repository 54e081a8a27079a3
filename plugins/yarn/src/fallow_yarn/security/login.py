"""The Kerberos credentials: from a keytab, with tickets that are renewed automatically, or from a ticket cache."""

import itertools
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from fallow_hookspecs import trusted_path
from fallow_yarn.errors import CredentialsError, UnknownServiceError
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.security.bounded_call import BoundedCalls

RENEW_SECONDS: Final = 60.0
KERBEROS: Final = "1.2.840.113554.1.2.2"
SPNEGO: Final = "1.3.6.1.5.5.2"
INSTALL: Final = (
    "Kerberos needs the package gssapi: pip install 'fallow-yarn[kerberos]', which is built with gcc and the headers"
    " of libkrb5 (Debian: libkrb5-dev)"
)
KEYTAB: Final = "compare spec.kerberos.principal with klist -k -t of the keytab, and its key versions with the KDC's"

ADVICE: Final = (
    ("no kerberos credentials", "set spec.kerberos.keytab, or get a ticket: kinit, as the user that runs Fallow"),
    ("credential cache is empty", "set spec.kerberos.keytab, or get a ticket: kinit, as the user that runs Fallow"),
    ("no credentials cache found", "klist -k -t shows whose keys a keytab has, and klist whose ticket there is"),
    ("decrypt integrity check failed", f"the key in the keytab is not that of the KDC: {KEYTAB}"),
    ("ticket expired", "get a new ticket: kinit, or set spec.kerberos.keytab, from which it is renewed by itself"),
    ("not yet valid", "this host's clock is behind the KDC's: keep both by NTP"),
    ("clock skew", "this host's clock and the KDC's are too far apart: keep both by NTP"),
    ("cannot contact any kdc", "look whether the KDC runs and can be reached: the realm's `kdc` in /etc/krb5.conf"),
    ("cannot find kdc", "name the realm's KDC in /etc/krb5.conf, or in DNS"),
    ("keytab", KEYTAB),
    ("key table", KEYTAB),
    ("preauthentication failed", f"the key in the keytab is not that of the KDC: {KEYTAB}"),
    ("password incorrect", f"the key in the keytab is not that of the KDC: {KEYTAB}"),
    ("client not found", "the KDC does not know the principal: correct spec.kerberos.principal"),
)
_NUMBERS: Final = itertools.count()
_GENERAL: Final = re.compile(r"Major \(\d+\): .*?, Minor \(\d+\): ")
SERVER_ADVICE: Final = (
    "the KDC does not know that service: correct spec.kerberos.resourceManagerPrincipal, or for web pages the host name"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Which credentials are used: a keytab, else a ticket cache, else those of the environment.

    `principal` is needed only if there are several.
    """

    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None

    def __str__(self) -> str:
        source = self.keytab or self.ticket_cache or "the default ticket cache"
        return f"{self.principal} of {source}" if self.principal else f"the principal of {source}"

    def store(self, number: int) -> dict[str, str] | None:
        """The credential store of the library. Tickets from a keytab are kept in a memory cache with this number."""
        if self.keytab is not None:
            return {"client_keytab": f"FILE:{self.keytab}", "ccache": f"MEMORY:fallow-{number}"}
        return None if self.ticket_cache is None else {"ccache": self.ticket_cache}


def check_keytab(path: str) -> None:
    """Check that a keytab can be used.

    :raises CredentialsError: it cannot be read, or others can: whoever has read it can act as its principal for good.
    """
    if not os.access(path, os.R_OK):
        raise CredentialsError(f"spec.kerberos.keytab: {path} is not there or cannot be read")
    try:
        trusted_path.check_secret(path)
    except OSError as error:
        raise CredentialsError(f"spec.kerberos.keytab: {error.strerror}") from None


class Login:
    """One identity. All requests to the KDC are bounded calls, so that a silent KDC delays none beyond its deadline."""

    def __init__(self, identity: Identity, clock: Callable[[], float] = time.monotonic) -> None:
        self.identity = identity
        self._clock = clock
        self._calls = BoundedCalls()
        self._cache_number = next(_NUMBERS)
        self._renew_at = 0.0

    def refused(self) -> None:
        """Tell that a server rejected a ticket: get new tickets next time, at most once a minute; its keys may be new.

        The tickets of a ticket cache are not renewed.
        """
        now = self._clock()
        if now >= self._renew_at:
            self._cache_number = next(_NUMBERS)
            self._renew_at = now + RENEW_SECONDS

    def begin(self, service: str, mechanism: str, deadline: Deadline) -> tuple[Any, bytes]:
        """A security context for a service (`rm/host`, with or without a realm), and its first token.

        The credentials are acquired anew each time, so that the library renews a keytab's tickets before they expire.
        """

        def first_step() -> tuple[Any, bytes]:
            gssapi = library()
            with self._explained():
                flag = gssapi.RequirementFlag
                signed = (flag.integrity, flag.out_of_sequence_detection)
                context = gssapi.SecurityContext(
                    name=gssapi.Name(service, gssapi.NameType.kerberos_principal),
                    creds=self._credentials(gssapi),
                    mech=gssapi.OID.from_int_seq(mechanism),
                    flags=[flag.mutual_authentication, flag.confidentiality, *signed],
                    usage="initiate",
                )
                return context, context.step() or b""

        return self._calls.call(first_step, deadline, f"{self.identity}: the KDC does not answer in the time given")

    def lasts(self, deadline: Deadline) -> tuple[str, int]:
        """The principal, and the seconds until its ticket expires; a keytab gets a new ticket if needed."""

        def look() -> tuple[str, int]:
            gssapi = library()
            with self._explained():
                credentials = self._credentials(gssapi)
                return str(credentials.name), int(credentials.lifetime or 0)

        return self._calls.call(look, deadline, f"{self.identity}: the KDC does not answer in the time given")

    def _credentials(self, gssapi: Any) -> Any:
        identity = self.identity
        if identity.keytab is not None:
            check_keytab(identity.keytab)
        name = None
        if identity.principal is not None:
            name = gssapi.Name(identity.principal, gssapi.NameType.kerberos_principal)
        return gssapi.Credentials(name=name, usage="initiate", store=identity.store(self._cache_number))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except library().exceptions.GSSError as error:
            kind = UnknownServiceError if _is_unknown_service(str(error)) else CredentialsError
            raise kind(f"{self.identity}: {explained(error)}") from None


def library() -> Any:
    """The package gssapi; a CredentialsError that says how to install it if it is missing."""
    try:
        import gssapi
    except ImportError as error:
        raise CredentialsError(f"{INSTALL} ({error})") from None
    return gssapi


def explained(error: Exception) -> str:
    """The message of the library, with advice."""
    said = _GENERAL.sub("", " ".join(str(error).split()))
    words = said.lower()
    if _is_unknown_service(words):
        return f"{said}; {SERVER_ADVICE}"
    if "client" in words and "not found" in words:
        words = "client not found"
    advice = next((advice for sign, advice in ADVICE if sign in words), "")
    return f"{said}; {advice}" if advice else said


def _is_unknown_service(said: str) -> bool:
    words = said.lower()
    return "server" in words and "not found in kerberos database" in words
