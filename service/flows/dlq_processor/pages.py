"""The central processor's chapter of the AsyncAPI document, for integrators in any language."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from service.core import duration
from service.edge.pages import Chapter, Page, Parameter
from service.flows.dlq_processor import messages
from service.flows.dlq_processor import topology as tables
from service.flows.dlq_processor.policy import Rules

ORIGIN = "origin-queue"

INTRODUCTION = """
Delayed retries and a place for dead letters, for every queue on this RabbitMQ and for services in any
language. You need no library and change no code: you name an exchange in your queue's arguments.

## Your side

1. **Declare your queue with two arguments** (or set them by a policy, which needs no redeclaration):

   | argument | value |
   |---|---|
   | `x-dead-letter-exchange` | `retry-exchange` |
   | `x-dead-letter-routing-key` | `retry-routing-key` |

   A quorum queue should have `x-dead-letter-strategy: at-least-once` and `x-overflow: reject-publish`
   too, or RabbitMQ may lose a letter between your queue and the exchange.
2. **Reject what you cannot handle**: `basic.reject` or `basic.nack` with `requeue=false`. Letters that
   expire in your queue, or are pushed out of it, take the same way. Nothing is published by you.
3. **Ask for a route**: a row of the table `dlq_event_config` (or an entry of `[routes]` in the settings)
   whose `name` is the routing key you publish with, or a topic pattern (`order.*`), and whose
   `max_retries` says how often: `2` means three deliveries in all, `0` none, `-1` without end. A key
   without a route is not retried: its letters go to the dead letters at once.

## What comes back

The letter waits, {waits},
and returns **to your queue alone**, through the default exchange: other queues that are bound to your
exchange see no second copy. (A route with `return_to = "exchange"` has it published to the original exchange
with the original routing key instead.) Body, content type, message id, correlation id and your own headers
are as you sent them; these headers tell its story:

| header | says |
|---|---|
| `x-retry-count` | which retry this is; absent at the first delivery |
| `x-original-exchange`, `x-original-routing-key` | how it was first published |
| `x-original-queue` | the queue it failed in |
| `x-dlo-id`, `x-dlo-flow` | which letter it is, and who takes care of it |
| `x-dlo-first-failure`, `x-dlo-deaths` | since when it fails, and how often in which way |
| `x-dlo-error`, `x-dlo-error-type` | while it waits, and on a dead letter: how the last delivery ended |
| `x-dlo-due` | while it waits: until when |
| `x-dlo-reason` | on a dead letter: why it was given up |
| `x-dlo-signature` | that all this was written by the service |
| `x-dlo-replay` | that an operator sent it back, and with which replay |

`x-death` is not there any more: RabbitMQ 3 and 4 read it differently on a letter that was published again.

## What you may rely on

* **At least once.** A letter is acknowledged only when RabbitMQ has confirmed *and routed* what replaces it;
  after a crash you may see one twice, with the same `message_id`. Give your letters a `message_id`.
* **Never early.** A wait is a minimum.
* **Nothing disappears.** What cannot be retried is in `dlq-queue`, with the reason.
* **Order is not kept** between a letter that waits and those behind it.
""".strip()

DRILL_INTRODUCTION = """
## The drill

