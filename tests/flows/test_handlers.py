"""Handlers that end in ways nobody expects: every end is an outcome, and nothing hangs."""

from __future__ import annotations

import asyncio

import pytest

from service.core.outcome import Failed
from service.flows.desk import outcome_of_handler
from service.flows.freeflow.event import Event
from service.flows.handlers import Call


async def test_a_plain_handler_that_lets_a_stop_iteration_out_has_failed() -> None:
    def empty(_event: object) -> object:
        return next(iter(()))

    call = Call(empty, lambda event: event)
    async with asyncio.timeout(5):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await call(Event.__new__(Event))


async def test_a_handler_whose_own_task_was_cancelled_has_failed() -> None:
    async def handler() -> None:
        inner = asyncio.ensure_future(asyncio.sleep(60))
        asyncio.get_running_loop().call_soon(inner.cancel)
        await inner

    outcome = await outcome_of_handler(handler())
    assert isinstance(outcome, Failed)
    assert outcome.kind == "CancelledError"


async def test_a_handler_that_is_ended_with_us_has_no_outcome() -> None:
    running = asyncio.ensure_future(outcome_of_handler(asyncio.sleep(60)))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
