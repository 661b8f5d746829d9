"""Who may do what: every function, view and table of the schema against every role, from the catalog."""

from __future__ import annotations

import itertools
import re

import psycopg
import pytest

from tests.sql.clock import until
from tests.sql.queue import Queue

ROLES = ("menzil_admin", "menzil_application", "menzil_worker", "menzil_monitor", "menzil_pipeline")
A, W, M, P = ROLES[1:]

# Who may call it, next to the admin, who may call every public function.
FUNCTIONS = {
    "send": {A, P},
    "send_with_options": {A, P},
    "send_batch": {A, P},
    "send_batch_with_priority": {A, P},
    "send_many": {A, P},
    "message_create": {A, P},
    "enable_fast_mode": {A, P},
    "message_cancel": {A},
    "message_status": {A, W},
    "message_dequeue": {W},
    "message_next": {W},
    "message_complete": {W},
    "message_defer": {W},
    "message_heartbeat": {W},
    "message_fail": {W},
    "schedule_fire_due": {W},
    "mark_expired_messages": {W},
    "recover_stale_messages": {W},
    "maintain_archive_partitions": {W},
    "cleanup_used_keys": {W},
    "maintain": {W},
    "setting": {W, M},
    "schema_version": {A, W, M, P},
    "schema_window": {A, W, M, P},
    "copy_notice": {A, W, M, P},
    "adopt": set(),
    "disown": set(),
    "cron_next": {W, M},
    "cron_parse": {W, M},
    "publish": {A, P},
    "publish_batch": {A, P},
    "validate_event": {A, P},
    "inbox_claim": {A, W},
    "delivery_configs": {W},
    "worker_hello": {W},
    "worker_heartbeat": {W},
    "worker_stop": {W},
    "worker_suspects": {W},
    "worker_wait": {W},
    "job_claim": {W},
    "job_run": {W},
    "run_jobs": {W},
    "archive_completed_messages": {W},
    "cleanup_old_archive_partitions": {W},
    "cleanup_dlq": {W},
    "cleanup_event_log": {W},
    "cleanup_attempts": {W},
    "cleanup_inbox": {W},
    "cleanup_workers": {W},
    "bulk_open": {P},
    "bulk_commit": {P},
    "bulk_abort": {P},
    "feed_position": {P},
    "feed_lost": {P},
    "feed_advance": {P},
    "feed_between": {P},
    "feed_forget": set(),
    "reap_bulk_sends": {W},
    "messages_with_key": {M, P},
    "messages_in_window": {P},
    "messages_with_correlation": {M, P},
    "metrics": {M},
    "health_check": {M},
    "get_endpoint_health": {M},
    "channel_window": {M, P},
    "get_worker_status": {M},
    "message_why": {M, P},
    "message_life": {M, P},
    "message_family": {M, P},
    "channel_state": {M, P},
    "turns": {M, P},
    "schedule_slots": {M, P},
    "dlq_summary": {M},
    "archive_between": {P},
    "archive_span": {P},
    "archive_layout": {P},
    "archive_months": {P},
    "archive_fingerprint": {P},
    "archive_census": {P},
    "message_hash": {P},
    "try_hash": {P},
    "event_log_fingerprint": {P},
    "drop_exported_month": {P},
    "dlq_causes": {M},
    "dlq_deaths": {M},
    "pulse_of": {M, P},
    "pulse_totals": {M},
    "pipeline_run_begin": {P},
    "pipeline_run_end": {P},
    "redrive_message": set(),
    "redrive_take_back": set(),
    "redrive_endpoint": set(),
    "redrive_all": set(),
    "replay_message": set(),
    "replay_range": set(),
    "plan_create": set(),
    "plan_run": set(),
    "plan_pause": set(),
    "plan_step": set(),
    "plan_stop": set(),
    "plan_outcome": {M, P},
    "plan_targets": {M, P},
    "plan_of": {M, P},
    "bridge_create": set(),
    "bridge_alter": set(),
    "bridge_pause": set(),
    "bridge_resume": set(),
    "bridge_seek": set(),
    "bridge_drop": set(),
    "bridge_open": {W},
    "bridge_begin": {W},
    "bridge_take": {W},
    "bridge_heartbeat": {W},
    "bridge_close": {W},
    "create_event_type": set(),
    "drop_event_type": set(),
    "subscribe": set(),
    "unsubscribe": set(),
    "update_circuit_breaker": set(),
    "reset_circuit_breaker": set(),
    "channel_set": set(),
    "channel_pause": set(),
    "channel_resume": set(),
    "channel_release": set(),
    "channel_purge": set(),
    "purge_endpoint": set(),
    "message_id_at": {M, P},
    "newest_try": {M, P},
    "message_peek": {P},
    "message_retry_now": set(),
    "message_erase": set(),
    "note_act": set(),
    "rebuild": set(),
    "create_endpoint": set(),
    "alter_endpoint": set(),
    "drop_endpoint": set(),
    "enable_endpoint": set(),
    "disable_endpoint": set(),
    "validate_endpoint_config": set(),
    "known_protocols": set(),
    "register_protocol": set(),
    "set_retry_policy": set(),
    "validate_retry_policy": set(),
    "set_setting": set(),
    "schedule_create": set(),
    "schedule_drop": set(),
    "schedule_pause": set(),
    "schedule_resume": set(),
}

