"""The whole pipeline as one program for spark-submit: it sends, works, exports, verifies, replays and audits.

MENZIL_DSN names the database, LAKE the lake. Each step prints one line, which the test compares.
"""

from __future__ import annotations

import os

import menzil
from menzil.spark import get_session
from menzil.spark.jobs.audit.job import audit
from menzil.spark.jobs.export import export
from menzil.spark.jobs.replay import replay
from menzil.spark.jobs.send import send
from menzil.spark.lake.verify import verify


def work(mq: menzil.Menzil, *, heavy: bool) -> None:
    """Empty the channel; of the first round every tenth parcel is too heavy."""
    while batch := mq.dequeue(limit=100, channels="parcels"):
        refused = [one for one in batch if heavy and one.payload["n"] % 10 == 0]
        mq.complete_many([one for one in batch if one not in refused])
        for one in refused:
            mq.fail(one, "too heavy", permanent=True)


def main(dsn: str, lake: str) -> None:
    spark = get_session()
    with menzil.Menzil(dsn) as mq:
        mq.channel_set("parcels")
        frame = spark.range(0, 400, 1, 4).selectExpr("to_json(struct(id as n)) as payload")
        for _ in range(2):
            sent = send(spark, frame, dsn, send_id="parcels", endpoint="parcels", payload="payload")
            print(f"sent: {sent.messages}, repeated: {sent.repeated}")
        work(mq, heavy=True)
        for _ in range(2):
            print(f"exported: {export(spark, dsn, lake).rows}")
        found = verify(lake, dsn, spark=spark)
        print(f"verified: {found.rows}, problems: {found.problems}")
        for _ in range(2):
            done = replay(spark, dsn, lake, run_id="lighter", endpoint="parcels", status="failed")
            print(f"replayed: {done.messages}, repeated: {done.repeated}")
        work(mq, heavy=False)
        print(f"exported: {export(spark, dsn, lake).rows}")
        told = audit(spark, lake, dsn)
        print(f"audited: {told.ok}, ended: {told.counts['ended']}, violations: {told.violations}")


if __name__ == "__main__":
    main(os.environ["MENZIL_DSN"], os.environ["LAKE"])
