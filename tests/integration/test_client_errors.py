"""Each refusal of the contract, through Python: its class, its SQLSTATE, a sentence and a hint; and nothing written."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import menzil
from menzil.model.version import SCHEMA_VERSION_KNOWN as KNOWN


@pytest.fixture
def mq(db: str) -> Iterator[menzil.Menzil]:
    with menzil.Menzil(db) as client:
        client.channel_set("billing")
        client.create_endpoint("hook", "http", {"url": "https://example.com/hook"})
        yield client


def unknown_name(mq: menzil.Menzil) -> None:
    mq.send("nowhere", 1)


def unknown_message(mq: menzil.Menzil) -> None:
    mq.status(10**12)


def name_taken(mq: menzil.Menzil) -> None:
    mq.create_endpoint("billing", "http", {"url": "https://example.com/hook"})


def disabled(mq: menzil.Menzil) -> None:
    mq.disable_endpoint("hook")
    mq.send("hook", 1)


def released(mq: menzil.Menzil) -> None:
    mq.send("billing", 1)
    mq.channel_release("billing")
    mq.send_batch("billing", [1])


def missing(mq: menzil.Menzil) -> None:
    with psycopg.connect(mq.dsn) as conn:
        conn.execute("select menzil.send('billing', null)")


def out_of_range(mq: menzil.Menzil) -> None:
    mq.send("billing", 1, priority=11)


def far_out_of_range(mq: menzil.Menzil) -> None:
    mq.send("billing", 1, priority=10**30)


def bad_config(mq: menzil.Menzil) -> None:
    mq.validate_endpoint_config("http", {"colour": "red"})


def unknown_setting(mq: menzil.Menzil) -> None:
    mq.set_setting("colour", "red")


def lone_surrogate(mq: menzil.Menzil) -> None:
    mq.send("billing", "\ud800")


def too_large(mq: menzil.Menzil) -> None:
    mq.send("billing", "x" * 2_000_000)


def conflict(mq: menzil.Menzil) -> None:
    mq.send("billing", 1, idempotency_key="k")
    mq.send("billing", 2, idempotency_key="k")


def channel_full(mq: menzil.Menzil) -> None:
    mq.channel_set("billing", max_size=1)
    mq.send_batch("billing", [1, 2])


def stale(mq: menzil.Menzil) -> None:
    mq.send("billing", 1)
    (message,) = mq.dequeue()
    mq.defer(message)
    mq.dequeue()
    mq.complete(message)


def not_in_flight(mq: menzil.Menzil) -> None:
    mq.send("billing", 1)
    (message,) = mq.dequeue()
    mq.complete(message)
    mq.complete(message)


def in_use(mq: menzil.Menzil) -> None:
    mq.send("hook", 1)
    mq.drop_endpoint("hook")


@pytest.mark.parametrize(
    ("do", "kind", "state"),
    [
        (unknown_name, menzil.UnknownNameError, "42704"),
        (unknown_message, menzil.UnknownNameError, "42704"),
        (name_taken, menzil.NameTakenError, "42710"),
        (disabled, menzil.DisabledError, "55000"),
        (released, menzil.DisabledError, "55000"),
        (out_of_range, menzil.InvalidValueError, "22023"),
        (far_out_of_range, menzil.InvalidValueError, "22003"),
        (bad_config, menzil.InvalidValueError, "22023"),
        (unknown_setting, menzil.InvalidValueError, "22023"),
        (lone_surrogate, menzil.InvalidValueError, "22023"),
        (too_large, menzil.PayloadTooLargeError, "54000"),
        (conflict, menzil.IdempotencyConflictError, "23505"),
        (channel_full, menzil.QueueFullError, "53400"),
        (stale, menzil.StaleLeaseError, "MZ001"),
        (not_in_flight, menzil.NotInFlightError, "MZ002"),
        (in_use, menzil.EndpointInUseError, "55006"),
    ],
)
def test_each_refusal_has_its_class(mq: menzil.Menzil, do, kind: type[menzil.MenzilError], state: str) -> None:
    with pytest.raises(kind) as refused:
        do(mq)
    error = refused.value
    assert type(error) is kind
    assert error.sqlstate == state
    assert error.message
    if do not in (far_out_of_range, lone_surrogate):
        assert error.hint, "what to do about it"
        assert isinstance(error.__cause__, psycopg.Error), "the original is kept"


def test_null_is_refused_by_sql_with_the_state_python_uses(mq: menzil.Menzil) -> None:
    with pytest.raises(psycopg.Error) as by_sql:
        missing(mq)
    with pytest.raises(menzil.MissingValueError) as by_python:
        mq.send("billing", None)
    assert by_sql.value.sqlstate == by_python.value.sqlstate == "22004"


def test_a_refused_batch_leaves_nothing_behind(mq: menzil.Menzil) -> None:
    for bad in (menzil.Send("nowhere", 1), menzil.Send("billing", 1, priority=11), menzil.Send("billing", "\x00")):
        with pytest.raises(menzil.RefusedError):
            mq.send_many([menzil.Send("billing", 1), bad])
    assert mq.peek("billing") == []


def test_a_refusal_on_the_callers_connection_is_translated_too(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn:
        with pytest.raises(menzil.UnknownNameError):
            mq.send("nowhere", 1, conn=conn)
        conn.rollback()
        assert mq.send("billing", 1, conn=conn) > 0


def test_an_error_that_is_not_ours_comes_as_it_is(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn:
        with pytest.raises(psycopg.errors.DivisionByZero):
            conn.execute("select 1 / 0")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            mq.send("billing", 1, conn=conn)


def test_what_breaks_inside_a_function_is_not_taken_for_a_refusal(mq: menzil.Menzil, db: str) -> None:
    with psycopg.connect(db) as conn:
        conn.execute(
            "create or replace function menzil.maintain() returns void language plpgsql as $$ begin"
            " perform array_fill(0, array[null::integer]); end $$"
        )
    with pytest.raises(psycopg.errors.NullValueNotAllowed):
        mq.maintain()


# --- the database and the client do not fit ---------------------------------------------------------------------------


def test_a_database_without_menzil_says_how_to_install_it(fresh_db: str) -> None:
    with menzil.Menzil(fresh_db) as mq, psycopg.connect(fresh_db) as conn:
        for attempt in (lambda: mq.send("billing", 1), lambda: mq.send("billing", 1, conn=conn)):
            with pytest.raises(menzil.SchemaMissingError) as refused:
                attempt()
            assert "menzil migrate" in (refused.value.hint or "")


def serve(db: str, compatible_from: int, installed: int) -> None:
    """Let a database say that it serves these clients."""
    with psycopg.connect(db) as conn:
        conn.execute(
            "create or replace function menzil.schema_window(out compatible_from integer, out installed integer)"
            f" language sql as 'select {compatible_from}, {installed}'"
        )


@pytest.mark.parametrize(
    ("compatible_from", "installed", "kind"),
    [
        (KNOWN + 1, KNOWN + 2, menzil.SchemaTooNewError),
        (1, KNOWN - 1, menzil.SchemaTooOldError),
        (KNOWN - 1, KNOWN + 1, None),
        (KNOWN, KNOWN + 1, None),
        (KNOWN - 1, KNOWN, None),
    ],
)
def test_a_client_is_served_while_its_schema_is_in_the_window(
    db: str, compatible_from: int, installed: int, kind: type[menzil.MenzilError] | None
) -> None:
    serve(db, compatible_from, installed)
    with menzil.Menzil(db) as mq:
        if kind is None:
            mq.channel_set("billing")
            assert mq.send("billing", 1) > 0
            return
        with pytest.raises(kind, match=f"schema {installed}.* {KNOWN}") as refused:
            mq.send("billing", 1)
        assert refused.value.hint


def test_a_database_of_a_release_without_a_window_is_too_old(db: str) -> None:
    with psycopg.connect(db) as conn:
        conn.execute("drop function menzil.schema_window() cascade")
        conn.execute("create or replace function menzil.schema_version() returns integer language sql return 5")
    with menzil.Menzil(db) as mq, pytest.raises(menzil.SchemaTooOldError, match="has schema 5") as refused:
        mq.send("billing", 1)
    assert "menzil migrate" in (refused.value.hint or "")


def test_a_role_without_rights_is_told_so(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute(f"create role stranger_{conn.info.dbname} login password 'x'")
        stranger = make_conninfo(db, user=f"stranger_{conn.info.dbname}", password="x")
        try:
            with menzil.Menzil(stranger) as mq, pytest.raises(menzil.PermissionDeniedError) as refused:
                mq.send("billing", 1)
            assert "grant menzil_application (to send) or menzil_worker (to consume) to stranger_" in str(refused.value)
            with psycopg.connect(stranger) as theirs, pytest.raises(menzil.PermissionDeniedError) as refused:
                menzil.Menzil(stranger).dequeue(conn=theirs)
            assert f"grant menzil_worker to stranger_{conn.info.dbname}" in str(refused.value)
        finally:
            conn.execute(f"drop role stranger_{conn.info.dbname}")


def test_a_server_that_is_not_there_is_named_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    dsn = f"postgresql://nobody:secret@127.0.0.1:{port}/shop"
    with menzil.Menzil(dsn) as mq, pytest.raises(menzil.ConnectionFailedError) as refused:
        mq.send("billing", 1)
    assert str(port) in refused.value.message
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("dsn", ["postgresql+psycopg://me:secret@host/shop?colour=red", "nonsense", "colour=red"])
def test_a_dsn_that_is_none_is_refused_without_repeating_it(dsn: str) -> None:
    with pytest.raises(menzil.UsageError) as refused:
        menzil.Menzil(dsn)
    assert "secret" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("client", [menzil.Menzil, menzil.AsyncMenzil])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"max_connections": 0}, "max_connections is a whole number, 1 or more, not 0."),
        ({"max_connections": "4"}, "max_connections is a whole number, 1 or more, not '4'."),
        ({"timeout": 0}, "The timeout must be more than zero seconds, not 0."),
        ({"timeout": float("nan")}, "The timeout must be more than zero seconds, not nan."),
        ({"timeout": timedelta(seconds=-1)}, "The timeout must be more than zero seconds, not -1.0."),
    ],
)
def test_a_client_that_could_never_connect_is_refused_when_it_is_made(client: Any, given: Any, said: str) -> None:
    with pytest.raises(menzil.UsageError) as refused:
        client("postgresql://localhost/shop", **given)
    assert refused.value.message == said


@pytest.mark.parametrize("written", [5, None, bytearray(b"1")])
def test_a_json_library_that_writes_no_text_is_refused_with_a_sentence(written: Any) -> None:
    with pytest.raises(menzil.InvalidValueError, match=f"The payload was written as {type(written).__name__}"):
        menzil.Menzil("postgresql://localhost/shop", dumps=lambda _: written).send("billing", 1)


def test_a_client_whose_connections_are_all_busy_says_so(db: str) -> None:
    with menzil.Menzil(db, max_connections=1, timeout=2) as mq:
        mq.channel_set("billing")
        pool = mq._own_pool()  # the only way to hold it: no public call lasts
        held = pool.take()
        with pytest.raises(menzil.ConnectionFailedError, match="busy"):
            mq.send("billing", 1)
        pool.give_back(held)
        assert mq.send("billing", 1) > 0


def test_a_name_that_is_almost_right_is_told_which_one_was_meant(mq: menzil.Menzil) -> None:
    calls = (
        lambda: mq.send("biling", 1),
        lambda: mq.send_batch("biling", [1]),
        lambda: mq.send_many([menzil.Send("biling", 1)]),
        lambda: mq.dequeue(channels="biling"),
        lambda: mq.channel_pause("biling"),
    )
    for call in calls:
        with pytest.raises(menzil.UnknownNameError) as refused:
            call()
        assert refused.value.hint is not None
        assert refused.value.hint.startswith("Did you mean 'billing'? ")
    with pytest.raises(menzil.UnknownNameError) as refused:
        mq.send("quite another", 1)
    assert "Did you mean" not in str(refused.value)


def test_a_worker_with_a_misspelled_handler_says_once_which_channel_may_be_meant(
    mq: menzil.Menzil, caplog: pytest.LogCaptureFixture
) -> None:
    mq.channel_set("quick")
    app = menzil.Worker(mq.dsn, endpoints=False, janitors=False)
    app.handler("biling", "quick", "unlike")(lambda message: None)
    asyncio.run(app.serve(once=True))
    said = [record.getMessage() for record in caplog.records if "channel_missing" in record.getMessage()]
    assert said == ["channel_missing channels=biling,unlike did_you_mean=billing"]
