"""Dead letters, their causes, the replays of them, and the audit of what people did."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision: str = "0003"
down_revision: str | None = "0002"

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
MOMENT = sa.DateTime(timezone=True)
ANYTHING = sa.JSON().with_variant(JSONB, "postgresql")
TABLES = (
    *("letters", "burials", "causes", "cause_hours", "letter_counts", "replays", "replay_items"),
    *("replay_targets", "adopted_queues", "audit"),
)


def upgrade() -> None:
    """Make the tables, and the triggers that keep counts true and the audit unchanged."""
    _letters()
    _causes()
    _replays()
    _people()
    statements = (
        COUNTING_POSTGRES if op.get_bind().dialect.name == "postgresql" else COUNTING_SQLITE
    )
    for statement in statements:
        op.execute(statement)


def downgrade() -> None:
    """Drop them all; triggers go with their tables."""
    for table in reversed(TABLES):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        for function in ("letters_are_counted", "audit_is_kept"):
            op.execute(f"DROP FUNCTION IF EXISTS {function}()")


def _text(name: str, default: str | None = None) -> sa.Column[str]:
    given = None if default is None else sa.text(f"'{default}'")
    return sa.Column(name, sa.Text, nullable=False, server_default=given)


def _letters() -> None:
    op.create_table(
        "letters",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(32), nullable=False),
        _text("letter"),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("flow", sa.String(20), nullable=False),
        *map(_text, ("queue", "origin_queue", "exchange", "routing_key")),
        sa.Column("cause", sa.String(16), nullable=False),
        *map(_text, ("error_type", "error", "place", "reason")),
        sa.Column("retries", sa.Integer, nullable=False),
        sa.Column("burials", sa.Integer, nullable=False, server_default=sa.text("1")),
        sa.Column("replays", sa.Integer, nullable=False, server_default=sa.text("0")),
        *(
            sa.Column(name, sa.LargeBinary, nullable=False)
            for name in ("digest", "body", "headers", "properties")
        ),
        sa.Column("facts", ANYTHING, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        _text("content_type"),
        *(
            sa.Column(name, MOMENT, nullable=False)
            for name in ("first_failure", "filed_at", "buried_at", "changed_at")
        ),
        sa.Column("replay", sa.String(16), nullable=True),
        sa.Column("edited_from", NUMBER, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_letters"),
        sa.UniqueConstraint("id", name="uq_letters_id"),
        sqlite_autoincrement=True,  # items of replays name letters by number: none is given twice
    )
    op.create_index("ix_letters_state", "letters", ["state", "number"])
    op.create_index("ix_letters_cause", "letters", ["cause", "state", "number"])
    op.create_index("ix_letters_letter", "letters", ["letter"])
    for column in ("origin_queue", "routing_key", "flow"):
        op.create_index(f"ix_letters_{column}", "letters", [column, "number"])
    some = sa.text("edited_from IS NOT NULL")
    op.create_index(
        "ix_letters_edited_from",
        "letters",
        ["edited_from"],
        postgresql_where=some,
        sqlite_where=some,
    )
    done = sa.text("state IN ('handled', 'quiet', 'discarded')")
    op.create_index(
        "ix_letters_done", "letters", ["changed_at"], postgresql_where=done, sqlite_where=done
    )
    op.create_table(
        "burials",
        sa.Column("letter", NUMBER, autoincrement=False, nullable=False),
        sa.Column("burial", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("buried_at", MOMENT, nullable=False),
        sa.Column("cause", sa.String(16), nullable=False),
        *map(_text, ("reason", "error_type", "error")),
        sa.Column("retries", sa.Integer, nullable=False),
        sa.Column("replay", sa.String(16), nullable=True),
        sa.PrimaryKeyConstraint("letter", "burial", name="pk_burials"),
    )


def _causes() -> None:
    op.create_table(
        "causes",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        *map(_text, ("title", "error_type", "place")),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("muted_until", MOMENT, nullable=True),
        _text("note", ""),
        _text("owner", ""),
        *(
            sa.Column(name, MOMENT, nullable=False)
            for name in ("first_seen", "last_seen", "changed_at")
        ),
        sa.Column("burials", NUMBER, nullable=False, server_default=sa.text("0")),
        *(sa.Column(name, MOMENT, nullable=True) for name in ("alerted_at", "alert_until")),
        sa.PrimaryKeyConstraint("id", name="pk_causes"),
    )
    for column in ("changed_at", "last_seen"):
        op.create_index(f"ix_causes_{column}", "causes", [column, "id"])
    for name, columns, some in (
        ("muted_until", ["muted_until"], "muted_until IS NOT NULL"),
        ("alerted_at", ["alerted_at"], "alerted_at IS NOT NULL"),
        ("untold", ["changed_at", "id"], "alerted_at IS NULL OR alerted_at < changed_at"),
    ):
        where = sa.text(some)
        op.create_index(
            f"ix_causes_{name}", "causes", columns, postgresql_where=where, sqlite_where=where
        )
    op.create_table(
        "cause_hours",
        sa.Column("cause", sa.String(16), nullable=False),
        sa.Column("hour", MOMENT, nullable=False),
        sa.Column("burials", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("cause", "hour", name="pk_cause_hours"),
    )
    op.create_index("ix_cause_hours_hour", "cause_hours", ["hour"])
    op.create_table(
        "letter_counts",
        sa.Column("cause", sa.String(16), nullable=False),
        sa.Column("flow", sa.String(20), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("letters", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("cause", "flow", "state", name="pk_letter_counts"),
    )


def _replays() -> None:
    op.create_table(
        "replays",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        _text("says", ""),
        sa.Column("wanted", sa.String(10), nullable=False),
        _text("who"),
        _text("why", ""),
        sa.Column("selection", ANYTHING, nullable=False),
        _text("target", ""),
        sa.Column("attempts", sa.String(10), nullable=False),
        sa.Column("rate", sa.Float, nullable=False),
        sa.Column("canary", sa.Integer, nullable=False),
        sa.Column("stop_percent", sa.Float, nullable=False),
        sa.Column("watch_seconds", sa.Float, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("idempotency_key", sa.Text, nullable=True),
        sa.Column("request_digest", sa.LargeBinary, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        *(
            sa.Column(name, MOMENT, nullable=True)
            for name in ("started_at", "ramped_at", "ended_at")
        ),
        sa.Column("runner", sa.Text, nullable=True),
        sa.Column("runner_until", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_replays"),
        sa.UniqueConstraint("id", name="uq_replays_id"),
        sa.UniqueConstraint("idempotency_key", name="uq_replays_idempotency_key"),
    )
    op.create_index("ix_replays_state", "replays", ["state", "number"])
    op.create_index("ix_replays_ended_at", "replays", ["ended_at"])
    op.create_table(
        "replay_items",
        sa.Column("replay", sa.String(16), nullable=False),
        sa.Column("position", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("letter", NUMBER, nullable=False),
        _text("queue"),
        sa.Column("state", sa.String(10), nullable=False),
        _text("says", ""),
        *(sa.Column(name, MOMENT, nullable=True) for name in ("sent_at", "ended_at")),
        sa.PrimaryKeyConstraint("replay", "position", name="pk_replay_items"),
        sa.UniqueConstraint("replay", "letter", name="uq_replay_items_replay"),
    )
    op.create_index("ix_replay_items_state", "replay_items", ["replay", "state", "position"])
    op.create_index("ix_replay_items_letter", "replay_items", ["letter"])
    op.create_table(
        "replay_targets",
        sa.Column("queue", sa.Text, nullable=False),
        sa.Column("replay", sa.String(16), nullable=False),
        sa.PrimaryKeyConstraint("queue", name="pk_replay_targets"),
    )


def _people() -> None:
    op.create_table(
        "adopted_queues",
        sa.Column("queue", sa.String(255), nullable=False),
        _text("who"),
        sa.Column("adopted_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("queue", name="pk_adopted_queues"),
    )
    op.create_table(
        "audit",
        sa.Column("number", NUMBER, autoincrement=True, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        _text("who"),
        sa.Column("action", sa.String(40), nullable=False),
        _text("subject"),
        sa.Column("how_many", sa.Integer, nullable=False),
        _text("why"),
        sa.Column("details", ANYTHING, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_audit"),
    )
    op.create_index("ix_audit_subject", "audit", ["subject", "number"])


# A statement's letters are counted together, and in one order, so that two statements never wait for
# each other in a circle.
ADD = """
INSERT INTO letter_counts AS c (cause, flow, state, letters)
SELECT cause, flow, state, sum(n) FROM ({changed}) AS changed
GROUP BY cause, flow, state HAVING sum(n) <> 0 ORDER BY cause, flow, state
ON CONFLICT (cause, flow, state) DO UPDATE SET letters = c.letters + excluded.letters
"""
NEW = "SELECT cause, flow, state, 1 AS n FROM new_letters"
OLD = "SELECT cause, flow, state, -1 AS n FROM old_letters"
COUNTING_POSTGRES = (
    f"""
