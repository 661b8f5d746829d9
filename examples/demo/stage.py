"""Where the demo plays: the server, a client, the book, and how a line is printed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, LiteralString, TypeVar

import psycopg

from examples.demo.book import Book, counted
from examples.demo.crew import Crew
from examples.demo.partner import Partner
from examples.demo.spark import Workshop
from menzil import Menzil, Message
from menzil.embedded import Embedded

T = TypeVar("T")


class UntrueError(Exception):
    """Something the demo was about to claim did not happen."""


class Stage:
    """One show. Scenes talk to the queue through `mq`, and to the shop's own tables through a connection."""

    def __init__(self, server: Embedded, mq: Menzil) -> None:
        self.server = server
        self.mq = mq
        self.book = Book()
        self.workshop = Workshop()
        self._partner: Partner | None = None
        self._crew: Crew | None = None
        self._scenes = 0
        self._colours = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    @property
    def partner(self) -> Partner:
        """The receiver of webhooks; started when first asked for."""
        self._partner = self._partner or Partner()
        return self._partner

    @property
    def has_partner(self) -> bool:
        """Whether anything could be delivered to anybody."""
        return self._partner is not None

    @property
    def crew(self) -> Crew:
        """Workers."""
        self._crew = self._crew or Crew(self.server.dsn)
        return self._crew

    def logs(self) -> list[str]:
        """The last words of the workers, for when something went wrong."""
        hands = self._crew.hands if self._crew else []
        return [f"{hand.name}: {line}" for hand in hands for line in hand.log().splitlines()[-20:]]

    def close(self) -> None:
        """Send everybody home."""
        for one in (self._crew, self._partner, self.workshop):
            if one is not None:
                one.close()

    def title(self, text: str) -> None:
        """Begin a scene."""
        self._scenes += 1
        print(f"\n{self._paint('1', f'{self._scenes:>2}  {text}')}", flush=True)

    def say(self, text: str) -> None:
        """Tell what happened."""
        print(f"    {text}", flush=True)

    def good(self, text: str) -> None:
        """Tell what ended well."""
        print(f"    {self._paint('32', text)}", flush=True)

    def check(self, true: bool, claim: str) -> None:
        """Stop the show unless this is so."""
        if not true:
            raise UntrueError(claim)

    def refused(self, call: Callable[[], object], kind: type[Exception]) -> str:
        """Make a call that must be refused, and return the sentence it was refused with."""
        try:
            call()
        except kind as error:
            return str(error).partition("\n")[0]
        raise UntrueError(f"a call is refused with {kind.__name__}")

    def until(self, question: Callable[[], T | Literal[False] | None], what: str, seconds: float = 60) -> T:
        """Ask until the answer is not empty, and return it: time passes only where time has to pass."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            answer = question()
            if answer:
                return answer
            time.sleep(0.01)
        raise UntrueError(f"within {seconds:g} s {what}")

    def ended(self, ids: Sequence[int], status: str, seconds: float = 60) -> None:
        """Wait until all these messages are in the archive, and have ended so."""
        query: LiteralString = "select status from menzil.archive where id = any(%s)"
        wanted = f"messages {counted(ids)} are {status}"
        found = self.until(lambda: len(rows := self.ask(query, list(ids))) == len(ids) and rows, wanted, seconds)
        self.check({row[0] for row in found} == {status}, wanted)

    def take(self, channel: str, lease: float = 30, *, worker: str | None = None) -> Message:
        """Wait for the next message of a channel, and lease it."""
        taken = self.until(lambda: self.mq.dequeue(1, lease, channel, worker=worker), f"{channel} has a message")
        return taken[0]

    def connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A connection of the shop's own, as its application has them."""
        return psycopg.connect(self.server.dsn)

    def ask(self, query: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
        """Look something up, as you would with psql."""
        with self.connect() as conn:
            return conn.execute(query, parameters).fetchall()

    def _paint(self, colour: str, text: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self._colours else text


def milliseconds(since: float) -> str:
    """How long it is since `time.monotonic()` said this."""
    return f"{(time.monotonic() - since) * 1000:.1f} ms"
