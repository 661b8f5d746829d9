"""`df.writeStream.format("menzil")`: each batch of a query is a send, so a batch that is replayed changes nothing.

The send id is made of the query and the number of the batch. The query is known by the id in its checkpoint; with the
option sendId by that, for those who move a query to another checkpoint and know that its batches stay the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext
from pyspark.sql import datasource

from menzil.model.errors import UsageError
from menzil.ops import pipeline
from menzil.spark.source.columns import shape_of
from menzil.spark.source.door import ask
from menzil.spark.source.endpoints import demand_open
from menzil.spark.source.options import WRITE_STREAM, dsn_of, must_be_known, send_id_of
from menzil.spark.source.sentence import sentence_first
from menzil.spark.source.staging import Staged, stage

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType

#: PySpark 4.0 hands rows to streaming writers, later ones batches of Arrow.
_BATCHES = hasattr(datasource, "DataSourceStreamArrowWriter")
_Base: Any = datasource.DataSourceStreamArrowWriter if _BATCHES else datasource.DataSourceStreamWriter
#: Rows that become a batch.
ROWS = 1000


@sentence_first
class MenzilStreamWriter(_Base):  # type: ignore[misc]
    """Made on the driver, once per query, and pickled for the tasks and for the process that commits."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Driver: check options, columns and endpoint. Nothing is opened yet: each batch is a send of its own."""
        if overwrite:
            raise UsageError("Messages that were sent cannot be overwritten.", hint='write with outputMode("append")')
        must_be_known(options, WRITE_STREAM)
        self.shape = shape_of(schema, options)
        self.arrow = None if _BATCHES else _arrow(schema)
        self.dsn = dsn_of(options)
        if self.shape.endpoint is not None:
            demand_open(self.dsn, [self.shape.endpoint])
        self.query = send_id_of(options)
        self.what = options.get("what") or "stream"

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Task, once per try of each partition of each batch: open the batch's send, or find it open, and stage."""
        send_id = _send_id(self.query)
        staging = ask(self.dsn, pipeline.bulk_open(send_id, self.what)).staging
        if staging is None:
            return Staged("", 0, send_id)
        batches = iterator if self.arrow is None else _gathered(iterator, self.arrow)
        token, count = stage(self.dsn, staging, self.shape, batches)
        return Staged(token, count, send_id)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """Driver, once per batch that succeeded; again for the last batch when the query restarts after a crash."""
        tries = [message for message in messages if isinstance(message, Staged) and message.token]
        if tries:
            tokens, counts = [each.token for each in tries], [each.count for each in tries]
            ask(self.dsn, pipeline.bulk_commit(tries[0].send_id, tokens, counts))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """Driver, once per batch that failed. Without any try that succeeded the reaper takes what is left."""
        for send_id in {message.send_id for message in messages if isinstance(message, Staged)}:
            ask(self.dsn, pipeline.bulk_abort(send_id))


def _arrow(schema: StructType) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema)


def _gathered(rows: Iterator[Any], schema: Any) -> Iterator[RecordBatch]:
    import pyarrow

    while some := [row.asDict(recursive=True) for row in islice(rows, ROWS)]:
        yield pyarrow.RecordBatch.from_pylist(some, schema)


def _send_id(query: str | None) -> str:
    """Task: which query, and which of its batches. Spark tells it to tasks and not to the writer."""
    task = TaskContext.get()
    batch = task.getLocalProperty("streaming.sql.batchId") if task else None
    query = query or (task.getLocalProperty("sql.streaming.queryId") if task else None)
    if batch is None or query is None:
        raise UsageError(
            "Spark did not say which batch of which query this is.",
            hint="update PySpark, and use the option sendId",
        )
    return f"{query}/{batch}"
