"""The shape of a violation on its way through Spark."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

COLUMNS = ("kind", "message_id", "other_id", "channel", "at", "detail")


def violations(
    frame: DataFrame, kind: str | Column, *, at: Column, detail: Column, other: Column | None = None, id: str = "id"
) -> DataFrame:
    """Every row of the frame as a violation."""
    return frame.select(
        (F.lit(kind) if isinstance(kind, str) else kind).alias("kind"),
        F.col(id).cast("bigint").alias("message_id"),
        (F.lit(None) if other is None else other).cast("bigint").alias("other_id"),
        F.col("channel").cast("string").alias("channel"),
        at.cast("timestamp_ltz").alias("at"),
        detail.cast("string").alias("detail"),
    )


def moment(column: str | Column) -> Column:
    """A time inside a sentence, in UTC whatever the session's zone is."""
    in_utc = F.to_utc_timestamp(column, F.current_timezone())
    return F.coalesce(F.date_format(in_utc, "yyyy-MM-dd HH:mm:ss.SSSSSS"), F.lit("never"))


def sentence(*parts: str | Column) -> Column:
    """Texts and columns joined; what is NULL shows as such instead of swallowing the sentence."""
    return F.concat(
        *(F.lit(part) if isinstance(part, str) else F.coalesce(part.cast("string"), F.lit("?")) for part in parts)
    )
