import os

from faststream import AckPolicy, FastStream
from faststream.rabbit import Channel, RabbitBroker

from service import Refuse, RetryIn, Retrying

URL = os.environ["RABBIT_URL"]
retrying = Retrying(URL, key=os.environ.get("MARKS_KEY", ""))
broker = RabbitBroker(URL, default_channel=Channel(prefetch_count=10), middlewares=[retrying])
app = FastStream(broker, lifespan=retrying.lifespan)


@broker.subscriber(retrying.queue("document"), ack_policy=AckPolicy.MANUAL)
async def index(id: int, pages: int) -> None:
    if pages == 0:
        raise Refuse("a document without pages is never indexed")  # to freeflow.events.dlq at once
    if pages > 100:
        raise RetryIn("5m")  # not now: the 5m tier
    print(f"indexed {id}", flush=True)  # anything else it raises: 30s, 5m, 30m, then the dlq
