"""Alembic's way in: on the connection the service hands over, else on the database of the settings."""

import asyncio

from alembic import context
from sqlalchemy import Connection

from service.ledger.engine import open_engine
from service.ledger.tables import METADATA
from service.settings import load


def migrate(connection: Connection) -> None:
    """Run the revisions asked for, in the transaction of this connection."""
    # SQLite cannot alter a table: batch mode copies it.
    context.configure(connection=connection, target_metadata=METADATA, render_as_batch=True)
    with context.begin_transaction():
        context.run_migrations()


async def migrate_by_settings() -> None:
    """For developers: `alembic -c migrations/alembic.ini revision --autogenerate -m …`."""
    engine = open_engine(load().database.url.get_secret_value())
    async with engine.begin() as connection:
        await connection.run_sync(migrate)
    await engine.dispose()


given: Connection | None = context.config.attributes.get("connection")
if given is not None:
    migrate(given)
else:
    asyncio.run(migrate_by_settings())
