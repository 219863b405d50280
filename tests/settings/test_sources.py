"""Where settings come from and which of two wins."""

from datetime import timedelta
from pathlib import Path

import pytest

from service.core.route import ReturnTo, Route, RouteBook
from service.settings import load, project_root

S = timedelta(seconds=1)


def test_without_a_file_the_defaults_of_the_model_hold(tmp_path: Path) -> None:
    settings = load(tmp_path, {})
    assert settings.env == "development"
    assert settings.rabbit.url.get_secret_value() == "amqp://guest:guest@127.0.0.1:5672/"
    assert settings.dlq_processor.tiers == (10 * S, 15 * S, 20 * S)
    assert settings.limits.max_body == 4 * 1024 * 1024


def test_the_variables_of_the_environment(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        {
            "DLO_RABBIT__URL": "amqps://a:b@rabbit/shop",
            "DLO_DATABASE__URL": "postgres://a:b@db/dlo",
            "DLO_QUEUES__TYPE": "quorum",
            "DLO_DLQ_PROCESSOR__TIERS": '["250ms","1h30m"]',
            "DLO_DLQ_PROCESSOR__MAX_RETRIES": "5",
            "DLO_DLQ_PROCESSOR__DRILL": "False",
            "DLO_LIMITS__MAX_BODY": "1024",
            "DLO_MARKS__KEY": "1234567890123456e3",
            "DLO_ROUTES": '{ "Order.*" = 2 }',
            "DLO_WEB__HOST": "",
            "DLO_ENV": "development",
            "DLO_URL": "http://elsewhere/",
            "DLO_TOKEN": "t",
            "DLO_TEST_RABBIT_URL": "amqp://test/",
            "HOME": "/nowhere",
        },
    )
    assert settings.rabbit.url.get_secret_value() == "amqps://a:b@rabbit/shop"
    assert settings.database.url.get_secret_value() == "postgresql+asyncpg://a:b@db/dlo"
    assert settings.queues.type == "quorum"
    assert settings.dlq_processor.tiers == (S / 4, 5400 * S)
    assert settings.dlq_processor.max_retries == 5
    assert settings.dlq_processor.drill is False
    assert settings.limits.max_body == 1024
    assert settings.marks.key is not None
    assert settings.marks.key.get_secret_value() == "1234567890123456e3"  # not the number
    assert list(settings.routes) == ["Order.*"]
    assert settings.web.host == "127.0.0.1"  # empty is unset


def test_the_variable_beats_the_secrets_which_beat_the_environment_which_beats_the_file(
    tmp_path: Path,
) -> None:
    (tmp_path / "settings.toml").write_text(
        "[web]\nport = 1\nhost = 'file'\n[production.web]\nport = 2\n[production.log]\nlevel='error'"
    )
    (tmp_path / ".secrets.toml").write_text("[log]\nformat = 'json'\n[production.web]\nport = 3\n")
    production = {"DLO_ENV": "production", "DLO_MARKS__KEY": "k" * 16}
    assert load(tmp_path, {}).web.port == 1
    assert load(tmp_path, production).web.port == 3
    assert load(tmp_path, production).web.host == "file"
    assert load(tmp_path, production).log.level == "error"
    assert load(tmp_path, production).log.format == "json"
    assert load(tmp_path, {**production, "DLO_WEB__PORT": "4"}).web.port == 4


def test_a_later_list_replaces_the_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("[dlq_processor]\ntiers = ['1s', '2s']\n")
    (tmp_path / ".secrets.toml").write_text("[dlq_processor]\ntiers = ['3s']\n")
    assert load(tmp_path, {}).dlq_processor.tiers == (3 * S,)


def test_production_has_quorum_queues_and_no_drill_even_without_a_file(tmp_path: Path) -> None:
    settings = load(tmp_path, {"DLO_ENV": "production", "DLO_MARKS__KEY": "k" * 16})
    assert settings.queues.type == "quorum"
    assert settings.dlq_processor.drill is False


def test_the_names_of_routes_survive_exactly(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text(
        """
        [routes]
        "order.created" = 2
        "Order.Created" = 3
        "ORDER__CREATED" = 4
        "order.*" = { max_retries = 5, delays = ["10s", "20s"], return_to = "exchange" }
        "#" = { }
        "dynaconf_merge" = 0
        [production.routes]
        "order.created" = -1
        """
    )
    assert load(tmp_path, {}).route_book() == RouteBook.of(
        (
            Route("order.created", 2),
            Route("Order.Created", 3),
            Route("ORDER__CREATED", 4),
            Route("order.*", 5, (10 * S, 20 * S), ReturnTo.EXCHANGE),
            Route("#"),
            Route("dynaconf_merge", 0),
        )
    )
    production = load(tmp_path, {"DLO_ENV": "production", "DLO_MARKS__KEY": "k" * 16})
    assert production.route_book().find("order.created") == Route("order.created", -1)
    assert production.route_book().find("Order.Created") == Route("Order.Created", 3)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("sqlite:///var/x.db", "sqlite+aiosqlite:///{root}/var/x.db"),
        ("sqlite+aiosqlite:////srv/x.db", "sqlite+aiosqlite:////srv/x.db"),
        ("postgresql://u:p%40s@h:1/d", "postgresql+asyncpg://u:p%40s@h:1/d"),
        ("postgresql+asyncpg://u@h/d", "postgresql+asyncpg://u@h/d"),
    ],
)
def test_a_database_url_names_its_driver_and_an_absolute_file(
    tmp_path: Path, given: str, expected: str
) -> None:
    url = load(tmp_path, {"DLO_DATABASE__URL": given}).database.url.get_secret_value()
    assert url == expected.format(root=tmp_path)


def test_settings_are_found_here_or_beside_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert project_root() == Path(__file__).parents[2]
    (tmp_path / "settings.toml").write_text("[web]\nport = 1\n")
    assert load(environ={}).web.port == 1


def test_settings_are_frozen(tmp_path: Path) -> None:
    settings = load(tmp_path, {"DLO_ROUTES": "{a = 1}"})
    with pytest.raises(ValueError, match="frozen"):
        settings.web.port = 1
    with pytest.raises(TypeError):
        settings.routes["b"] = settings.routes["a"]  # type: ignore[index]  # that it fails is the point
