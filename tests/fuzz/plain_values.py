"""What a stranger may pass, type by type, written as SQL that PostgreSQL itself accepts.

Only what is valid for the type: a refusal is then the queue's own, and never that of a cast in the call.
"""

from __future__ import annotations


def quoted(text: str) -> str:
    """Return the text as a literal."""
    return "'" + text.replace("'", "''") + "'"


SMALL = ["-2147483648", "-1", "0", "1", "2", "3", "10", "11", "120", "121", "10000", "10001", "2147483647"]

ODD_TEXTS = [
    "''",
    "' '",
    "'x''; drop table menzil.message; --'",
    "'%s %I $1 {0}'",
    "'((((([a-'",
    "'a\\b%_'",
    "E'two\\nlines'",
    "E'\\x01\\x1f\\x7f'",
    "U&'\\0085\\2028\\2029'",
    "U&'\\202E\\0635\\FEFF\\00A0'",
    "U&'e\\0301\\0301\\0301'",
    "U&'\\+01F469\\200D\\+01F680'",
    "U&'\\FFFF\\+10FFFF\\E000'",
    "'İıſßΣς'",
    "'null'",
    "'NaN'",
    "'[PERMANENT] [DISABLE] gone'",
    "repeat('x', 200)",
    "repeat('x', 201)",
    "repeat('ü', 1025)",
    "repeat('k', 100000)",
    "repeat(E'\\n', 3000)",
    "repeat('(', 2000)",
    "repeat('9', 40)",
    "'-1'",
    "'18446744073709551615'",
    "'99999999999999999999'",
    "'1e9'",
]

NAMES = [
    "work",
    "tight",
    "closed",
    "off",
    "hook",
    "narrow",
    "keys",
    "paused",
    "order.paid",
    "strict",
    "nightly",
    "bulk-1",
    "w1",
]

TIMES = [
    "'infinity'",
    "'-infinity'",
    "'4714-11-24 00:00:00+00 BC'",
    "'0044-03-15 BC'",
    "'0001-01-01 00:00:00+00'",
    "'1970-01-01 00:00:00+00'",
    "'9999-12-31 23:59:59.999999+00'",
    "'10000-01-01 00:00:00+00'",
    "'294276-12-31 23:59:59.999999+00'",
    "now()",
    "now() - interval '1 hour'",
    "now() + interval '1 hour'",
    "now() + interval '1 microsecond'",
    "date_trunc('month', now())",
]

INTERVALS = [
    "'0'",
    "'1 microsecond'",
    "'-1 microsecond'",
    "'1 second'",
    "'1 hour'",
    "'1 day'",
    "'25 hours'",
    "'1 month -31 days'",
    "'-1 month 40 days'",
    "'178000000 years'",
    "'-178000000 years'",
    "'2147483647 days'",
    "'2562047788 hours'",
    "'-2562047788 hours'",
    "'infinity'",
    "'-infinity'",
]

