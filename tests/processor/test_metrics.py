"""`/metrics` counts verdicts; strangers cannot make it grow."""

from __future__ import annotations

import asyncio

import pytest

from tests.kit.broker import buried
from tests.kit.lanes import BOTH_LANES
from tests.kit.process import Service
from tests.kit.shop import Shop, reject_all

pytestmark = BOTH_LANES


@pytest.fixture(scope="module")
def settings() -> dict[str, str]:
    """One retry for every order."""
    return {"DLO_ROUTES": '{"order.#" = 1}', "DLO_DLQ_PROCESSOR__TIERS": '["100ms"]'}


def series(service: Service) -> dict[str, float]:
    """Every series and its value."""
    text: str = service.get("/metrics")[1]
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines if "_created" not in name}


async def send(shop: Shop, keys: list[str]) -> None:
    """One letter of each key, to its end."""
    await asyncio.gather(*[shop.publish(key, headers={"n": key}) for key in keys])
    await buried(shop.channel, len(keys), within=15)


async def test_two_hundred_routing_keys_add_no_series(service: Service, shop: Shop) -> None:
    await shop.consume(reject_all)
    await send(shop, ["order.first"])
    before = series(service)
    await send(shop, [f"order.key.{n}" for n in range(200)])
    after = series(service)
    assert after.keys() == before.keys()
    flow = 'flow="dlq_processor"'
    grown = {name: after[name] - before[name] for name in after}
    assert grown[f'dlo_retries_scheduled_total{{{flow},tier="100ms"}}'] == 200
    assert grown[f'dlo_letters_buried_total{{{flow},reason="spent"}}'] == 200
    assert grown[f'dlo_letters_received_total{{{flow},reason="rejected"}}'] == 400
    assert grown[f"dlo_letters_returned_total{{{flow}}}"] == 200
    assert grown[f"dlo_lateness_seconds_count{{{flow}}}"] == 200
    assert after["dlo_broker_up"] == after["dlo_ledger_up"] == 1
