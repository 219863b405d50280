"""Which RabbitMQ a command talks to: the one somebody named, else the private one of `just up`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.cli.broker import broker_url
from service.settings import load

DEFAULT = "amqp://guest:guest@127.0.0.1:5672/"
PRIVATE = "amqp://guest:guest@127.0.0.1:25999/"
NOTE = json.dumps({"link": "http://127.0.0.1:8000/", "rabbit_url": PRIVATE})
NAMED = '[rabbit]\nurl = "amqp://somewhere/"\n'
UNNAMED = f'[rabbit]\nurl = "{DEFAULT}"\n'


@pytest.mark.parametrize(
    ("toml", "variable", "note", "url"),
    [
        ("", None, None, DEFAULT),
        ("", None, NOTE, PRIVATE),
        (UNNAMED, None, NOTE, PRIVATE),
        (NAMED, None, NOTE, "amqp://somewhere/"),
        ("", "amqp://elsewhere/", NOTE, "amqp://elsewhere/"),
        ("", DEFAULT, NOTE, DEFAULT),
        ("", None, '{"link": "", "rabbit_url": ""}', DEFAULT),
        ("", None, "", DEFAULT),
        ("", None, "[]", DEFAULT),
        ("", None, '{"rabbit_url": 5}', DEFAULT),
    ],
)
def test_the_broker(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    toml: str,
    variable: str | None,
    note: str | None,
    url: str,
) -> None:
    (tmp_path / "settings.toml").write_text(toml)
    if note is not None:
        (tmp_path / ".dlo").mkdir()
        (tmp_path / ".dlo" / "office.json").write_text(note)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DLO_RABBIT__URL", raising=False)
    if variable is not None:
        monkeypatch.setenv("DLO_RABBIT__URL", variable)
    assert broker_url(load()) == url
