"""Spark over the queue: its history as a DataFrame, latency per day, a lake, and a replay with a plan.

Runs on the database in MENZIL_DSN, or on an embedded PostgreSQL. docs/tutorials/spark.md explains it step by step.
"""

import tempfile

from pyspark.sql import functions as F

import menzil
from menzil.spark import get_session, read
from menzil.spark.jobs.export import export
from menzil.spark.jobs.replay import plan_replay, replay

mq = menzil.Menzil()
mq.channel_set("parcels")
parcels = [{"to": to, "weight": weight} for weight in range(1, 101) for to in ("Bursa", "Konya")]
first = min(mq.send_batch("parcels", parcels))  # the ids of this run are not lower
while messages := mq.dequeue(limit=100, lease=30, channels="parcels"):
    light = [message for message in messages if message.payload["weight"] <= 90]
    heavy = [message for message in messages if message.payload["weight"] > 90]
    mq.complete_many(light)
    mq.fail_many([(message, menzil.Fail("too heavy", retry=False)) for message in heavy])

spark = get_session()
columns = ["channel", "status", "created_at", "ended_at"]
history = read(spark, mq.dsn, "archive", columns=columns, where=f"channel = 'parcels' and id >= {first}")
history.groupBy("channel", "status").count().orderBy("status").show()

latency = (F.unix_micros("ended_at") - F.unix_micros("created_at")) / 1000
percentiles = F.percentile_approx(latency, [0.5, 0.95, 0.99]).alias("p")
daily = history.where("status = 'completed'").groupBy(F.to_date("created_at").alias("day")).agg(percentiles)
daily.selectExpr("day", "round(p[0]) as p50_ms", "round(p[1]) as p95_ms", "round(p[2]) as p99_ms").orderBy("day").show()

lake = tempfile.mkdtemp()
print("new in the lake:", export(spark, mq.dsn, lake).rows > 0)
print("new when it runs again:", export(spark, mq.dsn, lake).rows)

chosen = {
    "run_id": f"lighter-boxes-{first}",
    "endpoint": "parcels",
    "status": "failed",
    "where": f"get_json_object(payload, '$.to') = 'Konya' and id >= {first}",
    "rate": 5,
}
plan = plan_replay(spark, mq.dsn, lake, **chosen)
print(f"{plan.messages} messages to {plan.endpoints[0].endpoint}, over {plan.seconds:.0f} seconds")

for attempt in ("first", "again"):
    done = replay(spark, mq.dsn, lake, **chosen)
    print(f"{attempt}:", "nothing is sent" if done.repeated else f"{done.messages} sent")
mq.close()
