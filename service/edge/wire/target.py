"""Where a connection goes and how: an AMQP URL with all its options."""

from __future__ import annotations

import ssl
from base64 import b64decode
from dataclasses import dataclass, field

from yarl import URL

PORTS = {"amqp": 5672, "amqps": 5671}
LARGEST_FRAME = 131_072
LONGEST_HEARTBEAT = 65_534


@dataclass(frozen=True, slots=True)
class Certificates:
    """What `amqps://` is told of certificates: files, and whether the broker's own is checked."""

    cafile: str | None = None
    capath: str | None = None
    cadata: bytes | None = None
    certfile: str | None = None
    keyfile: str | None = None
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        """TLS as these say; reads files, so not on the loop."""
        context = ssl.create_default_context(
            cafile=self.cafile, capath=self.capath, cadata=self.cadata
        )
        if self.certfile:
            context.load_cert_chain(self.certfile, self.keyfile)
        if not self.verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context


@dataclass(frozen=True, slots=True)
class Target:
    """A broker, who we are there, and what we ask for."""

    host: str
    port: int
    vhost: str
    user: str
    password: str = field(repr=False)
    mechanism: str = "PLAIN"
    tls: Certificates | None = None
    name: str = ""
    heartbeat: int = 10
    frame_max: int = LARGEST_FRAME
    timeout: float = 10.0
    """Seconds that connecting, greeting included, may take."""

    @staticmethod
    def of(url: str) -> Target:
        """`amqp[s]://user:password@host:port/vhost?name=…&heartbeat=…&timeout=…&auth=…` and, for TLS,
        `cafile`, `capath`, `cadata` (base64), `certfile`, `keyfile`, `no_verify_ssl`: the same words
        as aio-pika's, so that one URL serves both."""
        parsed = URL(url)
        asked = parsed.query
        return Target(
            parsed.host or "localhost",
            parsed.port or PORTS[parsed.scheme],
            parsed.path.removeprefix("/").replace("%2F", "/") or "/",
            parsed.user or "guest",
            parsed.password or "guest",
            mechanism=asked.get("auth", "plain").upper(),
            tls=_certificates(parsed) if parsed.scheme == "amqps" else None,
            name=asked.get("name", ""),
            heartbeat=min(_number(asked.get("heartbeat"), 10), LONGEST_HEARTBEAT),
            frame_max=_number(asked.get("frame_max"), LARGEST_FRAME),
            timeout=float(_number(asked.get("timeout"), 10)),
        )

    @property
    def secret(self) -> str:
        """The answer to the broker's question who we are."""
        return "" if self.mechanism == "EXTERNAL" else f"\0{self.user}\0{self.password}"


def _certificates(url: URL) -> Certificates:
    asked = url.query
    data = asked.get("cadata")
    return Certificates(
        asked.get("cafile"),
        asked.get("capath"),
        b64decode(data) if data else None,
        asked.get("certfile"),
        asked.get("keyfile"),
        verify=asked.get("no_verify_ssl", "0") == "0",
    )


def _number(text: str | None, otherwise: int) -> int:
    return int(text) if text is not None and text.isdecimal() else otherwise
