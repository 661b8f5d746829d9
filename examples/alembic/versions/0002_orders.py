"""The tables of the shop, in the same transaction as the revision before."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade():
    op.create_table(
        "alembic_order",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("customer", sa.String, nullable=False),
    )


def downgrade():
    op.drop_table("alembic_order")
