"""Paths of this host that Hadoop's settings may write as URIs. Pure."""

from urllib.parse import unquote


def local_path(text: str) -> str:
    """The path of `/etc/hadoop`, `file:/etc/hadoop`, `file:///etc/hadoop` or `file://localhost/etc/hadoop`. A path
    without a scheme may be relative.

    :raises ValueError: it is no file of this host.
    """
    scheme, colon, rest = text.partition(":")
    if not (colon and scheme.isalpha()):
        return text
    host, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", rest[:1], rest[1:])
    if scheme.lower() != "file" or host not in ("", "localhost") or slash != "/" or not path:
        raise ValueError("expected a path, or a URI such as file:/etc/hadoop")
    return slash + unquote(path)
