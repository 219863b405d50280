"""The document as the service writes it with every setting at its default."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from service.composition import create
from service.edge.asyncapi import current
from service.settings import Settings
from service.topology.tables import Topology


@pytest.fixture(scope="package")
def document() -> dict[str, Any]:
    """What `asyncapi/asyncapi.yaml` must hold, as plain values."""
    read: dict[str, Any] = yaml.safe_load(current())
    return read


@pytest.fixture(scope="package")
def topology() -> Topology:
    """What the service declares with the same settings."""
    return create(Settings()).opening.topology


def written(settings: Settings) -> dict[str, Any]:
    """The document of a service with these settings."""
    content: dict[str, Any] = create(settings).schema.to_specification().to_jsonable()
    return content
