"""The scene with the axe: kill -9 for the server while a sender and a consumer are at work."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import dataclass, field

from examples.demo.stage import Stage
from menzil import ConnectionFailedError

ENTRIES = 300


@dataclass
class Sender:
    """Sends numbered entries; when an answer is lost, sends the same one again under the same idempotency key."""

    stage: Stage
    ids: list[int] = field(default_factory=list)
    repeated: int = 0
    called_off: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Send them all, however often it takes."""
        while len(self.ids) < ENTRIES and not self.called_off.is_set():
            number = len(self.ids)
            try:
                self.ids.append(self.stage.mq.send("audit", {"entry": number}, idempotency_key=f"entry-{number}"))
            except ConnectionFailedError:
                self.repeated += 1
                time.sleep(0.01)


def kill(stage: Stage) -> None:
    """What was acknowledged is there afterwards, a lease from before is still good, and nothing is there twice."""
    stage.title("kill -9 for the server, in the middle of it")
    stage.mq.channel_set("audit")
    sender = Sender(stage)
    thread = threading.Thread(target=sender.run, name="sender")
    thread.start()
    try:
        _kill(stage, sender)
    finally:
        sender.called_off.set()
        thread.join()
    stage.book.sent("audit", *sender.ids)
    twice = stage.ask("select count(*) from menzil.archive where channel = 'audit' and num_attempts > 1")[0][0]
    stage.say(f"{sender.repeated} of {ENTRIES} sends got no answer and were repeated under their idempotency key")
    stage.say(f"{twice} messages were handed out again, as they were not completed when the server died")
    stage.check(len(set(sender.ids)) == ENTRIES, "every entry is one message")
    lost = [key for key in sender.ids if stage.mq.status(key).status != "completed"]
    stage.check(lost == [], "nothing that was acknowledged is lost")
    stage.good("Nothing was lost.")


def _kill(stage: Stage, sender: Sender) -> None:
    held = stage.take("audit", lease=60, worker="before")
    stage.until(lambda: _work(stage) and len(sender.ids) >= ENTRIES // 3, "a third of the entries is sent")
    killed, acknowledged = stage.server.pid, len(sender.ids)
    began = time.monotonic()
    os.kill(killed, signal.SIGKILL)
    stage.say(f"PostgreSQL, pid {killed}, is killed after {acknowledged} of {ENTRIES} sends were acknowledged")
    stage.until(lambda: stage.server.pid != killed and _work(stage), "the server is back and has work")
    stage.say(
        f"its supervisor starts it again: pid {stage.server.pid}, {time.monotonic() - began:.2f} s later it works on"
    )
    stage.mq.complete(held)
    stage.say(f"message {held.id}, leased before the crash, is completed with that lease")
    stage.until(lambda: _work(stage) and _all_ended(stage, sender), "every entry has ended")


def _work(stage: Stage) -> bool:
    """Take a batch and complete it. After a lost answer do nothing: what was not completed comes back by itself."""
    try:
        stage.mq.complete_many(stage.mq.dequeue(50, 1, "audit", worker="auditor"))
    except ConnectionFailedError:
        return False
    return True


def _all_ended(stage: Stage, sender: Sender) -> bool:
    return len(sender.ids) == ENTRIES and not stage.ask("select 1 from menzil.queue where channel = 'audit' limit 1")
