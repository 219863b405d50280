"""Settings → broker, post, ledger, flows, web: how the parts of the service are put together."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import suppress
from importlib.metadata import version

import structlog
from faststream.asgi import AsgiFastStream
from faststream.rabbit import Channel, QueueType, RabbitBroker
from yarl import URL

from service.core.marks import Seal
from service.core.route import Route, find_route
from service.edge import tolerance
from service.edge.asyncapi import json_route, specification
from service.edge.listeners import Listeners
from service.edge.opening import Closed, Opening
from service.edge.post import RabbitPost
from service.edge.reading import Limits
from service.flows.desk import Desk
from service.flows.dlq_processor import consumers, drill
from service.flows.dlq_processor.policy import FindRoute, Rules, flow
from service.flows.flow import Flow
from service.ledger.away import LedgerAway
from service.ledger.engine import is_sqlite
from service.ledger.routes import Away, Routes
from service.ledger.schema import upgrade
from service.settings import Settings
from service.web.health import Health, livez, readyz
from service.web.journal import Journal
from service.web.metrics import Metrics, metrics_route

VERSION = version("dead-letter-office")


class Office(AsgiFastStream):
    """The service: HTTP at once, consuming as soon as RabbitMQ and the ledger let it."""

    opening: Opening

    async def _start_broker(self) -> None:
        """FastStream would try once and then serve without consuming: we try until it works."""
        await self.opening.run()


def create(settings: Settings) -> Office:
    """Put the service together; nothing connects before it starts."""
    tolerance.install(settings.limits.max_headers)
    rules, metrics, routes = rules_of(settings), Metrics(), _routes(settings)
    find = _finder(settings, routes)
    processor = flow(rules, find, seal_of(settings))
    opening = _opening(settings, processor, routes)
    desk = Desk(
        processor,
        opening.post,
        Limits(settings.limits.max_body),
        Listeners(Journal(), metrics),
        opening.mend,
    )
    clerk = consumers.Clerk(desk, find)
    consumers.subscribe(opening.broker, clerk, rules, settings.dlq_processor.prefetch)
    if rules.drill:
        drill.subscribe(opening.broker, rules)
    return _office(settings, processor, opening, routes, metrics)


def quiet_collector() -> None:
    """What stands now stays: the collector need not look at it again for every thousand letters."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 50)


def rules_of(settings: Settings) -> Rules:
    """What the settings say about the central processor."""
    own = settings.dlq_processor
    kind = QueueType.QUORUM if settings.queues.type == "quorum" else QueueType.CLASSIC
    return Rules(own.tiers, own.max_retries, kind, own.drill)


def seal_of(settings: Settings) -> Seal:
    """The key that signs our marks."""
    key = settings.marks.key
    return Seal(key.get_secret_value().encode() if key else b"")


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


def _opening(settings: Settings, processor: Flow, routes: Routes) -> Opening:
    url = URL(settings.rabbit.url.get_secret_value())
    heartbeat = str(round(settings.rabbit.heartbeat.total_seconds()))
    post = RabbitPost(
        str(url.update_query(heartbeat=heartbeat, name="dead-letter-office post")),
        timeout=settings.rabbit.publish_timeout.total_seconds(),
        ours=frozenset(exchange.name for exchange in processor.topology.exchanges),
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
    return Opening(broker, post, processor.topology, str(url), pause, routes.loaded.wait)


def _office(
    settings: Settings, processor: Flow, opening: Opening, routes: Routes, metrics: Metrics
) -> Office:
    def rabbitmq() -> Health:
        return _rabbitmq(opening)

    def database() -> Health:
        return _database(routes)

    metrics.watch("dlo_broker_up", "RabbitMQ lets us consume", lambda: rabbitmq().ok)
    metrics.watch("dlo_ledger_up", "The ledger answers", lambda: database().ok)
    watching: list[asyncio.Task[None]] = []

    async def start() -> None:
        logging.getLogger("uvicorn.access").setLevel(
            logging.WARNING
        )  # a line for every health check
        watching.append(asyncio.create_task(_watch(settings, routes)))

    async def stop_intake() -> None:
        await opening.stop_intake()

    async def stop() -> None:
        for task in watching:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await opening.post.close()
        await routes.close()

    office = Office(
        opening.broker,
        asgi_routes=[
            ("/livez", livez),
            ("/readyz", readyz({"rabbitmq": rabbitmq, "database": database})),
            ("/metrics", metrics_route(metrics)),
            ("/asyncapi.json", json_route(lambda: office.schema.to_specification().to_jsonable())),
        ],
        logger=None,
        on_startup=[start],
        on_shutdown=[stop_intake],
        after_shutdown=[stop],
        specification=specification(processor.topology, VERSION),
    )
    office.opening = opening
    return office


async def _watch(settings: Settings, routes: Routes) -> None:
    """Keep the routes current. The embedded ledger migrates itself; a server's schema is its owner's."""
    url = settings.database.url.get_secret_value()
    if is_sqlite(url):
        with suppress(LedgerAway):
            await upgrade(url)
    await routes.watch()


def _rabbitmq(opening: Opening) -> Health:
    match opening.state:
        case Closed(since, why):
            return Health(False, f"{why} (since {since:%H:%M:%S} UTC)")
        case _:
            return Health(
                opening.post.is_open, "up" if opening.post.is_open else "publishing is down"
            )


def _database(routes: Routes) -> Health:
    match routes.state:
        case Away(since, why):
            return Health(False, f"{why} (since {since:%H:%M:%S} UTC; last known routes in use)")
        case _:
            return Health(True, "up")