# Who may read it. Nobody but the owner writes, apart from one column.
RELATIONS = {
    "queue": {"menzil_admin", P},
    "dlq": {"menzil_admin", P},
    "archive": {"menzil_admin", P},
    "attempts": {"menzil_admin", P},
    "event_log": {"menzil_admin", M, P},
    "endpoints": {"menzil_admin", W, M, P},
    "channels": {"menzil_admin", W, M, P},
    "settings": {"menzil_admin", W, M, P},
    "schedules": {"menzil_admin", P},
    "consumers": {"menzil_admin", M, P},
    "jobs": {"menzil_admin", M},
    "plans": {"menzil_admin", M, P},
    "bridges": {"menzil_admin", W, M, P},
    "bridge_positions": {"menzil_admin", W, M, P},
    "pulse": {"menzil_admin", M, P},
    "pipeline_runs": {"menzil_admin", M, P},
    # Ends and bodies for our own readers of many: nothing that the view archive does not show.
    "_ends": {"menzil_admin", P},
    "_ends_alike": {"menzil_admin", P},
    "_channel_names": {"menzil_admin", P},
    "_ended": {"menzil_admin", P},
    "_ended_plainly": {"menzil_admin", P},
    "_ended_with_responses": {"menzil_admin", P},
    "_ended_otherwise": {"menzil_admin", P},
    "_ended_singly": {"menzil_admin", P},
    "_messages": {"menzil_admin", P},
    "_message_in_full": {"menzil_admin", P},
    "_month_rows": {"menzil_admin"},
    "event_types": {"menzil_admin", M, P},
    "subscriptions": {"menzil_admin", M, P},
    "bulk_sends": {"menzil_admin", P},
}

# Tables behind them, private to the owner. The partitions of message, archive_YYYY_MM, are found by their names.
PRIVATE = {
    "channel", "endpoint_secret", "setting_value", "schedule", "schedule_slot", "event", "message", "archive_default",
    "line", "aside", "look", "tally", "run", "lane", "lane_name", "rank_used", "lease", "done", "returned", "scheduled",
    "key_queue", "expiring", "withdrawn", "key", "gate", "size_change", "archive_month", "hot_function", "job", "home",
    "attempt", "dead_letter", "migration", "installed_code", "installed_object",
    "protocol", "worker", "inbox", "event_type", "subscription", "bulk_send", "feed_drop", "feed_consumer",
    "bridge", "bridge_secret", "bridge_position", "bridge_run",
    "plan", "plan_progress", "plan_channel", "plan_part", "plan_todo",
    "pulse_minute", "pulse_hour", "pulse_total", "pulse_tally", "pulse_state", "pipeline_run", "setting_word",
    "correlated", "lineage", "lookup_state",
}  # fmt: skip

