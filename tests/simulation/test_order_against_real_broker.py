"""One queue, taken from and given back to at random: the same order, flags and counts as RabbitMQ's."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from uuid import uuid4

import aio_pika
import pytest
from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractIncomingMessage
from faststream.rabbit import QueueType
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from service.simulation.broker import SimulatedBroker
from service.simulation.flavour import flavour_of
from service.simulation.letter import Delivery
from service.topology.tables import DEFAULT, Arguments, Topology, dead_letters_to, durable_queue
from tests.simulation.cases import Fate
from tests.simulation.on_rabbit import came_true, server_version, standing

EXAMPLES = int(os.environ.get("DLO_TEST_EXAMPLES", "40"))
PUBLISH, GET = "publish", "get"
# A step: send a letter, take one, or settle the n-th of those taken.
Step = str | tuple[int, Fate]
FATES = st.sampled_from([fate for fate in Fate if fate is not Fate.KEEP])
STEPS = st.lists(
    st.one_of(st.just(PUBLISH), st.just(GET), st.just(GET), st.tuples(st.integers(0, 3), FATES)),
    min_size=4,
    max_size=16,
)


@dataclass(slots=True)
class Twins:
    """A simulated queue and a real one, in step."""

    simulation: SimulatedBroker
    channel: AbstractChannel
    taken: list[tuple[Delivery, AbstractIncomingMessage]] = field(default_factory=list)
    sent: int = 0

    async def do(self, step: Step) -> None:
        """The same on both; then wait until the real one has done it."""
        match step:
            case (number, fate) if self.taken:
                await self._settle(*self.taken.pop(int(number) % len(self.taken)), Fate(fate))
            case str() if step == PUBLISH:
                await self._publish()
            case str() if step == GET:
                await self._get()
            case _:
                return
        assert await came_true(self._stand_alike)

    async def _publish(self) -> None:
        self.sent += 1
        body = str(self.sent).encode()
        self.simulation.publish("", self._work, body)
        await self.channel.default_exchange.publish(aio_pika.Message(body), self._work)

    async def _get(self) -> None:
        delivery = self.simulation.get(self._work)
        queue = await self.channel.get_queue(self._work, ensure=False)
        message = await queue.get(fail=False)
        assert (delivery is None) == (message is None)
        if delivery is not None and message is not None:
            assert _seen(delivery) == _seen(message)
            self.taken.append((delivery, message))

    async def _settle(
        self, delivery: Delivery, message: AbstractIncomingMessage, fate: Fate
    ) -> None:
        requeue = fate in (Fate.REJECT_BACK, Fate.NACK_BACK)
        match fate:
            case Fate.ACK:
                self.simulation.ack(delivery)
                await message.ack()
            case Fate.REJECT | Fate.REJECT_BACK:
                self.simulation.reject(delivery, requeue=requeue)
                await message.reject(requeue=requeue)
            case Fate.NACK | Fate.NACK_BACK | Fate.KEEP:
                self.simulation.nack(delivery, requeue=requeue)
                await message.nack(requeue=requeue)

    async def _stand_alike(self) -> bool:
        for queue in self.simulation.topology.queues:
            declared = await self.channel.declare_queue(queue.name, passive=True)
            if declared.declaration_result.message_count != len(
                self.simulation.letters(queue.name)
            ):
                return False
        return True

    @property
    def _work(self) -> str:
        return self.simulation.topology.queues[0].name


def _seen(delivery: Delivery | AbstractIncomingMessage) -> tuple[object, ...]:
    counts = {name: value for name, value in delivery.headers.items() if name.endswith("-count")}
    return delivery.body, delivery.redelivered, counts


@pytest.mark.parametrize("kind", [QueueType.CLASSIC, QueueType.QUORUM])
def test_letters_come_back_in_the_same_order(
    runner: asyncio.Runner, connection: AbstractConnection, kind: QueueType
) -> None:
    flavour = flavour_of(server_version(connection))

    async def keep_step(steps: list[Step], limit: int | None) -> None:
        name = f"order{uuid4().hex[:10]}"
        dead = durable_queue(f"{name}-dead", kind=kind)
        limited: Arguments = (
            {} if limit is None or kind is QueueType.CLASSIC else {"x-delivery-limit": limit}
        )
        work = durable_queue(name, dead_letters_to(DEFAULT, dead.name) | limited, kind)
        topology = Topology(queues=(work, dead))
        async with standing(connection, topology) as channel:
            twins = Twins(SimulatedBroker(topology, flavour), channel)
            for step in [PUBLISH, PUBLISH, GET, *steps, GET, GET, GET, GET]:
                await twins.do(step)

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(STEPS, st.sampled_from([None, None, 0, 1, 2, -1]))
    def in_step(steps: list[Step], limit: int | None) -> None:
        runner.run(keep_step(steps, limit))

    in_step()
