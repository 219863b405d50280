"""`dlo status`: how the office stands; `dlo adopt`: foreign queues; `dlo audit`: who did what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote

import typer

from service.cli.calling import Exit, caller
from service.cli.consent import Why, Yes, consent
from service.cli.listing import LimitOption, facts, moment, short
from service.cli.listing import show as show_list
from service.cli.screen import Form, FormOption, Output, OutputOption, screen_of

ADOPTED = "/api/v1/adopted"
QUEUES = (
    ("queue", lambda one: one["queue"]),
    ("by", lambda one: one["who"] or one["source"]),
    ("since", lambda one: moment(one["adopted_at"])),
    ("says", lambda one: one["says"]),
)
DEEDS = (
    ("at", lambda deed: moment(deed["at"])),
    ("who", lambda deed: short(deed["who"], 24)),
    ("what", lambda deed: deed["action"]),
    ("to", lambda deed: short(deed["subject"], 48)),
    ("letters", lambda deed: deed["how_many"]),
    ("why", lambda deed: short(deed["why"])),
)


def status(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Say how the office stands: parked letters, the oldest, health; exit 1 where a part is down."""
    screen = screen_of(context)
    found = caller(context).get("/api/v1/status")
    form = Form.JSON if output is Output.JSON else Form.TABLE
    facts(screen, form, found, _rows(found))
    raise typer.Exit(0 if all(part["ok"] for part in found["health"].values()) else Exit.FAILED)


def adopt(
    context: typer.Context,
    queue: Annotated[str | None, typer.Argument(help="A dead-letter queue.")] = None,
    release: Annotated[bool, typer.Option("--release", help="Take no more of it.")] = False,
    why: Why = "",
    yes: Yes = False,
    output: FormOption = Form.TABLE,
) -> None:
    """Take a foreign dead-letter queue into the ledger; without a queue, list the adopted ones."""
    service, screen = caller(context), screen_of(context)
    if queue is None:
        found = [{"id": one["queue"], **one} for one in service.get(ADOPTED)["items"]]
        show_list(screen, output, found, QUEUES)
        return
    if release:
        consent(screen, f"Take no more letters from {queue}?", yes=yes)
        service.act("DELETE", f"{ADOPTED}/{quote(queue, safe='')}")
        screen.say(f"{queue}: released; what is in the ledger stays")
        return
    done = service.post(ADOPTED, {"queue": queue, "why": why})
    screen.say(f"{queue}: adopted; its letters go into the ledger" + _but(done["says"]))


def audit(
    context: typer.Context,
    who: Annotated[str | None, typer.Option(help="By this person.")] = None,
    action: Annotated[str | None, typer.Option(help="Like letters.discard.")] = None,
    subject: Annotated[str | None, typer.Option(help="Like cause:4f6c0a1b2c3d4e5f.")] = None,
    limit: LimitOption = 50,
    output: FormOption = Form.TABLE,
) -> None:
    """List who did what, when, to how many letters, and why."""
    wanted = {"who": who, "action": action, "subject": subject}
    found = caller(context).pages("/api/v1/audit", wanted, limit)
    show_list(screen_of(context), output, ({"id": str(d["number"]), **d} for d in found), DEEDS)


def _but(says: str) -> str:
    return f", but {says}" if says else ""


def _rows(found: Any) -> Iterator[tuple[str, object]]:
    yield "version", found["version"]
    for name, part in found["health"].items():
        yield name, f"{'✔' if part['ok'] else '✘'} {part['says']}"
    if (ledger := found["ledger"]) is None:
        return
    parked = ledger["letters"]["parked"] + ledger["letters"]["back"]
    yield "open letters", parked
    for flow, many in ledger["flows"].items():
        yield f"  {flow}", many
    yield "oldest", moment(ledger["oldest"])
    yield "new a minute", f"{ledger['per_minute']:g} (usually {ledger['usual_per_minute']:g})"
    loud = {state: many for state, many in ledger["causes"].items() if many}
    yield "causes", ", ".join(f"{many} {state}" for state, many in loud.items()) or "none"
    for job in ledger["replays"]:
        yield "replay", f"{job['id']} {job['state']}, {job['total']} letters"
