"""Which function may write which table, which may lock one, and which room may call which."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from psycopg.types.json import Jsonb

from tests.sql.clock import pass_time
from tests.sql.queue import Queue

ROOMS = Path(__file__).resolve().parents[2] / "src" / "menzil" / "sql" / "functions"
DEFINES = r"create or replace (?:function|procedure) menzil\.(\w+)"
CALLS = r"\bmenzil\.(\w+)\s*\("


def without_comments(text: str) -> str:
    return re.sub(r"--.*", "", text)


def without_texts(text: str) -> str:
    """Hints name functions, too."""
    return re.sub(r"'[^'\n]*'", "''", text)


def sources(queue: Queue) -> dict[str, str]:
    """The definition of every function of the schema, as PostgreSQL has it; overloads are put together."""
    found: dict[str, str] = defaultdict(str)
    for name, text in queue.all(
        """select proname, pg_get_functiondef(oid) from pg_proc
            where pronamespace = 'menzil'::regnamespace and prokind in ('f', 'p')"""
    ):
        # The body of a SQL-standard function is printed without the schema of what it calls.
        found[name] += without_comments(text).replace("FUNCTION menzil.", "FUNCTION ", 1)
    return found


# --- rooms ------------------------------------------------------------------------------------------------------------


def test_a_lower_room_calls_no_higher_one() -> None:
    rooms: dict[str, str] = {}
    texts: dict[Path, str] = {}
    for path in sorted(ROOMS.rglob("*.sql")):
        texts[path] = without_texts(without_comments(path.read_text()))
        for name in re.findall(DEFINES, texts[path]):
            room = path.relative_to(ROOMS).parts[0]
            assert rooms.setdefault(name, room) == room, f"{name} is defined in two rooms"
    assert set(rooms.values()) == {"1_words", "2_doors", "3_verbs", "4_housekeeping", "5_watching"}
    wrong = [
        f"{path.relative_to(ROOMS)} calls {name} of {rooms[name]}"
        for path, text in texts.items()
        for name in sorted(set(re.findall(CALLS, text)))
        if rooms.get(name, "") > path.relative_to(ROOMS).parts[0]
    ]
    assert wrong == []


def test_every_private_function_is_called(queue: Queue) -> None:
    source = Path(ROOMS).parents[1]
    words = {
        word
        for path in source.rglob("*")
        if path.suffix in (".sql", ".py")
        for word in re.findall(r"\w+", re.sub(DEFINES, "", without_comments(path.read_text())))
    }
    names = [
        row[0] for row in queue.all("select distinct proname from pg_proc where pronamespace = 'menzil'::regnamespace")
    ]
    assert [name for name in names if name.startswith("_") and name not in words] == []


# --- locks ------------------------------------------------------------------------------------------------------------

LOCKING = (
    r"(?i)\b(lock table|alter table|drop table|truncate|attach partition|detach partition|create index|drop index)\b"
)

# Public functions that lock a relation that other transactions use. They keep months, exports and bulk sends, or are
# for an operator: none of them belongs into a transaction with other work.
MAY_LOCK = {
    "maintain_archive_partitions": "attaches a partition to message",
    "archive_completed_messages": "attaches a partition to message",
    "cleanup_old_archive_partitions": "drops partitions of message",
    "drop_exported_month": "drops a partition of message",
    "bulk_commit": "drops the staging table of its own send",
    "bulk_abort": "drops the staging table of its own send",
    "reap_bulk_sends": "drops staging tables that belong to no open send",
    "rebuild": "holds every table of places",
    "job_run": "does what the job says",
    "run_jobs": "does what the jobs say, and commits after each",
}

# These lock only a table that the same transaction has made.
OWN_TABLE = {"_place_bulk"}
# These name such statements as text, for `menzil migrate` to run, and run none.
ONLY_TEXT = {"_missing_indexes"}


def test_functions_that_lock_a_relation_give_up_soon(queue: Queue) -> None:
    rows = queue.all(
        """select proname, prosrc, coalesce(proconfig, '{}') as settings from pg_proc
            where pronamespace = 'menzil'::regnamespace"""
    )
    locking = [row for row in rows if re.search(LOCKING, without_comments(row.prosrc))]
    assert {row.proname for row in locking} > {"_make_archive_month", "_drop_archive_month", "rebuild"}
    patient = {row.proname for row in locking if not any(each.startswith("lock_timeout=") for each in row.settings)}
    assert patient == OWN_TABLE | ONLY_TEXT


def test_only_these_functions_lock_a_relation(queue: Queue) -> None:
    texts = sources(queue)
    calls = {
        name: set(re.findall(r"\b(\w+)\s*\(", without_texts(text))) & texts.keys() - {name}
        for name, text in texts.items()
    }
    calls["job_run"] |= {
        each for row in queue.all("select call from menzil.jobs") for each in re.findall(CALLS, row.call)
    }
    reach = {name for name, text in texts.items() if re.search(LOCKING, text) and name not in OWN_TABLE | ONLY_TEXT}
    while more := {name for name in texts if name not in reach and calls[name] & reach}:
        reach |= more
    assert {name for name in reach if not name.startswith("_")} == MAY_LOCK.keys()


def modes(queue: Queue) -> set[str]:
    """The locks that this session holds on relations of the schema."""
    rows = queue.all(
        """select distinct l.mode, c.relname from pg_locks l join pg_class c on c.oid = l.relation
            where l.pid = pg_backend_pid() and c.relnamespace = 'menzil'::regnamespace"""
    )
    return {row.mode for row in rows}


HARMLESS = {"AccessShareLock", "RowShareLock", "RowExclusiveLock"}


def test_a_transaction_that_does_everything_holds_no_lock_of_a_whole_table(queue: Queue, connect) -> None:
    queue.call("channel_set", "narrow", 3, 1000, 1, 1000)
    queue.call("channel_set", "leaving")
    queue.call("channel_release", "leaving")
    queue.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    queue.call("create_event_type", "made")
    queue.call("subscribe", "made", "work")
    queue.call("schedule_create", "tick", "* * * * *", "UTC", "work", {})
    queue.conn.execute("update menzil.schedule set next_at = now() - interval '1 s'")
    queue.send(expires_at=queue.one("select now() + interval '10 seconds'"))
    pass_time(queue.conn, 20)
    user = Queue(connect(autocommit=False))
    for channel in ("work", "narrow", "hook"):
        user.call("send", channel, {})
        user.send(channel, ordering_key="k", idempotency_key="i", expires_at="2099-01-01")
        user.send(channel, scheduled_at="2099-01-01")
        user.send_batch(channel, 3)
        user.call("send_many", [channel], [Jsonb({})])
        user.call("message_cancel", user.send(channel))
    user.call("message_create", "work", b"x")
    user.call("publish", "made", {})
    taken = user.dequeue(20)
    assert len(taken) > 10
    user.complete(*taken[:3])
    user.fail(taken[3], retry_after="0")
    user.fail(taken[4], "[PERMANENT] no")
    user.defer(taken[5])
    user.heartbeat(taken[6])
    rest = taken[7:9]
    user.rows("message_next", [m.id for m in rest], [m.num_attempts for m in rest], 60_000)
    user.status(taken[0].id)
    user.call("inbox_claim", "c", "k")
    user.call("worker_hello", "w", "h", 1, "0")
    user.call("worker_wait")
    user.call("recover_stale_messages")
    user.call("mark_expired_messages")
    user.call("schedule_fire_due")
    user.call("cleanup_dlq")
    user.call("cleanup_used_keys")
    user.rows("metrics")
    user.rows("health_check")
    user.call("maintain")
    for job, light in queue.all("select name, light from menzil.job"):
        if light:
            user.call("job_run", job)
    assert modes(user) <= HARMLESS
    assert modes(user) > {"AccessShareLock"}


# --- writers ----------------------------------------------------------------------------------------------------------

# Who inserts, updates and deletes. Where a table has a door, the first name is the door, and a comment says why the
# others do not go through it.
WRITERS = {
    # _insert_bulk builds its inserts from text, see DYNAMIC.
    "message": (
        # send, _send, send_many and _send_batch are the ways to send; a redrive and a replay copy a body.
        # Records of a bridge may be bytes, which send_many does not take, or can be no message at all.
        "send _send send_many _send_batch _redrive replay_message replay_range _replay_these _send_records"
        " _refuse_records",
        "message_erase",
        "_cleanup_completed",
    ),
    "archive_default": ("", "", "_make_archive_month"),
    "archive_month": ("_make_archive_month", "", "_drop_archive_month archive_completed_messages"),
    # _tell, _tell_keys and _give_back are the doors; send and _send spare the call, batches write their lines in one
    # statement (_place_messages, _place_bulk); news of endpoints have three functions; the rest writes
    # lines that no door knows: a withdrawal, a lane that could not be woken, a head that could not be raised.
    "line": (
        "_tell _tell_keys _give_back send _send _place_messages _place_bulk"
        " _tell_success _tell_failure _tell_nothing message_cancel _cancel_these _wake_lanes _raise_heads rebuild",
        "rebuild",
        # The fresh way of message_dequeue leases what was just sent.
        "_take_lines _leave_lines _fold_channel message_dequeue rebuild",
    ),
    "aside": ("_leave_lines", "", "_take_aside _fold_channel rebuild"),
    "look": ("_fold", "_fold", "_tend _notice_cluster rebuild"),
    "tally": ("_tally", "_tally rebuild", "_tend"),
    # Every writer of run holds the lock of the lane and writes a version of the lane.
    "run": (
        "_fold_lines _cut_in _trim_head _rebuild_waiting",
        "_shorten_run",
        # message_dequeue, message_next and _fold_late delete nothing: they lock for writing before they read.
        "_visit_lane _visit_lanes _cut_in _trim_head _shorten_run channel_purge rebuild message_dequeue message_next"
        " _fold_late",
    ),
    "lane": (
        "_lock_lanes _rebuild_waiting",
        # _tend gives lanes their turn back when the clock was set back.
        "_fold_lines _fold_late _visit_lane _visit_lanes _take_out _wake_lanes _release_lanes _sync_gate channel_purge"
        " message_dequeue message_next _tend",
        "rebuild",
    ),
    # _let_visits_end takes its row back: the insert only shows whether another transaction has made the lane.
    "lane_name": ("_lock_lanes _rebuild_waiting _let_visits_end", "", "rebuild"),
    "rank_used": ("_lock_lanes _rebuild_waiting", "", "rebuild"),
    "lease": (
        "message_dequeue message_next",
        "_take_leases message_heartbeat _recover _rebuild_leases",
        # _take_leases is the door out; message_complete and message_next take a whole batch in one statement.
        "_take_leases message_complete message_next _recover _rebuild_leases",
    ),
    # _end is the door; message_complete and message_next end a whole batch of a plain channel in one statement.
    "done": ("_end message_complete message_next", "message_erase _adopt_history", "_cleanup_ends _cleanup_completed"),
    "returned": ("_fail_these message_defer message_retry_now", "message_erase", "_cleanup_ends _cleanup_completed"),
    "scheduled": (
        # _place_messages, _send and _place_bulk for sends, _return_these for tries, _set_aside for visits.
        "_place_messages _send _place_bulk _return_these _set_aside _rebuild_waiting",
        "message_retry_now",
        "_promote _stop_waiting _cancel_these channel_purge _rebuild_waiting",
    ),
    "key_queue": (
        "_place_messages _send _place_bulk _promote _rebuild_waiting",
        "_raise_heads _redrive _hand_back",
        "_free_keys _stop_waiting _cancel_these channel_purge _rebuild_waiting",
    ),
    "expiring": ("_place_messages _send _place_bulk _rebuild_waiting", "_expire_later", "_expire_one _rebuild_waiting"),
    "withdrawn": ("message_cancel _cancel_these _expire_one", "", "_sort_out _take_out channel_purge rebuild"),
    # message_erase clears the hash of the payload.
    "key": ("_take_key _take_bulk_keys", "_take_key message_erase", "cleanup_used_keys"),
    "dead_letter": ("_bury", "message_cancel _redrive _hand_back message_erase _explain_letters", "cleanup_dlq"),
    "attempt": ("_fail_these message_defer", "message_erase", "cleanup_attempts"),
    "gate": (
        "_sync_gate _rebuild_leases",
        # _lock_lanes changes nothing: a gate that was written refuses a limit of an older snapshot.
        "_sync_gate _pass_gate _gate_room _fold_rows _store_circuit reset_circuit_breaker _rebuild_leases _lock_lanes",
        "",
    ),
    "size_change": ("_change_size _count_size _sum_up_size", "", "_sum_up_size"),
    "home": ("_record_home", "_record_home", ""),
    "hot_function": ("_make_hot", "_renew_hot", ""),
    "job": ("", "job_claim job_run cleanup_used_keys _cleanup_completed _cleanup_lookups _recount_sizes", ""),
    "event": ("_event", "_adopt_history", "cleanup_event_log"),
    "feed_drop": ("_feed_dropped", "", "_feed_dropped"),
    "feed_consumer": ("feed_advance", "", "feed_forget"),
    "bulk_send": ("bulk_open", "bulk_open bulk_commit", "bulk_abort reap_bulk_sends"),
    "channel": (
        "channel_set create_endpoint",
        "channel_set channel_release _set_paused _finish_releases alter_endpoint drop_endpoint set_retry_policy"
        " _set_endpoint_enabled _disable_gone",
        "",
    ),
    "endpoint_secret": ("_store_apart", "", "_store_apart _channel_check"),
    "event_type": ("create_event_type", "create_event_type", "drop_event_type"),
    "subscription": ("subscribe", "", "_end_subscriptions drop_event_type _channel_check"),
    "schedule": ("schedule_create", "_schedule_fire _schedule_set_paused", "schedule_drop"),
    "schedule_slot": ("_schedule_fire", "_schedule_fire", "_schedule_prune"),
    "setting_value": ("", "set_setting", ""),
    "setting_word": ("set_setting", "", ""),
    "inbox": ("inbox_claim", "", "cleanup_inbox"),
    "protocol": ("register_protocol", "", ""),
    # Operators write plan, the session that steps writes the rest; the last step says that the plan is done.
    "plan": ("plan_create", "plan_run plan_pause plan_stop _note_step _take_back", "_cleanup_plans"),
    "plan_progress": ("plan_create", "_note_step _take_back _step_cancel _step_plans", ""),
    "plan_channel": ("plan_create", "_choose_for_plan _step_cancel", ""),
    "plan_part": ("_note_part", "_take_back _close_parts", ""),
    "plan_todo": ("_gather_cancel", "_step_cancel", "_step_cancel plan_stop"),
    "correlated": ("_write_lookups", "", "_cleanup_lookups"),
    "lineage": ("_note_parents _insert_bulk _write_lookups", "", "_cleanup_lookups"),
    "lookup_state": ("_write_lookups", "", "_write_lookups"),
    "pulse_minute": ("_add_pulse _gauge_pulse", "_gauge_pulse", "_roll_up_pulse"),
    "pulse_hour": ("_roll_up_pulse", "", "_roll_up_pulse"),
    "pulse_total": ("_total_pulse", "", ""),
    "pulse_tally": ("_keep_tally", "", "_take_tallies"),
    "pulse_state": ("_begin_pulse", "_begin_pulse _pulse", ""),
    "pipeline_run": ("pipeline_run_begin", "pipeline_run_end", "_cleanup_pipeline_runs"),
    "bridge": ("bridge_create", "bridge_alter _set_bridge_paused bridge_seek", "bridge_drop"),
    "bridge_secret": ("bridge_create bridge_alter", "", "bridge_alter"),
    "bridge_position": ("bridge_begin _move_position bridge_seek", "_move_position bridge_seek bridge_take", ""),
    "bridge_run": ("bridge_open", "bridge_heartbeat bridge_close", "bridge_open adopt"),
    "worker": (
        "worker_hello",
        "worker_heartbeat worker_stop _keep_tally",
        "cleanup_workers worker_heartbeat worker_hello adopt",
    ),
}

# Statements whose table is put together when they run: a month, or the staging table of a bulk send.
DYNAMIC = {"_insert_bulk", "_make_archive_month", "_take_bulk_keys", "_look_up_keys"}

# They return a statement as text. Install puts it into message_dequeue and message_next: these two write, they do not.
TEMPLATE = {"_short_way", "_fresh_way"}


def test_every_table_is_written_by_the_functions_that_may(queue: Queue) -> None:
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    dynamic = set()
    for name, text in sources(queue).items():
        if name in TEMPLATE:
            continue
        for verb, table in re.findall(r"(?i)\b(insert into|update|delete from) (?:only )?menzil\.(\w+|%\S*)", text):
            if table.startswith("%"):
                dynamic.add(name)
            else:
                table = re.sub(r"^archive_\d{4}_\d{2}$", "message", table)
                found[table][verb.split()[0].lower()].add(name)
    assert dynamic == DYNAMIC
    wanted = {table: dict(zip(("insert", "update", "delete"), verbs, strict=True)) for table, verbs in WRITERS.items()}
    wrong = [
        (table, verb, sorted(found[table][verb] ^ set(wanted.get(table, {}).get(verb, "").split())))
        for table in sorted(found.keys() | wanted.keys())
        for verb in ("insert", "update", "delete")
        if found[table][verb] != set(wanted.get(table, {}).get(verb, "").split())
    ]
    assert wrong == []


@pytest.mark.parametrize("table", ["done", "message"])
def test_the_tables_of_truth_have_no_trigger_and_no_rule(queue: Queue, table: str) -> None:
    assert queue.all("select tgname from pg_trigger where tgrelid = ('menzil.' || %s)::regclass", table) == []
    assert queue.all("select rulename from pg_rewrite where ev_class = ('menzil.' || %s)::regclass", table) == []
