"""`/asyncapi.json`: the committed document, whatever the state of RabbitMQ, and no way to try it out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from deploy.local.ports import free_port
from service.composition import create
from service.settings import Settings
from service.settings.model import FLOWS
from tests.kit.process import Service, environment, running
from tests.servers.waiting import eventually

Json = dict[str, Any]


async def _ask(method: str, path: str) -> httpx2.Response:
    service = httpx2.ASGITransport(app=create(Settings()))
    async with httpx2.AsyncClient(transport=service, base_url="http://127.0.0.1") as client:
        return await client.request(method, path)


async def test_the_service_serves_the_committed_document(document: Json) -> None:
    answer = await _ask("GET", "/asyncapi.json")
    assert answer.status_code == 200
    assert answer.json() == document


# FastStream's page would run the handlers, and afterwards swallow every delivery of the live broker.
@pytest.mark.parametrize("path", ["/docs/try", "/asyncapi/try", "/asyncapi.json/try", "/try"])
async def test_nothing_can_be_tried_out(path: str) -> None:
    assert (await _ask("POST", path)).status_code == 404


async def test_it_is_served_while_rabbitmq_is_down(
    document: Json, sqlite_url: str, tmp_path: Path
) -> None:
    defaults = {
        "DLO_ENV": "development",
        "DLO_FLOWS": json.dumps(FLOWS),
        "DLO_QUEUES__TYPE": "classic",
        "DLO_DLQ_PROCESSOR__TIERS": '["10s","15s","20s"]',
        "DLO_DLQ_PROCESSOR__DRILL": "true",
    }
    nobody = f"amqp://guest:guest@127.0.0.1:{free_port()}/"
    service = Service(environment(nobody, sqlite_url, **defaults), tmp_path)
    async with running(service, ready=False):
        await eventually(lambda: service.get("/asyncapi.json")[0] == 200, within=30)
        assert service.get("/asyncapi.json") == (200, document)
        assert service.get("/readyz")[0] == 503