PRIVILEGES = ("select", "insert", "update", "delete", "truncate", "references", "trigger")


def private(relation: str) -> bool:
    return relation in PRIVATE or re.fullmatch(r"archive_\d{4}_\d{2}", relation) is not None


def test_every_function_is_open_to_exactly_those_who_need_it(queue: Queue) -> None:
    rows = queue.all(
        """select p.oid::regprocedure::text as signature, p.proname, r.rolname,
                  has_function_privilege(r.rolname, p.oid, 'execute') as may
             from pg_proc p cross join pg_roles r
            where p.pronamespace = 'menzil'::regnamespace and r.rolname = any (%s)""",
        list(ROLES),
    )
    assert {row.rolname for row in rows} == set(ROLES)
    wrong = []
    for row in rows:
        if row.proname.startswith("_"):
            wanted = False
        elif row.proname not in FUNCTIONS:
            pytest.fail(f"{row.signature} has no entry in the table of this test")
        else:
            wanted = row.rolname == "menzil_admin" or row.rolname in FUNCTIONS[row.proname]
        if row.may != wanted:
            wrong.append((row.rolname, row.signature, row.may))
    assert wrong == []
    assert FUNCTIONS.keys() == {row.proname for row in rows if not row.proname.startswith("_")}


def test_no_function_is_open_to_everybody(queue: Queue) -> None:
    rows = queue.all(
        """select p.oid::regprocedure::text from pg_proc p
             cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
            where p.pronamespace = 'menzil'::regnamespace and a.grantee = 0"""
    )
    assert rows == []


def test_every_relation_is_open_to_exactly_those_who_need_it(queue: Queue) -> None:
    rows = queue.all(
        """select c.relname, r.rolname, p.privilege, has_table_privilege(r.rolname, c.oid, p.privilege) as may
             from pg_class c cross join pg_roles r cross join unnest(%s::text[]) p(privilege)
            where c.relnamespace = 'menzil'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
              and r.rolname = any (%s)""",
        list(PRIVILEGES),
        list(ROLES),
    )
    wrong = []
    for row in rows:
        if row.relname not in RELATIONS and not private(row.relname):
            pytest.fail(f"{row.relname} has no entry in the tables of this test")
        wanted = row.privilege == "select" and row.rolname in RELATIONS.get(row.relname, set())
        if row.may != wanted:
            wrong.append((row.rolname, row.relname, row.privilege, row.may))
    assert wrong == []
    assert RELATIONS.keys() | PRIVATE <= {row.relname for row in rows}


def test_rights_on_single_columns_are_two(queue: Queue) -> None:
    rows = queue.all(
        """select c.relname, a.grantee::regrole::text, a.privilege_type, array_agg(t.attname::text) as columns
             from pg_class c join pg_attribute t on t.attrelid = c.oid cross join lateral aclexplode(t.attacl) a
            where c.relnamespace = 'menzil'::regnamespace group by 1, 2, 3 order by 1"""
    )
    assert [row[:3] for row in rows] == [("endpoints", "menzil_admin", "UPDATE"), ("schedules", M, "SELECT")]
    assert rows[0].columns == ["retry_policy"]
    everything = {name.name for name in queue.conn.execute("select * from menzil.schedules").description}
    assert everything - set(rows[1].columns) == {"payload", "headers", "metadata"}


def test_sequences_and_types_are_private_and_the_schema_is_open_to_the_roles_only(queue: Queue) -> None:
    rows = queue.all(
        """select c.relname, r.rolname from pg_class c cross join pg_roles r
            where c.relnamespace = 'menzil'::regnamespace and c.relkind = 'S' and r.rolname = any (%s)
              and has_sequence_privilege(r.rolname, c.oid, 'usage, select, update')""",
        list(ROLES),
    )
    assert rows == []
    assert queue.all(
        """select a.grantee::regrole::text, a.privilege_type from pg_namespace n
            cross join lateral aclexplode(n.nspacl) a
            where n.nspname = 'menzil' and a.grantee <> n.nspowner order by 1"""
    ) == [(role, "USAGE") for role in sorted(ROLES)]


