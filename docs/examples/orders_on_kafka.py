import os

from faststream import FastStream
from faststream.confluent import KafkaBroker

from service import KDLQ, KDLQConfig, KDLQListener, Message, Status


class Alarm(KDLQListener):
    async def on_skip(self, message: Message, reason: str) -> None:
        print(f"skipped {message.letter}: {reason}", flush=True)


config = KDLQConfig(
    servers=os.environ["KAFKA_SERVERS"],
    dlq="orders.dlq",
    redelivery="orders.billing.again",  # a topic of this group alone
    max_kills=1,
    informational_headers=True,
    listeners=(Alarm(),),
)
kdlq = KDLQ(config)
broker = KafkaBroker(os.environ["KAFKA_SERVERS"])
app = FastStream(broker, lifespan=kdlq.lifespan)


@kdlq.subscriber(broker, "orders", group="billing")
async def handle(order: dict[str, int]) -> Status:
    return Status.OK if order["amount"] > 0 else Status.ERROR


@kdlq.subscriber(broker, "orders.dlq", group="billing-again")
async def handle_again(order: dict[str, int]) -> Status:
    return Status.OK if order["amount"] > -10 else Status.ERROR
