"""One letter, the service that holds it, two connections and a broker: every state, every next one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from service.core.plan import Address, Plan, Settle
from tests.model.steps import End, Publish, Reading, Step

DEAD_LETTERS = Address("whatever the queue names as its dead-letter exchange", "")


class Source(Enum):
    """The letter in the queue it is taken from."""

    READY = "ready"
    DELIVERED = "delivered"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Working:
    """The service holds the delivery: what it is still to do, and whether it waits for an answer."""

    detour: int  # how many plans were left for what stands in for them
    todo: tuple[Step, ...]
    waiting: bool = False


class Word(Enum):
    """What the broker says about a publish."""

    CONFIRMED = "confirmed"
    UNROUTED = "unrouted"


@dataclass(frozen=True, slots=True)
class Copy:
    """A publish in the socket; nobody waits for the fate of one whose sender has given up."""

    to: Address
    awaited: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """The broker's word about a publish, in the socket."""

    word: Word
    awaited: bool


@dataclass(frozen=True, slots=True)
class World:
    """Everything that can differ. Tuples are kept in order of arrival, as a socket keeps them."""

    source: Source = Source.READY
    working: Working | None = None
    published: tuple[Copy, ...] = ()  # handed to the publishing socket, not read by the broker
    answers: tuple[Answer, ...] = ()  # the broker's, not read by the service
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

    def working(self, detour: int = 0) -> Working:
        """The beginning of the plan, or of what stands in for it."""
        return Working(detour, self.reading(self.plans[detour]))

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plan, then what stands in for it when no queue takes it, and so on."""
        plans = [self.plan]
        while (otherwise := plans[-1].otherwise) is not None:
            plans.append(otherwise)
        return tuple(plans)


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
        yield from _consuming_lost(lost)  # kill -9: both at once


def _delivered(world: World, rules: Rules) -> Iterator[World]:
    if world.source is Source.READY and world.working is None:
        yield replace(world, source=Source.DELIVERED, working=rules.working())


def _worked(world: World, rules: Rules) -> Iterator[World]:
    match world.working:
        case Working(_, (Publish(to), *_), waiting=False):
            waiting = replace(world.working, waiting=True)
            yield replace(world, working=waiting, published=(*world.published, Copy(to)))
        case Working(detour, (End(how), *rest)):
            done = Working(detour, tuple(rest)) if rest else None
            yield replace(world, working=done, settled=(*world.settled, how))
    if world.answers:
        answer, *answers = world.answers
        yield replace(world, working=_told(answer, world, rules), answers=tuple(answers))


def _told(answer: Answer, world: World, rules: Rules) -> Working | None:
    """What is to be done after the broker's word; a word nobody waits for changes nothing."""
    working = world.working
    if not answer.awaited or working is None:
        return working
    detour, todo = working.detour, working.todo
    match answer.word:
        case Word.CONFIRMED:
            return Working(detour, todo[1:]) if todo[1:] else None
        case Word.UNROUTED if detour + 1 < len(rules.plans):
            return rules.working(detour + 1)
        case Word.UNROUTED:
            return Working(detour, todo)  # held, and sent again


def _read_by_the_broker(world: World, rules: Rules) -> Iterator[World]:
    if world.published:
        yield _stored(world, rules)
    if world.settled:
        yield _ended(world)


def _stored(world: World, rules: Rules) -> World:
    copy, *others = world.published
    routed = copy.to in rules.routable
    answer = Answer(Word.CONFIRMED if routed else Word.UNROUTED, copy.awaited)
    return replace(
        world,
        published=tuple(others),
        answers=(*world.answers, answer),
        copies=(*world.copies, copy.to) if routed else world.copies,
    )


def _ended(world: World) -> World:
    how, *others = world.settled
    after = replace(world, settled=tuple(others))
    match how:
        case Settle.ACK:
            return replace(after, source=Source.GONE)
        case Settle.REQUEUE:
            return replace(after, source=Source.READY)
        case Settle.REJECT:
            return replace(after, source=Source.GONE, copies=(*world.copies, DEAD_LETTERS))


def _publishing_lost(world: World, rules: Rules) -> Iterator[World]:
    """The service does not know what became of its publish: it sends again."""
    for read in range(len(world.published) + 1):
        lost = world
        for _ in range(read):
            lost = _stored(lost, rules)
        working = replace(lost.working, waiting=False) if lost.working else None
        yield replace(lost, published=(), answers=(), working=working)


def _consuming_lost(world: World) -> Iterator[World]:
    """The broker gives the letter out again unless it has read how it ended; the work is dropped."""
    for read in range(len(world.settled) + 1):
        lost = world
        for _ in range(read):
            lost = _ended(lost)
        source = Source.READY if lost.source is Source.DELIVERED else lost.source
        yield replace(
            lost,
            settled=(),
            working=None,
            source=source,
            published=tuple(replace(copy, awaited=False) for copy in lost.published),
            answers=tuple(replace(answer, awaited=False) for answer in lost.answers),
        )


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
