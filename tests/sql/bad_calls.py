"""Bad calls with the SQLSTATE the documentation promises for each.

They run against a queue in which message 3 is in flight with attempt 1, message 4 with attempt 2, message 5 has ended,
channel closed is released, endpoint off is disabled, channel tight is full, and payloads have at most 2048 bytes.
"""

from __future__ import annotations

MB = "repeat('k', 1000000)"
LONG = "to_jsonb(repeat('x', 2047))"
INJECTION = "'x''; drop table menzil.message; --'"

UNKNOWN = [
    "send('nobody', '{}')",
    "send('', '{}')",
    f"send({INJECTION}, '{{}}')",
    f"send({MB}, '{{}}')",
    "send(E'two\\nlines', '{}')",
    "send('Work', '{}')",
    "send_with_options('nobody', '{}')",
    "send_batch('nobody', array['{}'::jsonb])",
    "send_batch('nobody', '{}'::jsonb[])",
    "send_batch_with_priority('nobody', array['{}'::jsonb], 1)",
    "send_many(array['work', 'nobody'], array['{}', '{}']::jsonb[])",
    """send_many('[{"endpoint": "work", "payload": 1}, {"channel": "nobody", "payload": 1}]')""",
    "message_create('nobody', 'x')",
    "message_dequeue(1000, 1, array['work', 'nobody'])",
    "channel_pause('nobody')",
    "channel_resume('nobody')",
    "channel_release('nobody')",
    "channel_purge('nobody')",
    "purge_endpoint('nobody')",
    "message_peek('nobody')",
    "messages_with_key('k', null, 'nobody')",
    "channel_state('nobody')",
    "message_life(12345)",
    "message_family(12345)",
    "set_retry_policy('nobody', '{}')",
    "message_cancel(987654321)",
    "message_status(987654321)",
    "message_retry_now(987654321)",
    "message_cancel(-1)",
    "redrive_message(987654321)",
    "redrive_take_back(987654321)",
    "schedule_slots('nobody')",
    "redrive_endpoint('nobody')",
    "dlq_causes('nobody')",
    "replay_message(987654321)",
    *(f"plan_{act}(987654321)" for act in ("run", "pause", "step", "stop", "outcome", "targets")),
    *(f"bridge_{act}('nobody')" for act in ("pause", "resume", "drop")),
    """bridge_alter('nobody', '{}')""",
    "bridge_seek('nobody', 's', '1-0')",
    "bridge_open('nobody', 'i', 'h', 1, '0')",
    "bridge_begin('nobody', 's', '0-0')",
    "bridge_take('nobody', 's', null, null, '{}')",
    """bridge_create('b', 'redis', '{"host": "h", "stream": "s", "start": "latest"}', 'nobody')""",
    """bridge_create('b', 'redis', '{"host": "h", "stream": "s", "start": "latest"}', null, 'nobody')""",
    """plan_create('redrive', '{"channel": "nobody"}')""",
    """plan_create('cancel', '{"endpoint": "nobody"}')""",
    "replay_range(987654321, '2026-01-01', '2026-02-01')",
]

CLOSED = [
    *(
        call
        for name in ("closed", "off")
        for call in (
            f"send('{name}', '{{}}')",
            f"send_with_options('{name}', '{{}}', 1)",
            f"send_batch('{name}', array['{{}}'::jsonb])",
            f"send_batch_with_priority('{name}', array['{{}}'::jsonb], 1)",
            f"send_many(array['work', '{name}'], array['{{}}', '{{}}']::jsonb[])",
            f"message_create('{name}', 'x')",
        )
    ),
    "channel_set('closed')",
    "redrive_endpoint('closed')",
    """plan_create('redrive', '{"channel": "closed"}')""",
    """plan_create('replay', '{"channel": "off"}')""",
    "redrive_endpoint('off')",
    "replay_message(3)",
    "replay_message(1)",
]

