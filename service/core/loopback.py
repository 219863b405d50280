"""Which addresses are this machine itself."""

from __future__ import annotations

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def address_of(text: object) -> Address | None:
    """An IP address, an IPv4 one also where it is written as IPv6; None where it is none."""
    try:
        found = ipaddress.ip_address(str(text).partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(found, "ipv4_mapped", None)
    return mapped or found


def is_loopback(text: object) -> bool:
    """Whether nobody but this machine reaches the address, or the name."""
    if str(text).lower().rstrip(".") == "localhost":
        return True
    address = address_of(text)
    return address is not None and address.is_loopback


def host_in(header: str) -> str:
    """The name in a `Host` header, without its port."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.rpartition(":")[0] if header.count(":") == 1 else header