def test_public_has_nothing_at_all(queue: Queue) -> None:
    rows = queue.all(
        """select c.relname from pg_class c cross join lateral aclexplode(c.relacl) a
            where c.relnamespace = 'menzil'::regnamespace and a.grantee = 0"""
    )
    assert rows == []


def test_functions_that_act_for_their_owner_fix_their_search_path(queue: Queue) -> None:
    rows = queue.all(
        """select p.oid::regprocedure::text, p.proconfig from pg_proc p
            where p.pronamespace = 'menzil'::regnamespace and p.prosecdef"""
    )
    assert rows
    assert [name for name, settings in rows if "search_path=pg_catalog, menzil, pg_temp" not in (settings or [])] == []


def test_public_functions_act_for_their_owner_unless_they_touch_nothing(queue: Queue) -> None:
    rows = queue.all(
        """select distinct p.proname from pg_proc p where p.pronamespace = 'menzil'::regnamespace and not p.prosecdef
              and p.proname not like '\\_%' order by 1"""
    )
    assert {row[0] for row in rows} <= {
        "enable_fast_mode",
        "schema_version",
        "cron_next",
        "cron_parse",
        "known_protocols",
        "validate_endpoint_config",
        "validate_retry_policy",
        "message_hash",  # these two compute on what they are given
        "try_hash",
        "archive_between",  # put into the query of the caller, and reads only views that its callers may read
        "run_jobs",  # commits after each job, which only a procedure without SECURITY DEFINER may
    }


def test_no_role_can_log_in_or_do_anything_else(queue: Queue) -> None:
    rows = queue.all(
        """select rolname from pg_roles where rolname = any (%s)
              and (rolcanlogin or rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)""",
        list(ROLES),
    )
    assert rows == []
    members = "select roleid::regrole::text from pg_auth_members where member::regrole::text = any (%s)"
    assert queue.all(members, list(ROLES)) == []


def acting_as(connect, role: str) -> Queue:
    conn = connect()
    conn.execute(f"set role {role}")
    return Queue(conn)


def refused(queue: Queue, query: str) -> bool:
    try:
        queue.conn.execute(query)
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


def test_the_application_sends_and_the_worker_delivers(queue: Queue, connect) -> None:
    application, worker = acting_as(connect, A), acting_as(connect, W)
    queue.call("channel_set", "narrow", 1, 100, 1, 100)
    sent = [
        application.call("send", "work", {}),
        application.send("narrow", ordering_key="k", idempotency_key="i", headers={"X-A": "1"}),
        *application.send_batch("work", 2),
        *application.call("send_many", ["work", "narrow"], [psycopg.types.json.Jsonb({})] * 2),
        application.call("message_create", "work", b"x"),
        application.send("work", scheduled_at="2099-01-01"),
    ]
    assert application.call("message_cancel", sent.pop()) is True
    assert application.status(sent[0]).status == "pending"
    (failing,) = worker.dequeue(1, ["narrow"])
    assert worker.fail(failing, retry_after="0") == "retry"
    (message,) = worker.dequeue(1, ["work"])
    worker.heartbeat(message)
    worker.defer(message, state=b"s")
    ended: set[int] = set()
    until(lambda: ended.update(worker.complete(*worker.dequeue(10))) or len(ended) == len(sent))
    assert worker.status(sent[0]).status == "completed"
    for function in (
        "mark_expired_messages",
        "recover_stale_messages",
        "maintain_archive_partitions",
        "cleanup_used_keys",
    ):
        assert worker.call(function) == 0
    worker.call("maintain")
    assert queue.one("select count(*) from menzil.archive") == len(sent) + 1


