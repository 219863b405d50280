"""The desk: where a delivery of any flow is judged and its plan carried out, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from service.core.delivery import Delivery, Envelope, without_origin
from service.core.judge import judge
from service.core.outcome import Failed, Outcome, Refused, outcome_of
from service.core.plan import Plan, Settle, plan
from service.core.verdict import Verdict, Why
from service.edge.carry_out import NOBODY, Halted, Means, Mend, Unsettled, Witness, carry_out
from service.edge.lane import RABBIT, Lane, Raw
from service.edge.listeners import Listeners
from service.edge.post import Post
from service.edge.reading import Limits
from service.flows.flow import Flow

Clock = Callable[[], datetime]
Work = Callable[[Raw, Envelope], Awaitable[None]]
Attempted = Callable[[Delivery], Awaitable[Outcome]]
Watch = Callable[[Raw, Delivery, Verdict], Witness]


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
    lane: Lane = RABBIT
    patience: float | None = None
    """How many seconds a send may be tried again: for ever, or until the lane must be Halted."""
    watch: Watch | None = None
    """Whoever wants to be told before a delivery is settled."""

    async def attend(self, raw: Raw, outcome: Attempted) -> None:
        """Give this delivery its verdict; `outcome` says how it ended, and may be a handler at work."""

        async def work(raw: Raw, envelope: Envelope) -> None:
            delivery = self.flow.count(envelope)
            fault = self.lane.fault(raw, self.limits)
            await self.conclude(raw, delivery.ended(fault or await outcome(delivery)))

        await self.never_stuck(raw, work)

    async def conclude(self, raw: Raw, delivery: Delivery) -> Verdict:
        """Judge, carry out, tell."""
        verdict = judge(delivery, self.flow.policy(delivery.origin.routing_key))
        witness = self.watch(raw, delivery, verdict) if self.watch else NOBODY
        await self.carry_out(raw, plan(verdict, delivery, self.flow.ways, self.flow.seal), witness)
        self.listeners.judged(self.flow.name, delivery, verdict)
        return verdict

    async def carry_out(self, raw: Raw, todo: Plan, witness: Witness = NOBODY) -> Plan:
        """Send and settle."""

        async def settle(how: Settle) -> None:
            await self.lane.settle(how, raw)

        means = Means(self.post, self.mend, settle, self.patience, witness)
        return await carry_out(todo, self.lane.letter(raw), means)

    async def never_stuck(self, raw: Raw, work: Work) -> None:
        """A letter on which our own code stumbles goes to people: it must not hold up the others."""
        envelope = self.lane.envelope(raw, self.clock())
        try:
            await work(raw, envelope)
        except Halted:
            raise
        except Unsettled as lost:
            self.listeners.unsettled(self.flow.name, str(lost))
        except Exception as bug:  # noqa: BLE001  # whatever it is, the letter is kept
            await self._stumbled(raw, envelope, f"our own fault: {type(bug).__name__}: {bug}")

    async def _stumbled(self, raw: Raw, envelope: Envelope, reason: str) -> None:
        try:
            delivery = self._counted(envelope, reason)
            await self.conclude(raw, delivery.ended(Refused(reason, Why.OUR_FAULT)))
        except Halted:
            raise
        except Unsettled as lost:
            self.listeners.unsettled(self.flow.name, str(lost))
        except Exception as bug:  # noqa: BLE001  # not even that: back into its queue, slowly
            self.listeners.unsettled(self.flow.name, f"{reason}; then {bug!r}")
            await asyncio.sleep(1)
            with suppress(Unsettled):
                await self.lane.settle(Settle.REQUEUE, raw)

    def _counted(self, envelope: Envelope, reason: str) -> Delivery:
        """What is known of a letter that we stumbled on: its past, lest it go round without end."""
        try:
            return self.flow.count(envelope)
        except Exception:  # noqa: BLE001  # then it was the count
            return without_origin(envelope, self.flow.name, reason)


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
