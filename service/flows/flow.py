"""A flow is a value: five answers, and nothing else tells one flow from another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from service.core.delivery import Delivery, Envelope
from service.core.marks import Seal
from service.core.plan import Ways
from service.core.policy import Policy
from service.topology.tables import Topology

Count = Callable[[Envelope], Delivery]


@dataclass(frozen=True, slots=True)
class Flow:
    """`name` + count + policy + ways + topology + marks."""

    name: str
    count: Count
    policy: Callable[[str], Policy]
    ways: Ways
    topology: Topology
    seal: Seal
