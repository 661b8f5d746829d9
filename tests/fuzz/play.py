"""Makes random calls as every role and watches: documented refusals, nothing written by them, a queue that works."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from unicodedata import category

import psycopg
from psycopg.types.string import TextLoader

from tests.fuzz.calls import call
from tests.fuzz.catalog import ROLES, Function, functions, pairs
from tests.fuzz.furnished import CANARY, furnish

#: docs/reference/error-codes.md without the two that a lone READ COMMITTED statement cannot meet (25001, 40001), and
#: without those of a missing schema or right: every call here is of a function the role may execute.
DOCUMENTED = {
    "42704",
    "42710",
    "55000",
    "22004",
    "22023",
    "54000",
    "23505",
    "53400",
    "55006",
    "MZ001",
    "MZ002",
    "MZ003",
}

COUNTS = """
select string_agg(format('select %L, count(*) from menzil.%I', relname, relname), ' union all ' order by relname)
  from pg_class where relnamespace = 'menzil'::regnamespace and relkind in ('r', 'p') and not relispartition
   and relname !~ '^bulk_staging_'
"""
VIEWS = "select relname from pg_class where relnamespace = 'menzil'::regnamespace and relkind = 'v' order by relname"
SECRETS = ("hush-hush", "QUJDQUJD")
LOOKS = ("message_why", "message_life", "message_family")  # at one message
#: A statement of this many seconds hangs.
PATIENCE = 60


@dataclass
class Play:
    """Calls against one database; `wrong` is what it has to say about them."""

    dsn: str
    random: Random
    wrong: dict[str, str] = field(default_factory=dict)
    refused: int = 0
    accepted: int = 0
    codes: set[tuple[str, str]] = field(default_factory=set)
    took: set[str] = field(default_factory=set)
    recent: list[str] = field(default_factory=list)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Connect as the owner and as every role."""
        self.owner = self._connect()
        self.roles = {role: self._connect(role) for role in ROLES}
        self.functions = functions(self.owner)
        try:
            yield
        finally:
            for conn in (self.owner, *self.roles.values()):
                conn.close()

    def _connect(self, role: str | None = None) -> psycopg.Connection:
        conn = psycopg.connect(self.dsn, autocommit=True, prepare_threshold=None)
        conn.adapters.register_loader("jsonb", TextLoader)  # Python's own reader of JSON has limits that are not ours
        conn.execute(f"set statement_timeout = '{PATIENCE}s'")
        if role:
            conn.execute(f"set role {role}")
        return conn

    def round(self) -> None:
        """Call every function once as every role that may call it, in any order, and see that the queue works."""
        furnish(self.owner)
        self.recent.clear()
        self.counted = self._counts()
        turns = pairs(self.functions)
        self.random.shuffle(turns)
        for number, (role, function) in enumerate(turns):
            self.try_one(role, call(self.random, function), function)
            if number % 20 == 19:
                self.canary()
        self.look()
        self.canary()

    def try_one(self, role: str, text: str, function: Function) -> None:
        """Make one call."""
        said = self._call(role, text)
        if said is None:
            self.accepted += 1
            self.took.add(function.name)
            self.recent.append(f"set role {role}; select * from {text}")
            self.counted = self._counts()
            return
        self.refused += 1
        self.codes.add((function.name, said.sqlstate or ""))
        for complaint in complaints(said):
            self._blame(f"{function.name}: {complaint}", f"set role {role}; select * from {text}")
        if self.owner.closed or self.roles[role].broken:
            raise ConnectionError(f"The connection is gone after set role {role}; select * from {text}")
        counted = self._counts()
        if counted != self.counted:
            changed = sorted(set(counted) ^ set(self.counted))
            self._blame(
                f"{function.name}: refused and yet something is written: {changed}",
                f"set role {role}; select * from {text}",
            )
        self.counted = counted

    def _call(self, role: str, text: str) -> psycopg.Error | None:
        try:
            self.roles[role].execute(f"select * from {text}".replace("%", "%%"), []).fetchall()
        except psycopg.Error as error:
            return error
        return None

    def canary(self) -> None:
        """Send, lease and complete a message: whatever was called before, the queue goes on."""
        story = "\n    ".join(self.recent)
        try:
            self.owner.execute(
                """select menzil.set_setting(s, 'default') from unnest(array['max_queue_size', 'max_payload_size']) s;
                   select menzil.adopt();
                   select menzil.channel_set('canary')"""
            )
            (sent,) = (
                self.roles["menzil_application"].execute("select menzil.send(%s, '{}')", [CANARY]).fetchone() or ()
            )
            worker = self.roles["menzil_worker"]
            # Replayed ones may be there too.
            leased = worker.execute(
                "select id, num_attempts from menzil.message_dequeue(60000, 10000, %s)", [[CANARY]]
            ).fetchall()
            if sent not in dict(leased):
                self._blame("canary: what was sent is not leased", story)
            for lease in leased:
                worker.execute("select menzil.message_complete(%s, %s)", lease)
            worker.execute("select menzil.maintain()")
        except psycopg.Error as error:
            self._blame(f"canary: {error.sqlstate} {error}", story)
        self.recent.clear()
        self.counted = self._counts()

    def look(self) -> None:
        """Read every view and everything that watches."""
        names = [name for (name,) in self.owner.execute(VIEWS)]
        for text in [
            *(f"menzil.{name}" for name in names),
            "menzil.metrics()",
            "menzil.health_check()",
            "menzil.get_endpoint_health()",
            "menzil.channel_state()",
            "menzil.turns()",
            *(f"(select (menzil.{name}(q.id)).* from menzil.queue q limit 20) q" for name in LOOKS),
        ]:
            try:
                rows = self.owner.execute(f"select * from {text}").fetchall()
            except psycopg.Error as error:
                self._blame(f"{text}: {error.sqlstate} {error}", "select * from it")
                continue
            if any(secret in str(row) for row in rows for secret in SECRETS):
                self._blame(f"{text}: shows a secret", "select * from it")

    def _counts(self) -> list[tuple[str, int]]:
        (query,) = self.owner.execute(COUNTS).fetchone() or ()
        return sorted(self.owner.execute(query).fetchall())  # a parallel plan counts in any order

    def _blame(self, sentence: str, how: str) -> None:
        self.wrong.setdefault(re.sub(r"\d+", "#", sentence)[:300], how)


def complaints(error: psycopg.Error, longest: int = 500) -> Iterator[str]:
    """Say what is wrong with a refusal."""
    said = error.diag
    if error.sqlstate not in DOCUMENTED:
        where = (said.context or "")[:200]
        yield f"{error.sqlstate or type(error).__name__} is not documented: {str(error)[:200]} ({where})"
        return
    sentence, hint = said.message_primary or "", said.message_hint or ""
    if not hint:
        yield f"{error.sqlstate} comes without a hint: {sentence}"
    if len(sentence) > longest or len(hint) > longest:
        yield f"{error.sqlstate} is endless ({len(sentence)}, {len(hint)}): {sentence[:100]}"
    if any(category(char) in ("Cc", "Zl", "Zp") for char in sentence + hint):
        yield f"{error.sqlstate} is no line of text: {sentence!r} {hint!r}"
    if any(secret in str(error) for secret in SECRETS):
        yield f"{error.sqlstate} repeats a secret: {sentence}"
