"""A broker's URL with all its options."""

from __future__ import annotations

import ssl
from base64 import b64encode
from pathlib import Path

import pytest

from service.edge.wire.target import Certificates, Target

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("amqp://h", Target("h", 5672, "/", "guest", "guest")),
        ("amqp://h/", Target("h", 5672, "/", "guest", "guest")),
        ("amqp://h/%2F", Target("h", 5672, "/", "guest", "guest")),
        ("amqp://u:p%40ss@h:1/team", Target("h", 1, "team", "u", "p@ss")),
        ("amqp://[::1]:5/a%2Fb", Target("::1", 5, "a/b", "guest", "guest")),
        (
            "amqp://h?name=us&heartbeat=3&timeout=7&frame_max=8192&auth=external",
            Target("h", 5672, "/", "guest", "guest", "EXTERNAL", None, "us", 3, 8192, 7),
        ),
        ("amqps://h", Target("h", 5671, "/", "guest", "guest", tls=Certificates())),
        (
            "amqps://h?cafile=a&capath=b&cadata=YWI%3D&certfile=c&keyfile=d&no_verify_ssl=1",
            Target(
                *("h", 5671, "/", "guest", "guest"),
                tls=Certificates("a", "b", b"ab", "c", "d", verify=False),
            ),
        ),
    ],
)
def test_a_url_says_where_and_how(url: str, expected: Target) -> None:
    assert Target.of(url) == expected


def test_certificates_are_checked_unless_told_otherwise() -> None:
    checked = Certificates(cafile=str(HERE / "cert.pem")).context()
    assert (checked.verify_mode, checked.check_hostname) == (ssl.CERT_REQUIRED, True)
    believed = Certificates(verify=False).context()
    assert (believed.verify_mode, believed.check_hostname) == (ssl.CERT_NONE, False)
    data = b64encode(ssl.PEM_cert_to_DER_cert((HERE / "cert.pem").read_text())).decode()
    target = Target.of(f"amqps://h?cadata={data.replace('+', '%2B')}")
    assert target.tls is not None
    assert target.tls.context().get_ca_certs()


def test_no_secret_is_shown() -> None:
    assert "hush" not in repr(Target.of("amqp://u:hush@h"))
