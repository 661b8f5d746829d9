"""A queue with something of everything, so that random calls find what they ask for."""

from __future__ import annotations

import psycopg

from tests.sql.emptying import empty

CANARY = "canary"

# Ids begin at 1, so the numbers that calls are made of hit what is made here.
_FURNITURE = """
select menzil.channel_set(n) from unnest(array['work', 'tight', 'closed', 'narrow', 'keys', 'paused', 'canary']) n;
select menzil.channel_set('narrow', 2, 100, 1000, 5);
select menzil.channel_set('keys', p_on_dead => 'block');
select menzil.create_endpoint('hook', 'http', '{"url": "https://example.com/",
                                               "auth": {"type": "bearer", "token": "hush-hush"},
                                               "signing": {"secrets": ["whsec_QUJDQUJDQUJDQUJDQUJDQUJDQUJDQUJD"]}}');
select menzil.create_endpoint('off', 'http', '{"url": "https://example.com/"}');
select menzil.register_protocol('smoke', '[{"path": "topic", "kind": "text", "minimum": 1, "maximum": 9}]');
select menzil.set_retry_policy('work', '{"max_retries": 1}');
select menzil.create_event_type('order.paid', 'An order was paid.');
select menzil.create_event_type('strict', null, '{"required": ["total"], "properties": {"total": {"minimum": 0}}}');
select menzil.subscribe('order.paid', 'work'), menzil.subscribe('order.paid', 'hook', '{"total": 5}');
select menzil.subscribe('strict', 'narrow');
select menzil.schedule_create('nightly', '0 3 * * *', 'Europe/Istanbul', 'work', '{}');
select menzil.send_batch(n, array['{"total": 1}', '{"total": 2}']::jsonb[])
  from unnest(array['closed', 'work', 'hook', 'narrow']) n;
select menzil.send_with_options(n, '{}', p_ordering_key => 'k', p_idempotency_key => 'i' || g)
  from unnest(array['keys', 'work']) n, generate_series(1, 3) g;
select menzil.message_fail(id, num_attempts, '[PERMANENT] no') from menzil.message_dequeue(600000, 1, array['keys']);
select menzil.message_complete(id, num_attempts) from menzil.message_dequeue(600000, 1, array['work']);
select menzil.message_fail(id, num_attempts, '[PERMANENT] HTTP 400: no')
  from menzil.message_dequeue(600000, 1, array['work']);
select menzil.message_fail(id, num_attempts, '[RETRYABLE] HTTP 503: no')
  from menzil.message_dequeue(600000, 1, array['hook']);
select count(*) from menzil.message_dequeue(600000, 3, array['work', 'hook', 'narrow'], 'w1');
select menzil.worker_hello('w1', 'host', 1, '0.1.0'), menzil.inbox_claim('w1', 'k');
select menzil.job_claim('w1');
select menzil.bulk_open('bulk-1', 'rows');
select menzil.channel_pause('paused'), menzil.channel_release('closed'), menzil.disable_endpoint('off');
select menzil.send('tight', '{}'), menzil.channel_set('tight', p_max_size => 1);
"""


def furnish(conn: psycopg.Connection) -> None:
    """Empty the queue and set it up anew."""
    empty(conn)
    with conn.transaction():
        for statement in _FURNITURE.split(";\n"):
            if statement.strip():
                conn.execute(statement)
