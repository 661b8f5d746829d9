"""Bridges: made and changed, records taken once, positions that fence, records that cannot be messages."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.sql.queue import Queue
from tests.sql.refusing import refused

NATS = {"servers": ["a"], "stream": "A", "start": "latest"}
REDIS = {"host": "cache.example.com", "stream": "s", "start": "earliest", "auth": {"password": "hush"}}


@pytest.fixture
def bridge(queue: Queue) -> str:
    queue.call("bridge_create", "b", "redis", REDIS, "work")
    queue.call("bridge_begin", "b", "s", "0-0")
    return "b"


def take(queue: Queue, begin: str | None, end: str | None, *texts: str | None, **more: Any) -> tuple[int, int]:
    named = {f"p_{name}": value for name, value in more.items()}
    (row,) = queue.rows("bridge_take", "b", "s", begin, end, list(texts), **named)
    return row.taken, row.refused


def test_secrets_are_kept_apart(queue: Queue, bridge: str) -> None:
    assert "hush" not in str(queue.all("select * from menzil.bridges"))
    assert "hush" not in str(queue.all("select * from menzil.event_log"))
    (opened,) = queue.rows("bridge_open", bridge, "i", "h", 1, "0")
    assert opened.config == REDIS
    shown = queue.one("select config from menzil.bridges")
    queue.call("bridge_alter", bridge, Jsonb({**shown, "batch": 5}))
    (opened,) = queue.rows("bridge_open", bridge, "i", "h", 1, "0")
    assert opened.config == {**REDIS, "batch": 5}
    queue.call("bridge_drop", bridge)
    assert queue.one("select count(*) from menzil.bridge_secret") == 0


@pytest.mark.parametrize(
    ("protocol", "change", "says"),
    [
        ("redis", {"steam": "s"}, "'steam' is not a key of the config of a redis bridge."),
        ("redis", {"start": None}, "start is needed"),
        ("redis", {"start": "first"}, "start must be earliest or latest, or a position"),
        ("redis", {"host": None}, "host is needed"),
        ("redis", {"auth": {}}, "auth.password is needed"),
        ("redis", {"maxlen": 5}, "'maxlen' is not a key"),
        ("redis", {"batch": 0}, "In the bridge config batch must be a whole number from 1 to 5000."),
        ("nats", {"servers": ["a"], "stream": "a.b", "start": "latest"}, "not the name of a stream"),
        ("nats", {"servers": ["a"], "stream": "A", "start": "latest", "subject": "a..b"}, "is not a subject"),
        ("nats", {"servers": ["a"], "stream": "A", "start": "latest", "auth": {"token": "t"}}, "auth.type is needed"),
        ("nats", {**NATS, "auth": {"type": "token"}}, "auth.token is needed with auth.type token"),
        ("nats", {**NATS, "auth": {"type": "password", "username": "u"}}, "auth.password is needed"),
        ("nats", {**NATS, "auth": {"type": "token", "token": "t", "password": "p"}}, "auth.password does not belong"),
        ("amqp", {"host": "a", "queue": "q", "auth": {"type": "external", "username": "u"}}, "auth.username does not"),
        ("nats", {**NATS, "auth": {"type": "nkey"}}, "auth.nkey_seed is needed"),
        ("nats", {**NATS, "auth": {"type": "credentials"}}, "auth.credentials is needed"),
        ("kafka", {"servers": ["a:9092"], "topic": "a b", "start": "latest"}, "letters, digits"),
        ("kafka", {"servers": ["a:9092"], "topic": "a", "start": "5"}, "start must be earliest or latest."),
        ("kafka", {"servers": ["a:9092"], "start": "latest"}, "topic is needed"),
        ("http", {}, "cannot read from 'http'"),
    ],
)
def test_a_config_that_no_source_could_use_is_refused(
    queue: Queue, protocol: str, change: dict[str, Any], says: str
) -> None:
    whole = (REDIS if protocol == "redis" else {}) | change
    config = {key: value for key, value in whole.items() if value is not None}
    assert says in refused(queue, "22023", "bridge_create", "b", protocol, Jsonb(config), "work")
    assert queue.all("select * from menzil.bridges") == []


def test_a_bridge_has_one_goal(queue: Queue) -> None:
    queue.call("create_event_type", "made")
    for goal in ((), ("work", "made")):
        assert "one of the two" in refused(queue, "22023", "bridge_create", "b", "redis", Jsonb(REDIS), *goal)
    queue.call("bridge_create", "b", "redis", REDIS, None, "made")
    refused(queue, "42710", "bridge_create", "b", "redis", Jsonb(REDIS), "work")
    queue.call("bridge_alter", "b", p_channel="work")
    assert queue.one("select channel, event_type from menzil.bridges") == ("work", None)


def test_records_and_position_move_together(queue: Queue, bridge: str) -> None:
    assert take(queue, "0-0", "2-0", '{"n": 1}', "2", ordering_keys=["k", None]) == (2, 0)
    assert [row.payload for row in queue.all("select payload from menzil.queue order by id")] == [{"n": 1}, 2]
    assert "stands at 2-0, not at 0-0" in refused(queue, "MZ004", "bridge_take", bridge, "s", "0-0", "2-0", ["1"])
    assert queue.one("select count(*) from menzil.queue") == 2
    assert queue.one("select position, taken from menzil.bridge_positions") == ("2-0", 2)


def test_the_second_of_two_that_take_at_once_is_refused(queue: Queue, bridge: str, connect: Any) -> None:
    first, second = Queue(connect(autocommit=False)), Queue(connect())
    take(first, "0-0", "1-0", "1")
    errors: list[Exception] = []

    def late() -> None:
        try:
            take(second, "0-0", "1-0", "1")
        except psycopg.Error as error:
            errors.append(error)

    thread = threading.Thread(target=late)
    thread.start()
    waits = "select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'bridge_take')"
    while thread.is_alive() and not queue.one(waits):
        thread.join(0.01)
    first.conn.commit()
    thread.join(60)
    assert [error.sqlstate for error in errors] == ["MZ004"]  # type: ignore[attr-defined]
    assert queue.one("select count(*) from menzil.queue") == 1


def test_a_take_that_is_rolled_back_takes_nothing(queue: Queue, bridge: str, connect: Any) -> None:
    other = Queue(connect(autocommit=False))
    take(other, "0-0", "1-0", "1", "{")
    other.conn.rollback()
    assert take(queue, "0-0", "1-0", "1", "{") == (1, 1)
    assert queue.one("select count(*) from menzil.dlq") == 1


def test_records_that_cannot_be_messages_are_dead_letters_with_their_position(queue: Queue, bridge: str) -> None:
    about = '{"bridge": {"position": "2-0"}}'
    assert take(
        queue, "0-0", "3-0", "1", '{"a":', "3", ordering_keys=[None, "k", "k"], metadatas=[None, about, None]
    ) == (2, 1)
    letter = queue.one("select content, payload, ordering_key, last_error, metadata from menzil.dlq")
    assert bytes(letter.content) == b'{"a":'
    assert letter.payload is letter.ordering_key is None
    assert letter.last_error.startswith("The body is not JSON")
    assert letter.metadata == {"bridge": {"position": "2-0", "key": "k", "bytes": 5}}
    # The key goes on, and the letter is one like any other.
    assert [message.payload for message in queue.dequeue(5)] == [1, 3]
    queue.call("redrive_endpoint", "work")
    assert bytes(queue.lease().content) == b'{"a":'


def test_letters_of_a_channel_with_a_limit_take_no_room(queue: Queue, bridge: str) -> None:
    queue.call("channel_set", "work", None, 1)
    assert take(queue, "0-0", "3-0", "{", "[", "1") == (1, 2)
    refused(queue, "53400", "bridge_take", bridge, "s", "3-0", "4-0", ["1"])
    assert queue.one("select position from menzil.bridge_positions") == "3-0"


def test_bytes_stay_bytes(queue: Queue, bridge: str) -> None:
    assert take(queue, "0-0", "1-0", None, contents=[b"\x00\xff"]) == (1, 0)
    assert bytes(queue.one("select content from menzil.queue")) == b"\x00\xff"


def test_events_are_checked_and_published(queue: Queue) -> None:
    queue.call("create_event_type", "made", None, Jsonb({"required": ["id"]}))
    queue.call("subscribe", "made", "work")
    queue.call("bridge_create", "b", "redis", REDIS, None, "made")
    queue.call("bridge_begin", "b", "s", "0-0")
    assert take(queue, "0-0", "3-0", '{"id": 1}', "{}", None, contents=[None, None, b"x"]) == (1, 2)
    assert queue.one("select payload, metadata ->> 'event_type' from menzil.queue") == ({"id": 1}, "made")
    letters = queue.all("select endpoint_name, last_error from menzil.dlq order by id")
    assert {row.endpoint_name for row in letters} == {"menzil.bridge"}
    assert "breaks the rule" in letters[0].last_error
    assert "bytes" in letters[1].last_error


def test_without_positions_idempotency_keys_keep_repeats_away(queue: Queue) -> None:
    queue.call("bridge_create", "b", "redis", REDIS, "work")
    for _ in range(2):
        assert take(queue, None, None, "1", "2", "1", idempotency_keys=["a", "b", "a"]) == (3, 0)
    assert queue.one("select count(*) from menzil.queue") == 2


def test_a_paused_bridge_and_a_copy_take_nothing(queue: Queue, bridge: str) -> None:
    queue.call("bridge_pause", bridge)
    refused(queue, "55000", "bridge_take", bridge, "s", "0-0", "1-0", ["1"])
    queue.call("bridge_resume", bridge)
    queue.call("disown")
    try:
        refused(queue, "MZ003", "bridge_take", bridge, "s", "0-0", "1-0", ["1"])
        refused(queue, "MZ003", "bridge_open", bridge, "i", "h", 1, "0")
    finally:
        queue.call("adopt")
    assert take(queue, "0-0", "1-0", "1") == (1, 0)


def test_a_copy_has_another_family(queue: Queue, bridge: str) -> None:
    (first,) = queue.rows("bridge_open", bridge, "i", "h", 1, "0")
    queue.call("disown")
    queue.call("adopt")
    (second,) = queue.rows("bridge_open", bridge, "i", "h", 1, "0")
    assert first.family != second.family


def test_seek_moves_and_forgets(queue: Queue, bridge: str) -> None:
    queue.call("bridge_seek", bridge, "s", "7-0")
    assert queue.call("bridge_begin", bridge, "s", "0-0") == "7-0"
    assert "not a position of redis" in refused(queue, "22023", "bridge_seek", bridge, "s", "x")
    assert "has no partition 't'" in refused(queue, "42704", "bridge_seek", bridge, "t", "1-0")
    queue.call("bridge_seek", bridge, "s", None)
    assert queue.call("bridge_begin", bridge, "s", "3-0") == "3-0"


def test_seek_knows_sources_without_positions_and_numbers(queue: Queue) -> None:
    queue.call("bridge_create", "q", "amqp", {"host": "rabbit.example.com", "queue": "s"}, "work")
    queue.rows("bridge_take", "q", "s", None, None, ["1"])
    assert "has no positions" in refused(queue, "22023", "bridge_seek", "q", "s", "5")
    queue.rows("bridge_take", "q", "s", None, None, ["2"])
    queue.call("bridge_create", "n", "nats", {"servers": ["a"], "stream": "s", "start": "latest"}, "work")
    queue.call("bridge_seek", "n", "s", "007")
    assert queue.call("bridge_begin", "n", "s", None) == "7"
    queue.call("bridge_seek", "n", "s", "0")
    assert queue.call("bridge_begin", "n", "s", None) == "0"


def test_two_records_with_one_key_and_two_bodies_are_not_made_one(queue: Queue) -> None:
    queue.call("bridge_create", "b", "redis", REDIS, "work")
    refused(queue, "23505", "bridge_take", "b", "s", None, None, ["1", "2"], p_idempotency_keys=["a", "a"])
    assert queue.one("select count(*) from menzil.queue") == 0


def test_a_batch_with_half_of_its_positions_is_refused(queue: Queue, bridge: str) -> None:
    for begin, end in (("0-0", None), (None, "1-0")):
        refused(queue, "22023", "bridge_take", bridge, "s", begin, end, ["1"])
    assert queue.call("bridge_begin", bridge, "s", None) == "0-0"


def test_gaps_are_counted_and_logged(queue: Queue, bridge: str) -> None:
    take(queue, "0-0", "9-0", "1", lost=4)
    assert queue.one("select lost from menzil.bridges") == 4
    assert queue.one("select metadata ->> 'lost' from menzil.event_log where event_type = 'bridge.gap'") == "4"


def test_the_health_check_knows_who_runs_what(queue: Queue, bridge: str) -> None:
    says = "select status, detail from menzil.health_check() where check_name = 'bridges'"
    assert queue.one(says) == ("warning", "Bridge 'b' is not run by any process.")
    queue.rows("bridge_open", bridge, "i", "h", 1, "0")
    assert queue.one(says).status == "ok"
    queue.rows("bridge_heartbeat", bridge, "i", "The source is down", None)
    assert queue.one(says) == ("warning", "Bridge 'b' takes no records: The source is down")
    queue.rows("bridge_open", bridge, "j", "h", 2, "0")
    queue.rows("bridge_heartbeat", bridge, "i", "Another consumer has the queue", None)
    assert queue.one(says).status == "ok"  # one takes, and the other stands by
    queue.call("bridge_close", bridge, "j")
    assert queue.one(says).status == "warning"
    for lag in (5, 9, 9):
        queue.rows("bridge_heartbeat", bridge, "i", None, Jsonb({"s": lag}))
    assert queue.one(says).status == "ok"
    queue.conn.execute("update menzil.bridge_run set growing_since = growing_since - interval '2 minutes'")
    assert "falls behind" in queue.one(says).detail
    queue.rows("bridge_heartbeat", bridge, "i", None, Jsonb({"s": 3}))
    assert queue.one(says).status == "ok"
    queue.call("bridge_pause", bridge)
    queue.call("bridge_close", bridge, "i")
    assert queue.one(says).status == "ok"