Publish to `test-retry-exchange` to see all of this without a service of your own: `rk.test.pass` is
accepted, `rk.test.fail` always rejected, `rk.test.fail.pass` rejected at first and accepted when retried.
These keys have a route of their own, with the default number of retries, unless the table or the settings
name another. `dlo drill` sends all three and watches them to their ends. In production the drill is off.
""".strip()

RETRY_QUEUE = """
Every letter that a queue dead-letters to `retry-exchange` with the key `retry-routing-key` arrives
here. Point your queue at it (`x-dead-letter-exchange`, `x-dead-letter-routing-key`, by argument or by
policy) and reject what you cannot handle. Do not publish here yourself: a letter that no queue has
dead-lettered has no origin to return to, and goes to `dlq-queue`.
""".strip()

DEAD_QUEUE = """
The dead letters, for people: retries spent, no route for the routing key, nobody left to return to, too
large or unreadable. Each is here once, with `x-dlo-reason` and its whole story in its headers; read it
with any client. To send a letter back to its queue alone, publish it, headers and all, to the default
exchange with `x-original-queue` as routing key: it gets one delivery, and is here again if that fails.
To give it all its retries anew, publish it without `x-retry-count` and the `x-dlo-…` headers to
`x-original-exchange` with `x-original-routing-key`: every queue that is bound there gets it.
""".strip()

RETURNED_QUEUE = """
Letters whose wait in `queue.delay.{tier}` is over: RabbitMQ brings them here, and from here each
returns to the queue it failed in. Nobody else publishes here: a letter without the service's own marks
goes to `dlq-queue`.
""".strip()

DELAY_QUEUE = """
Letters wait here {wait}, all equally long, and then RabbitMQ dead-letters them to
`retry-exchange-{tier}`. The routing key is `binding.`, the letter's original routing key and `.{tier}`;
where that would pass 255 bytes, the SHA-256 of the original key stands for it. Nobody consumes from
here, and nobody else publishes here.
""".strip()

ORIGIN_QUEUE = """
Your queue. A letter whose wait is over is published to the default exchange with the name of the queue
it failed in, so that it reaches this queue and no other. If nobody takes it there any more, it goes to
`dlq-queue`. A route with `return_to = "exchange"` has it published to `x-original-exchange` with
`x-original-routing-key` instead.
""".strip()

KEY = Parameter(
    "The routing key the letter was first published with, or its SHA-256 where it is too long.",
    ("order.created",),
)
QUEUE = Parameter("The queue the letter failed in.", ("orders",))


def chapter(rules: Rules) -> Chapter:
    """What integrators need to know of the central processor, as its settings have it."""
    pages = {"retry-queue": RETRY_PAGE, ORIGIN: ORIGIN_PAGE, "dlq-queue": DEAD_PAGE}
    return Chapter(INTRODUCTION.format(waits=_waits(rules.tiers)), pages | dict(_tiers(rules)))


def drill_chapter() -> Chapter:
    """What the drill is for."""
    return Chapter(DRILL_INTRODUCTION, DRILL_PAGES)


def delay_address(tier: int) -> str:
    """The address of a delay queue, its variable part in braces."""
    return tables.delay_address("{key}", tier).routing_key


RETRY_PAGE = Page(
    "Failed letters of every queue",
    "Take a failed letter and give it one verdict: wait, or die",
    """
The original routing key, which RabbitMQ vouches for in `x-death`, chooses the letter's route. With a
route and retries left it is sent to the delay queue of its next wait; without a route, or with its retries
spent, to `dlq-queue`. It is acknowledged after RabbitMQ has confirmed that.
""".strip(),
    messages.DEAD_LETTERED,
)
ORIGIN_PAGE = Page(
    "Your queue",
    "Return a letter to the queue it failed in",
    "Sent persistent, mandatory and confirmed, once per retry.",
    messages.RETURNED,
    {"queue": QUEUE},
)
DEAD_PAGE = Page(
    "Dead letters",
    "Give a letter up, with the reason",
    "Sent to `dlq-exchange` with the key `dlq-routing-key`: persistent, mandatory and confirmed.",
    messages.DEAD,
)
DRILL_PAGES = {
    "test-pass-queue": Page(
        "Drill: always accepted",
        "Accept every letter",
        "It is acknowledged, and that is all.",
        messages.DRILL,
    ),
    "test-fail-queue": Page(
        "Drill: always rejected",
        "Reject every letter",
        "It is rejected at every delivery: it climbs through all its waits and ends in `dlq-queue`.",
        messages.DRILL,
    ),
    "test-fail-pass-queue": Page(
        "Drill: rejected, then accepted",
        "Reject a letter at first, accept it when it is retried",
        "It is rejected where it has no `x-retry-count`, and acknowledged when it comes back with one.",
        messages.DRILL,
    ),
}


def _tiers(rules: Rules) -> Iterator[tuple[str, Page]]:
    for tier, wait in enumerate(rules.tiers, start=1):
        yield (
            f"queue.delay.{tier}",
            Page(
                f"Waiting room {tier}: {duration.say(wait)}",
                f"Let a letter wait {duration.say(wait)}",
                "Sent persistent, mandatory and confirmed, before the failed delivery is acknowledged.",
                messages.WAITING,
                {"key": KEY},
            ),
        )
        yield (
            f"retry-queue-{tier}",
            Page(
                f"Back from waiting room {tier}",
                "Return a letter whose wait is over to its queue",
                "Where it belongs is read from the service's own marks, and from nothing else.",
                messages.WAITING,
            ),
        )


def _waits(tiers: tuple[timedelta, ...]) -> str:
    said = [duration.say(wait) for wait in tiers]
    last = "" if len(said) == 1 else f" ({said[-1]} before every further retry)"
    return f"{', then '.join(said)}{last}"
