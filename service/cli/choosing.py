"""Which letters a command means: by their ids, or by the same filter that the API takes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import Annotated, Any

import typer

from service.cli.calling import Exit, Refusal
from service.core import duration

Wanted = dict[str, Any]
ID = re.compile(r"[0-9a-f]{32}")


def _moment(text: str) -> str:
    """`2h` (ago), or a moment as ISO 8601 writes it."""
    try:
        return (datetime.now(UTC) - duration.parse(text)).isoformat()
    except (ValueError, OverflowError):
        pass
    try:
        given = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("write 2h (ago), or a moment like 2026-03-01T03:00") from None
    return given.isoformat() if given.tzinfo else given.replace(tzinfo=UTC).isoformat()


def _header(text: str) -> str:
    if not text.partition("=")[0] or "=" not in text:
        raise typer.BadParameter("write name=value")
    return text


def _option(name: str, says: str, **more: Any) -> Any:
    return typer.Option(f"--{name}", help=says, **more)


OPTIONS: Mapping[str, Any] = {
    "state": Annotated[
        list[str] | None,
        _option("state", "parked, back, sent, handled, quiet or discarded; repeat."),
    ],
    "flow": Annotated[str | None, _option("flow", "Of this flow.")],
    "queue": Annotated[str | None, _option("queue", "Taken from this dead queue.")],
    "origin_queue": Annotated[
        str | None, _option("origin", "Died in this queue.", metavar="QUEUE")
    ],
    "routing_key": Annotated[str | None, _option("key", "With this routing key.")],
    "cause": Annotated[str | None, _option("cause", "Of this cause.")],
    "letter": Annotated[str | None, _option("letter", "With this message id.")],
    "error_type": Annotated[str | None, _option("error-type", "Failed with this type of error.")],
    "header": Annotated[
        str | None,
        _option(
            "header", "With this header.", metavar="NAME=VALUE", callback=lambda v: v and _header(v)
        ),
    ],
    "text": Annotated[str | None, _option("text", "With this in error, reason or message id.")],
    "since": Annotated[
        str | None,
        _option("since", "Buried since: 2h, or a moment.", callback=lambda v: v and _moment(v)),
    ],
    "until": Annotated[
        str | None,
        _option("until", "Buried before: 2h, or a moment.", callback=lambda v: v and _moment(v)),
    ],
}


def choosing(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the filter's options; it is handed what was given of them as `wanted`."""
    plain = inspect.signature(command, eval_str=True)
    own = [p for p in plain.parameters.values() if p.name != "wanted"]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in OPTIONS.items()
        if name not in plain.parameters
    ]

    @wraps(command)
    def with_filter(*words: Any, **options: Any) -> None:
        given = {name: options.pop(name) for name in OPTIONS if name in options}
        wanted = {name: value for name, value in given.items() if value}
        command(*words, **options, wanted=wanted)

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    with_filter.__signature__ = plain.replace(parameters=[*parameters, *options])  # type: ignore[attr-defined]  # what inspect looks for
    with_filter.__annotations__ = {p.name: p.annotation for p in [*parameters, *options]}
    return with_filter


def chosen(ids: list[str] | None, wanted: Wanted) -> Wanted:
    """Ids or a filter; a command that acts on letters does not take all of them by silence."""
    if not ids and not wanted:
        raise typer.BadParameter(
            "name letters by their ids, or choose them: --cause, --queue, --since …"
        )
    for id_ in ids or ():
        if not ID.fullmatch(id_):
            raise Refusal(
                f"There is no letter {id_[:40]!r}: ids are 32 digits and letters a–f.",
                Exit.NOT_FOUND,
            )
    return {**wanted, "id": ids} if ids else wanted