NULLS = [
    "send(null, '{}')",
    "send('work', null)",
    "send_with_options(null, '{}')",
    "send_with_options('work', null)",
    "send_with_options('work', '{}', null)",
    "send_batch(null, array['{}'::jsonb])",
    "send_batch('work', null)",
    "send_batch('work', array['{}', null]::jsonb[])",
    "send_batch_with_priority('work', null, 1)",
    "send_batch_with_priority('work', array['{}'::jsonb], null)",
    "send_many(null::jsonb)",
    "send_many(null, array['{}'::jsonb])",
    "send_many(array['work'], null)",
    "send_many(array['work', null], array['{}', '{}']::jsonb[])",
    "send_many(array['work', 'work'], array['{}', null]::jsonb[])",
    """send_many('[{"endpoint": "work"}]')""",
    """send_many('[{"payload": 1}]')""",
    """send_many('[{"endpoint": null, "payload": 1}]')""",
    "message_create(null, 'x')",
    "message_create('work', null)",
    "message_dequeue(null)",
    "message_dequeue(1000, null)",
    "message_dequeue(1000, 1, array['work', null])",
    "message_complete(null, 1)",
    "message_complete(3, null)",
    "message_complete(null, array[1])",
    "message_complete(array[3], null)",
    "message_complete(array[3, null], array[1, 1])",
    "message_complete(array[3, 4], array[1, null])",
    "message_defer(null, 1)",
    "message_defer(3, null)",
    "message_defer(array[3, null], array[1, 1])",
    "message_heartbeat(null, 1, 1000)",
    "message_heartbeat(3, null, 1000)",
    "message_heartbeat(3, 1, null)",
    "message_heartbeat(array[3], array[1], null)",
    "message_fail(null, 1, 'no')",
    "message_fail(3, null, 'no')",
    "message_fail(3, 1, null)",
    "message_fail(array[3, 4], array[1, 2], array['no', null])",
    "message_fail(array[3], array[1], null)",
    "channel_set(null)",
    "channel_set('work', p_release_interval_ms := null)",
    "channel_set('work', p_release_count := null)",
    "channel_set('work', p_on_dead := null)",
    "channel_pause(null)",
    "channel_resume(null)",
    "channel_release(null)",
    "channel_purge(null)",
    "purge_endpoint(null)",
    "message_cancel(null)",
    "message_status(null)",
    "message_retry_now(null)",
    "message_peek(null)",
    "message_id_at(null)",
    "messages_with_key('k', null, null, null)",
    "messages_in_window(null, 10, 10)",
    "messages_in_window(10, null, 10)",
    "messages_in_window(10, 10, null)",
    "dlq_deaths(null, '1 h')",
    "dlq_deaths(now(), null)",
    "dlq_deaths(now(), '1 h', null)",
    "messages_with_correlation(null)",
    "message_why(null)",
    "message_life(null)",
    "message_family(null)",
    "turns(null)",
    "message_peek('work', null)",
    "mark_expired_messages(null)",
    "recover_stale_messages(null)",
    "cleanup_used_keys(null)",
    "maintain_archive_partitions(null)",
    "redrive_message(null)",
    "redrive_take_back(null)",
    "schedule_slots(null)",
    "schedule_slots('nobody', null)",
    "redrive_endpoint(null)",
    "dlq_causes('work', null)",
    "replay_message(null)",
    "replay_range(null, '2026-01-01', '2026-02-01')",
    "replay_range(1, null, '2026-02-01')",
    "replay_range(1, '2026-01-01', null)",
    "replay_range(1, '2026-01-01', '2026-02-01', p_dry_run := null)",
    "cleanup_dlq(null)",
    "cleanup_attempts(null)",
    "cleanup_event_log(null)",
    "archive_completed_messages(null)",
    "archive_completed_messages(3600, null)",
]

PRIORITIES = [
    call.format(priority)
    for priority in (-1, 11, 2147483647)
    for call in (
        "send_with_options('work', '{{}}', {})",
        "send_batch_with_priority('work', array['{{}}'::jsonb], {})",
        "send_many(array['work'], array['{{}}'::jsonb], array[{}])",
        """send_many('[{{"channel": "work", "payload": 1, "priority": {}}}]')""",
    )
]

# Infinity is no time, and years outside 1 to 9999 are none that every client could read.
TIMES = [
    call.format(at)
    for at in ("infinity", "-infinity", "20000-01-01", "0044-03-15 BC")
    for call in (
        "send_with_options('work', '{{}}', p_scheduled_at := '{}')",
        "send_with_options('work', '{{}}', p_expires_at := '{}')",
        "send_many(array['work'], array['{{}}'::jsonb], p_scheduled_ats := array['{}'::timestamptz])",
        "message_create('work', 'x', '{}')",
        "message_defer(3, 1, '{}')",
    )
]

KEYS = [
    call.format(key)
    for key in (MB, "''")
    for call in (
        "send_with_options('work', '{{}}', p_ordering_key := {})",
        "send_with_options('work', '{{}}', p_idempotency_key := {})",
        "send_many(array['work'], array['{{}}'::jsonb], p_ordering_keys := array[{}])",
        "send_many(array['work'], array['{{}}'::jsonb], p_idempotency_keys := array[{}])",
    )
]

