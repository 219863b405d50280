"""The tables of the ledger, as `migrations/` makes them."""

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)

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

TRANSACTIONS = Table(
    "transactions",
    METADATA,
    Column("id", String(36), primary_key=True),
    Column("status", String(10), nullable=False),
    Column("account", String(64), nullable=False),
    Column("amount", String(24), nullable=False),  # decimal text: exact in every database
    Column("currency", String(3), nullable=False),
    Column("reference", String(140), nullable=False),
    Column("idempotency_key", String(255), nullable=True, unique=True),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("processed_at", DateTime(timezone=True), nullable=True),
    Column("settled_at", DateTime(timezone=True), nullable=True),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("bank_reference", String(255), nullable=True),
    Column("dead_at", DateTime(timezone=True), nullable=True),
    Column("dead_reason", Text, nullable=True),
)

OUTBOX = Table(
    "outbox",
    METADATA,
    # SQLite numbers rows by itself only where the column is an INTEGER, which has 64 bits there.
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("letter", String(80), nullable=False, unique=True),
    Column("exchange", String(255), nullable=False),
    Column("routing_key", String(255), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", DateTime(timezone=True), nullable=False),
    Column("claimed_until", DateTime(timezone=True), nullable=True),
    Column("sent_at", DateTime(timezone=True), nullable=True),
    Index("ix_outbox_sent_at", "sent_at"),
)
