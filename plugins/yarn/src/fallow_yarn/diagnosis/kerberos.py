"""Judges the Kerberos ticket."""

from typing import Final

from fallow_hookspecs import Finding
from fallow_yarn.errors import CredentialsError, DeadlineError
from fallow_yarn.net.deadline import Deadline
from fallow_yarn.security.login import Login

TICKET_SECONDS: Final = 5.0
SHORT_SECONDS: Final = 3600


def ticket(login: Login, service: str, deadline: Deadline) -> Finding:
    """The principal and its ticket; one request to the KDC if a keytab has to get a ticket."""
    subject = "Kerberos"
    try:
        principal, left_seconds = login.lasts(deadline.within(TICKET_SECONDS))
    except (CredentialsError, DeadlineError) as error:
        advice = "correct spec.kerberos, the keytab or the ticket: see kinit and klist"
        return Finding(subject=subject, ok=False, detail=str(error), advice=advice)
    detail = f"{principal}, to {service}; its ticket is valid for {left_seconds // 60} more min"
    if login.identity.keytab is not None:
        return Finding(subject=subject, ok=True, detail=f"{detail} and is renewed from {login.identity.keytab}")
    is_short = left_seconds < SHORT_SECONDS
    advice = "renew it (kinit -R, k5start), or set spec.kerberos.keytab" if is_short else ""
    return Finding(subject=subject, ok=None if is_short else True, detail=detail, advice=advice)
