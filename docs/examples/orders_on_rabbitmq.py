import os
from datetime import timedelta

from faststream import FastStream
from faststream.rabbit import RabbitBroker

from service import KDLQ, KDLQConfig, Message, MustBeRedelivered, Status

config = KDLQConfig(
    servers=os.environ["RABBIT_URL"],
    dlq="orders.dlq",
    redelivery="orders.again",
    redelivery_delay=timedelta(seconds=0.2),
    max_redeliveries=2,
    max_kills=1,
)
kdlq = KDLQ(config)
broker = RabbitBroker(os.environ["RABBIT_URL"])
app = FastStream(broker, lifespan=kdlq.lifespan)


@kdlq.subscriber(broker, "orders")
async def handle(message: Message) -> Status | None:
    order = message.json()
    if order["stock"] == "not replicated":
        raise MustBeRedelivered("no stock yet")  # to orders.again, twice; then to orders.dlq
    if order["amount"] <= 0:
        return Status.ERROR  # to orders.dlq at once, as with any exception
    print(f"handled {order['id']}", flush=True)
    return None  # the same as Status.OK
