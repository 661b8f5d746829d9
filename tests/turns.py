"""The order in which test processes get files; pytest-xdist asks this when it runs with `--dist loadfile`.

A file runs in one process. All files of tests/spark run in the same process and share one Spark session: the first
small export of a Java process takes three times the processor time of the next one. They begin early, so that the other
process does not end long before.
"""

from __future__ import annotations

from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARK = "tests/spark"


class Turns(LoadFileScheduling):
    """Files in the order they were collected in; those of Spark are the second unit of a process."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return SPARK if file.startswith(f"{SPARK}/") else file

    def _assign_work_unit(self, node: WorkerController) -> None:
        # Java's class archive is made while each process runs its first file.
        first = not self.assigned_work[node] and len(self.workqueue) > 1
        if SPARK in self.workqueue:
            self.workqueue.move_to_end(SPARK, last=first)
        super()._assign_work_unit(node)
