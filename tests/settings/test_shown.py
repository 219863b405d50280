"""What may be seen of the settings."""

from pathlib import Path

import pytest

from service.settings import load, shown
from service.settings.masking import masked_url

SECRETS = {
    "DLO_RABBIT__URL": "amqp://bob:hunter2@rabbit:5672/",
    "DLO_DATABASE__URL": "postgresql://bob:hunter2@db/dlo",
    "DLO_MARKS__KEY": "hunter2hunter2hunter2",
    "DLO_ROUTES": '{ "a.b" = { delays = ["10s"] } }',
}


def test_nothing_shown_has_a_secret_in_it(tmp_path: Path) -> None:
    settings = load(tmp_path, SECRETS)
    for text in (repr(settings), str(settings), repr(shown(settings)), settings.model_dump_json()):
        assert "hunter2" not in text


def test_settings_are_shown_as_they_are_written(tmp_path: Path) -> None:
    seen = shown(load(tmp_path, SECRETS))
    assert seen["rabbit"] == {
        "url": "amqp://bob:***@rabbit:5672/",
        "publish_timeout": "10s",
        "heartbeat": "10s",
        "reconnect": "2s",
    }
    assert seen["database"] == {"url": "postgresql+asyncpg://bob:***@db/dlo", "poll": "1s"}
    assert seen["marks"] == {"key": "***", "old_keys": []}
    assert seen["limits"] == {"max_body": "4MiB", "max_headers": "64KiB"}
    assert seen["routes"] == {"a.b": {"max_retries": None, "delays": ["10s"], "return_to": "queue"}}


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("amqp://u:p@h/v", "amqp://u:***@h/v"),
        ("amqp://u@h", "amqp://u@h"),
        ("amqp://h", "amqp://h"),
        ("amqp://u:p@ss@h", "amqp://u:***@h"),
        ("amqp://u:p/w@h", "***"),
        ("amqp://u:p#w@h", "***"),
        ("amqp:u:p@h", "***"),
        ("amqp://[broken", "***"),
        (
            "postgresql://h/d?user=u&password=p&ssl=on",
            "postgresql://h/d?user=u&password=***&ssl=on",
        ),
        ("sqlite:///a@b.db", "sqlite:///a@b.db"),
    ],
)
def test_a_password_is_hidden_wherever_it_stands(url: str, masked: str) -> None:
    assert masked_url(url) == masked
