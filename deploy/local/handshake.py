"""The first words of AMQP 0-9-1: whether a RabbitMQ really answers, and which one it is."""

from __future__ import annotations

import socket
import ssl
import struct
from dataclasses import dataclass
from urllib.parse import urlsplit

_HELLO = b"AMQP\x00\x00\x09\x01"
_METHOD, _START = 1, (10, 10)
_LONG_STRING = b"S"


@dataclass(frozen=True, slots=True)
class Greeting:
    """Who answered."""

    product: str
    version: str

    def __str__(self) -> str:
        return f"{self.product} {self.version}".strip()


def greet(host: str, port: int, timeout: float = 2.0, tls: bool = False) -> Greeting | None:
    """Say hello and read the broker's Connection.Start; None when no broker answers."""
    try:
        with _connect(host, port, timeout, tls) as wire:
            wire.sendall(_HELLO)
            return _read_start(_receive_frame(wire))
    except (OSError, ValueError, struct.error):
        return None


def greet_url(url: str, timeout: float = 2.0) -> Greeting | None:
    """Say hello to the broker an AMQP URL names."""
    parts = urlsplit(url)
    tls = parts.scheme == "amqps"
    return greet(parts.hostname or "localhost", parts.port or (5671 if tls else 5672), timeout, tls)


def _connect(host: str, port: int, timeout: float, tls: bool) -> socket.socket:
    plain = socket.create_connection((host, port), timeout)
    if not tls:
        return plain
    context = ssl.create_default_context()
    # Only the version is read and nothing is told: the service itself checks the certificate.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(plain, server_hostname=host)


def _receive_frame(wire: socket.socket) -> bytes:
    kind, _channel, size = struct.unpack(">BHI", _receive(wire, 7))
    if kind != _METHOD or size > 65_536:
        raise ValueError("not a method frame")
    return _receive(wire, size)


def _receive(wire: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = wire.recv(size - len(received))
        if not chunk:
            raise ValueError("closed in mid-sentence")
        received += chunk
    return received


def _read_start(payload: bytes) -> Greeting:
    if struct.unpack_from(">HH", payload) != _START:
        raise ValueError("not Connection.Start")
    properties = payload[10 : 10 + struct.unpack_from(">I", payload, 6)[0]]
    return Greeting(_text(properties, b"product"), _text(properties, b"version"))


def _text(table: bytes, name: bytes) -> str:
    """A string field of the table, found by its length-prefixed name and its type."""
    key = bytes([len(name)]) + name + _LONG_STRING
    at = table.find(key)
    if at < 0:
        return ""
    (size,) = struct.unpack_from(">I", table, at + len(key))
    return table[at + len(key) + 4 :][:size].decode("utf-8", "replace")
