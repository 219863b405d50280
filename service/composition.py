"""Settings → broker, post, ledger, flows, web: how the parts of the service are put together."""

from __future__ import annotations

import asyncio
import gc
import logging
from importlib.metadata import version

import structlog
from faststream._internal.basic_types import SettingField
from faststream.asgi import AsgiFastStream
from faststream.asgi.types import Receive, Scope, Send
from faststream.rabbit import Channel, RabbitBroker
from yarl import URL

from service.archive import Archive, open_archive
from service.back_office import watch_of
from service.core.route import Route, find_route
from service.edge import tolerance
from service.edge.asyncapi import json_route, specification
from service.edge.listeners import Listeners
from service.edge.opening import Opening
from service.edge.post import RabbitPost
from service.edge.reading import Limits
from service.edge.wire.lane import Manners, WireLane
from service.embedded import keep_current
from service.flows.dlq_processor import drill
from service.flows.dlq_processor.policy import FindRoute
from service.flows.room import Reception, Room
from service.front import open_front
from service.ledger.routes import Routes
from service.office import waiting
from service.office.watch import Watch
from service.replaying import replay_room
from service.rooms import rooms_of
from service.settings import Settings
from service.topology.tables import Topology
from service.web.guard import Guard
from service.web.health import livez, readyz
from service.web.journal import Journal
from service.web.metrics import Metrics, metrics_route
from service.wellbeing import blind, checks_of

VERSION = version("dead-letter-office")


class Office(AsgiFastStream):
    """The service: HTTP at once, consuming as soon as RabbitMQ and the ledger let it."""

    opening: Opening
    archive: Archive
    guard: Guard

    async def not_found(self, scope: Scope, receive: Receive, send: Send) -> None:
        """FastStream's own paths are exact and few: all others are the API's."""
        await self.guard(scope, receive, send)

    async def run(
        self,
        log_level: int = logging.INFO,
        run_extra_options: dict[str, SettingField] | None = None,
    ) -> None:
        """With the address that really connected: uvicorn would believe a forwarded one."""
        self.guard.sees_peers = True
        await super().run(log_level, {**(run_extra_options or {}), "proxy_headers": False})

    async def _start_broker(self) -> None:
        """FastStream would try once and then serve without consuming: we try until it works."""
        await self.opening.run()
        if self.archive.intake is not None:
            self.archive.intake.start()


def create(settings: Settings) -> Office:
    """Put the service together; nothing connects before it starts."""
    tolerance.install(settings.limits.max_headers)
    metrics, routes = Metrics(), _routes(settings)
    replays = replay_room(settings, metrics, lambda: blind(opening, archive))
    rooms = (*rooms_of(settings, _finder(settings, routes)), replays)
    topology = sum((room.topology for room in rooms), Topology())
    opening = _opening(settings, topology, routes)
    reception = Reception(
        opening.post,
        Limits(settings.limits.max_body, settings.limits.max_headers),
        Listeners(Journal(), metrics),
        opening.mend,
    )
    for room in rooms:
        room.subscribe(opening.broker, reception)
    _relay(settings, rooms, reception, opening)
    archive = open_archive(settings, rooms, topology, metrics)
    return _office(settings, rooms, reception, opening, routes, metrics, archive)


