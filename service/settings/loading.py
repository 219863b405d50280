"""Reading the settings: all sources, one frozen object, or every fault at once."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from pydantic import ValidationError

from service.settings.bind import door_faults
from service.settings.faults import BadSettings, Fault, faults_of, origin_of
from service.settings.model import DlqProcessor, Settings
from service.settings.sources import Gathered, gather

CODE = Path(__file__).resolve().parents[2]


Check = Callable[[Mapping[str, object]], Iterable[Fault]]


def load(
    root: Path | None = None,
    environ: Mapping[str, str] | None = None,
    also: Check = lambda _values: (),
) -> Settings:
    """The settings of the project at `root`, or BadSettings with all that is wrong.

    `also` looks at the values as they were given, for faults that only the service itself can find.
    """
    root = project_root() if root is None else root.resolve()
    gathered = gather(root, os.environ if environ is None else environ)
    settings, faults = _checked(gathered, root)
    faults = [*gathered.faults, *faults, *_unsigned(gathered), *_unbanked(settings)]
    faults += [*_found(also, gathered), *door_faults(settings)]
    if settings is None or faults:
        raise BadSettings(faults)
    return settings


def _found(also: Check, gathered: Gathered) -> list[Fault]:
    """Each with the place that its value came from."""
    return [
        replace(fault, origin=origin_of(tuple(fault.key.split(".")), gathered.origins))
        for fault in also(gathered.values)
    ]


def project_root() -> Path:
    """Where `settings.toml` is: here, else beside the code, so that any folder will do."""
    here = Path.cwd()
    return next((place for place in (here, CODE) if (place / "settings.toml").is_file()), here)


def _checked(gathered: Gathered, root: Path) -> tuple[Settings | None, list[Fault]]:
    context = {"root": root, "tiers": _tiers(gathered)}
    try:
        return Settings.model_validate(gathered.values, context=context), []
    except ValidationError as error:
        return None, faults_of(error, gathered.origins)


def _tiers(gathered: Gathered) -> tuple[timedelta, ...]:
    """The tiers a route may name; none where they are faulty themselves, which is its own line."""
    try:
        return DlqProcessor.model_validate(gathered.values["dlq_processor"]).tiers
    except ValidationError:
        return ()


def _unsigned(gathered: Gathered) -> list[Fault]:
    """In production anyone who can publish could forge marks: there must be a key."""
    marks = gathered.values["marks"]
    if gathered.values["env"] != "production" or (isinstance(marks, Mapping) and marks.get("key")):
        return []
    how = 'python3 -c "import secrets; print(secrets.token_urlsafe(32))"'
    wrong = (
        "production needs a key to sign marks with: put one into .secrets.toml or DLO_MARKS__KEY"
    )
    return [Fault("marks.key", f"{wrong}; make it with {how}")]


def _unbanked(settings: Settings | None) -> list[Fault]:
    """In production nobody's money may seem settled because a simulated bank said so."""
    if settings is None or settings.env != "production" or "settlement" not in settings.flows:
        return []
    if settings.settlement.bank.url.get_secret_value():
        return []
    wrong = "production needs a real bank: name its URL, or take settlement out of flows"
    return [Fault("settlement.bank.url", wrong)]
