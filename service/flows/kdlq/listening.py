"""The lifecycle of a message, for whoever wants to be told: hooks that can change nothing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable
from typing import Protocol, assert_never

import structlog

from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict
from service.flows.kdlq.message import Message
from service.flows.kdlq.status import Result, result_of

Told = Awaitable[None] | None
HOOKS = (
    "on_processed",
    "on_redelivery_success",
    "on_redelivery_error",
    "on_kill_success",
    "on_kill_error",
    "on_skip",
)
LOG = structlog.get_logger("dlo.kdlq")


class KDLQListener(Protocol):
    """Whoever listens may have any of these hooks, sync or async; inherit to have the others do nothing.

    They are told after the broker has confirmed the copy and before the message is acknowledged; a
    hook that raises is logged and changes nothing.
    """

    def on_processed(self, message: Message) -> Told:
        """The handler took it."""

    def on_redelivery_success(self, message: Message) -> Told:
        """A copy is on its way to be handled again."""

    def on_redelivery_error(self, message: Message, error: Exception) -> Told:
        """The broker did not take that copy; it may be tried again."""

    def on_kill_success(self, message: Message) -> Told:
        """A copy is in the DLQ."""

    def on_kill_error(self, message: Message, error: Exception) -> Told:
        """The broker did not take that copy; it may be tried again."""

    def on_skip(self, message: Message, reason: str) -> Told:
        """Its kills are spent: it is acknowledged, and no copy is in the DLQ."""


def unknown_hooks(listener: object) -> tuple[str, ...]:
    """Names that look like hooks and are none: they would never be called."""
    return tuple(name for name in dir(listener) if name.startswith("on_") and name not in HOOKS)


class Hooks:
    """All listeners of a consumer."""

    def __init__(self, listeners: Iterable[object] = ()) -> None:
        self._listeners = tuple(listeners)

    def __bool__(self) -> bool:
        return bool(self._listeners)

    async def tell(self, hook: str, *facts: object) -> None:
        """Call a hook of all who have it."""
        for listener in self._listeners:
            call = getattr(listener, hook, None)
            if call is None:
                continue
            try:
                told = call(*facts)
                if inspect.isawaitable(told):
                    await told
            except (
                Exception,
                asyncio.CancelledError,
            ) as error:  # the copy is confirmed: its fate stands
                if isinstance(error, asyncio.CancelledError) and _is_ending():
                    raise
                LOG.error("a listener failed", action="hook_failed", hook=hook, error=repr(error))


def _is_ending() -> bool:
    """Whether it is we who are being cancelled, and not something a hook waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


class Telling:
    """Tells the hooks what becomes of one message."""

    def __init__(self, hooks: Hooks, message: Message, verdict: Verdict) -> None:
        self._hooks, self._message, self._verdict = hooks, message, verdict
        self.result: Result | None = None

    async def sent(self) -> None:
        """Its copy, if there is one, is confirmed."""
        message, verdict = self._message, self._verdict
        self.result = result_of(verdict)
        match verdict:
            case Accept():
                await self._hooks.tell("on_processed", message)
            case Retry() | Requeue():
                await self._hooks.tell("on_redelivery_success", message)
            case Bury():
                await self._hooks.tell("on_kill_success", message)
            case Discard(reason):
                await self._hooks.tell("on_skip", message, reason)
            case never:
                assert_never(never)

    async def failed(self, failure: Exception) -> None:
        """The broker did not take its copy."""
        hook = "on_redelivery_error" if isinstance(self._verdict, Retry) else "on_kill_error"
        await self._hooks.tell(hook, self._message, failure)