def test_the_worker_makes_the_month_of_a_message_that_had_none(queue: Queue, connect) -> None:
    worker = acting_as(connect, W)
    sent = queue.send()
    queue.conn.execute("update menzil.message set created_at = '2017-03-03'; update menzil.line set flags = flags | 1")
    assert worker.complete(worker.lease()) == {sent: "settled"}
    assert worker.call("archive_completed_messages", 0) == 1
    assert queue.one("select tableoid::regclass::text from menzil.message") == "menzil.archive_2017_03"


def test_the_worker_runs_every_job(queue: Queue, connect) -> None:
    worker = acting_as(connect, W)
    worker.conn.execute("call menzil.run_jobs('w')")
    rows = queue.all("select name, last_run_at, last_error from menzil.jobs")
    assert [row.name for row in rows if row.last_run_at is None or row.last_error is not None] == []
    assert refused(acting_as(connect, A), "call menzil.run_jobs()")


@pytest.mark.parametrize(
    ("role", "table"), list(itertools.product((A, W, M), ("message", "archive", "queue", "endpoint_secret")))
)
def test_payloads_and_secrets_cannot_be_read_around_the_functions(queue: Queue, connect, role: str, table: str) -> None:
    assert refused(acting_as(connect, role), f"select * from menzil.{table}")


def test_a_monitor_sees_no_payload(queue: Queue) -> None:
    rows = queue.all(
        """select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
            where c.relnamespace = 'menzil'::regnamespace and a.attname in ('payload', 'content', 'headers', 'state')
              and has_column_privilege('menzil_monitor', c.oid, a.attnum, 'select')"""
    )
    assert rows == []


def test_the_application_may_not_lease_nor_the_worker_send(queue: Queue, connect) -> None:
    queue.send()
    assert refused(acting_as(connect, A), "select * from menzil.message_dequeue(1000)")
    assert refused(acting_as(connect, W), "select menzil.send('work', '{}')")
    assert refused(
        acting_as(connect, A), "select menzil._send('work', '{}', null, 0, null, null, null, null, null, null, null)"
    )
    assert refused(acting_as(connect, P), "select menzil.channel_purge('work')")


def test_a_stranger_may_not_even_look(queue: Queue, connect) -> None:
    queue.conn.execute("drop role if exists mz_stranger; create role mz_stranger")
    try:
        stranger = acting_as(connect, "mz_stranger")
        for query in (
            "select menzil.schema_version()",
            "select menzil.send('work', '{}')",
            "select * from menzil.queue",
        ):
            assert refused(stranger, query)
    finally:
        queue.conn.execute("drop role mz_stranger")


def test_the_pipeline_reads_history_and_sends(queue: Queue, connect) -> None:
    pipeline = acting_as(connect, P)
    sent = pipeline.send_batch("work", 2)
    queue.complete(queue.lease())
    assert pipeline.one("select id from menzil.archive") == sent[0]
    assert pipeline.one("select id from menzil.queue") == sent[1]
    assert pipeline.all("select * from menzil.dlq") == []
    assert pipeline.one("select message_id from menzil.attempts") == sent[0]
    assert pipeline.all("select event_type from menzil.event_log")


def test_the_admin_changes_a_retry_policy_and_no_other_column(queue: Queue, connect) -> None:
    admin = acting_as(connect, "menzil_admin")
    admin.call("create_endpoint", "hook", "http", {"url": "https://example.com/"})
    admin.conn.execute("""update menzil.endpoints set retry_policy = '{"max_retries": 3}' where name = 'hook'""")
    assert admin.one("select retry_policy from menzil.endpoints") == {"max_retries": 3}
    assert refused(admin, "update menzil.endpoints set name = 'other'")
    assert refused(admin, "delete from menzil.endpoints")
    assert refused(admin, "update menzil.setting_value set max_queue_size = 1")
    assert refused(admin, "select * from menzil.endpoint_secret")


def test_a_temporary_table_cannot_take_the_place_of_ours(queue: Queue, connect) -> None:
    application = acting_as(connect, A)
    application.conn.execute("create temp table message (id bigint); create temp table channel (name text)")
    application.conn.execute("set search_path = pg_temp, public")
    sent = application.call("send", "work", {})
    assert queue.lease().id == sent
