"""The change feed on PySpark 4.0 and 4.1, whose streaming sources are not told where a batch begins.

The end of the batch before is remembered instead. After a restart it is not known until the first batch: that one takes
all there is, and the checks of its beginning are made when it is planned. A limit cannot be kept, so it is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from menzil.model.errors import UsageError
from menzil.spark.source.feed import FeedReader
from menzil.spark.source.limits import ReadAllAvailable, ReadLimit
from menzil.spark.source.places import Offset, Place
from menzil.spark.source.sentence import sentence_first

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@sentence_first
class OlderFeedReader(FeedReader):
    """As FeedReader, for an engine that asks for the newest place without a word about the last."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        super().__init__(options, schema)
        self._reached: Offset | None = None
        if self.options.most:
            raise UsageError(
                "This PySpark cannot limit the rows of a batch.",
                hint="leave the option out, or use PySpark 4.2 or later",
            )

    def initialOffset(self) -> Offset:  # noqa: N802
        """Driver, once in the life of a query."""
        self._reached = super().initialOffset()
        return self._reached

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:  # noqa: N802, ARG002
        """Driver, before each batch: where it ends. The batch before it is done by then."""
        if self._reached is None:
            return self._complete().offset()
        return super().latestOffset(self._reached, ReadAllAvailable())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Driver, once per batch."""
        if self._reached != start:  # after a restart: nothing has looked at this place yet
            self.must_begin_at(Place.of(start))
        found = super().partitions(start, end)
        self._reached = end
        return found
