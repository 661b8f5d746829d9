"""Readers of the lake that share no code with Spark or with each other's, and one table with odd values."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.table import Table

from menzil.spark.lake.catalog import EVENTS, MESSAGES, NAMESPACE, location
from menzil.spark.lake.hint import write_hint

TRY = pa.struct(
    [("attempt", pa.int64()), ("outcome", pa.string()), ("error", pa.string()), ("duration_ms", pa.float64())]
)
COLUMNS = pa.schema([
    ("id", pa.int64()), ("channel", pa.string()), ("payload", pa.string()), ("content", pa.binary()),
    ("priority", pa.int32()), ("created_at", pa.timestamp("us", "UTC")), ("expires_at", pa.timestamp("us", "UTC")),
    ("attempts", pa.list_(TRY)),
])  # fmt: skip

FIRST = {"attempt": 1, "outcome": "failed", "error": "", "duration_ms": -0.0}
LAST = {"attempt": 2**31, "outcome": "completed", "error": None, "duration_ms": 1e300}
#: No list is NULL: pyiceberg 0.12 makes an empty one of it, whether it writes or reads.
ROWS: list[dict[str, Any]] = [
    {"id": 1, "channel": "plain", "payload": '{"n": 1}', "content": None, "priority": 0, "attempts": [FIRST, LAST]},
    {
        "id": 2**63 - 1,
        "channel": "ünï/cødé=\U0001f40d",
        "payload": "\U0001f600\u202e%",
        "content": b"\x00\xff",
        "attempts": [],
    },
    {"id": 3, "channel": "", "payload": "", "content": b"", "priority": -(2**31), "attempts": []},
    {"id": 4, "channel": "a b", "payload": None, "content": None, "priority": 2**31 - 1, "attempts": [None, FIRST]},
]
TIMES = (datetime(1970, 1, 1, tzinfo=UTC), datetime(2026, 3, 31, 23, 59, 59, 999999, tzinfo=UTC))


def make_tables(catalog: Catalog, lake: str) -> Table:
    """Both tables; the messages have the odd rows."""
    rows = [row | {"created_at": TIMES[n % 2], "expires_at": TIMES[1] if n else None} for n, row in enumerate(ROWS)]
    catalog.create_table((NAMESPACE, EVENTS), COLUMNS, location=location(lake, EVENTS))
    table = catalog.create_table((NAMESPACE, MESSAGES), COLUMNS, location=location(lake, MESSAGES))
    table.append(pa.Table.from_pylist(rows, schema=COLUMNS))
    write_hint(table)
    return table


def duck() -> duckdb.DuckDBPyConnection:
    """DuckDB with the extensions that came as wheels: nothing is fetched, and nothing written to the home directory."""
    conn = duckdb.connect(config={"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"})
    conn.execute("set timezone = 'UTC'")
    for name in ("httpfs", "avro", "iceberg"):
        module = importlib.import_module(f"duckdb_extension_{name}")
        found = Path(str(module.__file__)).parent / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        conn.execute(f"load '{found}'")
    return conn
