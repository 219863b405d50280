"""Carry out a plan: send all, confirmed and routed; then settle once, last. The only settling code."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import assert_never

import stamina
from aio_pika.abc import AbstractIncomingMessage
from aiormq.exceptions import AMQPError, ChannelInvalidStateError

from service.core.plan import Note, Plan, Send, Settle
from service.edge.acks import acknowledge
from service.edge.letter import Letter
from service.edge.post import NotSent, NotTaken, Post, Unroutable

Mend = Callable[[], Awaitable[None]]
SLIP = Letter(b"", {}, {})
NOTE_SECONDS = 2.0


class Unsettled(Exception):
    """The delivery was taken from us before we could end it: the broker gives the letter out again."""


async def carry_out(
    plan: Plan, message: AbstractIncomingMessage, letter: Letter, post: Post, mend: Mend
) -> Plan:
    """Do what the plan says, and say which plan it was in the end.

    A send that fails is tried again for as long as the delivery is ours: nothing is settled
    meanwhile, so a crash, a shutdown or a lost connection gives the letter back to its queue.
    """
    if plan.pause:
        await asyncio.sleep(plan.pause.total_seconds())
    try:
        for send in plan.sends:
            if isinstance(send, Note):
                await _tell(send, post)
            else:
                await _send(send, letter, post, mend, bears=_bears(plan))
    except Unroutable:
        assert plan.otherwise is not None  # a patient send never gives up
        return await carry_out(plan.otherwise, message, letter, post, mend)
    except NotTaken:
        assert plan.later is not None
        return await carry_out(plan.later, message, letter, post, mend)
    await settle(plan.settle, message)
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


def _bears(plan: Plan) -> Callable[[Exception], bool]:
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
    with suppress(NotSent, Unroutable, TimeoutError):
        async with asyncio.timeout(NOTE_SECONDS):
            await post.send(SLIP, note)


async def _send(
    send: Send, letter: Letter, post: Post, mend: Mend, *, bears: Callable[[Exception], bool]
) -> None:
    try:
        await post.send(letter, send)  # nearly always: no retry machinery on the way
    except (NotSent, Unroutable) as failure:
        if not bears(failure):
            raise
        await _send_again(send, letter, post, mend, bears)


async def _send_again(
    send: Send, letter: Letter, post: Post, mend: Mend, bears: Callable[[Exception], bool]
) -> None:
    attempts = stamina.retry_context(
        on=bears, attempts=None, timeout=None, wait_initial=0.2, wait_max=2.0, wait_jitter=0.2
    )
    async for attempt in attempts:
        with attempt:
            await mend()
            await post.send(letter, send)
