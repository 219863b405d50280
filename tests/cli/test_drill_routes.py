"""The drill's keys have a route of last resort: the table and the settings come first."""

from __future__ import annotations

import pytest

from service import composition
from service.core.route import Route, RouteBook
from service.settings import Settings

KEYS = ["rk.test.pass", "rk.test.fail", "rk.test.fail.pass"]


def find(key: str, *table: Route, drill: bool = True, routes: object = None) -> Route | None:
    settings = Settings.model_validate({"dlq_processor": {"drill": drill}, "routes": routes or {}})
    known = composition._routes(settings)
    known.book = RouteBook.of(table)
    return composition._finder(settings, known)(key)


@pytest.mark.parametrize("key", KEYS)
def test_with_the_drill_on_there_is_a_route(key: str) -> None:
    assert find(key) == Route(key)


@pytest.mark.parametrize("key", KEYS)
def test_with_the_drill_off_there_is_none(key: str) -> None:
    assert find(key, drill=False) is None


def test_the_settings_come_before_it_and_the_table_before_both() -> None:
    assert find("rk.test.fail", routes={"rk.test.#": 7}) == Route("rk.test.#", 7)
    table = Route("rk.test.*", 1)
    assert find("rk.test.fail", table, routes={"rk.test.fail": 7}) == table


def test_no_other_key_is_touched() -> None:
    assert find("rk.test.other") is None
