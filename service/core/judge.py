"""The heart: what becomes of a delivery."""

from typing import assert_never

from service.core.delivery import Delivery
from service.core.outcome import Done, Failed, Refused, TooEarly
from service.core.policy import Policy
from service.core.verdict import Accept, Bury, Requeue, Retry, Verdict, Why


def judge(delivery: Delivery, policy: Policy) -> Verdict:
    """The one place where the fate of a delivery is decided."""
    match delivery.outcome:
        case Done():
            return Accept()
        case TooEarly(wait, crowded):
            return Retry(delivery.retries, wait) if crowded else Requeue(pause=wait)
        case Refused(error, why):
            return Bury(f"refused: {error}" if why is Why.REFUSED else error, why)
        case Failed() if policy.hopeless:
            return Bury(policy.hopeless, Why.NO_ROUTE)
        case Failed(error) if policy.is_spent(delivery.retries):
            return Bury(f"failed {times(delivery.retries + 1)}: {error}", Why.SPENT)
        case Failed() if not policy.ladder:
            return Requeue()
        case Failed(wish=wish):
            number = delivery.retries + 1
            return Retry(number, policy.wait_before(number, wish))
        case never:
            assert_never(never)


def times(count: int) -> str:
    """`1` → `once`, `4` → `4 times`."""
    return "once" if count == 1 else f"{count} times"