HEADERS = [
    call.format(headers)
    for headers in (
        "'[]'",
        "'1'",
        "'null'",
        """'{"": "a"}'""",
        """'{"bad name": "a"}'""",
        """'{"X-A": "1", "x-a": "2"}'""",
        "(select jsonb_object_agg(n, 'a') from (select 'a' || generate_series(1, 2000) as n union select 'A2') u)",
        """'{"X-A": 1}'""",
        """'{"X-A": null}'""",
        """'{"X-A": ["a"]}'""",
        """'{"X-A": "two\\r\\nlines"}'""",
        """'{"X-A:": "a"}'""",
        """'{"Host": "a"}'""",
        """'{"content-length": "1"}'""",
        """'{"Webhook-Signature": "a"}'""",
        "jsonb_build_object(repeat('x', 300), 'a')",
    )
    for call in (
        "send_with_options('work', '{{}}', p_headers := {})",
        "send_many(array['work'], array['{{}}'::jsonb], p_headers := array[{}]::jsonb[])",
    )
]

OPTIONS = [
    "send_with_options('work', '{}', p_metadata := '[]')",
    "send_with_options('work', '{}', p_metadata := '\"text\"')",
    "send_many(array['work'], array['{}'::jsonb], p_metadatas := array['[]'::jsonb])",
    "send_with_options('work', '{}', p_scheduled_at := '2030-01-02', p_expires_at := '2030-01-01')",
    "send_with_options('work', '{}', p_scheduled_at := '2030-01-01', p_expires_at := '2030-01-01')",
    "send_many('{}'::jsonb)",
    "send_many('\"text\"'::jsonb)",
    "send_many('[1]'::jsonb)",
    "send_many('[[]]'::jsonb)",
    """send_many('[{"endpoint": "work", "payload": 1, "prio": 1}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "p_priority": 1}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "priority": "high"}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "priority": 1.5}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "priority": 99999999999}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "correlation_id": "x"}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "scheduled_at": "soon"}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "scheduled_at": "infinity"}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "scheduled_at": "2030-02-31"}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "scheduled_at": "2030-01-01 00:00 No/Where"}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "headers": {"X-A": 1}}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "metadata": []}]')""",
    """send_many('[{"endpoint": "work", "payload": 1, "ordering_key": ""}]')""",
]

LENGTHS = [
    "send_many(array['work', 'work'], array['{}'::jsonb])",
    "send_many(array['work'], array['{}', '{}']::jsonb[])",
    *(
        f"send_many(array['work'], array['{{}}'::jsonb], {name} := {value})"
        for name, value in (
            ("p_priorities", "array[1, 2]"),
            ("p_priorities", "'{}'::integer[]"),
            ("p_scheduled_ats", "array[now(), now()]"),
            ("p_idempotency_keys", "array['a', 'b']"),
            ("p_correlation_ids", "array[null, null]::uuid[]"),
            ("p_expires_ats", "array[now(), now()]"),
            ("p_ordering_keys", "array['a', 'b']"),
            ("p_headers", "array['{}', '{}']::jsonb[]"),
            ("p_metadatas", "array['{}', '{}']::jsonb[]"),
        )
    ),
    "message_complete(array[3, 4], array[1])",
    "message_complete('{}'::bigint[], array[1])",
    "message_defer(array[3, 4], array[1])",
    "message_defer(array[3], array[1], array[now(), now()])",
    "message_defer(array[3], array[1], null, array['a', 'b']::bytea[])",
    "message_heartbeat(array[3], array[1, 2], 1000)",
    "message_fail(array[3], array[1, 2], array['no'])",
    "message_fail(array[3], array[1], array['no', 'no'])",
    "message_fail(array[3], array[1], array['no'], array['1 s', '1 s']::interval[])",
]

