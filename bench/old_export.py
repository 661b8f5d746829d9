"""The export of 0.1.0, in a process of its own that imports that version: fills its archive, then exports when told.

Arguments: connection string, messages. Reads a line for each export, writes a line when one is done.
"""

from __future__ import annotations

import sys
import tempfile

import psycopg

MONTH = "2025-03"


def main() -> None:
    # Both of 0.1.0: this file is run with that tree as the current directory.
    sys.path[0] = "."
    from bench.sections.spark_export import _FILL, _TRIES  # type: ignore[attr-defined]
    from menzil.spark import get_session
    from menzil.spark.jobs.export import export

    dsn, count = sys.argv[1], int(sys.argv[2])
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('partner')")
        conn.execute("select menzil._make_archive_month(%s)", (f"{MONTH}-01 00:00Z",))
        conn.execute(_FILL, (count,))
        conn.execute(_TRIES)
        for name in ("archive", "attempt"):
            conn.execute(f"vacuum analyze menzil.{name}")
    spark = get_session("bench export", "local[2]", conf={"spark.driver.memory": "4g"})
    print("ready", flush=True)
    for _ in sys.stdin:
        with tempfile.TemporaryDirectory(prefix="mz-lake-") as place:
            report = export(spark, dsn, place, months=[MONTH])
        print(report.rows, flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
