"""A program for spark-submit: the whole pipeline in a session of ours, then the source in a session of Spark alone.

Each of the two is an application of the cluster, with executors of its own. The pipeline sends, works, exports,
verifies, replays and audits; SHOP names its database, LAKE its lake. The second session reads what MENZIL_DSN names.
Each step prints one line, which the test compares.
"""

from __future__ import annotations

import os

from pyspark.sql import SparkSession

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


def pipeline(spark: SparkSession, dsn: str, lake: str) -> None:
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


def read(spark: SparkSession) -> None:
    """A program that knows nothing of us but the name of the source."""
    print("pushdown:", spark.conf.get("spark.sql.python.filterPushdown.enabled"))
    reader = spark.read.format("menzil").schema("id bigint, status string").option("numPartitions", "4")
    frame = reader.load().where("status = 'failed'")
    frame.explain("extended")
    print("failed:", frame.count(), "tasks:", frame.rdd.getNumPartitions())


def main() -> None:
    spark = get_session()
    print("master:", spark.sparkContext.master, "name:", spark.sparkContext.appName)
    print("shuffle:", spark.conf.get("spark.sql.shuffle.partitions"), flush=True)
    pipeline(spark, os.environ["SHOP"], os.environ["LAKE"])
    spark.stop()
    read(SparkSession.builder.getOrCreate())


if __name__ == "__main__":
    main()
