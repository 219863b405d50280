"""Carry out a plan: send all, confirmed and routed; then settle once, last. The only settling code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, assert_never

import stamina
from aio_pika.abc import AbstractIncomingMessage
from aiormq.exceptions import AMQPError, ChannelInvalidStateError

from service.core.plan import Note, Plan, Send, Settle
from service.edge.acks import acknowledge
from service.edge.letter import Letter
from service.edge.post import NotSent, NotTaken, Post, Unroutable

Mend = Callable[[], Awaitable[None]]
Bears = Callable[[Exception], bool]
SLIP = Letter(b"", {}, {})
NOTE_SECONDS = 2.0


class Unsettled(Exception):
    """The delivery was taken from us before we could end it: the broker gives the letter out again."""


class Halted(Exception):
    """A send failed for as long as the lane can wait: nothing is settled, and nothing may be after it."""


class Witness(Protocol):
    """Told between the sends and the end of a delivery; it must not raise."""

    async def sent(self) -> None:
        """All is sent, confirmed and routed; the delivery is not settled yet."""

    async def failed(self, failure: Exception) -> None:
        """A send failed, for the first time; it may be tried again."""


class Nobody:
    """Is told, and does nothing."""

    async def sent(self) -> None:
        """All is sent."""

    async def failed(self, failure: Exception) -> None:
        """A send failed."""


NOBODY = Nobody()


@dataclass(frozen=True, slots=True)
class Means:
    """What a plan is carried out with. `patience` is how many seconds a send may be tried again,
    without it for as long as the delivery is ours."""

    post: Post
    mend: Mend
    settle: Callable[[Settle], Awaitable[None]]
    patience: float | None = None
    witness: Witness = NOBODY


async def carry_out(plan: Plan, letter: Letter, means: Means) -> Plan:
    """Do what the plan says, and say which plan it was in the end.

    A send that fails is tried again for as long as the delivery is ours: nothing is settled
    meanwhile, so a crash, a shutdown or a lost connection gives the letter back to its queue.
    """
    if plan.pause:
        await asyncio.sleep(plan.pause.total_seconds())
    try:
        for send in plan.sends:
            if isinstance(send, Note):
                await _tell(send, means.post)
            else:
                await _send(send, letter, means, _bears(plan))
    except Unroutable:
        assert plan.otherwise is not None  # a patient send never gives up
        return await carry_out(plan.otherwise, letter, means)
    except NotTaken:
        assert plan.later is not None
        return await carry_out(plan.later, letter, means)
    await means.witness.sent()
    await means.settle(plan.settle)
    return plan


async def settle(how: Settle, message: AbstractIncomingMessage) -> None:
    """End the delivery. Requeue is by reject: RabbitMQ 4.3 does not count a nack."""
    try:
        match how:
            case Settle.ACK:
                await acknowledge(message)
            case Settle.REQUEUE:
                await message.reject(requeue=True)
            case Settle.REJECT:
                await message.reject(requeue=False)
            case never:
                assert_never(never)
    except (AMQPError, ChannelInvalidStateError, OSError) as lost:
        raise Unsettled(repr(lost)) from lost


def _bears(plan: Plan) -> Bears:
    """Which failures are borne with, and the send tried again: those the plan has no answer to."""

    def bears(failure: Exception) -> bool:
        match failure:
            case NotTaken():
                return plan.later is None
            case Unroutable():
                return plan.otherwise is None
            case _:
                return isinstance(failure, NotSent)

    return bears


async def _tell(note: Note, post: Post) -> None:
    """Once, and not for long: what waits behind it is the settling of a letter that was taken."""
    with suppress(Exception):  # whatever it is, the letter was taken
        async with asyncio.timeout(NOTE_SECONDS):
            await post.send(SLIP, note)


async def _send(send: Send, letter: Letter, means: Means, bears: Bears) -> None:
    try:
        await means.post.send(letter, send)  # nearly always: no retry machinery on the way
    except (NotSent, Unroutable) as failure:
        if not bears(failure):
            raise
        await means.witness.failed(failure)
        if means.patience == 0:
            raise Halted(str(failure)) from failure
        await _send_again(send, letter, means, bears)


async def _send_again(send: Send, letter: Letter, means: Means, bears: Bears) -> None:
    attempts = stamina.retry_context(
        on=bears,
        attempts=None,
        timeout=means.patience,
        wait_initial=0.2,
        wait_max=2.0,
        wait_jitter=0.2,
    )
    try:
        async for attempt in attempts:
            with attempt:
                await means.mend()
                await means.post.send(letter, send)
    except (NotSent, Unroutable) as failure:
        if not bears(failure):
            raise
        raise Halted(str(failure)) from failure
