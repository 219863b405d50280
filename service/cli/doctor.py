"""`dlo doctor`: what is wrong, or could go wrong."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import typer

from service.cli.broker import broker_url
from service.cli.flows import sends_of, topology_of
from service.cli.screen import Output, OutputOption, Screen, screen_of
from service.settings import Settings, load

if TYPE_CHECKING:
    from service.office.doctor import Finding, Patient


def doctor(context: typer.Context, output: OutputOption = Output.TABLE) -> None:
    """Examine settings, topology, RabbitMQ and the ledger; touches nothing, exit 1 on a fault."""
    screen = screen_of(context)
    findings = asyncio.run(_examined(load()))
    _print(screen, findings, output)
    raise typer.Exit(1 if any(finding.grade == "fault" for finding in findings) else 0)


def patient_of(settings: Settings) -> Patient:
    """What these settings give the doctor to examine."""
    from service.composition import create
    from service.office.doctor import Patient

    office = create(settings)
    return Patient(
        broker_url(settings),
        settings.database.url.get_secret_value(),
        topology_of(settings),
        tuple(sends_of(settings)),
        office.opening.consumed | office.archive.taken,
        settings.marks.key is not None,
        tuple(_advice(settings)),
        tuple(entry.queue for entry in settings.adopt),
    )


def _advice(settings: Settings) -> list[Finding]:
    """What no look at the broker can tell: AMQP does not list bindings."""
    from service.core.route import ReturnTo
    from service.office.doctor import Finding, Grade

    if "freeflow" not in settings.flows or settings.freeflow.return_to is not ReturnTo.EXCHANGE:
        return []
    says = (
        "retries come back through freeflow.events: a second queue bound to the same domain gets a copy "
        'of each. Look with rabbitmqctl list_bindings; return_to = "queue" avoids it'
    )
    return [Finding(Grade.WARNING, "freeflow.return_to", says)]


async def _examined(settings: Settings) -> list[Finding]:
    from service.office.doctor import examine

    return [finding async for finding in examine(patient_of(settings))]


def _print(screen: Screen, findings: list[Finding], output: Output) -> None:
    rows = [(finding.grade.value, finding.about, finding.says) for finding in findings]
    if output is Output.JSON:
        screen.json([dict(zip(("grade", "about", "says"), row, strict=True)) for row in rows])
    else:
        screen.table(("", "about", "says"), rows)
