"""What one message says about itself: one pass over the history, nothing is moved between tasks."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from menzil.spark.jobs.audit.found import moment, sentence
from menzil.spark.jobs.audit.history import FAILURES


def lives(messages: DataFrame, hurried: DataFrame | None = None) -> DataFrame:
    """Violations of the kinds attempts, outcome, early and late. `hurried` has the ids made due before their time."""
    rows = messages.select(
        "*",
        F.try_element_at("tries", F.lit(1)).alias("first_try"),
        F.try_element_at("tries", F.lit(-1)).alias("last_try"),
        F.size(F.filter("tries", lambda t: t["outcome"] == "completed")).alias("successes"),
        F.size(F.filter("tries", lambda t: t["outcome"].isin(*FAILURES))).alias("failures"),
    )
    if hurried is not None:
        rows = rows.join(F.broadcast(hurried.select("id", F.lit(True).alias("hurried"))), "id", "left")
    else:
        rows = rows.withColumn("hurried", F.lit(None).cast("boolean"))
    told = F.array_compact(F.array(_numbers(), _outcome(), _early(), _late()))
    return rows.select("id", "channel", F.explode(told).alias("v")).select(
        F.col("v.kind").alias("kind"),
        F.col("id").cast("bigint").alias("message_id"),
        F.lit(None).cast("bigint").alias("other_id"),
        "channel",
        F.col("v.at").alias("at"),
        F.col("v.detail").alias("detail"),
    )


def _told(kind: str, wrong: Column, at: Column, detail: Column) -> Column:
    return F.when(wrong, F.struct(F.lit(kind).alias("kind"), at.alias("at"), detail.alias("detail")))


def _numbers() -> Column:
    numbers = F.transform("tries", lambda t: t["attempt"])
    wanted = F.when(F.col("num_attempts") > 0, F.sequence(F.lit(1).cast("bigint"), F.col("num_attempts")))
    wrong = F.when(F.col("num_attempts") > 0, numbers != wanted).otherwise(F.size("tries") > 0)
    detail = sentence(
        F.col("num_attempts"), " tries counted, these are known: ", F.array_join(F.slice(numbers, 1, 20), ", ")
    )
    return _told("attempts", wrong, F.col("ended_at"), detail)


def _outcome() -> Column:
    """The first contradiction, if there is one."""
    status, last = F.col("status"), F.col("last_try")
    counted = F.col("failures") - F.when(status == "failed", 1).otherwise(0)
    # Each lease begins after the one before has ended, and none ends before it begins.
    sequel = F.aggregate(
        "tries",
        F.struct(F.col("created_at").alias("at"), F.lit(True).alias("fine")),
        lambda so_far, t: F.struct(
            t["ended_at"].alias("at"),
            (so_far["fine"] & (t["leased_at"] >= so_far["at"]) & (t["ended_at"] >= t["leased_at"])).alias("fine"),
        ),
    )
    detail = (
        F.when(~status.isin("completed", "failed", "expired", "cancelled"), sentence("unknown status ", status))
        .when(
            (status == "completed") & (F.col("successes") != 1),
            sentence("completed with ", F.col("successes"), " successful tries"),
        )
        .when(
            (status == "completed") & (last["outcome"] != "completed"),
            F.lit("completed, but its last try was not the successful one"),
        )
        .when((status != "completed") & (F.col("successes") > 0), sentence(status, " after a successful try"))
        .when(
            (status == "failed") & ~F.coalesce(last["outcome"].isin(*FAILURES), F.lit(False)),
            F.lit("failed, but its last try did not fail"),
        )
        .when(
            (status == "expired") & ~F.coalesce(F.col("expires_at") <= F.col("ended_at"), F.lit(False)),
            sentence("expired before its expiry at ", moment("expires_at")),
        )
        .when(
            ~F.coalesce(sequel["fine"], F.lit(False)), F.lit("its tries are not one after another, from sent to ended")
        )
        .when(
            (F.col("ended_at") < F.col("created_at")) | (last["ended_at"] > F.col("ended_at")),
            F.lit("it ended before it was sent or before its last try was over"),
        )
        .when(
            counted != F.col("retry_count"),
            sentence(F.col("retry_count"), " retries counted, but ", counted, " failures to retry"),
        )
    )
    return _told("outcome", detail.isNotNull(), F.col("ended_at"), detail)


def _early() -> Column:
    leased_at = F.col("first_try")["leased_at"]
    detail = sentence("leased at ", moment(leased_at), ", scheduled for ", moment("scheduled_at"))
    return _told("early", (leased_at < F.col("scheduled_at")) & F.col("hurried").isNull(), leased_at, detail)


def _late() -> Column:
    after = F.try_element_at(F.filter("tries", lambda t: t["leased_at"] >= F.col("expires_at")), F.lit(1))
    detail = sentence(
        "try ", after["attempt"], " leased at ", moment(after["leased_at"]), ", expired at ", moment("expires_at")
    )
    return _told("late", after.isNotNull(), after["leased_at"], detail)
