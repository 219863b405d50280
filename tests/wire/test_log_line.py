"""The line of a retry is written by hand: it is the one that structlog writes, whatever names are in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from service import logs
from service.core.delivery import Delivery
from service.core.marks import Marks, Origin
from service.core.outcome import Failed
from service.core.verdict import Retry
from service.web.journal import Journal

NOW = datetime(2024, 2, 29, tzinfo=UTC)


@pytest.fixture(autouse=True)
def _plain_logs() -> Iterator[None]:
    yield
    structlog.reset_defaults()
    logs._form.json, logs._form.level = False, 20


@pytest.mark.parametrize("name", ["a", 'qu"ote\\', "line\nbreak", "ä€😀", "\udcff", "x" * 300])
def test_both_ways_write_the_same_fields(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    origin = Origin(name, "shop", "order.created")
    delivery = Delivery(Marks(name, "dlq_processor", origin, 0, NOW), Failed("rejected"), NOW)
    written = []
    for by_hand in (True, False):
        logs.configure("info", "json")
        logs._form.json = by_hand
        Journal().judged("dlq_processor", delivery, Retry(1, timedelta(seconds=10)))
        line = json.loads(capsys.readouterr().err)
        assert datetime.fromisoformat(line.pop("timestamp")).tzinfo is not None
        written.append(line)
    assert written[0] == written[1]


def test_no_line_where_the_level_is_higher(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("warning", "json")
    origin = Origin("orders", "shop", "order.created")
    delivery = Delivery(Marks("m", "dlq_processor", origin, 0, NOW), Failed("rejected"), NOW)
    Journal().judged("dlq_processor", delivery, Retry(1, timedelta(seconds=10)))
    assert capsys.readouterr().err == ""
