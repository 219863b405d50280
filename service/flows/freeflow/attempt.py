"""One delivery under the Retrying middleware: read, handled by the team's own function, given its verdict."""

from __future__ import annotations

import asyncio
from traceback import walk_tb
from types import TracebackType
from typing import TYPE_CHECKING, Any

from aio_pika import IncomingMessage
from aio_pika.abc import AbstractIncomingMessage
from fast_depends.exceptions import ValidationError
from faststream import BaseMiddleware
from faststream.exceptions import AckMessage, RejectMessage, StopConsume
from faststream.rabbit.response import RabbitPublishCommand
from pydantic import ValidationError as Invalid

from service.core.delivery import Envelope
from service.core.outcome import Done, Failed, Outcome, Refused, RetryIn, outcome_of
from service.core.verdict import Why
from service.edge.reading import envelope_of, fault_in
from service.flows.desk import Desk, Work, is_ending
from service.flows.freeflow.consumers import understood
from service.flows.freeflow.policy import Rules
from service.flows.handlers import without_values

if TYPE_CHECKING:
    from faststream._internal.basic_types import AsyncFuncAny
    from faststream._internal.context import ContextRepo
    from faststream.message import StreamMessage


class Unreadable(Exception):
    """The body could not be decoded: no handler has seen it."""


class Attempt(BaseMiddleware[RabbitPublishCommand, IncomingMessage]):
    """FastStream's middleware for one delivery."""

    def __init__(
        self, msg: IncomingMessage, desk: Desk, rules: Rules, *, context: ContextRepo
    ) -> None:
        super().__init__(msg, context=context)
        self._desk, self._rules = desk, rules
        self._delivery = desk.flow.count(envelope_of(msg, desk.clock()))
        self._fault = fault_in(msg, desk.limits)
        self._is_read = False

    async def on_receive(self) -> None:
        """Before FastStream reads it: the address is the first one again, whatever way it came back."""
        origin = self._delivery.origin
        self.msg.routing_key, self.msg.exchange = origin.routing_key, origin.exchange

    async def consume_scope(self, call_next: AsyncFuncAny, msg: StreamMessage[Any]) -> Any:
        """Decode before the handler runs, so that a body nobody can read is told from its own errors."""
        if self._fault is not None:
            raise Unreadable(self._fault.error)
        try:
            await msg.decode()
        except Exception as error:  # noqa: BLE001  # whatever a decoder raises
            raise Unreadable(f"{type(error).__name__}: {error}") from None
        self._is_read = True
        return await call_next(msg)

    async def after_processed(
        self,
        exc_type: type[BaseException] | None = None,
        exc_val: BaseException | None = None,
        exc_tb: TracebackType | None = None,
    ) -> bool | None:
        """Give the delivery its verdict; what the handler did not foresee still reaches the log."""
        if isinstance(exc_val, asyncio.CancelledError) and not is_ending():
            exc_val = RuntimeError("something the handler waited for was cancelled")
        if not isinstance(exc_val, Exception | None) or isinstance(exc_val, StopConsume):
            return False  # a shutdown is not an attempt
        if self.msg.processed:
            return False  # the handler settled it by hand
        outcome = self._fault or self._outcome(exc_val)
        await self._desk.never_stuck(self.msg, self._conclude(outcome))
        return not isinstance(outcome, Failed) or isinstance(exc_val, RetryIn)

    def _conclude(self, outcome: Outcome) -> Work:
        async def work(raw: AbstractIncomingMessage, _envelope: Envelope) -> None:
            await self._desk.conclude(raw, self._delivery.ended(outcome))

        return work

    def _outcome(self, error: Exception | None) -> Outcome:
        match error:
            case AckMessage():
                return Done()
            case RejectMessage():
                return Refused("rejected by the handler", kind="RejectMessage")
            case ValidationError() | Invalid() if _is_about_the_letter(error):
                return Refused(_asked(error), kind="ValidationError")
            case Exception() if not self._is_read:
                return Refused(f"cannot be read: {_told(error)}", Why.UNREADABLE)
            case _:
                ended = outcome_of(error, self._desk.clock())
                return understood(ended, self._rules, self._delivery)


def _told(error: Exception) -> str:
    return str(error) if isinstance(error, Unreadable) else f"{type(error).__name__}: {error}"


def _is_about_the_letter(error: ValidationError | Invalid) -> bool:
    """Whether FastStream's injection raised it, and not the handler over models of its own."""
    frames = (frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__))
    outside = [module for module in frames if not module.startswith("pydantic")]
    return isinstance(error, ValidationError) or outside[-1].startswith("fast_depends")


def _asked(error: ValidationError | Invalid) -> str:
    """What the handler's parameters asked for and the letter did not have; never its values."""
    cause = error.original_error if isinstance(error, ValidationError) else error
    said = without_values(cause) if isinstance(cause, Invalid) else type(cause).__name__
    return f"the letter is not what the handler takes: {said}"
