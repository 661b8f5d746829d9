"""Looks at the readers of the change feed. Nothing is changed."""

from __future__ import annotations

from menzil.ops import values
from menzil.ops.op import Op
from menzil.ops.records import Record, records

_CONSUMERS = """
select c.name, c.feed, c.started_at, c.advanced_at, c.behind_since
  from menzil.consumers c order by c.name limit %s::integer"""


def consumers(limit: int = 100) -> Op[list[Record]]:
    """menzil.consumers, by name; `behind_since` is None where a reader had everything."""
    columns = "name feed started_at:time advanced_at:time behind_since:time"
    return Op(_CONSUMERS, (values.integer("limit", limit),), records(columns))
