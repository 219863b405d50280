"""Which RabbitMQ a command talks to."""

from __future__ import annotations

import json
import os
from pathlib import Path

from service.settings import Settings, project_root
from service.settings.model import Rabbit
from service.settings.sources import gather

NOTE = Path(".dlo") / "office.json"


def broker_url(settings: Settings) -> str:
    """The one somebody named; else the private node that `just up` runs in this project, if it does."""
    url, root = settings.rabbit.url.get_secret_value(), project_root()
    return url if _is_named(root, url) else _private_node(root / NOTE) or url


def _is_named(root: Path, url: str) -> bool:
    """The default, written out in settings.toml, is nobody's choice."""
    origin = gather(root, os.environ).origins.get(("rabbit", "url"), "settings.toml")
    return url != Rabbit().url.get_secret_value() or not origin.startswith("settings.toml")


def _private_node(note: Path) -> str:
    try:
        said = json.loads(note.read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    url = said.get("rabbit_url") if isinstance(said, dict) else None
    return url if isinstance(url, str) else ""