RANGES = [
    *(f"message_dequeue({lock})" for lock in (0, -1, 604800001, 9223372036854775807)),
    *(f"message_dequeue(1000, {limit})" for limit in (0, -1, 10001)),
    *(f"message_heartbeat(3, 1, {lock})" for lock in (0, -1, 604800001)),
    "message_fail(3, 1, 'no', interval '-1 second')",
    "message_fail(array[3], array[1], array['no'], array['-1 s']::interval[])",
    "channel_set('')",
    "channel_set(repeat('n', 201))",
    *(f"channel_set('{name}')" for name in (" ", " work", "work ")),
    "create_endpoint('hook ', 'http', '{\"url\": \"https://example.com/\"}')",
    "schedule_create(' daily', '@daily', 'UTC', 'work', '{}')",
    "inbox_claim('c', repeat('é', 513))",
    "channel_set(E'a\\nb')",
    "channel_set(E'a\\x7f')",
    "channel_set('work', 0)",
    "channel_set('work', -1)",
    "channel_set('work', p_max_size := 0)",
    "channel_set('work', p_release_interval_ms := -1)",
    "channel_set('work', p_release_interval_ms := 86400001)",
    "channel_set('work', p_release_count := 0)",
    "channel_set('work', p_on_dead := 'explode')",
    "channel_set('work', p_on_dead := '')",
    *(f"message_peek('work', {limit})" for limit in (0, -1, 10001)),
    *(f"messages_with_key('k', null, null, {limit})" for limit in (0, -1, 10001)),
    *(f"messages_in_window(10, {limit}, 10)" for limit in (0, -1, 100001)),
    *(f"messages_in_window(10, 10, {limit})" for limit in (0, -1, 100001)),
    *(
        f"bridge_heartbeat('b', 'i', null, '{lags}')"
        for lags in ('{"s": "1"}', '{"s": -1}', '{"s": 1.5}', '{"s": null}', "[1]")
    ),
    *(f"dlq_deaths(now(), '1 h', {limit})" for limit in (0, -1, 100001)),
    *(f"dlq_deaths(now(), '{step}')" for step in ("0 s", "91 days", "1 month")),
    *(f"messages_with_correlation(gen_random_uuid(), null, {limit})" for limit in (0, -1, 100001)),
    *(f"turns({limit})" for limit in (0, -1, 1001)),
    *(f"maintain_archive_partitions({months})" for months in (-1, 121)),
    "mark_expired_messages(-1)",
    "recover_stale_messages(-1)",
    "cleanup_used_keys(-1)",
    "redrive_endpoint('work', null, 0)",
    "dlq_causes('work', 0)",
    "replay_range(1, '2026-02-01', '2026-02-01')",
    "replay_range(1, '2026-01-01', 'infinity')",
    "replay_range(1, '2026-01-01', '2026-02-01', 'done')",
    *(f"replay_range(1, '2026-01-01', '2026-02-01', p_rate := {rate})" for rate in (0, -1, "'NaN'", "'Infinity'")),
    "cleanup_dlq(0)",
    "cleanup_attempts(-1)",
    "cleanup_event_log(1000001)",
    "archive_completed_messages(-1)",
    "archive_completed_messages(0, 0)",
    *(f"cleanup_old_archive_partitions({months})" for months in (-1, 0, 121)),
]

TOO_LARGE = [
    f"send('work', {LONG})",
    f"send_with_options('work', {LONG}, 5)",
    f"send_batch('work', array['{{}}', {LONG}])",
    f"send_many(array['work', 'work'], array['{{}}', {LONG}])",
    f"send_many(jsonb_build_array(jsonb_build_object('channel', 'work', 'payload', {LONG})))",
    "message_create('work', decode(repeat('00', 2049), 'hex'))",
    f"send_with_options('work', '{{}}', p_metadata := jsonb_build_object('a', {LONG}))",
    "message_defer(3, 1, null, decode(repeat('00', 2049), 'hex'))",
    "message_defer(array[3], array[1], null, array[decode(repeat('00', 2049), 'hex')])",
]

CONFLICTS = [
    """send_with_options('work', '{"other": 1}', p_idempotency_key := 'used')""",
    """send_many(array['work'], array['{"other": 1}'::jsonb], p_idempotency_keys := array['used'])""",
    """send_many('[{"channel": "work", "payload": 1, "idempotency_key": "used"}]')""",
    "send_many(array['work', 'work'], array['1', '2']::jsonb[], p_idempotency_keys := array['twice', 'twice'])",
]

FULL = [
    "send('tight', '{}')",
    "send_with_options('tight', '{}', p_ordering_key := 'k')",
    "send_batch('tight', array['{}'::jsonb])",
    "send_many(array['work', 'tight'], array['{}', '{}']::jsonb[])",
    "message_create('tight', 'x')",
]

SETTLES = ["message_complete({})", "message_defer({})", "message_heartbeat({}, 1000)", "message_fail({}, 'no')"]
STALE = [settle.format("4, 1") for settle in SETTLES]
NOT_IN_FLIGHT = [settle.format(token) for settle in SETTLES for token in ("5, 1", "1, 1", "987654321, 1")]

CALLS = [
    (state, call)
    for state, calls in (
        ("42704", UNKNOWN),
        ("55000", CLOSED),
        ("22004", NULLS),
        ("22023", [*PRIORITIES, *TIMES, *KEYS, *HEADERS, *OPTIONS, *LENGTHS, *RANGES]),
        ("54000", TOO_LARGE),
        ("23505", CONFLICTS),
        ("53400", FULL),
        ("MZ001", STALE),
        ("MZ002", NOT_IN_FLIGHT),
    )
    for call in calls
]
