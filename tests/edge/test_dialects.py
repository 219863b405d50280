"""Every dialect's recorded message is understood, and nonsense is nonsense."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands
from pamqp.header import ContentHeader

from service.core.marks import ERROR, ERROR_TYPE
from service.edge import dialects
from service.edge.dialects import SPOKEN, moment
from service.edge.properties import open_properties, read_properties
from tests.kit import recorded
from tests.kit.recorded import Recorded


@pytest.mark.parametrize("message", recorded.ALL, ids=lambda message: message.dialect)
def test_a_recorded_message_is_understood(message: Recorded) -> None:
    told = dialects.testimony(message.headers, message.queue)
    assert told.dialect == message.dialect
    assert told.queue == message.origin
    assert (told.place, told.retries) == (message.place, message.retries)
    assert told.error_type == ("" if message is recorded.EVENT_BUS else message.error_type)


def test_masstransit_without_an_address_is_known_by_the_name_of_its_queue() -> None:
    told = dialects.testimony({"MT-Fault-Message": "no"}, "orders_error")
    assert told.queue == "orders"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("2026-09-26T18:02:03.5080760Z", datetime(2026, 9, 26, 18, 2, 3, 508076, UTC)),
        ("2026-11-17 21:14:03:123456 Z", datetime(2026, 11, 17, 21, 14, 3, 123456, UTC)),
        ("2026-11-17T21:14:03", datetime(2026, 11, 17, 21, 14, 3, 0, UTC)),
        ("yesterday", None),
        (12, None),
    ],
)
def test_moments(text: object, read: datetime | None) -> None:
    assert moment(text) == read


ANYTHING = st.text() | st.integers() | st.binary().map(bytearray) | st.lists(st.text()) | st.none()


@given(st.dictionaries(st.sampled_from(sorted(SPOKEN)), ANYTHING))
def test_no_header_makes_it_stumble(headers: dict[str, object]) -> None:
    assert len(dialects.testimony(headers, "q").queue) <= 255


@pytest.mark.parametrize("kind", [bytearray(b"\xff"), ["Boom"], {"a": 1}])
def test_an_error_type_that_is_no_text_is_words_all_the_same(kind: object) -> None:
    told = dialects.testimony({ERROR: "no", ERROR_TYPE: kind}, "q")
    assert (told.error, bool(told.error_type)) == ("no", True)


def test_properties_are_taken_apart_and_read_again() -> None:
    said = commands.Basic.Properties(
        content_type="text/plain", headers={"a": 1}, message_id="m", priority=3, app_id="x"
    )
    raw = ContentHeader(0, 0, said).marshal()[12:]
    apart = open_properties(raw)
    assert apart.table == b"\x01ab\x01"
    assert apart.values["message_id"] == "m"
    assert read_properties(apart.plain) == apart.values
    assert open_properties(b"\xff").plain == b"\xff"
