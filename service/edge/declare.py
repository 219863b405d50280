"""A topology onto the broker, or one sentence about what stands in its way; nothing is ever deleted."""

from __future__ import annotations

import re

from aio_pika.abc import AbstractChannel, AbstractConnection
from aiormq.exceptions import (
    ChannelAccessRefused,
    ChannelNotFoundEntity,
    ChannelPreconditionFailed,
)
from faststream.rabbit import RabbitQueue

from service.topology.tables import Topology

INEQUIVALENT = re.compile(
    r"inequivalent arg '(?P<argument>[^']+)' for (?P<kind>queue|exchange) '(?P<name>.+?)' in vhost"
    r".*?received (?P<wanted>.+?) but current is (?P<current>.+)$"
)
VALUE = re.compile(r"(?:the value )?'(?P<value>.*?)'(?: of type '[^']*')?$")
REFUSED = re.compile(
    # RabbitMQ 3.10 does not say which right; later ones do.
    r"(?:(?P<right>\w+) )?access to (?P<kind>\w+) '(?P<name>.+?)' in vhost.*for user '(?P<user>.+?)'"
)


class NotDeclared(Exception):
    """The topology does not stand as written; says what differs and what to do."""


async def declare(topology: Topology, connection: AbstractConnection) -> None:
    """Declare exchanges, queues and bindings, before anything consumes.

    On a channel of its own, so that nothing is pinned to it: FastStream would take the queue it
    declared first, with that channel's prefetch, for the subscriber's.
    """
    channel = await connection.channel()
    try:
        await _exchanges(topology, channel)
        await _queues(topology, channel)
        await _make_missing(topology, connection)
        await _bindings(topology, channel)
    except ChannelPreconditionFailed as refusal:
        raise NotDeclared(difference(str(refusal))) from None
    except ChannelAccessRefused as refusal:
        raise NotDeclared(permission(str(refusal))) from None
    finally:
        await channel.close()


def difference(refusal: str) -> str:
    """RabbitMQ's PRECONDITION_FAILED → which queue, which argument, both values, what to do."""
    told = INEQUIVALENT.search(refusal)
    if told is None:
        return f"RabbitMQ refuses the topology: {refusal}"
    kind, name, argument = told["kind"], told["name"], told["argument"]
    wanted, current = _value(told["wanted"]), _value(told["current"])
    return (
        f"{kind} {name} stands with {argument} = {current}, the settings say {wanted}: "
        f"set it to {current}, or empty and delete the {kind} and it is declared anew; nothing was touched"
    )


def permission(refusal: str) -> str:
    """RabbitMQ's ACCESS_REFUSED → which right on what is missing, and how to give it."""
    told = REFUSED.search(refusal)
    if told is None:
        return f"RabbitMQ refuses: {refusal}"
    right = told["right"] or "use"
    return (
        f"user {told['user']} may not {right} {told['kind']} {told['name']}: "
        f"grant it with rabbitmqctl set_permissions (docs/permissions.md); nothing was touched"
    )


async def _exchanges(topology: Topology, channel: AbstractChannel) -> None:
    for exchange in topology.exchanges:
        if exchange.name:
            await channel.declare_exchange(
                exchange.name, exchange.type.value, durable=exchange.durable
            )


async def _queues(topology: Topology, channel: AbstractChannel) -> None:
    for queue in topology.queues:
        if queue.declare:
            await _queue(queue, channel)


async def _queue(queue: RabbitQueue, channel: AbstractChannel) -> None:
    await channel.declare_queue(queue.name, durable=queue.durable, arguments=queue.arguments)


async def _make_missing(topology: Topology, connection: AbstractConnection) -> None:
    """Somebody else's queues are left as they stand; one that is not there is made, for our letters
    have to go somewhere. Asking for it costs the channel."""
    for queue in topology.queues:
        if queue.declare:
            continue
        asking = await connection.channel()
        try:
            await asking.declare_queue(queue.name, passive=True)
        except ChannelNotFoundEntity:
            making = await connection.channel()
            await _queue(queue, making)
            await making.close()
        finally:
            await asking.close()


async def _bindings(topology: Topology, channel: AbstractChannel) -> None:
    for binding in topology.bindings:
        queue = await channel.get_queue(binding.queue.name, ensure=False)
        await queue.bind(binding.exchange.name, binding.key)


def _value(said: str) -> str:
    told = VALUE.match(said)
    return told["value"] if told else said
