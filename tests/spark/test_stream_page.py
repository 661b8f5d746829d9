"""docs/how-to/stream-from-the-queue.md does what it says, block by block."""

from __future__ import annotations

from pathlib import Path

import pytest

import menzil
from tests.docs.blocks import DOCS, blocks
from tests.docs.running import Run

PAGE = DOCS / "how-to" / "stream-from-the-queue.md"


@pytest.mark.slow
@pytest.mark.usefixtures("spark")
def test_the_page_reads_what_ended_and_sends_an_alert_for_each_dead_letter(db: str, tmp_path: Path) -> None:
    with menzil.Menzil(db) as mq:
        mq.channel_set("work")
        mq.channel_set("alerts")
        mq.send_batch("work", [{"order": number} for number in range(4)])
        *done, dead = mq.dequeue(4)
        mq.complete_many(done)
        mq.fail(dead, "no such order", permanent=True)
        run = Run(db, tmp_path)
        for block in blocks(PAGE):
            run.block(block)
        (alert,) = mq.dequeue(10, channels="alerts")
        assert alert.payload["id"] == dead.id
        assert "no such order" in alert.payload["last_error"]
