"""Waiting for a condition with a deadline, never for luck."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar, overload

T = TypeVar("T")


@overload
async def eventually(
    condition: Callable[[], Awaitable[T]], within: float = ..., pause: float = ...
) -> T: ...


@overload
async def eventually(condition: Callable[[], T], within: float = ..., pause: float = ...) -> T: ...


async def eventually(
    condition: Callable[[], T | Awaitable[T]], within: float = 5.0, pause: float = 0.02
) -> T:
    """Wait until the condition holds and return what it said; AssertionError when it never did.

    An AssertionError inside the condition means not yet, and is the one raised at the deadline.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        late = loop.time() >= deadline
        try:
            if value := await _ask(condition):
                return value
            if late:
                raise AssertionError(f"not within {within} s: the condition was {value!r}")
        except AssertionError:
            if late:
                raise
        await asyncio.sleep(pause)


async def _ask(condition: Callable[[], T | Awaitable[T]]) -> T:
    answer = condition()
    return await answer if inspect.isawaitable(answer) else answer
