import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from faststream import FastStream
from faststream.confluent import KafkaBroker

from service import KDLQ, KDLQConfig, KDLQListener, Message, Status

SERVERS = os.environ["KAFKA_SERVERS"]


class Alarm(KDLQListener):
    async def on_skip(self, message: Message, reason: str) -> None:
        print(f"skipped {message.letter}: {reason}", flush=True)


orders = KDLQ(
    KDLQConfig(
        servers=SERVERS,
        dlq="orders.dlq",
        redelivery="orders.billing.again",  # a topic of this group and handler alone
        informational_headers=True,
    )
)
dead_orders = KDLQ(KDLQConfig(servers=SERVERS, dlq="orders.dlq", max_kills=1, listeners=(Alarm(),)))


@asynccontextmanager
async def lifespan() -> AsyncIterator[None]:
    async with orders.lifespan(), dead_orders.lifespan():
        yield


broker = KafkaBroker(SERVERS)
app = FastStream(broker, lifespan=lifespan)


@orders.subscriber(broker, "orders", group="billing")
async def handle(order: dict[str, int]) -> Status:
    return Status.OK if order["amount"] > 0 else Status.ERROR


@dead_orders.subscriber(broker, "orders.dlq", group="billing-again")
async def handle_again(order: dict[str, int]) -> Status:
    return Status.OK if order["amount"] > -10 else Status.ERROR