def quiet_collector() -> None:
    """What stands now stays: the collector need not look at it again for every thousand letters."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def _routes(settings: Settings) -> Routes:
    return Routes(
        settings.database.url.get_secret_value(),
        poll=settings.database.poll,
        tiers=settings.dlq_processor.tiers,
        log=structlog.get_logger("dlo.ledger"),
    )


def _finder(settings: Settings, routes: Routes) -> FindRoute:
    fixed = (settings.route_book(), *((drill.ROUTES,) if settings.dlq_processor.drill else ()))

    def find(key: str) -> Route | None:
        return find_route(key, (routes.book, *fixed))

    return find


def _opening(settings: Settings, topology: Topology, routes: Routes) -> Opening:
    url = URL(settings.rabbit.url.get_secret_value())
    heartbeat = str(round(settings.rabbit.heartbeat.total_seconds()))
    post = RabbitPost(
        str(url.update_query(heartbeat=heartbeat, name="dead-letter-office post")),
        timeout=settings.rabbit.publish_timeout.total_seconds(),
        ours=frozenset(exchange.name for exchange in topology.exchanges),
    )
    pause = settings.rabbit.reconnect.total_seconds()
    broker = RabbitBroker(
        str(url.update_query(heartbeat=heartbeat, name="dead-letter-office")),
        timeout=settings.rabbit.publish_timeout.total_seconds(),
        reconnect_interval=pause,
        default_channel=Channel(prefetch_count=1, on_return_raises=True),
        graceful_timeout=settings.shutdown.grace.total_seconds(),
        specification_url="amqp://rabbitmq.example:5672",
        logger=None,
        apply_types=False,
    )
    return Opening(broker, post, topology, str(url), pause, routes.loaded.wait)


def _relay(
    settings: Settings, rooms: tuple[Room, ...], reception: Reception, opening: Opening
) -> None:
    """The wire lane, where a room has letters for it."""
    wires = [room.wire for room in rooms if room.wire is not None]
    if not wires:
        return
    manners = Manners(
        prefetch=max(wire.prefetch for wire in wires),
        publish_timeout=settings.rabbit.publish_timeout.total_seconds(),
        reconnect=settings.rabbit.reconnect.total_seconds(),
        ours=frozenset(exchange.name for exchange in opening.topology.exchanges),
    )
    clerks = {queue: clerk for wire in wires for queue, clerk in wire.clerks(reception).items()}
    url = URL(settings.rabbit.url.get_secret_value())
    heartbeat = str(round(settings.rabbit.heartbeat.total_seconds()))
    lane = WireLane(str(url.update_query(heartbeat=heartbeat)), clerks, manners, opening.mend)
    opening.relay(lane)


def _office(
    settings: Settings,
    rooms: tuple[Room, ...],
    reception: Reception,
    opening: Opening,
    routes: Routes,
    metrics: Metrics,
    archive: Archive,
) -> Office:
    checks = checks_of(opening, routes, archive, rooms)
    metrics.watch("dlo_broker_up", "RabbitMQ lets us consume", lambda: checks["rabbitmq"]().ok)
    metrics.watch("dlo_ledger_up", "The ledger answers", lambda: checks["database"]().ok)
    # The replays' router stands beside those of the rooms.
    others = [room.api for room in rooms if room.api is not None]
    front = open_front(settings, archive, routes, opening.topology, checks, others, VERSION)
    watch = watch_of(settings, archive.book)
    delays = waiting.delay_queues(opening.topology, opening.consumed)
    if opening.lane is not None:
        for name, says, value in opening.lane.figures:
            metrics.measure(name, says, value)
    watching: list[asyncio.Future[None]] = []

    async def start() -> None:
        # A line for every health check is a line too many.
        logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
        front.open()
        beside = [work(reception) for room in rooms for work in room.work]
        own = [
            keep_current(settings.database.url.get_secret_value(), routes),
            opening.keep_standing(),
            archive.sweeper.run(),
            _tell(watch, routes),
            waiting.watch(opening.looking, delays, metrics.waiting),
        ]
        watching.extend(map(asyncio.ensure_future, [*own, *beside]))

    async def stop_intake() -> None:
        grace = settings.shutdown.grace.total_seconds()
        await asyncio.gather(opening.stop_intake(grace), archive.stop_intake())

    async def stop() -> None:
        await front.close()
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        await opening.close()
        await routes.close()
        await archive.book.close()

    office = Office(
        opening.broker,
        asgi_routes=[
            ("/livez", livez),
            ("/readyz", readyz(checks)),
            ("/metrics", metrics_route(metrics)),
            ("/asyncapi.json", json_route(lambda: office.schema.to_specification().to_jsonable())),
        ],
        logger=None,
        on_startup=[start],
        on_shutdown=[stop_intake],
        after_shutdown=[stop],
        specification=specification(opening.topology, VERSION),
    )
    office.opening, office.archive, office.guard = opening, archive, front.guard
    return office


async def _tell(watch: Watch, routes: Routes) -> None:
    """Begin when the ledger is there."""
    await routes.loaded.wait()
    await watch.run()
