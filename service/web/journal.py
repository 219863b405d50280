"""A log line per verdict."""

from __future__ import annotations

import structlog

from service.core.delivery import Delivery, Envelope
from service.core.duration import say
from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict


class Journal:
    """Writes down what became of each letter; bodies are never logged."""

    def __init__(self) -> None:
        self._log = structlog.get_logger("dlo.verdicts")

    def judged(self, flow: str, delivery: Delivery, verdict: Verdict) -> None:
        """A letter has its verdict."""
        facts = {"flow": flow, "letter": delivery.marks.letter, "origin": delivery.origin.queue}
        match verdict:
            case Retry(number, after):
                self._log.info("retry", verdict="retry", retry=number, after=say(after), **facts)
            case Bury(reason, why):
                self._log.warning("buried", verdict="bury", why=why.value, reason=reason, **facts)
            case Discard(reason):
                self._log.warning("discarded", verdict="discard", reason=reason, **facts)
            case Accept() | Requeue():
                self._log.debug("settled", verdict=type(verdict).__name__.lower(), **facts)

    def returned(self, flow: str, delivery: Delivery, envelope: Envelope) -> None:
        """A letter is back where it failed."""
        self._log.debug(
            "returned", flow=flow, letter=delivery.marks.letter, origin=delivery.origin.queue
        )
