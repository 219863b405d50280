"""The payment story: transactions, and the outbox of the letters that tell of them."""

import sqlalchemy as sa
from alembic import op

revision: str = "0002"
down_revision: str | None = "0001"


def upgrade() -> None:
    """Make both tables."""
    moment = sa.DateTime(timezone=True)
    op.create_table(
        "transactions",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("status", sa.String(10), nullable=False),
        sa.Column("account", sa.String(64), nullable=False),
        sa.Column("amount", sa.String(24), nullable=False),
        sa.Column("currency", sa.String(3), nullable=False),
        sa.Column("reference", sa.String(140), nullable=False),
        sa.Column("idempotency_key", sa.String(255), nullable=True),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("processed_at", moment, nullable=True),
        sa.Column("settled_at", moment, nullable=True),
        sa.Column("attempts", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.Column("bank_reference", sa.String(255), nullable=True),
        sa.Column("dead_at", moment, nullable=True),
        sa.Column("dead_reason", sa.Text, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_transactions"),
        sa.UniqueConstraint("idempotency_key", name="uq_transactions_idempotency_key"),
    )
    op.create_table(
        "outbox",
        sa.Column(
            "number",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("letter", sa.String(80), nullable=False),
        sa.Column("exchange", sa.String(255), nullable=False),
        sa.Column("routing_key", sa.String(255), nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("created_at", moment, nullable=False),
        sa.Column("claimed_until", moment, nullable=True),
        sa.Column("sent_at", moment, nullable=True),
        sa.PrimaryKeyConstraint("number", name="pk_outbox"),
        sa.UniqueConstraint("letter", name="uq_outbox_letter"),
    )
    op.create_index("ix_outbox_sent_at", "outbox", ["sent_at"])


def downgrade() -> None:
    """Drop both."""
    op.drop_index("ix_outbox_sent_at", "outbox")
    op.drop_table("outbox")
    op.drop_table("transactions")