PLAIN: dict[str, list[str]] = {
    "text": [*map(quoted, NAMES), *ODD_TEXTS],
    "integer": SMALL,
    "bigint": [*SMALL, "2147483648", "604800000", "604800001", "9223372036854775807", "-9223372036854775808"],
    "boolean": ["true", "false"],
    "double precision": [
        *("'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "0", "1", "0.5", "1000", "-1", "1e308", "5e-324", "1e-10"),
    ],
    "numeric": ["'NaN'", "'Infinity'", "'-Infinity'", "0", "1", "-1.5", "1e1000", "1e-1000", "18446744073709551616"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "gen_random_uuid()"],
    "bytea": [
        "''",
        "'\\x00'",
        "'\\xff00fe'",
        "decode(repeat('00', 3000), 'hex')",
        "decode(repeat('ab', 1048577), 'hex')",
    ],
    "timestamp with time zone": TIMES,
    "interval": INTERVALS,
}

#: What a parameter of this name is meant for.
MEANT: dict[str, list[str]] = {
    "p_cron": [
        *("'* * * * *'", "'*/5 0-23/2 1,15 JAN-DEC mon-fri'", "'@daily'", "'0 0 29 2 *'", "'0 0 30 2 *'", "'@reboot'"),
        *("'60 * * * *'", "'* * * *'", "'5/10 * * * *'", "'*/0 * * * *'", "'0-99999999999 * * * *'", "', * * * *'"),
        *("repeat('1,', 5000) || '1 * * * *'", "'59 23 31 12 7'", "'- * * * *'", "'1--2 * * * *'", "'* * * * 7-0'"),
    ],
    "p_time_zone": [
        *(
            "'UTC'",
            "'Europe/Istanbul'",
            "'America/New_York'",
            "'Pacific/Apia'",
            "'Asia/Kathmandu'",
            "'utc'",
            "'EST5EDT'",
        ),
        *("'BRST'", "'../../etc/passwd'", "'<+05>-5'", "'Nowhere/At_All'", "'posixrules'", "'Factory'"),
    ],
    "p_protocol": ["'http'", "'HTTP'", "'smoke'", "'carrier-pigeon'"],
    "p_on_dead": ["'continue'", "'block'", "'CONTINUE'"],
    "p_status": ["'completed'", "'failed'", "'expired'", "'cancelled'", "'pending'", "null"],
    "p_feed": ["'archive'", "'event_log'", "'queue'"],
    "p_xid": ["'0'", "'3'", "'1000'", "'18446744073709551615'", "'-1'", "'abc'", "'18446744073709551616'", "' 7'"],
    "p_send_id": ["'bulk-1'", "'bulk-2'", "'bulk-done'"],
    "p_worker": ["'w1'", "'w2'", "null"],
    "p_error": [
        "'[RETRYABLE] HTTP 503: no'",
        "'[PERMANENT] no'",
        "'[PERMANENT] [DISABLE] gone'",
        "'boom'",
        "'HTTP 429'",
    ],
    "p_cause": ["'no'", "'HTTP #: no'", "null"],
}
MEANT["p_from"] = MEANT["p_until"] = MEANT["p_xid"]

_SETTINGS = [
    *("'max_queue_size'", "'max_payload_size'", "'default_max_retries'", "'retry_base_delay'", "'retry_max_delay'"),
    *("'idempotency_retention'", "'archive_completed'", "'capture_response'", "'notify'", "'http_allowed_networks'"),
]
#: The same where the name says too little without the function.
MEANT_BY: dict[tuple[str, str], list[str]] = {
    ("setting", "p_name"): _SETTINGS,
    ("set_setting", "p_name"): _SETTINGS,
    ("set_setting", "p_value"): [
        "'1'",
        "'10 s'",
        "'64kB'",
        "'on'",
        "'off'",
        "'default'",
        "'10.0.0.0/8'",
        "'5'",
        "'2048'",
    ],
    ("archive_between", "p_from"): ["now() - interval '1 hour'", "'2026-01-01+00'", "'-infinity'", "null"],
    ("archive_span", "p_from"): ["now() - interval '1 hour'", "'2026-01-01+00'", "'-infinity'", "null"],
    ("redrive_message", "p_dlq_id"): ["1", "2"],
    ("redrive_take_back", "p_dlq_id"): ["1", "2"],
    ("plan_create", "p_kind"): ["'redrive'", "'replay'", "'cancel'", "'Redrive'", "'purge'"],
    ("plan_create", "p_filter"): [
        *("""'{"channel": "work"}'""", """'{"endpoint": "hook", "since": "2020-01-01"}'""", """'{"all": true}'"""),
        *("""'{"ids": [1, 2, 3]}'""", """'{"channel": "keys", "until": "2030-01-01"}'""", "'{}'", """'{"ids": []}'"""),
        *("""'{"channel": "work", "status": "failed"}'""", """'{"cause_hash": "0123456789ab"}'""", "'[]'", "'null'"),
        *("""'{"channel": "canary", "since": "9999-01-01"}'""", """'{"all": false}'""", """'{"chanel": "work"}'"""),
    ],
    ("plan_create", "p_rate"): ["1", "1000", "1e-9", "'NaN'", "null"],
    ("plan_create", "p_key"): ["'form'", "'form 2'", "null"],
    **{(f"plan_{act}", "p_id"): ["1", "2", "3", "4"] for act in ("run", "pause", "step", "stop", "outcome", "targets")},
    ("replay_message", "p_id"): ["9", "10", "11"],
}
