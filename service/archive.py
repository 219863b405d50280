"""The archive: the ledger's side of the service, put together out of the settings and the rooms."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from yarl import URL

from service.flows.room import Room
from service.ledger.adopted import adopted
from service.ledger.book import Book
from service.office.inquest import ADOPTED, Inquest, Source
from service.office.intake import Intake
from service.office.intake_desk import Desk, writers
from service.office.sweeper import Sweeper
from service.rooms import seal_of
from service.settings import Settings
from service.topology.tables import Topology
from service.web.health import Health
from service.web.metrics import Metrics

OFF = "off: dead letters stay in their queues (ledger.intake)"


@dataclass(frozen=True, slots=True)
class Archive:
    """The ledger's book, who fills it and who sweeps it."""

    book: Book
    sweeper: Sweeper
    intake: Intake | None
    """None where the settings leave dead letters in their queues."""

    @property
    def taken(self) -> frozenset[str]:
        """Queues of ours whose letters are taken in."""
        return frozenset() if self.intake is None else self.intake.fixed

    async def stop_intake(self) -> None:
        """Take no more letters in."""
        if self.intake is not None:
            await self.intake.stop()

    def wrong_with(self, queue: str) -> str:
        """Why letters of this queue do not reach the ledger; empty where nothing keeps them."""
        return OFF if self.intake is None else self.intake.wrong_with(queue)

    def health(self) -> Health:
        """Whether dead letters reach the ledger."""
        if self.intake is None:
            return Health(True, OFF)
        return Health(not self.intake.held, self.intake.held or "up")


def open_archive(
    settings: Settings, rooms: Iterable[Room], topology: Topology, metrics: Metrics
) -> Archive:
    """Nothing connects before it is run."""
    own, rooms = settings.ledger, tuple(rooms)
    book = Book(settings.database.url.get_secret_value())
    sweeper = Sweeper(book, own.retention, own.keep_discarded)
    flows = (*(room.name for room in rooms if room.dead), ADOPTED)
    metrics.parked(flows, lambda: sweeper.parked, sweeper.oldest)
    intake = _intake(settings, rooms, topology, book, metrics) if own.intake else None
    return Archive(book, sweeper, intake)


def _intake(
    settings: Settings, rooms: tuple[Room, ...], topology: Topology, book: Book, metrics: Metrics
) -> Intake:
    own = settings.ledger
    desk = Desk(
        _url(settings),
        book,
        Inquest(seal_of(settings)),
        metrics,
        own.prefetch,
        own.batch,
        own.linger,
        settings.rabbit.reconnect.total_seconds(),
        writing=writers(book),
    )
    fixed = [Source(q.name, room.name, q.discarded) for room in rooms for q in room.dead]
    named = tuple(entry.queue for entry in settings.adopt)

    async def others() -> tuple[str, ...]:
        return (*named, *(each.queue for each in await adopted(book)))

    ours = frozenset(queue.name for queue in topology.queues)
    return Intake(desk, fixed, others, ours)


def _url(settings: Settings) -> str:
    heartbeat = str(round(settings.rabbit.heartbeat.total_seconds()))
    url = URL(settings.rabbit.url.get_secret_value())
    return str(url.update_query(heartbeat=heartbeat, name="dead-letter-office intake"))
