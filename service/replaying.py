"""Replays as a room of the service: the receipts' queue, the runner, and the requests of the API."""

from __future__ import annotations

from collections.abc import Iterable

from faststream.rabbit import RabbitBroker

from service.core.replay import Terms
from service.core.standing import Sight
from service.edge.looking import look_at
from service.flows.room import Reception, Room
from service.ledger.book import Book
from service.office.driver import Blind
from service.office.receipts import Receipts, subscribe
from service.office.replay import Runner
from service.rooms import kind_of, seal_of
from service.settings import Settings
from service.topology.receipts import tables
from service.web.api import replays
from service.web.metrics import Metrics

NAME = "replays"


def usual_terms(settings: Settings) -> Terms:
    """What holds for a replay that does not say otherwise."""
    own = settings.replay
    return Terms(own.rate, own.canary, own.stop_percent, own.watch)


def replay_room(settings: Settings, metrics: Metrics, blind: Blind) -> Room:
    """Nothing connects before it is run."""
    book, seal = Book(settings.database.url.get_secret_value()), seal_of(settings)
    runner = Runner(book, seal, batch=settings.replay.claim, told=metrics.replayed, blind=blind)
    receipts, kind = Receipts(book, seal, metrics.replayed), kind_of(settings)
    url = settings.rabbit.url.get_secret_value()

    async def look(queues: Iterable[str]) -> dict[str, Sight]:
        return await look_at(url, queues)

    async def run(reception: Reception) -> None:
        try:
            await runner.run(reception)
        finally:
            await book.close()

    def listen(broker: RabbitBroker, _reception: Reception) -> None:
        subscribe(broker, receipts, kind)

    runs = replays.Runs(usual_terms(settings), look, runner.wake, settings.ledger.intake)
    return Room(NAME, tables(kind), listen, work=(run,), api=replays.router(book, runs))
