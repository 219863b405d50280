"""One letter, the service that holds it, two connections and a broker: every state, every next one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import product

from service.core.plan import Address, Plan, Settle
from tests.model.steps import End, Publish, Reading, Step


class Source(Enum):
    """The letter in the queue it is taken from."""

    READY = "ready"
    DELIVERED = "delivered"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Working:
    """The service holds the delivery: what it is still to do, and whether it waits for an answer."""

    plan: Plan
    todo: tuple[Step, ...]
    waiting: bool = False


@dataclass(frozen=True, slots=True)
class Confirmed:
    """The broker's word on its way: it has the copy."""

    to: Address


@dataclass(frozen=True, slots=True)
class Unrouted:
    """The broker's word on its way: no queue takes it."""

    to: Address


Word = Confirmed | Unrouted


@dataclass(frozen=True, slots=True)
class World:
    """Everything that can differ. Tuples are kept in order of arrival, as a socket keeps them."""

    source: Source = Source.READY
    working: Working | None = None
    published: tuple[Address, ...] = ()  # handed to the publishing socket, not read by the broker
    words: tuple[Word, ...] = ()  # the broker's answers, not read by the service
    settled: tuple[Settle, ...] = ()  # handed to the consuming socket, not read by the broker
    copies: tuple[Address, ...] = ()  # stored in queues
    faults: int = 0


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for a whole exploration."""

    plan: Plan
    reading: Reading
    routable: frozenset[Address]
    most_faults: int


def following(world: World, rules: Rules) -> Iterator[World]:
    """Every state that can come next, without a fault."""
    yield from _delivered(world, rules)
    yield from _worked(world, rules)
    yield from _read_by_the_broker(world, rules)


def accidents(world: World, rules: Rules) -> Iterator[World]:
    """Every state that a crash or a lost connection can leave behind.

    What was in a socket may have been read by the broker or not: any first part of it.
    """
    if world.faults == rules.most_faults:
        return
    faulty = replace(world, faults=world.faults + 1)
    yield from _publishing_lost(faulty, rules)
    yield from _consuming_lost(faulty)
    for lost in _publishing_lost(faulty, rules):
        yield from _consuming_lost(replace(lost, words=()))  # kill -9: both at once


def _delivered(world: World, rules: Rules) -> Iterator[World]:
    if world.source is Source.READY and world.working is None:
        working = Working(rules.plan, rules.reading(rules.plan))
        yield replace(world, source=Source.DELIVERED, working=working)


def _worked(world: World, rules: Rules) -> Iterator[World]:
    match world.working:
        case Working(plan, (Publish(to), *_), waiting=False):
            waiting = replace(world.working, waiting=True)
            yield replace(world, working=waiting, published=(*world.published, to))
        case Working(plan, (Publish(to), *rest), waiting=True) if world.words:
            word, *words = world.words
            after = replace(world, words=tuple(words))
            yield replace(after, working=_answered(word, to, plan, tuple(rest), world, rules))
        case Working(plan, (End(how), *rest)):
            done = Working(plan, tuple(rest)) if rest else None
            yield replace(world, working=done, settled=(*world.settled, how))


def _answered(
    word: Word, to: Address, plan: Plan, rest: tuple[Step, ...], world: World, rules: Rules
) -> Working | None:
    """A word about another publish, given up before, is not for us."""
    match word:
        case Confirmed(about) if about == to:
            return Working(plan, rest) if rest else None
        case Unrouted(about) if about == to and plan.otherwise is not None:
            return Working(plan.otherwise, rules.reading(plan.otherwise))
        case Unrouted(about) if about == to:
            return Working(plan, (Publish(to), *rest))  # held, and sent again
        case _:
            return world.working


def _read_by_the_broker(world: World, rules: Rules) -> Iterator[World]:
    if world.published:
        yield _stored(world, rules)
    if world.settled:
        yield _ended(world)


def _stored(world: World, rules: Rules) -> World:
    to, *others = world.published
    after = replace(world, published=tuple(others))
    if to not in rules.routable:
        return replace(after, words=(*world.words, Unrouted(to)))
    return replace(after, words=(*world.words, Confirmed(to)), copies=(*world.copies, to))


def _ended(world: World) -> World:
    how, *others = world.settled
    after = replace(world, settled=tuple(others))
    match how:
        case Settle.ACK:
            return replace(after, source=Source.GONE)
        case Settle.REQUEUE:
            return replace(after, source=Source.READY)
        case Settle.REJECT:
            return replace(
                after, source=Source.GONE, copies=(*world.copies, Address("dead-letter exchange", ""))
            )


def _publishing_lost(world: World, rules: Rules) -> Iterator[World]:
    """The service does not know what became of its publish: it sends again."""
    for read in range(len(world.published) + 1):
        lost = world
        for _ in range(read):
            lost = _stored(lost, rules)
        working = replace(lost.working, waiting=False) if lost.working else None
        yield replace(lost, published=(), words=(), working=working)


def _consuming_lost(world: World) -> Iterator[World]:
    """The broker gives the letter out again unless it has read how it ended; the work is dropped."""
    for read in range(len(world.settled) + 1):
        lost = world
        for _ in range(read):
            lost = _ended(lost)
        source = Source.READY if lost.source is Source.DELIVERED else lost.source
        yield replace(lost, settled=(), working=None, source=source)


def explore(rules: Rules) -> frozenset[World]:
    """All states that can be reached."""
    seen, edge = {World()}, [World()]
    while edge:
        world = edge.pop()
        for following_one in (*following(world, rules), *accidents(world, rules)):
            if following_one not in seen:
                seen.add(following_one)
                edge.append(following_one)
    return frozenset(seen)


def endings(worlds: frozenset[World], rules: Rules) -> frozenset[World]:
    """States in which nothing happens any more by itself."""
    return frozenset(world for world in worlds if not any(following(world, rules)))


__all__ = ["Rules", "Source", "World", "endings", "explore", "product"]
