"""The heart: what becomes of a delivery."""

from typing import assert_never

from service.core.delivery import Delivery
from service.core.outcome import Done, Failed, Refused, TooEarly
from service.core.policy import SPENT, Policy
from service.core.verdict import Accept, Bury, Discard, Requeue, Retry, Verdict, Why


def judge(delivery: Delivery, policy: Policy) -> Verdict:
    """The one place where the fate of a delivery is decided."""
    match delivery.outcome:
        case Done():
            return Accept()
        case TooEarly(wait, crowded):
            return Retry(delivery.retries, wait) if crowded else Requeue(pause=wait)
        case Refused(error, why):
            reason = f"refused: {error}" if why is Why.REFUSED else error
            return _give_up(delivery, policy, reason, why)
        case Failed() if policy.hopeless:
            return _give_up(delivery, policy, policy.hopeless, Why.NO_ROUTE)
        case Failed(error) if policy.is_spent(delivery.retries):
            return _give_up(delivery, policy, f"{_tried(delivery)}: {error}", Why.SPENT)
        case Failed() if not policy.ladder:
            return Requeue()
        case Failed(wish=wish):
            number = delivery.retries + 1
            return Retry(number, policy.wait_before(number, wish))
        case never:
            assert_never(never)


def _give_up(delivery: Delivery, policy: Policy, reason: str, why: Why) -> Bury | Discard:
    """To the dead letters, unless it was there as often as it may be."""
    if policy.is_beyond_burial(delivery.kills):
        often = "its kills cannot be read" if delivery.kills >= SPENT else "its kills are spent"
        return Discard(f"{reason}; {often} ({policy.max_burials} allowed)")
    return Bury(reason, why)


def _tried(delivery: Delivery) -> str:
    unread = delivery.retries >= SPENT
    return "failed too often" if unread else f"failed {times(delivery.retries + 1)}"


def times(count: int) -> str:
    """`1` → `once`, `4` → `4 times`."""
    return "once" if count == 1 else f"{count} times"
