"""The central processor as a flow: count by our own mark, policy by route, both ways by publishing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from faststream.rabbit import QueueType

from service.core.delivery import Delivery, Envelope, come_back, dead_lettered
from service.core.marks import Seal
from service.core.plan import Address, Moved, Plan, Publish, Ways, returning
from service.core.policy import Policy, policy_for
from service.core.route import ReturnTo, Route
from service.core.verdict import Retry
from service.flows.dlq_processor import topology as tables
from service.flows.flow import Flow

NAME = "dlq_processor"
MOST_KEYS = 4096

FindRoute = Callable[[str], Route | None]


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say about this flow."""

    tiers: tuple[timedelta, ...]
    max_retries: int
    kind: QueueType = QueueType.CLASSIC
    drill: bool = False


def flow(rules: Rules, find: FindRoute, seal: Seal) -> Flow:
    """The five answers of the central processor."""
    topology = tables.tables(rules.tiers, rules.kind, drill=rules.drill)
    machinery = own_queues(rules)

    def count(envelope: Envelope) -> Delivery:
        return dead_lettered(envelope, NAME, seal, machinery)

    known: dict[str, tuple[Route | None, Policy]] = {}

    def policy(key: str) -> Policy:
        """The same object for as long as the route is: whoever remembers it sees a change."""
        route = find(key)
        before = known.get(key)
        if before is not None and before[0] is route:
            return before[1]
        if len(known) >= MOST_KEYS:
            known.clear()
        found = policy_for(key, route, rules.tiers, rules.max_retries)
        known[key] = route, found
        return found

    return Flow(NAME, count, policy, ways(rules), topology, seal)


def ways(rules: Rules) -> Ways:
    """Retries go to the delay queue of their wait, burials to the dead letters."""

    def wait(delivery: Delivery, verdict: Moved) -> Address:
        assert isinstance(verdict, Retry)
        return tables.delay_address(
            delivery.origin.routing_key, tier_of(verdict.after, rules.tiers)
        )

    return Ways(retry=Publish(wait), bury=Publish(lambda _delivery, _verdict: tables.DEAD_ADDRESS))


def send_back(envelope: Envelope, flow: Flow, find: FindRoute) -> tuple[Delivery, Plan | None]:
    """A letter whose wait is over, and the plan that returns it; None where nobody knows whereto."""
    delivery = come_back(envelope, flow.name, flow.seal)
    origin = delivery.origin
    if not origin.queue:
        return delivery, None
    route = find(origin.routing_key)
    to = Address("", origin.queue)
    if route is not None and route.return_to is ReturnTo.EXCHANGE and origin.exchange:
        to = Address(origin.exchange, origin.routing_key)
    again = flow.policy(origin.routing_key).wait_before(max(delivery.retries, 1))
    return delivery, returning(delivery, to, flow.ways, flow.seal, again)


def tier_of(wait: timedelta, tiers: tuple[timedelta, ...]) -> int:
    """The number of the delay queue that holds letters this long."""
    return tiers.index(wait) + 1


def own_queues(rules: Rules) -> frozenset[str]:
    """The machinery's queues: a letter that claims to have failed in one of them did not."""
    topology = tables.tables(rules.tiers, rules.kind, drill=False)
    return frozenset(queue.name for queue in topology.queues)