CREATE FUNCTION letters_are_counted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'INSERT' THEN {ADD.format(changed=NEW)};
  ELSIF TG_OP = 'UPDATE' THEN {ADD.format(changed=f"{NEW} UNION ALL {OLD}")};
  ELSE {ADD.format(changed=OLD)};
  END IF;
  RETURN NULL;
END $$
""",
    "CREATE TRIGGER letters_come AFTER INSERT ON letters REFERENCING NEW TABLE AS new_letters "
    "FOR EACH STATEMENT EXECUTE FUNCTION letters_are_counted()",
    "CREATE TRIGGER letters_change AFTER UPDATE ON letters "
    "REFERENCING NEW TABLE AS new_letters OLD TABLE AS old_letters "
    "FOR EACH STATEMENT EXECUTE FUNCTION letters_are_counted()",
    "CREATE TRIGGER letters_go AFTER DELETE ON letters REFERENCING OLD TABLE AS old_letters "
    "FOR EACH STATEMENT EXECUTE FUNCTION letters_are_counted()",
    """
CREATE FUNCTION audit_is_kept() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the audit is append-only'; END $$
""",
    "CREATE TRIGGER audit_stays BEFORE UPDATE OR DELETE ON audit "
    "FOR EACH ROW EXECUTE FUNCTION audit_is_kept()",
)
ONE_MORE = (
    "INSERT INTO letter_counts (cause, flow, state, letters) "
    "VALUES (new.cause, new.flow, new.state, 1) "
    "ON CONFLICT (cause, flow, state) DO UPDATE SET letters = letters + 1;"
)
ONE_LESS = (
    "UPDATE letter_counts SET letters = letters - 1 "
    "WHERE cause = old.cause AND flow = old.flow AND state = old.state;"
)
COUNTING_SQLITE = (
    f"CREATE TRIGGER letters_come AFTER INSERT ON letters BEGIN {ONE_MORE} END",
    "CREATE TRIGGER letters_change AFTER UPDATE OF cause, flow, state ON letters "
    f"BEGIN {ONE_LESS} {ONE_MORE} END",
    f"CREATE TRIGGER letters_go AFTER DELETE ON letters BEGIN {ONE_LESS} END",
    *(
        f"CREATE TRIGGER audit_{verb} BEFORE {verb.upper()} ON audit "
        "BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END"
        for verb in ("update", "delete")
    ),
)
