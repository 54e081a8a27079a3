"""The TLS context for web pages: which certificates are trusted."""

import ssl

from fallow_yarn.settings.hadoop_conf import HadoopConfError


def context(ca_file: str | None) -> ssl.SSLContext:
    """A context that trusts the authorities of a PEM file, or else those of this host.

    The certificates of a file that the user names are trusted as they are. Python 3.13 by default refuses authorities
    that lack what RFC 5280 requires (`VERIFY_X509_STRICT`), such as critical basic constraints, and many private ones
    do; it also accepts an intermediate authority. Both hold with every Python here. Signatures, dates and host names
    are checked in any case.

    :raises HadoopConfError: the file cannot be read, or has no certificate.
    """
    try:
        tls = ssl.create_default_context(cafile=ca_file)
    except ssl.SSLError as error:
        raise HadoopConfError(f"spec.tls.caFile: {ca_file} has no certificates in PEM: {error.reason}") from None
    except OSError as error:
        raise HadoopConfError(f"spec.tls.caFile: {ca_file} cannot be read: {error.strerror}") from None
    if ca_file is not None:
        tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
        tls.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return tls
