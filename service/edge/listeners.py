"""Whoever wants to know of verdicts: logs and metrics listen here, and can change nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import structlog

from service.core.delivery import Delivery, Envelope
from service.core.outcome import Refused
from service.core.verdict import Bury, Verdict, Why


class Listener(Protocol):
    """Told after the fact."""

    def judged(self, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        """A letter has its verdict, and the plan was carried out."""

    def returned(self, flow: str, delivery: Delivery, envelope: Envelope) -> None:
        """A letter is back where it failed."""


class Listeners:
    """All of them; one that raises is logged and changes no letter's fate."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners: Iterable[Listener] = listeners
        self._log = structlog.get_logger("dlo.listeners")

    def judged(self, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        """A letter has its verdict."""
        for listener in self._listeners:
            try:
                listener.judged(flow, delivery, verdict)
            except Exception as error:  # noqa: BLE001  # the letter is settled already
                self._log.error("a listener failed", error=repr(error))

    def returned(self, flow: str, delivery: Delivery, envelope: Envelope) -> None:
        """A letter is back where it failed."""
        for listener in self._listeners:
            try:
                listener.returned(flow, delivery, envelope)
            except Exception as error:  # noqa: BLE001  # the letter is settled already
                self._log.error("a listener failed", error=repr(error))

    def unreturned(self, flow: str, delivery: Delivery) -> None:
        """The place a letter should return to is gone: it was buried instead."""
        reason = f"nobody takes it any more in {delivery.origin.queue}"
        lost = delivery.ended(Refused(reason, Why.UNROUTABLE))
        self.judged(flow, lost, Bury(reason, Why.UNROUTABLE))

    def postponed(self, flow: str, delivery: Delivery) -> None:
        """The queue a letter should return to refuses it for now: it waits once more."""
        self._log.warning(
            "a queue refuses its letters; they wait again",
            action="postponed",
            flow=flow,
            letter=delivery.marks.letter,
            origin=delivery.origin.queue,
        )

    def unsettled(self, flow: str, why: str) -> None:
        """The broker took a delivery back before it was settled: the letter comes again."""
        self._log.info("a delivery was taken back", action="unsettled", flow=flow, why=why)
