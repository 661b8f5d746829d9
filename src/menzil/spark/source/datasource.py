"""`format("menzil")`: the engine's tables as DataFrames, and DataFrames as messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

from menzil.spark.source.relations import relation
from menzil.spark.source.sentence import sentence_first

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


@sentence_first
class MenzilDataSource(DataSource):
    """Made on the driver, once per `load()` or `save()`, in a Python process of Spark's planner."""

    @classmethod
    def name(cls) -> str:
        """What stands in `format(…)`."""
        return "menzil"

    def schema(self) -> str:
        """Driver: all columns of the relation, when no schema was given."""
        return relation(self.options.get("table") or "archive").ddl

    def reader(self, schema: StructType) -> DataSourceReader:
        """Driver, once per plan."""
        from menzil.spark.source.reader import reader

        return reader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Driver, once per query."""
        from menzil.spark.source import limits

        if limits.KNOWN:
            from menzil.spark.source.feed import FeedReader

            return FeedReader(self.options, schema)
        from menzil.spark.source.older_feed import OlderFeedReader

        return OlderFeedReader(self.options, schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Driver, once per `save()`."""
        from menzil.spark.source.writer import MenzilWriter

        return MenzilWriter(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Driver, once per query."""
        from menzil.spark.source.stream_writer import MenzilStreamWriter

        return MenzilStreamWriter(self.options, schema, overwrite)
