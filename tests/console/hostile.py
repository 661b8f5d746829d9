"""A queue in which every text that a stranger can write is an attack; made by functions that users call."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg
from psycopg.types.json import Jsonb

from menzil import Menzil
from tests.console.attacks import ALL, ATTACKS, TEXTS, WITH_CONTROLS

#: Every attack as a key and as a value, at two depths.
BODY = {"list": [*TEXTS, *WITH_CONTROLS], "keys": {text: {text: number} for number, text in enumerate(TEXTS)}}
#: Attacks that can be written into the path of a URL.
PATHS = ("javascript:", "jAvAsCrIpT&colon;")


@dataclass
class Hostile:
    """What tests look at: messages, causes and plans by the number of their attack, and who refused what."""

    dsn: str
    waiting: list[int] = field(default_factory=list)
    dead: list[int] = field(default_factory=list)
    causes: list[str] = field(default_factory=list)
    plans: list[int] = field(default_factory=list)
    refused: dict[str, dict[str, str]] = field(default_factory=dict)

    def endpoint(self, number: int) -> str:
        """The name of an endpoint; a channel has the attack itself for a name."""
        return f"{TEXTS[number]}."


#: What a stranger may not write at will: a statement with one parameter.
RULED = {
    "correlation id": "select menzil.send_with_options('plain', '{}', p_correlation_id => %s::text::uuid)",
    "name of a header": """select menzil.send_with_options('plain', '{}',
      p_headers => jsonb_build_object(%s::text, 'x'))""",
    "protocol": "select menzil.create_endpoint('refused', %s, '{\"url\": \"https://a.example/\"}')",
    "url": "select menzil.create_endpoint('refused', 'http', jsonb_build_object('url', %s::text))",
    "place in a url": """select menzil.create_endpoint('refused', 'http',
      jsonb_build_object('url', 'https://a.example/"' || %s::text))""",
    "method": """select menzil.create_endpoint('refused', 'http',
      jsonb_build_object('url', 'https://a.example/', 'method', %s::text))""",
    "header of an endpoint": """select menzil.create_endpoint('refused', 'http',
      jsonb_build_object('url', 'https://a.example/', 'headers', jsonb_build_object(%s::text, 'x')))""",
    "cron": "select menzil.schedule_create('refused', %s, 'UTC', 'plain', '{}')",
    "time zone": "select menzil.schedule_create('refused', '0 3 * * *', %s, 'plain', '{}')",
    "after a dead letter": "select menzil.channel_set('plain', p_on_dead => %s)",
    "kind of a plan": "select menzil.plan_create(%s, '{\"all\": true}')",
    "key of a filter": "select menzil.plan_create('redrive', jsonb_build_object(%s::text, true))",
    "cause of a filter": "select menzil.plan_create('redrive', jsonb_build_object('cause_hash', %s::text))",
    "channel of a filter": "select menzil.plan_create('redrive', jsonb_build_object('endpoint', 'no ' || %s::text))",
    "name of a setting": "select menzil.set_setting(%s, '1')",
    "number of a setting": "select menzil.set_setting('max_queue_size', %s)",
    "networks of a setting": "select menzil.set_setting('http_allowed_networks', %s)",
    "retry policy": "select menzil.set_retry_policy('crm', jsonb_build_object('backoff', %s::text))",
    "schema": "select menzil.create_event_type('refused', 'x', jsonb_build_object('type', %s::text))",
    "channel with a control character": "select menzil.channel_set(chr(7) || %s)",
    "event type with a control character": "select menzil.create_event_type(chr(27) || %s)",
    "schedule with a control character": "select menzil.schedule_create(chr(9) || %s, '0 3 * * *', 'UTC', 'a', '{}')",
}  # fmt: skip


def invade(dsn: str) -> Hostile:
    """Fill a database that has menzil installed."""
    found = Hostile(dsn)
    with Menzil(dsn) as mq, psycopg.connect(dsn, autocommit=True) as conn:
        mq.channel_set("plain")
        mq.create_endpoint("crm", "http", {"url": "https://crm.example/"})
        rule = {"path": "loft", "kind": "text", "minimum": 1, "maximum": 9_000}
        conn.execute("select menzil.register_protocol('pigeon', %s)", (Jsonb([rule]),))
        mq.create_endpoint("pigeons", "pigeon", {"loft": " ".join(TEXTS)})
        _refusals(conn, found)
        _places(mq, conn)
        _lives(mq, conn, found)
        _plans(conn, found)
        _pipeline(conn)
        mq.channel_pause("plain")
        # The value of a setting that is a text, and a cause in the log whose actor it is.
        conn.execute("select menzil.set_setting('redact', %s)", ("password, zz<img zz>",))
    return found


def _refusals(conn: psycopg.Connection, found: Hostile) -> None:
    for what, statement in RULED.items():
        said = found.refused.setdefault(what, {})
        for name, text in ATTACKS.items():
            try:
                with conn.transaction(force_rollback=True):
                    conn.execute(statement, (text,))
            except psycopg.Error as error:
                said[name] = error.sqlstate or ""


def _places(mq: Menzil, conn: psycopg.Connection) -> None:
    hello = "select menzil.worker_hello(%s, %s, %s, %s, %s, 10)"
    for number, text in enumerate(TEXTS):
        conn.execute("select set_config('menzil.actor', %s, false), set_config('menzil.via', %s, false)", (text, text))
        conn.execute("select menzil.channel_set(%s, p_max_concurrency => 2, p_on_dead => 'block')", (text,))
        url = f"https://hooks.example/{text if text.startswith(PATHS) else number}"
        config = {"url": url, "headers": {"X-Team": _line(text)}}
        conn.execute("select menzil.create_endpoint(%s, 'http', %s)", (f"{text}.", Jsonb(config)))
        schema = {"title": text, "properties": {text: {"const": text}}}
        conn.execute("select menzil.create_event_type(%s, %s, %s)", (text, text, Jsonb(schema)))
        conn.execute("select menzil.subscribe(%s, %s, %s)", (text, f"{text}.", Jsonb({text: text})))
        conn.execute(hello, (text, text, number, text[:100], [text, f"{text}."]))
        options = {"ordering_key": text, "metadata": {text: text}}
        # Not due while tests run: its message would be the first of the ordering key.
        mq.schedule_create(text, "0 0 29 2 *", text, {text: text}, **options)  # type: ignore[arg-type]
        bridge = Jsonb({"host": "valkey.internal", "stream": "s", "start": "earliest"})
        conn.execute("select menzil.bridge_create(%s, 'redis', %s, null, %s)", (text, bridge, text))
        conn.execute("select menzil.bridge_begin(%s, %s, %s)", (text, text, text))
        conn.execute("select menzil.bridge_open(%s, 'i', %s, 1, %s)", (text, text, text))
        conn.execute("select menzil.bridge_heartbeat(%s, 'i', %s)", (text, text))
        conn.execute("select menzil.note_act(%s, %s, %s)", (f"a{number}", "message", text))
    conn.execute("select set_config('menzil.actor', '', false), set_config('menzil.via', '', false)")


def _line(text: str) -> str:
    """The text as a value of a header: Latin letters."""
    return text.encode("ascii", "ignore").decode()


def _lives(mq: Menzil, conn: psycopg.Connection, found: Hostile) -> None:
    """For each attack a message that died after an answer of some shape, one behind it, and one that waits."""
    fail = """select menzil.message_fail(array[%s::bigint], array[%s::bigint], array[%s::text], null,
      array[%s::jsonb], array[true])"""
    for number, text in enumerate(TEXTS):
        options = {
            "ordering_key": text,
            "metadata": {text: text, "traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"},
            "headers": {"X-Note": _line(text)},
        }
        body = {text: text} if number else BODY
        letter = mq.send(text, body, idempotency_key=text, **options)  # type: ignore[arg-type]
        mq.send(text, {text: text}, **options)  # type: ignore[arg-type]
        found.waiting.append(mq.send(f"{text}.", body, **options))  # type: ignore[arg-type]
        (taken,) = mq.dequeue(1, 600, [text], worker=text)
        answers: list[object] = [
            {"status": 500, "reason": text, "headers": {text: text}, "body": text, "traceback": f"At\n  {text}"},
            {"traceback": text}, {"headers": {"x": text}}, {"body": [text]}, {text: text}, [text], text,
        ]  # fmt: skip
        conn.execute(fail, (taken.id, taken.attempt, f"{text} {number}x", Jsonb(answers[number % len(answers)])))
        assert taken.id == letter
        found.dead.append(letter)
    rows = conn.execute("select original_message_id, cause_hash from menzil.dlq").fetchall()
    causes: dict[int, str] = dict(rows)
    found.causes = [causes[letter] for letter in found.dead]
    long = mq.send("plain", ALL.encode())
    (taken,) = mq.dequeue(1, 600, ["plain"])
    conn.execute(fail, (taken.id, taken.attempt, ALL, Jsonb({"headers": {"server": ALL}, "body": ALL})))
    found.dead.append(long)


def _plans(conn: psycopg.Connection, found: Hostile) -> None:
    for text in TEXTS:
        conn.execute("select set_config('menzil.actor', %s, false)", (text,))
        row = conn.execute(
            "select menzil.plan_create('redrive', %s, 5, %s)", (Jsonb({"endpoint": text}), text)
        ).fetchone()
        assert row is not None
        found.plans.append(row[0])
    conn.execute("select set_config('menzil.actor', '', false)")


def _pipeline(conn: psycopg.Connection) -> None:
    for text in TEXTS:
        conn.execute("select menzil.feed_advance(%s, 'archive', '1', 1)", (text,))
        row = conn.execute("select menzil.pipeline_run_begin(%s, %s)", (text[:100], f"/{text}")).fetchone()
        assert row is not None
        conn.execute("select menzil.pipeline_run_end(%s, 1, 1, %s, %s)", (row[0], text, text))
        row = conn.execute("select menzil.pipeline_run_begin(%s, %s)", (text[:100], f"/{text}")).fetchone()
        assert row is not None
        conn.execute("select menzil.pipeline_run_end(%s, 1, 1, %s)", (row[0], text))
