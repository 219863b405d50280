"""What aio-pika itself stumbles over is put right before it looks."""

from __future__ import annotations

import struct

import pytest
from pamqp import header

from service.edge.tolerance import install

install()


@pytest.mark.parametrize(("mode", "read"), [(1, 1), (2, 2), (0, 1), (3, 1), (255, 1)])
def test_a_delivery_mode_nobody_knows_is_not_persistent(mode: int, read: int) -> None:
    """RabbitMQ 4 lets any number through; aio-pika would drop the message unsettled."""
    wire = struct.pack(">HHQHB", 60, 0, 0, 0x1000, mode)
    content = header.ContentHeader()
    content.unmarshal(wire)
    assert content.properties.delivery_mode == read
