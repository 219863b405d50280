"""What aio-pika itself stumbles over is put right before it looks."""

from __future__ import annotations

import struct

import pytest
from pamqp import commands, header

from service.edge.tolerance import install

install()


@pytest.mark.parametrize(("mode", "read"), [(1, 1), (2, 2), (0, 1), (3, 1), (255, 1)])
def test_a_delivery_mode_nobody_knows_is_not_persistent(mode: int, read: int) -> None:
    """RabbitMQ 4 lets any number through; aio-pika would drop the message unsettled."""
    wire = struct.pack(">HHQHB", 60, 0, 0, 0x1000, mode)
    content = header.ContentHeader()
    content.unmarshal(wire)
    assert content.properties.delivery_mode == read


@pytest.mark.parametrize("name", ["größe.dlq", "orders (old); $=1", "two\nlines"])
def test_a_name_that_rabbitmq_allows_is_a_name(name: str) -> None:
    assert name.encode() in commands.Basic.Consume(queue=name).marshal()
    assert name.encode() in commands.Basic.Publish(exchange=name).marshal()
