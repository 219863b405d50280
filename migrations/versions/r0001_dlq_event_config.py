"""The routes: `dlq_event_config`, and on PostgreSQL a word to whoever listens when it changes."""

import sqlalchemy as sa
from alembic import op

revision: str = "0001"
down_revision: str | None = None

# A statement, not a row: a bulk insert is one word, and TRUNCATE has no rows.
FUNCTION = """
CREATE FUNCTION dlq_event_config_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('dlq_event_config', TG_OP);
    RETURN NULL;
END $$
"""
TRIGGER = """
CREATE TRIGGER dlq_event_config_changed
AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON dlq_event_config
FOR EACH STATEMENT EXECUTE FUNCTION dlq_event_config_changed()
"""


def upgrade() -> None:
    """Make the table; `INSERT INTO dlq_event_config (name, max_retries) …` is all a route needs."""
    op.create_table(
        "dlq_event_config",
        sa.Column("id", sa.Integer, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(255), nullable=True),
        sa.Column("max_retries", sa.Integer, nullable=True),
        sa.Column("delays", sa.Text, nullable=True),
        sa.Column("return_to", sa.String(20), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_dlq_event_config"),
        sa.UniqueConstraint("name", name="uq_dlq_event_config_name"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.execute(FUNCTION)
        op.execute(TRIGGER)


def downgrade() -> None:
    """Drop the table and what hangs on it."""
    op.drop_table("dlq_event_config")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION dlq_event_config_changed()")
