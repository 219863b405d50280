"""The payment story's own subscribers on the simulated broker, with a real ledger and a counting bank."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import uuid4

from faststream.rabbit import RabbitBroker
from sqlalchemy.ext.asyncio import AsyncConnection

from service.core.marks import Seal
from service.core.verdict import Verdict
from service.edge.listeners import Listeners
from service.edge.reading import Limits
from service.flows.desk import Desk
from service.flows.flow import Flow
from service.flows.settlement import consumers, letters
from service.flows.settlement import topology as tables
from service.flows.settlement.bank import Payment, SimulatedBank
from service.flows.settlement.monitor import DeadLetter, Monitor
from service.flows.settlement.outbox import Relay
from service.flows.settlement.policy import Rules, flow, monitoring
from service.flows.settlement.workers import Workers
from service.ledger.book import Book
from service.ledger.schema import upgrade
from service.ledger.transactions import Draft, Status, Transaction, find, record
from service.simulation.broker import SimulatedBroker
from service.simulation.flavour import RABBIT_4_3, Flavour
from service.simulation.testing import SimulatedPost, SimulatedRabbit
from tests.memory.office import KEY, Witness

RULES = Rules()
NOBODY: frozenset[str] = frozenset()


@dataclass
class Counting:
    """A bank that remembers what it was asked."""

    bank: SimulatedBank
    asked: list[Payment] = field(default_factory=list)

    async def settle(self, payment: Payment) -> str:
        """As the bank behind it does."""
        self.asked.append(payment)
        return await self.bank.settle(payment)

    async def close(self) -> None:
        """There is nothing to hang up."""


class Watched(Book):
    """A book that counts how often it was opened to write."""

    opened = 0

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """As ever."""
        self.opened += 1
        async with super().writing() as connection:
            yield connection


@dataclass
class Office:
    """The story on paper."""

    book: Watched
    simulation: SimulatedBroker
    rabbit: SimulatedRabbit
    relay: Relay
    witness: Witness
    bank: Counting
    alerts: list[DeadLetter]

    async def pay(self, account: str) -> str:
        """Make a transaction."""
        id_ = str(uuid4())
        draft = Draft(account, "19.90", "EUR")
        made = Transaction(id_, draft, Status.CREATED, self.simulation.now)
        await record(self.book, made, None, letters.created)
        return id_

    async def move(self) -> None:
        """Empty the outbox until nothing moves."""
        while await self.relay.deliver(SimulatedPost(self.simulation), _nothing_to_mend):
            await self.rabbit.settled()

    async def look(self, id_: str) -> Transaction:
        """The transaction as it stands."""
        found = await find(self.book, id_)
        assert isinstance(found, Transaction)
        return found

    def verdicts(self, *of: type[Verdict]) -> list[Verdict]:
        """The verdicts of these kinds."""
        return [verdict for verdict in self.witness.verdicts if isinstance(verdict, of)]


@asynccontextmanager
async def open_office(url: str, flavour: Flavour = RABBIT_4_3) -> AsyncIterator[Office]:
    """The room without its edges."""
    await upgrade(url)
    seal, book, witness, alerts = Seal(KEY), Watched(url), Witness(), list[DeadLetter]()
    created, requested = (flow(t, RULES, seal) for t in (tables.CREATED, tables.REQUESTED))
    simulation = SimulatedBroker(requested.topology, flavour)
    listeners = Listeners(witness)

    def desk(of: Flow) -> Desk:
        post, now = SimulatedPost(simulation), lambda: simulation.now
        return Desk(of, post, Limits(4096), listeners, _nothing_to_mend, now)

    async def alert(dead: DeadLetter) -> None:
        alerts.append(dead)

    poll = timedelta(seconds=1)
    relay = Relay(book, lease=poll, poll=poll, clock=lambda: simulation.now)
    accounts = (frozenset({"FAIL"}), frozenset({"FLAKY"}), 2, NOBODY)
    bank = Counting(SimulatedBank(*accounts, timedelta(), 0.0, lambda: 1.0))
    workers = Workers(book, bank, relay, lambda: simulation.now)
    broker = RabbitBroker(logger=None, apply_types=False)
    desks = consumers.Desks(desk(created), desk(requested), desk(monitoring(RULES, seal)))
    consumers.subscribe(broker, desks, workers, Monitor(book, listeners, alert), RULES)
    async with SimulatedRabbit(broker, simulation) as rabbit:
        yield Office(book, simulation, rabbit, relay, witness, bank, alerts)
    await book.close()


async def _nothing_to_mend() -> None:
    """The paper broker loses nothing of its topology."""
