"""The doctor: what is wrong, or could go wrong, between the settings, RabbitMQ and the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from enum import StrEnum

import aio_pika
from aio_pika.abc import AbstractConnection
from aiormq.exceptions import AMQPError, ChannelAccessRefused, ChannelNotFoundEntity
from faststream.rabbit import RabbitQueue

from service.edge.declare import NotDeclared, declare, permission
from service.edge.sentences import place, sentence
from service.ledger import schema
from service.ledger.away import LedgerAway
from service.topology.faults import faults
from service.topology.tables import Topology

PATIENCE = 10.0


class Grade(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at."""

    grade: Grade
    about: str
    says: str


@dataclass(frozen=True, slots=True)
class Patient:
    """What is examined."""

    rabbit_url: str
    database_url: str
    topology: Topology
    sends: tuple[tuple[str, str], ...]
    consumed: frozenset[str]
    signs: bool
    advice: tuple[Finding, ...] = ()
    adopted: tuple[str, ...] = ()
    """Queues of others, whose letters are taken in."""


async def examine(patient: Patient) -> AsyncIterator[Finding]:
    """Everything that can be seen without touching anything."""
    for finding in (*_on_paper(patient), *patient.advice):
        yield finding
    yield await _ledger(patient.database_url)
    try:
        async with asyncio.timeout(PATIENCE):
            connection = await aio_pika.connect(patient.rabbit_url)
    except (AMQPError, OSError, TimeoutError) as error:
        yield Finding(Grade.FAULT, "rabbitmq", sentence(error, patient.rabbit_url))
        return
    async with connection:
        yield Finding(Grade.OK, "rabbitmq", f"{place(patient.rabbit_url)} answers")
        for queue in patient.topology.queues:
            yield await _queue(connection, queue, patient.consumed)
        for name in patient.adopted:
            yield await _adopted(connection, name)


def _on_paper(patient: Patient) -> Iterable[Finding]:
    if not patient.signs:
        yield Finding(
            Grade.WARNING,
            "marks.key",
            "there is none: marks are believed as read, and whoever may publish can forge them",
        )
    found = faults(patient.topology, patient.sends)
    for fault in found:
        yield Finding(Grade.FAULT, "topology", str(fault))
    if not found:
        yield Finding(Grade.OK, "topology", f"{len(patient.topology.queues)} queues, no faults")


async def _ledger(url: str) -> Finding:
    try:
        current, newest = await schema.current(url), schema.newest()
    except LedgerAway as away:
        return Finding(Grade.FAULT, "database", str(away))
    if current != newest:
        says = (
            f"its schema is {current or 'none'}, this version wants {newest}; run: dlo db upgrade"
        )
        return Finding(Grade.FAULT, "database", says)
    return Finding(Grade.OK, "database", f"schema {current}")


async def _queue(
    connection: AbstractConnection, queue: RabbitQueue, consumed: frozenset[str]
) -> Finding:
    """A queue that stands is declared again as the settings have it: the same is nothing to RabbitMQ,
    and a difference is an answer."""
    channel = await connection.channel()
    try:
        seen = await channel.declare_queue(queue.name, passive=True)
    except ChannelNotFoundEntity:
        return Finding(Grade.FAULT, queue.name, "is not there; a running service declares it")
    finally:
        await channel.close()
    try:
        await declare(Topology(queues=(queue,)), connection)
    except NotDeclared as differs:
        return Finding(Grade.FAULT, queue.name, str(differs))
    letters = seen.declaration_result.message_count or 0
    consumers = seen.declaration_result.consumer_count or 0
    if queue.name in consumed and not consumers:
        return Finding(Grade.FAULT, queue.name, f"nobody consumes it, {letters} letters wait")
    return Finding(Grade.OK, queue.name, f"{letters} letters, {consumers} consumers")


async def _adopted(connection: AbstractConnection, name: str) -> Finding:
    """Somebody else's queue: looked at, never declared."""
    channel = await connection.channel()
    try:
        seen = (await channel.declare_queue(name, passive=True)).declaration_result
    except ChannelNotFoundEntity:
        return Finding(Grade.WARNING, name, "is adopted and not there; it is tried again and again")
    except ChannelAccessRefused as refusal:
        return Finding(Grade.FAULT, name, permission(str(refusal)))
    finally:
        await channel.close()
    says = f"adopted: {seen.message_count or 0} letters, {seen.consumer_count or 0} consumers"
    return Finding(Grade.OK, name, says)
