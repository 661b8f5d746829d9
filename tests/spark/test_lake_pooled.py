"""An export behind a PgBouncer in transaction mode: its lock is its own, and is gone when it ends. Without Spark."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from menzil.ops.lake import archive_months
from menzil.ops.run import run
from menzil.spark.jobs.export import _alone as exporting
from menzil.spark.lake import LakeBusyError
from menzil.spark.lake.place import address
from tests.acceptance.pooler import PGBOUNCER, pooler

exports, sweeping = import_module("menzil.spark.jobs.export"), import_module("menzil.spark.lake.sweep")


@pytest.mark.skipif(PGBOUNCER is None, reason="no pgbouncer")
def test_behind_a_pooler_one_export_has_the_lake_and_leaves_it(
    db: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PATIENCE", 0.0)
    monkeypatch.setattr(sweeping, "PATIENCE", 0.0)
    root = address(tmp_path)
    with pooler(db) as through:
        for _ in range(4):  # more exports than the pooler has sessions, each of which it hands out in turn
            with exporting(through, root) as conn:
                for _ in range(10):  # and more questions than psycopg asks without preparing them
                    assert run(conn, archive_months())
                for other in (through, db):
                    assert not sweeping._is_free(other, root)
                    with pytest.raises(LakeBusyError), exporting(other, root):
                        pass
            monkeypatch.setattr(sweeping, "PATIENCE", 5.0)  # the end of the other connection may take a moment
            assert sweeping._is_free(db, root)
            monkeypatch.setattr(sweeping, "PATIENCE", 0.0)
