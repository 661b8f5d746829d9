"""The upgrade from 0.1.0 while others send, consume and read."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.types.json import Jsonb

from menzil.install import InstallError, Pace, check, migrate, script
from tests.integration.install.old_release import Hand, fill
from tests.integration.install.test_races import wait_for

ROWS = 50_000


class Client:
    """Goes on over refusals and lost connections, and remembers what was acknowledged."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.conn = psycopg.connect(dsn, autocommit=True)
        self.refusals: list[str] = []

    def attempt(self, work: Callable[[Hand], None]) -> None:
        try:
            work(Hand(self.conn))
        except psycopg.Error as error:
            self.refusals.append(f"{error.sqlstate}: {error.diag.message_primary}")
            self.conn.close()
            self.conn = psycopg.connect(self.dsn, autocommit=True)


def test_nothing_acknowledged_is_lost_when_the_switch_comes_under_load(empty, old_tree):
    migrate(empty, root=old_tree)
    with psycopg.connect(empty, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('load'), menzil.channel_set('keyed', p_max_concurrency => 3)")
    stop = threading.Event()
    sent: list[int] = []
    completed: list[int] = []
    clients = [Client(empty) for _ in range(5)]

    def send(client: Client) -> None:
        n = 0
        while not stop.is_set():
            n += 1

            def one(hand: Hand, n: int = n) -> None:
                sent.append(hand.send("load", {"n": n}))
                sent.append(hand.send("keyed", {"n": n}, ordering_key=str(n % 5), priority=n % 3))
                sent.extend(hand.batch("load", 5))

            client.attempt(one)

    def consume(client: Client) -> None:
        while not stop.is_set():

            def some(hand: Hand) -> None:
                for channel, limit in (("load", 20), ("keyed", 2)):
                    leases = hand.lease(channel, limit, lock_ms=2000)
                    if leases:
                        outcomes = hand.all(
                            "select id, outcome from menzil.message_complete(%s::bigint[], %s::bigint[])",
                            [one.id for one in leases],
                            [one.num_attempts for one in leases],
                        )
                        completed.extend(row.id for row in outcomes if row.outcome == "settled")

            client.attempt(some)

    with ThreadPoolExecutor(5) as pool:
        work = [pool.submit(send, client) for client in clients[:2]]
        work += [pool.submit(consume, client) for client in clients[2:]]
        try:
            wait_for(lambda: len(sent) > 100 and len(completed) > 20)
            before = len(sent)
            report = migrate(empty)
            after = len(sent)
            wait_for(lambda: len(sent) > after + 100)
        finally:
            stop.set()
        for one in work:
            one.result()
    assert report.applied[:2] == ["0006_ends", "0007_engine"]
    assert before > 20
    assert len(sent) > after + 20, "senders did not go on"
    for client in clients:
        client.conn.close()
    with psycopg.connect(empty, autocommit=True) as conn:
        hand = Hand(conn)
        deadline = time.monotonic() + 60
        while hand.one("select count(*) from menzil.queue") and time.monotonic() < deadline:
            for channel in ("load", "keyed"):
                while leases := hand.lease(channel, 3 if channel == "keyed" else 500):
                    hand.complete(*leases)
                    completed.extend(one.id for one in leases)
        assert hand.one("select count(*) from menzil.queue") == 0
        ended = [row.id for row in hand.all("select id from menzil.archive where status = 'completed'")]
    assert len(ended) == len(set(ended))
    assert len(completed) == len(set(completed))
    assert set(sent) <= set(ended)
    assert set(completed) <= set(ended)
    # A call that waited for the switch is refused by the function that had just changed: about one call of each client.
    # The switch gives way before PostgreSQL ends a client's transaction for a deadlock.
    refusals = [refusal for client in clients for refusal in client.refusals]
    assert len(refusals) <= 2 * len(clients), refusals
    assert not [refusal for refusal in refusals if refusal.startswith("40P01")], refusals


@pytest.mark.slow
def test_large_archive_is_copied_in_steps_and_can_be_read_between_them(empty, old_tree):
    migrate(empty, root=old_tree)
    fingerprint = "select f.* from menzil.archive_fingerprint(now()) f"
    with psycopg.connect(empty, autocommit=True) as conn, psycopg.connect(empty, autocommit=True) as reader:
        hand = Hand(conn)
        hand.do("select menzil.set_setting('max_queue_size', '0')")
        hand.do("select menzil.channel_set('big')")
        for _ in range(ROWS // 10_000):
            hand.do("select menzil.send_batch('big', array_fill(%s::jsonb, array[10000]))", Jsonb({"a": 1}))
            while leases := hand.lease("big", 2000):
                hand.complete(*leases)
        before = reader.execute(fingerprint).fetchone()
        seen: list[tuple[int, int, int]] = []

        def progress(line: str) -> None:
            if line.startswith("preparing"):
                copied = reader.execute("select coalesce(sum(n), 0) from menzil.done").fetchone()
                archived = reader.execute("select count(*) from menzil.archive").fetchone()
                # The old release works on between the steps.
                assert check(reader, root=old_tree).ok
                message = hand.send("big", {"between": len(seen)})
                seen.append((copied[0], archived[0], message))

        report = migrate(empty, pace=Pace(rows=9_000), progress=progress)
        assert report.to_version > 5
        assert [copied for copied, _archived, _message in seen] == [9_000, 18_000, 27_000, 36_000, 45_000, 50_000]
        assert {archived for _copied, archived, _message in seen} == {ROWS}
        assert reader.execute(fingerprint).fetchone() == before
        # What one transaction ended alike is one row of every 4096 ids at most.
        assert hand.one("select count(*) from menzil.done") < 100
        assert [one.id for one in hand.lease("big", 10)] == [message for _copied, _archived, message in seen]


def test_copying_stops_at_the_oldest_open_transaction_and_goes_on_where_it_was(empty, old_tree):
    migrate(empty, root=old_tree)
    with psycopg.connect(empty, autocommit=True) as conn, psycopg.connect(empty) as late:
        hand = Hand(conn)
        hand.do("select menzil.channel_set('work')")
        hand.batch("work", 30)
        held = hand.lease("work", 5)
        hand.complete(*hand.lease("work", 5))
        migrate(empty, target=6)
        copied = "select coalesce(sum(n), 0) from menzil.done"

        def copy_until(total: int) -> None:
            # Other transactions of the server, an analyze for instance, are over soon.
            wait_for(lambda: hand.one("select menzil._before_0007(3)") in range(4) and hand.one(copied) == total)

        copy_until(5)
        Hand(late).complete(*held)  # in a transaction that stays open
        hand.complete(*hand.lease("work", 5))
        assert hand.one("select menzil._before_0007(100)") == 0
        late.commit()
        copy_until(15)
        hand.complete(*hand.lease("work", 5))
        archive = hand.all("select * from menzil.archive order by ended_xid, id")
        migrate(empty)
        assert hand.one(copied) == 20
        assert hand.all("select * from menzil.archive order by ended_xid, id") == archive


def test_schedule_that_fires_while_the_switch_has_the_tables_loses_no_slot(empty, old_tree):
    migrate(empty, root=old_tree)
    with psycopg.connect(empty, autocommit=True) as conn, psycopg.connect(empty) as holder:
        hand = Hand(conn)
        hand.do("select menzil.channel_set('ticks')")
        hand.do("select menzil.schedule_create('tick', '0 0 1 1 *', 'UTC', 'ticks', '{\"tick\": 1}')")
        hand.do("update menzil.schedule set next_at = date_trunc('year', now(), 'UTC')")

        def fire() -> int:
            with psycopg.connect(empty, autocommit=True) as other:
                return Hand(other).one("select menzil.schedule_fire_due()")

        def waits_for(table: str) -> bool:
            query = "select count(*) from pg_locks where relation = to_regclass(%s) and not granted"
            return hand.one(query, f"menzil.{table}") > 0

        holder.execute("select from menzil.dead_letter")
        with ThreadPoolExecutor(2) as pool:
            switch = pool.submit(migrate, empty, pace=Pace(lock_timeout=30))
            wait_for(lambda: waits_for("dead_letter"))
            fired = pool.submit(fire)
            wait_for(lambda: waits_for("schedule"))
            holder.rollback()
            assert switch.result().applied[:2] == ["0006_ends", "0007_engine"]
            assert fired.result() == 1
        assert hand.all("select last_error from menzil.schedules") == [(None,)]
        assert [one.payload for one in hand.lease("ticks", 5)] == [{"tick": 1}]


def test_switch_that_fails_leaves_the_old_release_at_work(empty, old_tree):
    migrate(empty, root=old_tree)
    with psycopg.connect(empty, autocommit=True) as conn:
        hand = Hand(conn)
        fill(conn)
        hand.do("create view public.mine as select id, status from menzil.archive")
        queue = hand.all("select * from menzil.queue order by id")
        hand.do("create materialized view public.other as select q.id from menzil.queue q join menzil.dlq d using (id)")
        for _ in range(2):
            with pytest.raises(InstallError) as refused:
                migrate(empty)
            assert refused.value.message == (
                "View public.mine reads menzil.archive, which this migration replaces."
                " View public.other reads menzil.dlq, which this migration replaces."
                " View public.other reads menzil.queue, which this migration replaces."
            )
            assert refused.value.hint == "drop them, run `menzil migrate` again, and create them anew"
        # Nothing was copied for a switch that cannot be made.
        assert hand.one("select count(*) from menzil.done") == 0
        hand.do("drop materialized view public.other")
        with pytest.raises(psycopg.errors.DependentObjectsStillExist, match=r"^View public\.mine reads menzil\."):
            hand.do(script("upgrade"))
        hand.do("rollback")
        assert check(conn, root=old_tree).ok
        assert hand.all("select * from menzil.queue order by id") == queue
        message = hand.send("ended", "still")
        assert message in [one.id for one in hand.lease("ended", 10)]
        hand.do("drop view public.mine")
        assert migrate(empty).applied[:1] == ["0007_engine"]
        assert hand.one("select status from menzil.message_status(%s)", message) == "processing"


def test_rights_of_other_roles_that_are_lost_are_named(empty, old_tree, suffix):
    migrate(empty, root=old_tree)
    with psycopg.connect(empty, autocommit=True) as conn:
        conn.execute(f"create role plain_{suffix}")
        conn.execute(f"grant usage on schema menzil to plain_{suffix}")
        conn.execute(f"grant select on menzil.archive to plain_{suffix}")
        conn.execute(f"grant execute on function menzil.send(text, jsonb) to plain_{suffix}")
        conn.execute(f"grant execute on function menzil.schema_version() to plain_{suffix}")
        Hand(conn).do("select menzil.channel_set('work'), menzil.send('work', '1')")
        lines: list[str] = []

        def progress(line: str) -> None:
            lines.append(line)
            if "another transaction holds a lock" in line:
                blocker.rollback()

        # A client holds a table that the switch needs after it has said which rights are lost: the first try gives way.
        with psycopg.connect(empty) as blocker:
            blocker.execute("select from menzil.settings")
            report = migrate(empty, progress=progress, pace=Pace(lock_timeout=0.2))
        assert len([line for line in lines if "holds a lock" in line]) == 1
        assert len([line for line in lines if line.startswith("notice: These rights")]) == 1
        assert report.notices == [f"These rights have to be granted again: plain_{suffix} on menzil.archive"]
        assert Hand(conn).one(f"select has_function_privilege('plain_{suffix}', 'menzil.send(text, jsonb)', 'execute')")
        assert not Hand(conn).one(f"select has_table_privilege('plain_{suffix}', 'menzil.message', 'select')")
        # The handshake has a new function: who was given the old one alone is served as before.
        conn.execute(f"set role plain_{suffix}")
        assert check(conn).ok
        assert Hand(conn).one("select menzil.copy_notice()") is None
        conn.execute("reset role")
