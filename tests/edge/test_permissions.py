"""The rights that docs/permissions.md lists are enough to start and to move letters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from aio_pika import Message

from deploy.local.rabbitmq import Node
from tests.kit.broker import channel_to, clean, depth
from tests.kit.process import ROOT, Service, environment, running
from tests.kit.shop import open_shop
from tests.servers.waiting import eventually

USER, PASSWORD = "least", "privilege"


@pytest.fixture
def least(rabbit_node: Node) -> Iterator[str]:
    """A user with the documented rights and no other; the URL it connects with."""
    page = (ROOT / "docs" / "permissions.md").read_text()
    configure, write, read = re.findall(r"^  '(\^.*\$)'", page, re.MULTILINE)
    rabbit_node.ctl("add_user", USER, PASSWORD)
    rabbit_node.ctl("set_permissions", USER, configure, write, read)
    yield rabbit_node.url.replace("guest:guest", f"{USER}:{PASSWORD}")
    rabbit_node.ctl("delete_user", USER)


async def test_the_documented_rights_are_enough(
    least: str, rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url)
    settings = environment(
        least,
        sqlite_url,
        DLO_FLOWS='["dlq_processor", "freeflow"]',
        DLO_ROUTES='{ "order.created" = 1 }',
        DLO_DLQ_PROCESSOR__DRILL="true",
    )
    async with (
        running(Service(settings, tmp_path)),
        channel_to(rabbit_url) as channel,
    ):
        shop = await open_shop(channel)
        await shop.consume(accepts=lambda message: False)
        await shop.exchange.publish(Message(b"{}", message_id="m"), "order.created")

        async def dead() -> bool:
            return await depth(channel, "dlq-queue") == 1

        await eventually(dead, within=10)
        assert len(shop.seen) == 2
    await clean(rabbit_url)
