"""The document's table of statuses, row by row, and what else an answer may say."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from service.core.outcome import Done, Failed, Outcome, Refused, TooEarly
from service.flows.event_bus.consumers import randomised
from service.flows.event_bus.statuses import Answer, outcome_of, pause_of

S = timedelta(seconds=1)
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
IN_SEVEN_SECONDS = "Fri, 02 Jan 2026 03:04:12 GMT"


def failed(status: int, name: str) -> Failed:
    """A failure with nothing in the body."""
    return Failed(f"HTTP {status} {name}".strip(), f"{status} {name}".strip(), status=status)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (200, Done()),
        (204, Done()),
        (299, Done()),
        (409, failed(409, "Conflict")),
        (429, failed(429, "Too Many Requests")),
        (425, TooEarly(5 * S)),
        (500, failed(500, "Internal Server Error")),
        (503, failed(503, "Service Unavailable")),
        (599, failed(599, "")),
        (400, failed(400, "Bad Request")),
        (404, failed(404, "Not Found")),
        (499, failed(499, "")),
        (302, failed(302, "Found")),  # no redirect is followed
        (101, failed(101, "Switching Protocols")),
        (999, failed(999, "")),
    ],
)
def test_the_table(status: int, outcome: Outcome) -> None:
    assert outcome_of(Answer(status), NOW, 5 * S) == outcome


@pytest.mark.parametrize("status", [400, 404, 422])
def test_other_client_errors_may_be_refused_at_once(status: int) -> None:
    outcome = outcome_of(Answer(status), NOW, 5 * S, refuse_client_errors=True)
    assert isinstance(outcome, Refused)
    assert outcome.status == status


@pytest.mark.parametrize("status", [409, 429, 503])
def test_what_may_work_later_is_never_refused(status: int) -> None:
    assert isinstance(outcome_of(Answer(status), NOW, S, refuse_client_errors=True), Failed)


@pytest.mark.parametrize(
    ("body", "header", "wait"),
    [
        (b'{"processAfterDelayMs": 1500}', "", 1.5 * S),
        (b'{"processAfterDelayMs": 1500}', "9", 1.5 * S),  # the body is the more exact one
        (b'{"processAfterDelayMs": 1e300}', "", 60 * S),
        (b'{"processAfterDelayMs": 99999999999999999999}', "", 60 * S),
        (b'{"processAfterDelayMs": ' + b"9" * 400 + b"}", "", 60 * S),
        (b"", "Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 5 * S),
        (b"", "Mon, 01 Jan 2026 00:00:00 +99999999999999999999", 5 * S),
        (b'{"processAfterDelayMs": "soon"}', "9", 9 * S),
        (b'{"processAfterDelayMs": true}', "", 5 * S),
        (b'{"processAfterDelayMs": NaN}', "", 5 * S),
        (b"[" * 10_000, "", 5 * S),
        (b"\xff", "", 5 * S),
        (b"", "7", 7 * S),
        (b"", "86400", 60 * S),
        (b"", "9" * 5000, 60 * S),
        (b"", IN_SEVEN_SECONDS, 7 * S),
        (b"", "-3", 5 * S),
        (b"", "Fri, 99 Foo", 5 * S),
        (b"", "", 5 * S),
    ],
)
def test_how_long_it_is_too_early(body: bytes, header: str, wait: timedelta) -> None:
    assert outcome_of(Answer(425, header, body), NOW, 5 * S) == TooEarly(wait)


@pytest.mark.parametrize(
    ("status", "header", "pause"),
    [
        (429, "3", 3 * S),
        (503, IN_SEVEN_SECONDS, 7 * S),
        (503, "Fri, 02 Jan 2026 03:04:00 GMT", 0 * S),  # in the past
        (503, "600", 60 * S),
        (503, "", None),
        (500, "3", None),
        (425, "3", None),  # that is this letter's wait, not everybody's
    ],
)
def test_which_answers_pause_the_service(status: int, header: str, pause: timedelta | None) -> None:
    assert pause_of(Answer(status, header), NOW) == pause


def test_the_error_has_the_first_line_of_the_body() -> None:
    answer = Answer(422, body=b'  {"detail":\x00 "no amount"}\nTraceback: ...' + b"x" * 5000)
    outcome = outcome_of(answer, NOW, S)
    assert isinstance(outcome, Failed)
    assert outcome.error == 'HTTP 422 Unprocessable Entity: {"detail": "no amount"}'


@pytest.mark.parametrize(
    ("wait", "chance", "slept"),
    [
        (4 * S, 0.0, 4 * S),  # never shorter than asked for
        (4 * S, 1.0, 5 * S),
        (59 * S, 1.0, 60 * S),
        (0 * S, 0.0, S / 20),  # a service that says "now" must not make us spin
    ],
)
def test_a_sleep_is_randomised_and_bounded(
    wait: timedelta, chance: float, slept: timedelta
) -> None:
    assert randomised(wait, chance) == slept
