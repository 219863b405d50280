"""`kill -9` in the middle of a settlement, again and again: each is made once, or lies once in the dead
letters; none is lost, none is made twice, none dies untried."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.flows.settlement.nursery import CHILD, child_of
from tests.flows.settlement.teller import Asked, open_teller
from tests.flows.settlement.till import DEAD, WORKER, Till
from tests.kit.broker import channel_to, clean, depth, drain
from tests.kit.process import Service, environment, running
from tests.servers.waiting import eventually

# A long night: DLO_TEST_KILLS=150.
KILLS = int(os.environ.get("DLO_TEST_KILLS") or 20)
PAYMENTS = KILLS + 4
NURSERY = (sys.executable, "-m", "tests.flows.settlement.nursery")


@dataclass
class Killer:
    """A bank that takes its time, in which its customer may die."""

    child: Path
    chance: random.Random
    kills: int = 0
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, _asked: Asked) -> int:
        """Settle, or be asked by a dead man."""
        await self.begun.wait()
        if self.kills < KILLS and self.chance.random() < 0.7:
            self.kills += 1
            os.kill(child_of(self.child), signal.SIGKILL)
            await asyncio.sleep(0.1)
            raise ConnectionError("nobody is there to hear it")
        await asyncio.sleep(0.02)
        return 200


async def test_a_worker_killed_in_mid_settlement(
    rabbit_url: str, sqlite_url: str, tmp_path: Path
) -> None:
    await clean(rabbit_url)
    seed = int(os.environ.get("DLO_TEST_SEED") or random.randrange(10**6))
    child = tmp_path / "child"
    killer = Killer(child, random.Random(seed))
    async with open_teller(killer.answer) as teller:
        settings = {
            "DLO_FLOWS": '["settlement"]',
            "DLO_RABBIT__PUBLISH_TIMEOUT": "1s",
            "DLO_SETTLEMENT__BANK__URL": teller.url(),
            CHILD: str(child),
        }
        given = environment(rabbit_url, sqlite_url, **settings)
        service = Service(given, tmp_path, NURSERY)
        async with running(service), channel_to(rabbit_url) as channel:
            till = Till(service)
            for _ in range(PAYMENTS):
                await till.pay()
            killer.begun.set()

            async def all_ended() -> bool:
                waiting = await depth(channel, WORKER)
                return waiting == 0 and len(set(teller.paid())) + await depth(channel, DEAD) >= (
                    PAYMENTS
                )

            await eventually(all_ended, within=40 + 2 * KILLS, pause=0.1)
            await eventually(lambda: ended(till), within=20)
            buried = await drain(channel, DEAD)
            dead = Counter(json.loads(letter.body)["transaction_id"] for letter in buried)
            rows = {id_: till.look(id_) for id_ in till.made}
            settled = {id_ for id_, row in rows.items() if row["status"] == "settled"}
            print(f"seed {seed}: {killer.kills} kills, {len(settled)} settled, {len(dead)} dead")
            assert killer.kills == KILLS
            assert settled | set(dead) == set(till.made)
            assert not settled & set(dead)
            assert set(dead.values()) <= {1}
            assert Counter(teller.paid()) == Counter(settled)
            assert {rows[id_]["attempts"] for id_ in dead} <= {4}
            assert teller.together == 1
            assert await depth(channel, "dlq.transaction.created") == 0
    assert "Traceback" not in service.said()


def ended(till: Till) -> bool:
    """Every transaction is settled, or its row says why not."""
    rows = [till.look(id_) for id_ in till.made]
    return all(row["status"] == "settled" or row["dead_reason"] for row in rows)
