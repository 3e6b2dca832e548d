"""Sessions of the owner's browsers: hashes of their two halves, when they began
and when they end.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision: str | None = "0001"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "owner_sessions",
        sa.Column("id", sa.Text(), primary_key=True),
        sa.Column("secret_hash", sa.LargeBinary(), nullable=False),
        sa.Column("cookie_hash", sa.LargeBinary(), nullable=False),
        sa.Column("browser", sa.Text(), nullable=False),
        sa.Column("begun_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_ns", sa.BigInteger(), nullable=False),
        sa.Column("ended_ns", sa.BigInteger()),
    )
