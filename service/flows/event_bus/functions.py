"""The Python door: a function of the user's takes the event instead of an endpoint."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from datetime import timedelta

from service.core import duration
from service.core.outcome import Failed
from service.flows.desk import outcome_of_handler
from service.flows.event_bus.event import Door, Event, Reply
from service.flows.handlers import NoHandler, function_at

Handler = Callable[[Event], Awaitable[object]]


def find(path: str) -> Handler:
    """`package.module:function` → the async function; NoHandler if there is none."""
    found = function_at(path)
    if not inspect.iscoroutinefunction(found):
        raise NoHandler(f"{path} is not an async function: write it as `async def`")
    handler: Handler = found
    return handler


def door(handler: Handler, timeout: timedelta) -> Door:
    """Returning means delivered; `Refuse`, `NotYet` and anything else raised mean what they say."""

    async def deliver(event: Event) -> Reply:
        try:
            async with asyncio.timeout(timeout.total_seconds()) as limit:
                return Reply(await outcome_of_handler(handler(event)))
        except TimeoutError:
            assert limit.expired()  # what a handler raises is an outcome already
            late = f"not done within {duration.say(timeout)}"
            return Reply(Failed(late, kind="TimeoutError"))

    return deliver
