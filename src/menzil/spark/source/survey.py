"""What the driver asks PostgreSQL before it divides a read. Runs on the driver, in the planner's process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from menzil.model.errors import MenzilError, translate
from menzil.ops.dsn import cannot_reach
from menzil.spark.source import partitions
from menzil.spark.source.filters import quoted
from menzil.spark.source.partitions import Month, Piece
from menzil.spark.source.relations import Relation

_MONTHS = """
select l.partition::bigint, c.relname, l.month, l.month + interval '1 month', l.blocks, l.first_id, l.last_id,
       l.ended_together
  from menzil.archive_layout() l join pg_class c on c.oid = l.partition order by l.month
"""


class Survey:
    """One connection in one read-only transaction."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def __enter__(self) -> Survey:
        self._conn = connect(self._dsn, "menzil spark plan")
        with explained():
            self._conn.execute("begin isolation level repeatable read, read only")
        return self

    def __exit__(self, *_: object) -> None:
        self._conn.close()

    def snapshot(self) -> str | None:
        """What is committed now, as text. The archive only grows, so this picks the same rows at any later time.

        None when rows came from another server, in a dump: their transaction ids mean nothing here.
        """
        text, foreign = self._one(
            "select pg_current_snapshot()::text, coalesce((select e.ended_xid from menzil._ends e "
            "order by e.ended_xid desc limit 1) >= pg_snapshot_xmax(pg_current_snapshot()), false)"
        )
        return None if foreign else str(text)

    def archive(self, conditions: Sequence[str], wanted: int | None) -> list[Piece]:
        """Pieces of those months that the planner would read."""
        asked = self._plan("menzil.archive", conditions)
        few = bool(conditions) and asked["Plan Rows"] * 10 < self._plan("menzil.archive", [])["Plan Rows"]
        return list(partitions.of_months(self._months(asked), wanted, few))

    def ended(self, conditions: Sequence[str], first: int, snapshot: str | None) -> list[Piece]:
        """Pieces of what ended from a transaction id on: every so many rows of the index one cut."""
        found: list[Piece] = []
        # What a snapshot sees has ids below its xmax.
        last = None if snapshot is None else str(self._one(f"select pg_snapshot_xmax({quoted(snapshot)})::text")[0])
        for month in self._months(self._plan("menzil.archive", conditions)):
            with explained():
                cuts = self._conn.execute(partitions.cuts(month, first, last, partitions.ROWS).encode()).fetchall()
            found += partitions.of_ends(month, first, last, cuts)
        return found

    def _months(self, plan: dict[str, Any]) -> list[Month]:
        read = {node["Relation Name"] for node in _nodes(plan) if "Relation Name" in node}
        return [month for month in months(self._conn) if month.name in read]

    def other(self, relation: Relation, conditions: Sequence[str], wanted: int | None) -> list[Piece]:
        """Pieces by key; one piece when there is no key or not much to read."""
        whole = [Piece(f"menzil.{relation.name}", None)]
        plan = self._plan(f"menzil.{relation.name}", conditions)
        count = wanted or partitions.count_for(plan["Plan Rows"])
        if relation.key is None or count == 1:
            return whole
        ends = [self._end(relation, relation.key, order) for order in ("asc", "desc")]
        if None in ends:
            return whole
        low, high = (int(end) for end in ends if end is not None)
        # The planner's guess of what a view unfolds may be far too high; the keys say how much there can be.
        count = wanted or min(count, partitions.count_for(high - low + 1))
        return list(partitions.of_key(relation.name, relation.key, low, high, count))

    def _end(self, relation: Relation, key: str, order: str) -> int | None:
        with explained():
            row = self._conn.execute(
                f'select "{key}" from menzil.{relation.name} order by "{key}" {order} limit 1'.encode()
            ).fetchone()
        return None if row is None else int(row[0])

    def _plan(self, source: str, conditions: Sequence[str]) -> dict[str, Any]:
        query = partitions.select("1", Piece(source, None), conditions)
        plan: dict[str, Any] = self._one(f"explain (format json) {query}")[0][0]["Plan"]
        return plan

    def _one(self, query: str) -> tuple[Any, ...]:
        with explained():
            row: tuple[Any, ...] | None = self._conn.execute(query.encode()).fetchone()
        assert row is not None
        return row


def connect(dsn: str, name: str) -> psycopg.Connection[Any]:
    """Open a connection, or say which answer chose a database that cannot be reached."""
    try:
        return psycopg.connect(dsn, application_name=name, autocommit=True, prepare_threshold=None)
    except psycopg.OperationalError as error:
        raise cannot_reach(error, dsn) from None


def months(conn: psycopg.Connection[Any]) -> list[Month]:
    """The months of the archive that hold messages."""
    conn.execute("set timezone = 'UTC'")  # months are those of UTC
    with explained():
        return [Month(*row) for row in conn.execute(_MONTHS).fetchall()]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from _nodes(child)


class explained:  # noqa: N801 - reads as a word of the language: `with explained():`
    """Errors of the database as errors of ours, where they are ours to explain."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: object) -> None:
        if isinstance(error, psycopg.Error):
            ours: MenzilError | None = translate(error)
            if ours is not None:
                raise ours from error
