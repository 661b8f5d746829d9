"""SQLAlchemy: the views of menzil as Core tables, and messages that are sent when objects are flushed.

`conn=session` needs nothing of this: every call of the client takes sessions and connections of SQLAlchemy.
"""

from menzil.contrib.sqlalchemy import tables
from menzil.contrib.sqlalchemy.outbox import Outbox, outbox

__all__ = ["Outbox", "outbox", "tables"]
