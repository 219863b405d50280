"""A replay is governed by what is known of it: canary, ramp, limit, pause, stop; and kept to a rate."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.bucket import BURST_SECONDS, Bucket
from service.core.replay import (
    BY_AN_OPERATOR,
    SAMPLE,
    Begin,
    Finish,
    GiveBack,
    Pause,
    Progress,
    Ramp,
    Send,
    Step,
    Stop,
    Terms,
    Watch,
    is_over,
    next_step,
)
from service.core.states import ReplayState, Wanted

TERMS = Terms(rate=200, canary=2, stop_percent=10, watch=timedelta(seconds=30))
WAITING, CANARY, RUNNING = ReplayState.WAITING, ReplayState.CANARY, ReplayState.RUNNING
PAUSED, WATCHING, STOPPED = ReplayState.PAUSED, ReplayState.WATCHING, ReplayState.STOPPED


@pytest.mark.parametrize(
    ("state", "known", "step"),
    [
        (WAITING, Progress(100), Begin()),
        (CANARY, Progress(100), Send(2)),
        (CANARY, Progress(1), Send(1)),
        (CANARY, Progress(99, sent=1, watched=1), Send(1)),
        (CANARY, Progress(98, sent=2, watched=1), Watch()),
        (CANARY, Progress(98, sent=2), Ramp()),  # handled or quiet, both of them
        (CANARY, Progress(98, in_doubt=2), Send(2)),  # nobody knows whether they were sent
        (CANARY, Progress(98, sent=2, watched=1, back=1), Stop("the canary came back: 1 of 2")),
        (CANARY, Progress(98, unroutable=2), Stop("the canary found no queue: 2 of 2")),
        (CANARY, Progress(0, sent=1, back=1), Stop("the canary came back: 1 of 1")),
        (RUNNING, Progress(98, sent=2), Send(98)),
        (RUNNING, Progress(90, in_doubt=5, sent=5), Send(95)),
        (RUNNING, Progress(97, sent=3, back=3), Send(97)),  # three of three say little yet
        (RUNNING, Progress(80, sent=20, back=2), Send(80)),  # ten percent are not more than ten
        (RUNNING, Progress(80, sent=20, back=3), Stop("3 of 20 came back, more than 10 %")),
        (
            RUNNING,
            Progress(80, sent=0, unroutable=20),
            Stop("20 of 20 found no queue, more than 10 %"),
        ),
        (RUNNING, Progress(0, sent=100, watched=1, back=90), Watch()),  # nothing left to stop
        (RUNNING, Progress(0, sent=100), Finish()),
        (WATCHING, Progress(0, sent=100, watched=1), Watch()),
        (WATCHING, Progress(0, sent=100, back=100), Finish()),
        (STOPPED, Progress(0, sent=5, watched=1), Watch()),
        (STOPPED, Progress(0, sent=5), Finish()),
        (STOPPED, Progress(3, sent=5, watched=1), GiveBack()),  # it died while it stopped
        (PAUSED, Progress(50, sent=50), Begin()),
    ],
)
def test_what_a_job_does_next(state: ReplayState, known: Progress, step: Step) -> None:
    assert next_step(state, Wanted.RUN, TERMS, known) == step


@pytest.mark.parametrize(
    ("state", "known", "step"),
    [
        (RUNNING, Progress(98, sent=2), Pause()),
        (CANARY, Progress(98, sent=2), Pause()),
        (WAITING, Progress(98), Pause()),
        (PAUSED, Progress(98, sent=2), Watch()),
        (RUNNING, Progress(0, sent=100, watched=1), Watch()),  # nothing is left to pause
        (RUNNING, Progress(80, sent=20, back=20), Stop("20 of 20 came back, more than 10 %")),
        (PAUSED, Progress(80, sent=20, back=20), Stop("20 of 20 came back, more than 10 %")),
    ],
)
def test_a_job_that_shall_pause(state: ReplayState, known: Progress, step: Step) -> None:
    assert next_step(state, Wanted.PAUSE, TERMS, known) == step


@pytest.mark.parametrize("state", [WAITING, CANARY, RUNNING, PAUSED, WATCHING])
def test_an_operator_can_stop_a_job_in_any_state(state: ReplayState) -> None:
    known = Progress(10, sent=10, watched=1)
    assert next_step(state, Wanted.STOP, TERMS, known) == Stop(BY_AN_OPERATOR)


def test_a_job_without_a_canary_begins_with_the_ramp() -> None:
    assert next_step(CANARY, Wanted.RUN, replace(TERMS, canary=0), Progress(9)) == Ramp()


@given(
    percent=st.floats(0, 100),
    failing=st.integers(1, 100),
    rate=st.sampled_from([20.0, 50.0, 200.0, 1000.0]),
    latency=st.sampled_from([0.05, 0.3, 1.0, 5.0]),
)
def test_the_stop_comes_in_time(percent: float, failing: int, rate: float, latency: float) -> None:
    """A consumer that fails a fixed share, each letter back after `latency`: the job stops before it has
    sent `SAMPLE` letters and `rate × latency × share / (share − limit)`, and what leaves in a step."""
    if failing < percent + 5:
        return  # at the limit itself the share may stay below it for ever
    terms = replace(TERMS, rate=rate, stop_percent=percent)
    sent = _sent_until_the_stop(terms, failing, latency)
    step = rate * BURST_SECONDS + 1
    share = failing / (failing - percent)
    assert sent <= (rate * latency + step) * share + 100 / failing * (1 + SAMPLE) + step


def _sent_until_the_stop(terms: Terms, failing: int, latency: float) -> int:
    at, sent, back = 0.0, 0, 0
    on_the_way: deque[float] = deque()
    bucket = Bucket(terms.rate, at)
    while not is_over(terms, Progress(10**6, sent=sent, back=back)):
        bucket = bucket.filled(at)
        count = bucket.whole
        bucket = bucket.without(count)
        for number in range(sent, sent + count):
            if number * failing // 100 != (number + 1) * failing // 100:
                on_the_way.append(at + latency)
        sent += count
        at += BURST_SECONDS
        while on_the_way and on_the_way[0] <= at:
            on_the_way.popleft()
            back += 1
        assert sent < 10**6, "it never stops"
    return sent


@given(
    rate=st.floats(0.1, 5000),
    pauses=st.lists(st.floats(0, 2), min_size=1, max_size=60),
)
def test_no_second_sees_more_than_the_rate_and_a_burst(rate: float, pauses: list[float]) -> None:
    bucket, at = Bucket(rate, 0.0), 0.0
    left: list[tuple[float, int]] = []
    for pause in pauses:
        at += pause
        bucket = bucket.filled(at)
        left.append((at, bucket.whole))
        bucket = bucket.without(bucket.whole)
    for start, _ in left:
        within = sum(count for moment, count in left if start <= moment < start + 1)
        assert within <= rate + max(1.0, rate * BURST_SECONDS) + 1e-6


def test_a_bucket_begins_with_one_and_gives_the_rate_on_average() -> None:
    bucket, sent = Bucket(50, 0.0), 0
    assert bucket.whole == 1
    for step in range(1, 101):
        bucket = bucket.filled(step * 0.1)
        sent += bucket.whole
        bucket = bucket.without(bucket.whole)
    assert 495 <= sent <= 501


def test_a_bucket_knows_when_enough_may_leave() -> None:
    bucket = Bucket(10, 0.0).without(1)
    assert bucket.until(1) == pytest.approx(0.1)
    assert bucket.until(100) == pytest.approx(0.2)  # two leave together at most
    assert bucket.filled(9).until(2) == 0
