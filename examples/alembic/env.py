"""How Alembic connects. The two lines about menzil keep autogenerate away from its schema."""

import os
import sys
from pathlib import Path

from alembic import context
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, pool

import menzil.contrib.alembic as menzil_alembic

sys.path.insert(0, str(Path(__file__).parent))
from models import Base

about_tables = {
    "target_metadata": Base.metadata,
    "include_schemas": True,
    "include_name": menzil_alembic.include_name,
    "include_object": menzil_alembic.include_object,
}

if context.is_offline_mode():
    context.configure(dialect_name="postgresql", **about_tables)
    with context.begin_transaction():
        context.run_migrations()
else:
    connecting = conninfo_to_dict(os.environ["MENZIL_DSN"])
    engine = create_engine("postgresql+psycopg://", connect_args=connecting, poolclass=pool.NullPool)
    with engine.connect() as connection:
        context.configure(connection=connection, **about_tables)
        with context.begin_transaction():
            context.run_migrations()
