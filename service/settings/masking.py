"""What may be shown of a secret, and of a URL that carries one."""

from urllib.parse import urlsplit

HIDDEN = "***"


def masked_url(url: str) -> str:
    """The URL with its password hidden; all of it where the password cannot be told apart."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return HIDDEN
    if parts.scheme.startswith("sqlite"):
        return url
    # An "@" outside the place of the password: a password with an unescaped "/", "?" or "#" in it.
    if "@" in url.replace(parts.netloc, "", 1):
        return HIDDEN
    return parts._replace(
        netloc=_masked_place(parts.netloc), query=_masked_query(parts.query)
    ).geturl()


def _masked_place(netloc: str) -> str:
    people, at, place = netloc.rpartition("@")
    user, colon, _ = people.partition(":")
    return f"{user}{colon}{HIDDEN if colon else ''}{at}{place}"


def _masked_query(query: str) -> str:
    """Drivers also take `?password=…`."""
    return "&".join(_masked_pair(pair) for pair in query.split("&"))


def _masked_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}{equals}{HIDDEN}" if "pass" in name.lower() and equals else pair
