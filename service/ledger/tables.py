"""The tables of the ledger, as `migrations/` makes them."""

from sqlalchemy import Column, Integer, MetaData, String, Table, Text

# Names by rule, so that a migration can find what an earlier one made.
METADATA = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "uq": "uq_%(table_name)s_%(column_0_name)s"}
)

ROUTES = Table(
    "dlq_event_config",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", String(255), nullable=True, unique=True),
    Column("max_retries", Integer, nullable=True),
    Column("delays", Text, nullable=True),
    Column("return_to", String(20), nullable=True),
)
