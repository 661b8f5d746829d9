"""A stranger as it is held: a connection, what belongs to it, and how it ends."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg

from menzil.embedded.binaries import find
from tests.strangers.diary import Key
from tests.strangers.words import Stranger

if TYPE_CHECKING:
    from tests.strangers.stage import Stage

_LATER = "select menzil.send_with_options(%s, '{}', p_scheduled_at => clock_timestamp() + interval '1 hour')"
_LEASE = "select id, num_attempts from menzil.message_dequeue(600000, 1, array[%s])"


@contextmanager
def _dumping(dsn: str) -> Iterator[None]:
    """A pg_dump that holds its snapshot and its locks, because its pipe is full."""
    command = [str(find().bin / "pg_dump"), "--dbname", dsn]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as dump:
        assert dump.stdout is not None
        assert dump.stdout.read(1000), dump.stderr and dump.stderr.read()
        yield
        assert dump.poll() is None, "the dump ended before it was held"
        dump.stdout.read()
        assert dump.wait(60) == 0, dump.stderr and dump.stderr.read()


@contextmanager
def looping(stranger: Stranger, dsn: str) -> Iterator[None]:
    """Its commands, each a transaction of its own, one after the other, over and over."""
    ended = threading.Event()
    failures: list[Exception] = []

    def work() -> None:
        try:
            with psycopg.connect(dsn, autocommit=True, application_name=stranger.name[:60]) as conn:
                while not ended.is_set():
                    for text in stranger.sql:
                        conn.execute(text.encode())
                    time.sleep(0.02)
        except psycopg.Error as error:
            failures.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    ended.set()
    thread.join(30)
    assert not failures, f"{stranger.name} itself failed: {failures[0]}"


class Guest:
    """Rolls back at the end, so that the next stranger finds the queue as this one found it."""

    def __init__(self, stranger: Stranger, stage: Stage, number: int) -> None:
        self.stranger = stranger
        self._stage = stage
        self._own, self._hook = f"own{number}", f"{'gone' if stranger.uses('gone') else 'own'}_hook{number}"
        self._words: dict[str, Any] = {"n": number, "own": self._own, "hook": self._hook, "gone": self._hook}
        self._again = 0.0
        self._prepare()

    def allowed(self) -> set[Key]:
        return {
            Key(role, place)
            for wait in self.stranger.waits
            for role in wait.roles
            for place in wait.places or (self._own, self._hook)
        }

    @contextmanager
    def open(self) -> Iterator[None]:
        dsn = self._stage.dsns[self.stranger.role]
        if self.stranger.dump:
            with _dumping(dsn):
                yield
            return
        if self.stranger.loop:
            with looping(self.stranger, dsn):
                yield
            return
        with psycopg.connect(dsn, autocommit=True, application_name=self.stranger.name[:60]) as self._conn:
            if self.stranger.prepared:
                with self._prepared():
                    yield
            else:
                self._begin()
                yield
                self._conn.execute("rollback")
        for text in self.stranger.after:
            self._stage.admin.execute(self._fill(text).encode())

    def again(self) -> None:
        if self.stranger.again and time.monotonic() > self._again + 0.2:
            self._run(self.stranger.again)
            self._again = time.monotonic()

    def leave(self) -> None:
        """The crowd stops to use what belonged to it."""
        for names in (self._stage.crowd.channels, self._stage.crowd.hooks):
            names[:] = [name for name in names if name not in (self._own, self._hook)]

    def _begin(self) -> None:
        self._conn.execute("set statement_timeout = '30s'")
        self._conn.execute(f"begin isolation level {self.stranger.isolation}")
        for text in self.stranger.sql:
            self._run(text)
        for text in self.stranger.then:
            self._stage.admin.execute(self._fill(text).encode())

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        self._begin()
        self._run("prepare transaction 'stranger {n}'")
        self._conn.close()
        yield
        self._stage.admin.execute(self._fill("rollback prepared 'stranger {n}'").encode())

    def _run(self, text: str) -> None:
        self._conn.execute(self._fill(text).encode())

    def _fill(self, text: str) -> str:
        for word, value in self._words.items():
            text = text.replace("{" + word + "}", str(value))
        return text

    def _prepare(self) -> None:
        """What it needs of its own. The messages are sent and settled before the crowd knows of the channel."""
        stage, uses = self._stage, self.stranger.uses
        if uses("own") or any(map(uses, ("later", "ended", "dead"))):
            stage.one("select menzil.channel_set(%s)::text", self._own)
        for word, settle in (("ended", "complete(%s, %s)"), ("dead", "fail(%s, %s, '[PERMANENT] no')")):
            if uses(word):
                lease = self._lease_one()
                stage.admin.execute(f"select menzil.message_{settle}", lease)
                self._words[word] = lease[0]
        if uses("later"):
            self._words["later"] = stage.one(_LATER, self._own)
        if uses("hook") or uses("id") or uses("gone"):
            stage.make_hook(self._hook, auto_disable_on_gone=True, max_concurrency=50)
            self._words["id"] = stage.one("select id from menzil.channel where name = %s", self._hook)
            if not uses("gone") and not self.stranger.rests:
                stage.crowd.hooks.append(self._hook)
        for text in self.stranger.before:
            self._insist(text)
        if uses("own") and not self.stranger.rests:
            stage.crowd.channels.append(self._own)

    def _insist(self, text: str) -> None:
        """What makes a month gives up after a moment beside a busy crowd; jobs try again too."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self._stage.admin.execute(self._fill(text).encode())
                return
            except psycopg.errors.LockNotAvailable:
                assert time.monotonic() < deadline, f"not possible beside the crowd: {text}"

    def _lease_one(self) -> Any:
        """Sends and leases a message of its channel; a consumer of all channels may have been quicker."""
        deadline = time.monotonic() + 60
        while True:
            self._stage.one("select menzil.send(%s, '{}')", self._own)
            if lease := self._stage.admin.execute(_LEASE, [self._own]).fetchone():
                return lease
            assert time.monotonic() < deadline, f"channel {self._own} gives no message"
            time.sleep(0.02)
