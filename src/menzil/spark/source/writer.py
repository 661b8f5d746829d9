"""`df.write.format("menzil")`: rows become messages, exactly once per send id.

Tasks only stage. Each try of a task has a token of its own, and the one commit on the driver sends what the tokens of
the successful tries staged: a task that is run twice, or that died after it had staged, changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.datasource import DataSourceArrowWriter

from menzil.model.errors import UsageError
from menzil.ops import pipeline
from menzil.spark.source.columns import shape_of
from menzil.spark.source.door import ask
from menzil.spark.source.endpoints import demand_open
from menzil.spark.source.options import WRITE, dsn_of, must_be_known, send_id_of
from menzil.spark.source.sentence import sentence_first
from menzil.spark.source.staging import Staged, stage

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.datasource import WriterCommitMessage
    from pyspark.sql.types import StructType


@sentence_first
class MenzilWriter(DataSourceArrowWriter):
    """Made on the driver, once per `save()`, and pickled for the tasks and for the process that commits."""

    def __init__(self, options: Mapping[str, str], schema: StructType, overwrite: bool) -> None:
        """Driver: check the options, the columns and the endpoint, and open the send."""
        if overwrite:
            raise UsageError("Messages that were sent cannot be overwritten.", hint='write with mode("append")')
        must_be_known(options, WRITE)
        self.shape = shape_of(schema, options)
        self.dsn = dsn_of(options)
        self.send_id = send_id_of(options) or uuid4().hex
        if self.shape.endpoint is not None and not self._is_done():
            demand_open(self.dsn, [self.shape.endpoint])
        self.staging = ask(self.dsn, pipeline.bulk_open(self.send_id, options.get("what"))).staging

    def _is_done(self) -> bool:
        """A send that is done changes nothing when it is repeated, also when its endpoint is gone."""
        status = ask(self.dsn, pipeline.bulk_status(self.send_id))
        return status is not None and status.state == "done"

    def write(self, iterator: Iterator[RecordBatch]) -> WriterCommitMessage:
        """Task, once per try of each partition: stage its rows. A send that is done is not even read."""
        if self.staging is None:
            return Staged("", 0, self.send_id)
        token, count = stage(self.dsn, self.staging, self.shape, iterator)
        return Staged(token, count, self.send_id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Driver, once, when every partition has succeeded: in the order of the partitions."""
        if self.staging is not None:
            tries = [message for message in messages if isinstance(message, Staged)]
            ask(
                self.dsn,
                pipeline.bulk_commit(self.send_id, [each.token for each in tries], [each.count for each in tries]),
            )

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002
        """Driver, once, when a partition has failed for good or the commit was refused."""
        ask(self.dsn, pipeline.bulk_abort(self.send_id))
