"""`dlo drill`: three letters through the running service, watched to their ends."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, assert_never

import typer

from service.cli.broker import broker_url
from service.cli.screen import Output, OutputOption, Screen, screen_of
from service.core import duration
from service.settings import Settings, load

if TYPE_CHECKING:
    from service.office.endings import End, Event

STILL = "does the service still run? --timeout gives it longer"


def some_time(text: str) -> timedelta:
    """A duration that is not nothing."""
    try:
        span = duration.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    if not span:
        raise typer.BadParameter("give the letters some time, like 2m")
    return span


Timeout = Annotated[
    timedelta,
    typer.Option("--timeout", help="How long to watch.", parser=some_time, metavar="DURATION"),
]


def drill(
    context: typer.Context,
    timeout: Timeout = "2m",  # type: ignore[assignment]  # typer parses defaults too
    output: OutputOption = Output.TABLE,
) -> None:
    """Send three letters through the running service and watch them to their ends."""
    from service.office.drill import NoDrill
    from service.office.endings import is_as_written

    screen, settings = screen_of(context), load()
    try:
        ends = asyncio.run(_watch(screen, settings, timeout))
    except NoDrill as why:
        screen.say(str(why))
        raise typer.Exit(1) from None
    _print(screen, output, ends)
    raise typer.Exit(0 if all(map(is_as_written, ends)) else 1)


async def _watch(screen: Screen, settings: Settings, within: timedelta) -> tuple[End, ...]:
    """Say each thing as it happens, and return how each letter ended."""
    from service.office.drill import drill
    from service.office.endings import Sent, Waits

    url, tiers = broker_url(settings), settings.dlq_processor.tiers
    begun, ends = time.monotonic(), []
    async with aclosing(drill(url, tiers, within)) as events:
        async for event in events:
            passed = time.monotonic() - begun
            screen.say(f"{passed:6.1f}s {event.key}: {_told(event, tiers)}")
            if not isinstance(event, Sent | Waits):
                ends.append(event)
    return tuple(ends)


def _told(event: Event, tiers: tuple[timedelta, ...]) -> str:
    from service.office.endings import Accepted, Died, Sent, Unended, Waits

    match event:
        case Sent(_, letter):
            return f"sent, with the id {letter}"
        case Waits(_, retry, tier):
            wait = f" for {duration.say(tiers[tier - 1])}" if tier <= len(tiers) else ""
            return f"rejected; retry {retry} scheduled, waits in queue.delay.{tier}{wait}"
        case Accepted(_, 0):
            return "accepted"
        case Accepted(_, retries):
            return f"accepted after {_retries(retries)}"
        case Died(_, retries, reason):
            return f"dead letter after {_retries(retries)}: {reason}"
        case Unended(_, 0):
            return f"no end in time; {STILL}"
        case Unended(_, retries):
            return f"no end in time, {_retries(retries)} so far; {STILL}"
        case never:
            assert_never(never)


def _retries(count: int) -> str:
    return f"{count} retry" if count == 1 else f"{count} retries"


def _print(screen: Screen, output: Output, ends: tuple[End, ...]) -> None:
    from service.office.endings import Died

    match output:
        case Output.JSON:
            screen.json([_document(end) for end in ends])
        case Output.TABLE:
            screen.table(("key", "expected", "result", "as expected"), map(_row, ends))
    if any(isinstance(end, Died) for end in ends):
        says = "the failed drill letter is a dead letter now: in the ledger, or in dlq-queue"
        screen.say(f"{says} where ledger.intake is off")


def _row(end: End) -> tuple[str, str, str, str]:
    from service.office.endings import AS_WRITTEN, is_as_written

    return end.key, AS_WRITTEN[end.key], _told(end, ()), "yes" if is_as_written(end) else "no"


def _document(end: End) -> dict[str, object]:
    from service.office.endings import AS_WRITTEN, is_as_written

    return {
        "key": end.key,
        "expected": AS_WRITTEN[end.key],
        "result": _told(end, ()),
        "retries": end.retries,
        "as_expected": is_as_written(end),
    }
