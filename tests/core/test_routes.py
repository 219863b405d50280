"""Routes, patterns and durations."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.duration import parse, say
from service.core.route import Route, RouteBook, find_route
from service.core.topic import matches


@pytest.mark.parametrize(
    ("pattern", "key", "taken"),
    [
        ("order.created", "order.created", True),
        ("order.*", "order.created", True),
        ("order.*", "order", False),
        ("order.*", "order.created.eu", False),
        ("order.#", "order", True),
        ("order.#", "order.created.eu", True),
        ("#", "", True),
        ("*", "", False),
        ("", "", True),
        ("#.1", "1", True),
        ("retry.#.1", "retry.#.1", True),  # the literal key of the delay queues
        ("retry.#.1", "retry.1", True),
        ("retry.#.1", "retry.2", False),
        ("a.*.#.c", "a.c", False),
        ("a.*.#.c", "a.b.c", True),
        ("*..b", "a..b", True),
    ],
)
def test_topic_patterns_match_as_rabbitmq_does(pattern: str, key: str, taken: bool) -> None:
    assert matches(pattern, key) is taken


def test_a_pattern_of_many_hashes_is_not_slow() -> None:
    assert not matches(".".join(["#"] * 60 + ["x"]), ".".join(["a"] * 120))


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("order.created", "order.created"),
        ("order.paid", "order.*"),
        ("order.paid.eu", "order.#"),
        ("user.created", "*.created"),
        ("anything", "#"),
    ],
)
def test_exact_beats_pattern_and_the_more_specific_pattern_wins(key: str, name: str) -> None:
    names = ("#", "order.#", "order.*", "*.created", "order.created")
    route = RouteBook.of(Route(name, 1) for name in names).find(key)
    assert route is not None
    assert route.name == name


def test_the_table_wins_even_by_a_pattern() -> None:
    table, settings = RouteBook.of([Route("order.*", 1)]), RouteBook.of([Route("order.created", 2)])
    found = find_route("order.created", (table, settings))
    assert found is not None
    assert found.max_retries == 1
    assert find_route("user.created", (table, settings)) is None


def test_the_first_of_two_routes_with_one_name_counts() -> None:
    found = RouteBook.of([Route("k", 1), Route("k", 2)]).find("k")
    assert found == Route("k", 1)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250ms", 250),
        ("30s", 30_000),
        ("5m", 300_000),
        ("1h30m", 5_400_000),
        (" 2 D ", 172_800_000),
    ],
)
def test_durations_as_people_write_them(text: str, milliseconds: int) -> None:
    assert parse(text) == timedelta(milliseconds=milliseconds)


@pytest.mark.parametrize("text", ["", "10", "s", "10 seconds", "-5s", "1.5s", "5s!"])
def test_what_is_no_duration_is_said_so(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse(text)


@given(st.integers(0, 10**10))
def test_a_duration_is_said_as_it_is_read(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse(say(duration)) == duration
