"""AMQP 0-9-1 over the wire: letters as bytes, for flows that never open them.

Taking letters out of a queue, in batches, settled at one stroke:

    from service.edge.wire import Intake

    async with Intake(url, "dlq-queue", prefetch=500) as intake:
        while True:
            batch = await intake.take(most=200, within=0.05)   # waits for a letter, then up to 50 ms
            ...                                                # one SQL transaction for them all
            batch.acknowledge()                                # one frame: this batch and all before it

* `Intake(url, queue, *, prefetch, pause)`: `url` as aio-pika takes it (`amqps://`, `name`,
  `heartbeat`, `cafile` …, see `target.py`); `pause` is the longest one between two tries to connect.
  `open()` raises where the broker does not let us consume (`OSError`, `TimeoutError`, `Refused`);
  from then on a lost connection, channel or consumer is brought back by itself, and `take` waits.
  `trouble` says why no letters come, or is None. `stop()` cancels the consumer and leaves what was
  taken to be settled; `close()` hangs up.
* `Batch.letters`: a tuple of `Delivered`, the oldest first, never empty, all of one channel.
  `acknowledge()` covers every earlier batch too: settle batches in the order they were taken, after
  what replaces them is safe. It is False where the connection was lost meanwhile: the broker gives
  the letters out again, `redelivered`. `give_back()` puts them into their queue again.
* `Delivered`: `tag`, `redelivered`, `exchange`, `routing_key` (text; what is no UTF-8 as surrogate
  escapes), `properties` (all property bytes, flags first), `headers` (the bytes of the header table
  alone, without its length), `body`. Nothing is decoded: `service.edge.fields.decode_table` and
  `service.edge.tolerance.Headers` do that tolerantly.
* Memory is bounded: `prefetch` letters, and `connection.MOST_IN_HAND` bytes of them, past which
  nothing more is read off the socket until some are settled.

The files, from the socket up: `frames` (bytes), `target` (URL), `connection` and `handshake`,
`channel`, `consumer` and `delivered`, `link` (connects again), `consuming` (consumers come back),
`intake`.
"""

from service.edge.wire.delivered import Delivered
from service.edge.wire.errors import Lost, Refused
from service.edge.wire.intake import Batch, Intake

__all__ = ["Batch", "Delivered", "Intake", "Lost", "Refused"]
