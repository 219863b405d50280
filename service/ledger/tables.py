"""The tables of the ledger, as `migrations/` makes them."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from service.ledger.moment import Moment

# Names by rule, so that a migration can find what an earlier one made.
METADATA = MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "uq": "uq_%(table_name)s_%(column_0_name)s"}
)

# SQLite numbers rows by itself only where the column is an INTEGER, which has 64 bits there.
NUMBER = BigInteger().with_variant(Integer, "sqlite")
MOMENT = Moment()
ANYTHING = JSON().with_variant(JSONB, "postgresql")


def _some(name: str, *columns: str, where: str) -> Index:
    """An index of some rows: the others cost nothing."""
    return Index(name, *columns, postgresql_where=text(where), sqlite_where=text(where))


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
    Column("created_at", MOMENT, nullable=False),
    Column("processed_at", MOMENT, nullable=True),
    Column("settled_at", MOMENT, nullable=True),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("bank_reference", String(255), nullable=True),
    Column("dead_at", MOMENT, nullable=True),
    Column("dead_reason", Text, nullable=True),
)

OUTBOX = Table(
    "outbox",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("letter", String(80), nullable=False, unique=True),
    Column("exchange", String(255), nullable=False),
    Column("routing_key", String(255), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("claimed_until", MOMENT, nullable=True),
    Column("sent_at", MOMENT, nullable=True),
    Index("ix_outbox_sent_at", "sent_at"),
)

# One row a letter. The truth is body + headers + properties, as bytes; every other column is read out
# of them for searching, and can be rebuilt.
LETTERS = Table(
    "letters",
    METADATA,
    Column("number", NUMBER, primary_key=True),  # the order of arrival: what pages are cut by
    Column("id", String(32), nullable=False, unique=True),  # what people and URLs call it
    Column("letter", Text, nullable=False),  # the sender's message id, or the one we stamped
    Column("state", String(10), nullable=False),
    Column("flow", String(20), nullable=False),
    Column("queue", Text, nullable=False),  # the dead queue it was taken from
    Column("origin_queue", Text, nullable=False),  # where it died; "" where nobody knows
    Column("exchange", Text, nullable=False),
    Column("routing_key", Text, nullable=False),
    Column("cause", String(16), nullable=False),
    Column("error_type", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("place", Text, nullable=False),  # the innermost frame of the application
    Column("reason", Text, nullable=False),  # why it was given up, as a sentence
    Column("retries", Integer, nullable=False),
    Column("burials", Integer, nullable=False, server_default=text("1")),
    Column("replays", Integer, nullable=False, server_default=text("0")),
    Column("digest", LargeBinary, nullable=False),  # of the newest burial: the same again is a copy
    Column("body", LargeBinary, nullable=False),
    Column("headers", LargeBinary, nullable=False),
    Column("properties", LargeBinary, nullable=False),
    Column("facts", ANYTHING, nullable=False),  # headers and properties, cleaned for search
    Column("size", Integer, nullable=False),
    Column("content_type", Text, nullable=False),
    Column("first_failure", MOMENT, nullable=False),
    Column("filed_at", MOMENT, nullable=False),
    Column("buried_at", MOMENT, nullable=False),
    Column("changed_at", MOMENT, nullable=False),
    Column("replay", String(16), nullable=True),  # the job that holds it, or held it last
    Column("edited_from", NUMBER, nullable=True),
    Index("ix_letters_state", "state", "number"),
    Index("ix_letters_cause", "cause", "state", "number"),
    Index("ix_letters_origin_queue", "origin_queue", "number"),
    Index("ix_letters_routing_key", "routing_key", "number"),
    Index("ix_letters_flow", "flow", "number"),
    Index("ix_letters_letter", "letter"),
    _some("ix_letters_edited_from", "edited_from", where="edited_from IS NOT NULL"),
    # What the sweeper looks for; a letter that needs somebody is not in it, and costs nothing here.
    _some("ix_letters_done", "changed_at", where="state IN ('handled', 'quiet', 'discarded')"),
    sqlite_autoincrement=True,  # the number of a letter that was forgotten is never given again
)

# The burials before the newest one, which is in the letter's own row: most letters have one burial.
BURIALS = Table(
    "burials",
    METADATA,
    Column("letter", NUMBER, primary_key=True, autoincrement=False),
    Column("burial", Integer, primary_key=True, autoincrement=False),
    Column("digest", LargeBinary, nullable=False),
    Column("buried_at", MOMENT, nullable=False),
    Column("cause", String(16), nullable=False),
    Column("reason", Text, nullable=False),
    Column("error_type", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("retries", Integer, nullable=False),
    Column("replay", String(16), nullable=True),
)

CAUSES = Table(
    "causes",
    METADATA,
    Column("id", String(16), primary_key=True),
    Column("version", Integer, nullable=False),  # of the fingerprint: regrouping is never silent
    Column("title", Text, nullable=False),
    Column("error_type", Text, nullable=False),
    Column("place", Text, nullable=False),
    Column("state", String(12), nullable=False),
    Column("muted_until", MOMENT, nullable=True),
    Column("note", Text, nullable=False, server_default=text("''")),
    Column("owner", Text, nullable=False, server_default=text("''")),
    Column("first_seen", MOMENT, nullable=False),
    Column("last_seen", MOMENT, nullable=False),
    Column("changed_at", MOMENT, nullable=False),  # new, regressed, acknowledged …
    Column("burials", NUMBER, nullable=False, server_default=text("0")),
    Column("alerted_at", MOMENT, nullable=True),
    Column("alert_until", MOMENT, nullable=True),  # somebody is telling people of it, until then
    Index("ix_causes_changed_at", "changed_at", "id"),
    Index("ix_causes_last_seen", "last_seen", "id"),
    # What the watch asks for every other second, however many causes there are.
    _some("ix_causes_muted_until", "muted_until", where="muted_until IS NOT NULL"),
    _some("ix_causes_alerted_at", "alerted_at", where="alerted_at IS NOT NULL"),
    _some(
        "ix_causes_untold",
        "changed_at",
        "id",
        where="alerted_at IS NULL OR alerted_at < changed_at",
    ),
)

CAUSE_HOURS = Table(
    "cause_hours",
    METADATA,
    Column("cause", String(16), primary_key=True),
    Column("hour", MOMENT, primary_key=True),
    Column("burials", Integer, nullable=False),
    Index("ix_cause_hours_hour", "hour"),
)

# How many letters there are, kept true by triggers on `letters`: counting a million rows takes too long.
LETTER_COUNTS = Table(
    "letter_counts",
    METADATA,
    Column("cause", String(16), primary_key=True),
    Column("flow", String(20), primary_key=True),
    Column("state", String(10), primary_key=True),
    Column("letters", NUMBER, nullable=False),
)

REPLAYS = Table(
    "replays",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("id", String(16), nullable=False, unique=True),
    Column("state", String(10), nullable=False),
    Column("says", Text, nullable=False, server_default=text("''")),  # why it is in this state
    Column("wanted", String(10), nullable=False),  # what the operator wants: run, pause, stop
    Column("who", Text, nullable=False),
    Column("why", Text, nullable=False, server_default=text("''")),
    Column("selection", ANYTHING, nullable=False),  # the filter, as it was asked for
    Column("target", Text, nullable=False, server_default=text("''")),  # "" is where each died
    Column("attempts", String(10), nullable=False),
    Column("rate", Float, nullable=False),
    Column("canary", Integer, nullable=False),
    Column("stop_percent", Float, nullable=False),
    Column("watch_seconds", Float, nullable=False),
    Column("total", Integer, nullable=False),
    Column("idempotency_key", Text, nullable=True, unique=True),
    Column("request_digest", LargeBinary, nullable=False),
    Column("created_at", MOMENT, nullable=False),
    Column("started_at", MOMENT, nullable=True),
    Column("ramped_at", MOMENT, nullable=True),  # the canary has passed
    Column("ended_at", MOMENT, nullable=True),
    Column("runner", Text, nullable=True),
    Column("runner_until", MOMENT, nullable=True),
    Index("ix_replays_state", "state", "number"),
    Index("ix_replays_ended_at", "ended_at"),  # what is still to be run
)

REPLAY_ITEMS = Table(
    "replay_items",
    METADATA,
    Column("replay", String(16), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("letter", NUMBER, nullable=False),
    Column("queue", Text, nullable=False),  # whereto
    Column("state", String(10), nullable=False),
    Column("says", Text, nullable=False, server_default=text("''")),
    Column("sent_at", MOMENT, nullable=True),
    Column("ended_at", MOMENT, nullable=True),
    UniqueConstraint("replay", "letter", name="uq_replay_items_replay"),
    Index("ix_replay_items_state", "replay", "state", "position"),
    Index("ix_replay_items_letter", "letter"),
)

# One running replay per target queue: whoever has the row may send there.
REPLAY_TARGETS = Table(
    "replay_targets",
    METADATA,
    Column("queue", Text, primary_key=True),
    Column("replay", String(16), nullable=False),
)

ADOPTED = Table(
    "adopted_queues",
    METADATA,
    Column("queue", String(255), primary_key=True),
    Column("who", Text, nullable=False),
    Column("adopted_at", MOMENT, nullable=False),
)

# Append-only: triggers refuse to change or delete a row.
AUDIT = Table(
    "audit",
    METADATA,
    Column("number", NUMBER, primary_key=True),
    Column("at", MOMENT, nullable=False),
    Column("who", Text, nullable=False),
    Column("action", String(40), nullable=False),
    Column("subject", Text, nullable=False),
    Column("how_many", Integer, nullable=False),
    Column("why", Text, nullable=False),
    Column("details", ANYTHING, nullable=False),
    Index("ix_audit_subject", "subject", "number"),
)
