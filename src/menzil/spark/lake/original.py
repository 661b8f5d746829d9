"""A copy of a database knows the lake of its original, and must leave it alone until it is adopted.

What a copy commits there, the catalog of the original does not have: the original is then refused, and what ended in
the copy lies among its messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from menzil.ops import feed, upkeep
from menzil.ops.run import run
from menzil.spark.lake.errors import LakeForeignError
from menzil.spark.lake.schema import MESSAGES

if TYPE_CHECKING:
    from menzil.spark.lake.table import Lake


def must_not_be_a_copy(conn: psycopg.Connection[Any], lake: Lake) -> None:
    """Refuse a copy where the last export was that of another database. Driver."""
    source = lake.memory(MESSAGES).source
    if source is None or source.rpartition("/")[0] == run(conn, feed.server()):
        return
    if run(conn, upkeep.copy_notice()) is not None:
        raise LakeForeignError(
            "This database is a copy, and the lake belongs to its original.",
            hint="export to another --lake; if this database takes over from the original, run `menzil adopt` first",
        )
