"""Ops without a database: what is refused before anything is sent, and how values are written and read."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

import menzil
from menzil.model import wire
from menzil.model.message import Message
from menzil.ops import channels, consuming, endpoints, messages, schedules, sending, upkeep, values
from menzil.ops.op import Op

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
LEASE = menzil.Lease(7, 2)


def test_a_plain_send_is_the_plain_function() -> None:
    op = sending.send("billing", {"order": 42})
    assert "menzil.send(" in op.text
    assert op.params == ("billing", '{"order":42}')


def test_options_travel_in_the_order_of_the_statement() -> None:
    op = sending.send(
        "billing",
        [1],
        priority=5,
        scheduled_at=NOON,
        expires_in=60,
        ordering_key="k",
        idempotency_key="i",
        correlation_id="550e8400-e29b-41d4-a716-446655440000",
        headers={"a": "b"},
        metadata={"c": 1},
    )
    at, correlation = "2026-01-02T12:00:00+00:00", "550e8400-e29b-41d4-a716-446655440000"
    assert op.params == (
        "billing", "[1]", "5", at, None, "i", correlation, None, "60.0", "k", '{"a":"b"}', '{"c":1}',
    )  # fmt: skip
    assert op.text.count("%s") == len(op.params)


@pytest.mark.parametrize("body", [b"raw", bytearray(b"raw"), memoryview(b"raw")])
def test_bytes_travel_as_they_are(body: bytes) -> None:
    op = sending.send("billing", body, delay=3)
    assert "menzil.message_create(" in op.text
    assert op.params == ("billing", b"raw", None, "3.0")


@pytest.mark.parametrize("option", [{"priority": 1}, {"ordering_key": "k"}, {"headers": {}}, {"expires_in": 1}])
def test_bytes_refuse_what_only_json_can_carry(option: dict[str, Any]) -> None:
    with pytest.raises(menzil.UsageError):
        sending.send("billing", b"raw", **option)


def test_none_is_a_forgotten_payload_and_a_json_null_says_so() -> None:
    with pytest.raises(menzil.MissingValueError, match="Jsonb"):
        sending.send("billing", None)
    assert sending.send("billing", Jsonb(None)).params == ("billing", "null")


class Deep(dict[str, Any]):
    """Nested further than Python recurses."""

    def __init__(self) -> None:
        inner: dict[str, Any] = {}
        for _ in range(100_000):
            inner = {"a": inner}
        super().__init__(a=inner)


@pytest.mark.parametrize(
    "payload",
    [math.nan, math.inf, {"a": [-math.inf]}, {1, 2}, object(), NOON, {"a": "nul\x00here"}, {"nul\x00key": 1}, Deep()],
    ids=lambda payload: type(payload).__name__,
)
def test_a_payload_that_is_not_json_is_refused_before_anything_is_sent(payload: object) -> None:
    with pytest.raises(menzil.InvalidValueError):
        sending.send("billing", payload)
    with pytest.raises(menzil.InvalidValueError):
        sending.send_batch("billing", [1, payload])
    with pytest.raises(menzil.InvalidValueError):
        sending.send_many([{"channel": "billing", "payload": payload}])
    with pytest.raises(menzil.InvalidValueError):
        sending.send("billing", 1, metadata={"a": payload})


@pytest.mark.parametrize("payloads", ["abc", b"abc", bytearray(b"abc"), {"order": 1}])
def test_one_payload_is_not_taken_for_a_batch_of_its_parts(payloads: Any) -> None:
    with pytest.raises(menzil.InvalidValueError, match="must be a list") as refused:
        sending.send_batch("billing", payloads)
    assert refused.value.hint == "use send() for one"


@pytest.mark.parametrize(
    ("said", "kept"),
    [("\0", "\ufffd"), ("a\0\0b", "a\ufffd\ufffdb"), ("\\u0000", "\\u0000"), ("\\\0", "\\\ufffd")],
    ids=["nul", "two", "letters", "backslash and nul"],
)
def test_a_response_with_the_letters_of_a_nul_is_kept_as_it_is(said: str, kept: str) -> None:
    op = consuming.complete_many([LEASE], [{"body": said}])
    # One element of an array literal is quoted as a JSON string is.
    written = json.loads(json.loads(str(op.params[2])[1:-1]))
    assert written == {"body": kept}


def test_a_backslash_before_the_letters_u0000_is_no_nul() -> None:
    assert sending.send("billing", "\\u0000").params[1] == '"\\\\u0000"'
    with pytest.raises(menzil.InvalidValueError):
        sending.send("billing", "\\\x00")


@pytest.mark.parametrize("word", ["channel", "ordering_key", "idempotency_key"])
def test_a_nul_in_a_text_is_refused(word: str) -> None:
    options: Any = {"channel": "billing", "payload": 1} | {word: "a\x00b"}
    with pytest.raises(menzil.InvalidValueError, match=word):
        sending.send(**options)


@pytest.mark.parametrize("word", ["scheduled_at", "expires_at"])
def test_a_time_without_a_time_zone_is_refused(word: str) -> None:
    options: Any = {word: datetime(2026, 1, 2)}
    with pytest.raises(menzil.InvalidValueError) as refused:
        sending.send("billing", 1, **options)
    assert refused.value.hint == "give it a time zone"
    with pytest.raises(menzil.InvalidValueError):
        consuming.defer(LEASE, until=datetime(2026, 1, 2))


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**5000], ids=["64 bits", "negative", "5001 digits"])
def test_a_number_that_no_integer_of_postgresql_holds_is_refused_with_a_hint(number: int) -> None:
    for make in (lambda: sending.send("billing", 1, priority=number), lambda: consuming.dequeue(limit=number)):
        with pytest.raises(menzil.InvalidValueError, match="is out of range") as refused:
            make()
        assert refused.value.hint


@pytest.mark.parametrize("delay", [-1, math.nan, math.inf, 1e30, 10**400, "3", True, timedelta(seconds=-3)])
def test_a_duration_is_a_number_of_seconds(delay: Any) -> None:
    for make in (
        lambda: sending.send("billing", 1, delay=delay),
        lambda: sending.send("billing", 1, expires_in=delay),
        lambda: consuming.defer(LEASE, delay=delay),
        lambda: consuming.fail(LEASE, "no", retry_after=delay),
        lambda: consuming.dequeue(lease=delay),
        lambda: consuming.heartbeat(LEASE, delay),
    ):
        with pytest.raises(menzil.InvalidValueError):
            make()


def test_two_ways_of_saying_the_same_are_one_too_many() -> None:
    with pytest.raises(menzil.UsageError):
        sending.send("billing", 1, delay=1, scheduled_at=NOON)
    with pytest.raises(menzil.UsageError):
        sending.send("billing", 1, expires_in=1, expires_at=NOON)
    with pytest.raises(menzil.UsageError):
        consuming.defer(LEASE, delay=1, until=NOON)
    with pytest.raises(menzil.UsageError):
        consuming.defer_many([(LEASE, menzil.Defer(seconds=1, until=NOON))])


@pytest.mark.parametrize(
    "make", [lambda: sending.send(None, 1), lambda: messages.status(None), lambda: upkeep.setting(None)]
)
def test_a_missing_value_is_named(make: Any) -> None:
    with pytest.raises(menzil.MissingValueError):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: sending.send(5, 1),  # type: ignore[arg-type]
        lambda: sending.send("billing", 1, priority="high"),  # type: ignore[arg-type]
        lambda: sending.send("billing", 1, correlation_id="no uuid"),
        lambda: messages.status(True),
        lambda: consuming.defer(LEASE, state="text"),  # type: ignore[arg-type]
    ],
)
def test_a_value_of_the_wrong_kind_is_refused(make: Any) -> None:
    with pytest.raises(menzil.InvalidValueError):
        make()


@pytest.mark.parametrize(
    ("make", "hint"),
    [
        (lambda: sending.send("billing", 1, priority="high"), "give an int"),  # type: ignore[arg-type]
        (lambda: consuming.dequeue(lease="x"), "give an int, a float or a datetime.timedelta"),  # type: ignore[arg-type]
        (lambda: sending.send("billing", 1, correlation_id="no uuid"), "write 32 hexadecimal digits"),
    ],
)
def test_a_number_of_the_wrong_kind_comes_with_a_hint(make: Any, hint: str) -> None:
    with pytest.raises(menzil.InvalidValueError) as refused:
        make()
    assert (refused.value.hint or "").startswith(hint)


@pytest.mark.parametrize(
    "make",
    [
        lambda: consuming.complete(7),  # type: ignore[arg-type]
        lambda: consuming.complete_many([LEASE, 7]),  # type: ignore[list-item]
        lambda: consuming.heartbeat(7),  # type: ignore[arg-type]
        lambda: consuming.defer_many([(7, menzil.Defer())]),  # type: ignore[list-item]
        lambda: consuming.fail(7, "no"),  # type: ignore[arg-type]
        lambda: consuming.following([7]),  # type: ignore[list-item]
    ],
)
def test_what_is_no_message_is_named(make: Any) -> None:
    with pytest.raises(menzil.UsageError) as refused:
        make()
    assert refused.value.message == "7 is not a message."
    assert refused.value.hint == "give a Message, or a Lease of an id and an attempt"


def test_an_unknown_option_is_a_mistake_in_the_call() -> None:
    with pytest.raises(TypeError):
        sending.send("billing", 1, priorty=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        schedules.schedule_create("s", "* * * * *", "billing", 1, timezone="UTC")  # type: ignore[call-arg]


def test_members_of_an_enum_are_sent_by_value() -> None:
    class Name(StrEnum):
        BILLING = "billing"

    class Urgency(IntEnum):
        HIGH = 9

    op = sending.send(Name.BILLING, 1, priority=Urgency.HIGH)
    assert op.params[0] == "billing"
    assert type(op.params[0]) is str
    assert op.params[2] == "9"


def test_send_many_takes_dicts_and_dataclasses() -> None:
    (op,) = sending.send_many(
        [
            menzil.Send("a", {"n": 1}, priority=3, delay=5),
            {"channel": "b", "payload": 'say "hi" \\', "idempotency_key": "k", "scheduled_at": NOON},
            MappingProxyType({"endpoint": "c", "payload": [None]}),
        ]
    )
    assert op.params[:5] == (
        '{"a","b","c"}',
        '{"{\\"n\\":1}","\\"say \\\\\\"hi\\\\\\" \\\\\\\\\\"","[null]"}',
        "{3,0,0}",
        '{NULL,"2026-01-02T12:00:00+00:00",NULL}',
        "{5.0,NULL,NULL}",
    )
    assert op.params[5:] == ('{NULL,"k",NULL}', None, None, None, None, None, None)
    assert op.text.count("%s") == len(op.params)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"channel": "a", "payload": 1, "colour": "red"}, menzil.UsageError),
        ({"channel": "a"}, menzil.MissingValueError),
        ({"payload": 1}, menzil.MissingValueError),
        ({"channel": "a", "payload": b"raw"}, menzil.UsageError),
        (menzil.Send("a", b"raw"), menzil.UsageError),
        ("a", menzil.UsageError),
        ({"channel": "a", "endpoint": "b", "payload": 1}, menzil.UsageError),
    ],
)
def test_send_many_refuses_a_message_it_does_not_understand(message: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        sending.send_many([{"channel": "a", "payload": 1}, message])


def test_send_many_becomes_several_statements_only_when_it_is_long() -> None:
    one = {"channel": "a", "payload": 1}
    assert sending.send_many([]) == []
    assert len(sending.send_many([one] * sending.CHUNK)) == 1
    assert [str(op.params[2]).count("0") for op in sending.send_many([one] * (sending.CHUNK + 3))] == [sending.CHUNK, 3]


def test_fail_puts_the_class_before_the_reason() -> None:
    assert consuming.fail(LEASE, "no").params[2] == "[RETRYABLE] no"
    assert consuming.fail(LEASE, "no", permanent=True).params[2] == "[PERMANENT] no"
    assert consuming.fail(LEASE, "no", disable=True).params[2] == "[PERMANENT] [DISABLE] no"
    assert consuming.fail(LEASE, "no", retry_after=1.5).params[3] == "1.500000 seconds"


def test_an_error_text_cannot_choose_its_own_class() -> None:
    assert consuming.fail(LEASE, "[PERMANENT] said the remote").params[2] == "[RETRYABLE] [PERMANENT] said the remote"


def test_a_message_can_fail_whatever_its_error_says() -> None:
    assert consuming.fail(LEASE, "a\x00b\ud800").params[2] == "[RETRYABLE] a\\x00b\\ud800"
    assert consuming.fail_many([(LEASE, menzil.Fail("a\x00b"))]).params[2] == '{"[RETRYABLE] a\\\\x00b"}'


def test_answers_come_in_the_order_of_the_question() -> None:
    op = consuming.complete_many([menzil.Lease(3, 1), menzil.Lease(1, 4), menzil.Lease(2, 1)])
    assert op.params == ("{3,1,2}", "{1,4,1}", None, None)
    answers = op.read([(1, "settled"), (2, "stale"), (3, "unknown")])
    assert [(answer.id, answer.outcome, answer.ok) for answer in answers] == [
        (3, menzil.Settlement.UNKNOWN, False),
        (1, menzil.Settlement.SETTLED, True),
        (2, menzil.Settlement.STALE, False),
    ]


def test_defer_many_keeps_each_lease_its_own() -> None:
    op = consuming.defer_many(
        [(menzil.Lease(1, 1), menzil.Defer(seconds=2)), (menzil.Lease(2, 1), menzil.Defer(state=b"\x00s"))]
    )
    assert op.params == ("{1,2}", "{1,1}", "{NULL,NULL}", "{2.0,NULL}", '{NULL,"\\\\x0073"}', None)


def leased(id: int, batch: int | None) -> Message:
    """A message as a dequeue hands it out."""
    none = (None,) * 4
    return Message.from_row((id, "a", None, None, None, 1, None, None, None, None, 0, 0, *none, batch), json.loads)


def test_settles_show_the_batch_of_those_who_know_it() -> None:
    known: list[Message | menzil.Lease] = [leased(5, 3), LEASE, leased(6, 3)]
    made = [
        consuming.complete_many(known),
        consuming.defer_many([(one, menzil.Defer()) for one in known]),
        consuming.fail_many([(one, menzil.Fail("no")) for one in known]),
        consuming.heartbeat_many(known),
    ]
    assert [op.params[-1] for op in made] == ["{3,NULL,3}"] * 4
    assert [op.text.count("%s") for op in made] == [len(op.params) for op in made]
    assert Message(1, "a").batch is None


def test_a_failure_without_a_reason_is_refused() -> None:
    for forgotten in (
        lambda: consuming.fail(LEASE, None),
        lambda: consuming.fail_many([(LEASE, menzil.Fail(None))]),
    ):
        with pytest.raises(menzil.MissingValueError, match=r"The (error|reason) is missing\.") as refused:
            forgotten()
        assert refused.value.hint == "say what went wrong: people read it"


def test_a_failure_says_in_types_what_its_prefix_says_in_words() -> None:
    how = [
        menzil.Fail("no"),
        menzil.Fail("no", retry=False),
        menzil.Fail("no", disable=True),
        menzil.Fail("HTTP 503", retry=7, rest=True),
        menzil.Fail("no", retry=0, rest=False),
    ]
    params = consuming.fail_many([(menzil.Lease(id, 1), one) for id, one in enumerate(how)]).params
    assert params[5:7] == ("{f,t,t,f,f}", "{NULL,NULL,NULL,t,f}")
    plain = consuming.fail_many([(LEASE, menzil.Fail("HTTP 429", retry=7))]).params
    assert plain[5:7] == ("{f}", None), "who does not say it leaves it to the text"


def test_one_channel_may_be_named_without_a_list() -> None:
    assert consuming.dequeue(channels="a").params[2] == consuming.dequeue(channels=["a"]).params[2] == '{"a"}'
    assert consuming.dequeue().params == ("30000", "1", None, None, "f", "f", None)
    assert consuming.dequeue(apart=True).params[5] == "t"
    assert consuming.dequeue(lease=0.0001).params[0] == "1", "a short lease is no lease of zero"


def test_a_setting_is_written_as_text() -> None:
    assert upkeep.set_setting("a", True).params == ("a", "on")
    assert upkeep.set_setting("a", 5).params == ("a", "5")


def test_other_ops_have_one_parameter_for_each_place() -> None:
    made: list[Op[Any]] = [
        channels.channel_set("a", max_concurrency=3, release_interval=0.5),
        endpoints.create_endpoint("a", "http", {"url": "x"}),
        endpoints.set_retry_policy("a", None),
        schedules.schedule_create("s", "* * * * *", "a", {}, time_zone="Europe/Istanbul", expires_after=3),
        schedules.cron_next("* * * * *", "UTC", NOON),
        messages.peek("a"),
        consuming.heartbeat_many([LEASE], 5),
    ]
    for op in made:
        assert op.text.count("%s") + op.text.count("%b") == len(op.params), op.text


# --- the wire ---------------------------------------------------------------------------------------------------------

#: Speed is not looked at: the clock of a busy machine says nothing about these.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


# Not from the first hours of the year 1 on: east of Greenwich they belong to a year that Python does not have.
@unhurried
@given(st.datetimes(datetime(1, 1, 2), timezones=st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=45))])))
def test_times_come_back_as_they_went(moment: datetime) -> None:
    microseconds = (moment - datetime(2000, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert wire.read_time(microseconds.to_bytes(8, "big", signed=True)) == moment


def test_times_beyond_the_years_of_python_become_the_last_one() -> None:
    infinity, minus_infinity = b"\x7f" + b"\xff" * 7, b"\x80" + b"\x00" * 7
    assert wire.read_time(infinity) == datetime.max.replace(tzinfo=UTC)
    assert wire.read_time(minus_infinity) == datetime.min.replace(tzinfo=UTC)


def read_array(literal: str) -> list[str | None]:
    """Read an array literal as PostgreSQL does, for texts."""
    out: list[str | None] = []
    at = 1
    while at < len(literal) - 1:
        if literal.startswith("NULL", at):
            out.append(None)
            at += 4
        else:
            assert literal[at] == '"'
            at += 1
            word = ""
            while literal[at] != '"':
                at += literal[at] == "\\"
                word += literal[at]
                at += 1
            out.append(word)
            at += 1
        at += literal[at] == ","
    return out


@unhurried
@given(st.lists(st.none() | st.text()))
def test_texts_in_an_array_are_never_mistaken_for_its_syntax(texts: list[str | None]) -> None:
    assert read_array(values.array(texts)) == texts


JSON = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", codec="utf-8")),
    lambda inner: (
        st.lists(inner | st.none())
        | st.dictionaries(st.text(st.characters(exclude_characters="\x00", codec="utf-8")), inner | st.none())
    ),
)


@unhurried
@given(JSON)
def test_json_is_written_as_it_will_be_read(value: Any) -> None:
    written = sending.send("a", value).params[1]
    assert isinstance(written, str)
    assert json.loads(written) == value
    assert wire.read_json(b"\x01" + written.encode(), json.loads) == value


# --- messages ---------------------------------------------------------------------------------------------------------


def row(**changes: Any) -> Any:
    moment = (0).to_bytes(8, "big")
    columns = {
        "id": 1, "channel": "a", "content": None, "payload": b'\x01{"n": 1}', "state": None, "num_attempts": 1,
        "headers": None, "correlation_id": UUID(int=5).bytes, "metadata": b"\x01{}", "ordering_key": None,
        "priority": 0, "retry_count": 0,
        "created_at": moment, "scheduled_at": None, "expires_at": None, "unlock_at": moment,
    }  # fmt: skip
    return tuple((columns | changes).values())


def test_a_message_decodes_what_is_looked_at() -> None:
    message = Message.from_row(row(), json.loads)
    assert message.payload == message.body == {"n": 1}
    assert message.payload is message.payload, "once"
    assert message.correlation_id == UUID(int=5)
    assert message.metadata == {}
    assert message.headers is message.scheduled_at is message.content is None  # type: ignore[comparison-overlap]
    assert message.created_at == message.unlock_at == datetime(2000, 1, 1, tzinfo=UTC)


def test_a_message_python_cannot_parse_spoils_only_itself() -> None:
    too_deep = b"\x01" + b"[" * 100_000 + b"]" * 100_000
    (bad, good) = consuming.dequeue().read([row(payload=too_deep), row(id=2)])
    assert good.payload == {"n": 1}
    assert (bad.id, bad.attempt) == (1, 1), "and can still be failed"
    with pytest.raises(RecursionError):
        _ = bad.payload


def test_a_message_is_read_only() -> None:
    message: Any = Message.from_row(row(), json.loads)
    with pytest.raises(AttributeError):
        message.attempt = 9
    with pytest.raises(AttributeError):
        message.colour = "red"


def test_a_message_can_be_made_by_hand_for_the_test_of_a_handler() -> None:
    message = menzil.Message(1, "billing", {"order": 42}, state=b"s", attempt=2, headers={"a": "b"})
    assert (message.id, message.channel, message.payload, message.body) == (1, "billing", {"order": 42}, {"order": 42})
    assert (message.state, message.attempt, message.headers, message.priority) == (b"s", 2, {"a": "b"}, 0)
    assert message.created_at.tzinfo is UTC
    assert menzil.Message(1, "billing", content=b"raw").body == b"raw"


def test_two_messages_are_the_same_when_their_lease_is() -> None:
    assert Message.from_row(row(), json.loads) == menzil.Message(1, "a", attempt=1)
    assert len({menzil.Message(1, "a"), menzil.Message(1, "a"), menzil.Message(1, "a", attempt=2)}) == 2
    assert menzil.Message(1, "a") != menzil.Lease(1, 1)


def test_a_message_does_not_print_what_it_carries() -> None:
    assert repr(menzil.Message(1, "a", {"password": "x"})) == "<Message 1 of 'a', attempt 1>"
