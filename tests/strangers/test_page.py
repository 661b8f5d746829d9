"""The page says what the matrix checks, and the table leaves no function out."""

from __future__ import annotations

import inspect

import psycopg

from tests.strangers import crowd
from tests.strangers.page import PAGE, page
from tests.strangers.table import GROUPS, INHERENT, TWO_PHASE

# They only answer: no lock, no row, nothing that a transaction could hold.
ONLY_ANSWER = {
    *("archive_between", "archive_census", "archive_fingerprint", "archive_layout", "archive_span"),
    *("event_log_fingerprint", "message_hash", "try_hash"),
    *("feed_between", "feed_lost"),
    *("cron_next", "cron_parse", "delivery_configs", "known_protocols", "schema_version", "schema_window"),
    *("copy_notice", "setting", "worker_suspects", "pulse_of", "schedule_slots"),
    *("enable_fast_mode", "validate_endpoint_config", "validate_event", "validate_retry_policy"),
}
# Held under another name.
THE_SAME_AS = {
    "message_create": "send",
    "message_next": "message_dequeue",
    "publish_batch": "publish",
    "redrive_message": "redrive_endpoint",
    "redrive_take_back": "message_cancel",
    "schedule_resume": "schedule_pause",
    "schedule_drop": "schedule_pause",
    "send_batch_with_priority": "send_batch",
    "run_jobs": "job_run",
    "worker_heartbeat": "worker_hello",
    "worker_stop": "worker_hello",
    "drop_exported_month": "cleanup_old_archive_partitions",
    "pipeline_run_end": "pipeline_run_begin",
}


def test_page_is_the_table():
    assert PAGE.read_text() == page(), "run python -m tests.strangers.page"


def test_every_function_is_held_open(db: str):
    strangers = [s for group in (*GROUPS, TWO_PHASE) for s in group.strangers] + list(INHERENT)
    held = " ".join(" ".join((*s.sql, *s.before, s.again)) for s in strangers) + inspect.getsource(crowd)
    with psycopg.connect(db) as conn:
        text = "select distinct proname from pg_proc where pronamespace = 'menzil'::regnamespace and proname !~ '^_'"
        functions = {name for (name,) in conn.execute(text)}
    forgotten = {
        name
        for name in functions - ONLY_ANSWER
        if f"menzil.{name}(" not in held and f"menzil.{THE_SAME_AS.get(name)}(" not in held
    }
    assert not forgotten
    assert (ONLY_ANSWER | set(THE_SAME_AS)) <= functions, "these are no functions any more"
