"""Install menzil. After an upgrade of menzil, a later revision calls upgrade(op) again."""

from alembic import op

import menzil.contrib.alembic as menzil_alembic

revision = "0001"
down_revision = None


def upgrade():
    menzil_alembic.upgrade(op, schema=14)
    op.execute("select menzil.channel_set('billing')")


def downgrade():
    menzil_alembic.downgrade(op)
