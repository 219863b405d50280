"""Patterns: letters that failed alike get one verdict and one plan, but for what is each letter's own.

Of ten thousand letters that a queue rejects in a second, judge and plan would say the same ten thousand
times. A pattern is what they said of the first; it fills in id, moments and signature of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from service.core import marks as names
from service.core.delivery import Delivery
from service.core.marks import Marks, MarkValue, Seal, common, moment
from service.core.plan import Address, Plan, Send, Settle
from service.core.policy import Policy
from service.core.verdict import Bury, Retry, Verdict


@dataclass(frozen=True, slots=True)
class Pattern:
    """The first failures of letters out of one queue, for one reason, under one policy."""

    first: Delivery
    policy: Policy
    verdict: Retry | Bury
    to: Address
    stamped: dict[str, MarkValue]
    said: str
    seal: Seal

    @staticmethod
    def of(
        first: Delivery, policy: Policy, verdict: Verdict, plan: Plan, seal: Seal
    ) -> Pattern | None:
        """What was said of a first failure; None where it cannot be said of another."""
        if not isinstance(verdict, Retry | Bury) or first.marks.first_failure != first.at:
            return None
        if plan.settle is not Settle.ACK or len(plan.sends) != 1 or plan.pause:
            return None
        (send,) = plan.sends
        count = verdict.number if isinstance(verdict, Retry) else first.retries
        said = common(first.marks.counting(count))
        return Pattern(first, policy, verdict, send.to, dict(send.marks), said, seal)

    def another(self, letter: str, at: datetime) -> tuple[Delivery, Plan]:
        """The same for another letter: as if it had been counted, judged and planned by itself."""
        like, when = self.first.marks, moment(at)
        marks = Marks(letter, like.flow, like.origin, like.retries, at, like.deaths)
        stamped = {**self.stamped, names.LETTER: letter, names.FIRST_FAILURE: when}
        if self.seal.key:
            stamped[names.SIGNATURE] = self.seal.sign_as(letter, self.said, when)
        if isinstance(self.verdict, Retry):
            stamped[names.DUE] = round((at + self.verdict.after).timestamp() * 1000)
        plan = Plan(Settle.ACK, (Send(self.to, stamped),))
        return Delivery(marks, self.first.outcome, at), plan
