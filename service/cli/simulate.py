"""`dlo simulate`: a letter's way through the service, on paper and in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.processor import rules_of
from service.cli.screen import Output, OutputOption, Screen, screen_of
from service.core import duration
from service.core.route import Route, find_route
from service.core.topic import is_pattern
from service.settings import Settings, load

if TYPE_CHECKING:
    from service.office.rehearsal import Story

LONGEST_KEY = 255  # bytes
MOST_FAILURES = 1000


def one_key(text: str) -> str:
    """A routing key as a letter has one."""
    if is_pattern(text):
        raise typer.BadParameter(f"{text!r} is a pattern: name one routing key, like order.created")
    if len(text.encode("utf-8", "surrogateescape")) > LONGEST_KEY:
        raise typer.BadParameter(f"a routing key has {LONGEST_KEY} bytes at most")
    return text


Key = Annotated[
    str,
    typer.Option(
        "--key", help="The routing key it is published with.", parser=one_key, metavar="KEY"
    ),
]
Failures = Annotated[
    int, typer.Option("--fail", min=0, max=MOST_FAILURES, help="How many deliveries are rejected.")
]
MaxRetries = Annotated[
    int | None,
    typer.Option("--max-retries", min=-1, help="As if a route said so; -1 is without end."),
]


def simulate(
    context: typer.Context,
    key: Key,
    failures: Failures = 1,
    max_retries: MaxRetries = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Tell the story of a letter that fails, in virtual time; nothing is contacted."""
    screen, settings = screen_of(context), load()
    route = _route(settings, key, max_retries)
    story = _rehearse(settings, key, failures, route)
    match output:
        case Output.JSON:
            screen.json(_document(key, story))
        case Output.TABLE:
            _print(screen, story)
    if route is None and story.reason:
        screen.say(
            f"[routes] in the settings has none for {key}, and the table dlq_event_config is not read"
            " here: --max-retries N stands for a route"
        )


def _route(settings: Settings, key: str, max_retries: int | None) -> Route | None:
    """What the settings say of the key; an explicit number of retries stands above it."""
    from service.flows.dlq_processor.drill import ROUTES

    books = (settings.route_book(), *((ROUTES,) if settings.dlq_processor.drill else ()))
    found = find_route(key, books)
    if max_retries is None:
        return found
    return replace(found or Route(key), max_retries=max_retries)


def _rehearse(settings: Settings, key: str, failures: int, route: Route | None) -> Story:
    from service.core.marks import Seal
    from service.flows.dlq_processor.policy import flow
    from service.office.rehearsal import rehearse

    def find(_key: str) -> Route | None:
        return route

    rules = rules_of(settings)
    processor = flow(rules, find, Seal(b"the key of a rehearsal"))
    return asyncio.run(rehearse(processor, rules, find, key, failures))


def _print(screen: Screen, story: Story) -> None:
    width = max(len(duration.say(moment.after)) for moment in story.moments)
    for moment in story.moments:
        screen.stdout.out(f"{duration.say(moment.after):>{width}} {moment.what}", highlight=False)
    took = duration.say(story.moments[-1].after)
    how = f"is a dead letter in {story.queue}" if story.reason else f"was accepted by {story.queue}"
    screen.stdout.out(f"after {took} the letter {how}", highlight=False)


def _document(key: str, story: Story) -> dict[str, object]:
    return {
        "key": key,
        "moments": [
            {"after_ms": duration.milliseconds(moment.after), "what": moment.what}
            for moment in story.moments
        ],
        "end": "dead letter" if story.reason else "accepted",
        "queue": story.queue,
        "reason": story.reason,
    }
