"""One office per folder, a key made once, and a broker only where somebody named one."""

from __future__ import annotations

import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from deploy.local import secret_key
from deploy.local.folder import claimed
from deploy.local.trouble import Trouble
from deploy.local.wanted import wanted, without_password
from tests.servers import leftovers

DEFAULT = '[rabbit]\nurl = "amqp://guest:guest@127.0.0.1:5672/"\n'
THEIRS = "amqp://me:secret@rabbit.example:5671/shop"


def test_a_second_office_is_told_where_the_first_is(tmp_path: Path) -> None:
    with claimed(tmp_path) as office:
        office.announce("http://here")
        with pytest.raises(Trouble, match=r"already runs in this folder: http://here$"):
            claimed(tmp_path).__enter__()
    with claimed(tmp_path):
        pass


def test_one_that_is_just_starting_has_no_link_yet(tmp_path: Path) -> None:
    with claimed(tmp_path), pytest.raises(Trouble, match="just starting"):
        claimed(tmp_path).__enter__()


def test_the_key_is_made_once_and_for_us_alone(tmp_path: Path) -> None:
    path = tmp_path / ".secrets.toml"
    assert secret_key.keep(path)
    made = path.read_text()
    assert len(tomllib.loads(made)["marks"]["key"]) >= 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not secret_key.keep(path)
    assert path.read_text() == made
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("settings", "secrets", "environ", "broker"),
    [
        ("", "", {}, None),
        (DEFAULT, "", {}, None),  # the default written out is nobody's choice
        (f'[rabbit]\nurl = "{THEIRS}"\n', "", {}, THEIRS),
        (DEFAULT, f'[rabbit]\nurl = "{THEIRS}"\n', {}, THEIRS),
        (DEFAULT, "", {"DLO_RABBIT__URL": THEIRS}, THEIRS),
        (DEFAULT, "", {"DLO_RABBIT__URL": ""}, None),
        # whoever names the standard one means it
        (
            DEFAULT,
            "",
            {"DLO_RABBIT__URL": "amqp://guest:guest@127.0.0.1:5672/"},
            "amqp://guest:guest@127.0.0.1:5672/",
        ),
    ],
)
def test_the_broker_somebody_named(
    settings: str, secrets: str, environ: Mapping[str, str], broker: str | None, tmp_path: Path
) -> None:
    (tmp_path / "settings.toml").write_text(settings)
    (tmp_path / ".secrets.toml").write_text(secrets)
    assert wanted(tmp_path, environ).broker == broker


def test_bad_settings_are_all_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[web]\nport = "x"\n[rabit]\nurl = 1\n')
    with pytest.raises(Trouble) as trouble:
        wanted(tmp_path, {})
    assert "web.port" in str(trouble.value)
    assert "rabit" in str(trouble.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (THEIRS, "amqp://me@rabbit.example:5671/shop"),
        ("amqp://127.0.0.1:5672/", "amqp://127.0.0.1:5672/"),
        ("amqp://a:p%40ss@[::1]:5672/", "amqp://a@[::1]:5672/"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_servers_of_a_killed_test_run_are_swept_and_living_ones_are_not(tmp_path: Path) -> None:
    orphan, living, stranger = (tmp_path / f"dlo-tests-{name}" for name in "abc")
    for folder in (orphan, living, stranger):
        folder.mkdir()
    (orphan / "owner.pid").write_text("1 another-birth\n")
    (living / "owner.pid").write_text(leftovers.this_run())
    leftovers.sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == [living, stranger]
