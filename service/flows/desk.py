"""The desk: where a delivery of any flow is judged and its plan carried out, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from aio_pika.abc import AbstractIncomingMessage

from service.core.delivery import Delivery, Envelope, without_origin
from service.core.judge import judge
from service.core.outcome import Failed, Outcome, Refused, outcome_of
from service.core.plan import Plan, Settle, plan
from service.core.verdict import Verdict, Why
from service.edge.carry_out import Mend, Unsettled, carry_out, settle
from service.edge.listeners import Listeners
from service.edge.post import Post
from service.edge.reading import Limits, envelope_of, fault_in, letter_of
from service.flows.flow import Flow

Clock = Callable[[], datetime]
Work = Callable[[AbstractIncomingMessage, Envelope], Awaitable[None]]


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Desk:
    """One flow's engine on one lane: count, judge, plan, carry out, tell."""

    flow: Flow
    post: Post
    limits: Limits
    listeners: Listeners
    mend: Mend
    clock: Clock = utc_now

    async def attend(
        self, raw: AbstractIncomingMessage, outcome: Callable[[Delivery], Awaitable[Outcome]]
    ) -> None:
        """Give this delivery its verdict; `outcome` says how it ended, and may be a handler at work."""

        async def work(raw: AbstractIncomingMessage, envelope: Envelope) -> None:
            delivery = self.flow.count(envelope)
            fault = fault_in(raw, self.limits)
            await self.conclude(raw, delivery.ended(fault or await outcome(delivery)))

        await self.never_stuck(raw, work)

    async def conclude(self, raw: AbstractIncomingMessage, delivery: Delivery) -> Verdict:
        """Judge, carry out, tell."""
        verdict = judge(delivery, self.flow.policy(delivery.origin.routing_key))
        await self.carry_out(raw, plan(verdict, delivery, self.flow.ways, self.flow.seal))
        self.listeners.judged(self.flow.name, delivery, verdict)
        return verdict

    async def carry_out(self, raw: AbstractIncomingMessage, todo: Plan) -> Plan:
        """Send and settle."""
        return await carry_out(todo, raw, letter_of(raw), self.post, self.mend)

    async def never_stuck(self, raw: AbstractIncomingMessage, work: Work) -> None:
        """A letter on which our own code stumbles goes to people: it must not hold up the others."""
        envelope = envelope_of(raw, self.clock())
        try:
            await work(raw, envelope)
        except Unsettled as lost:
            self.listeners.unsettled(self.flow.name, str(lost))
        except Exception as bug:  # noqa: BLE001  # whatever it is, the letter is kept
            await self._stumbled(raw, envelope, f"our own fault: {type(bug).__name__}: {bug}")

    async def _stumbled(
        self, raw: AbstractIncomingMessage, envelope: Envelope, reason: str
    ) -> None:
        try:
            delivery = without_origin(envelope, self.flow.name, reason)
            await self.conclude(raw, delivery.ended(Refused(reason, Why.OUR_FAULT)))
        except Unsettled as lost:
            self.listeners.unsettled(self.flow.name, str(lost))
        except Exception as bug:  # noqa: BLE001  # not even that: back into its queue, slowly
            self.listeners.unsettled(self.flow.name, f"{reason}; then {bug!r}")
            await asyncio.sleep(1)
            with suppress(Unsettled):
                await settle(Settle.REQUEUE, raw)


def is_ending() -> bool:
    """Whether it is we who are being cancelled, and not something a handler waited for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def outcome_of_handler(handler: Awaitable[object], clock: Clock = utc_now) -> Outcome:
    """Run a handler to its end. A shutdown is not an outcome: its cancellation goes on."""
    try:
        await handler
    except asyncio.CancelledError:
        if is_ending():
            raise
        return Failed("something the handler waited for was cancelled", kind="CancelledError")
    except Exception as error:  # noqa: BLE001  # whatever a handler raises is an outcome
        return outcome_of(error, clock())
    return outcome_of(None, clock())
