"""An upgrade as a revision file of Alembic, with its SQL inside, so that a reviewer reads what the database will run.

The revision needs menzil.contrib.alembic where it runs, and the same SQL runs there with every release of menzil.
"""

from __future__ import annotations

import hashlib
import re

from menzil.install import books
from menzil.install.script import script
from menzil.install.tree import load
from menzil.model.errors import UsageError

FILE = '''\
"""Upgrade menzil to schema {schema}, release {release}.

Printed by `menzil sql upgrade --alembic`. It skips what the database already has, so it also installs menzil.
"""

from alembic import op

import menzil.contrib.alembic as menzil_alembic

revision = "{revision}"
{down}
branch_labels = None
depends_on = None


def upgrade():
    menzil_alembic.execute(op, SQL)


def downgrade():
    menzil_alembic.downgrade(op)


# fmt: off
SQL = r"""
{body}
"""  # noqa: E501
'''

FIRST = "down_revision = None  # the first revision of the project; otherwise write what `alembic heads` prints"


def revision(*, start: int | None = None, revises: str | None = None) -> str:
    """Return the text of a revision that follows the revision `revises`; the same release prints the same text."""
    if revises is not None and not re.fullmatch(r"[\w.]{1,32}", revises):
        sentence = f"{revises!r} is not the id of a revision: letters, digits, dots and underscores, at most 32."
        raise UsageError(sentence, hint="`alembic heads` prints the id of the last revision")
    body = script("upgrade", start=start, transaction=False).rstrip()
    assert '"""' not in body, "the SQL has the quotes of a Python text"
    return FILE.format(
        schema=load().version,
        release=books.package_version(),
        # The id follows from the text, so a revision that is printed again after another release has another id.
        revision=hashlib.sha256(f"{revises}\n{body}".encode()).hexdigest()[:12],
        down=FIRST if revises is None else f'down_revision = "{revises}"',
        body=body,
    )
