import asyncio
import os

import aio_pika

from service import KDLQ, KDLQConfig, KDLQError, Message, Status


async def handle(message: Message) -> Status:
    return Status.ERROR if message.body == b"bad" else Status.OK


async def main(url: str) -> None:
    kdlq = KDLQ(KDLQConfig(servers=url, dlq="orders.dlq"))
    consumer = kdlq.consumer(handle, source="orders")
    connection = await aio_pika.connect_robust(url)
    async with kdlq, connection:
        channel = await connection.channel()
        queue = await channel.get_queue("orders")
        while (message := await queue.get(fail=False)) is not None:
            try:
                print(
                    await consumer.accept(message), flush=True
                )  # ok, redelivered, killed, skipped
            except KDLQError as error:  # the broker did not take the copy
                await message.nack()
                raise SystemExit(str(error)) from None
            await message.ack()


if __name__ == "__main__":
    asyncio.run(main(os.environ["RABBIT_URL"]))
