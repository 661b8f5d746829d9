"""A key that stands twice in one batch is one message, also where room is short."""

from __future__ import annotations

import psycopg


def test_a_key_repeated_inside_a_batch_needs_room_once(db: str) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        conn.execute("select menzil.channel_set('work', p_max_size => 1)")
        send = "select menzil.send_many('{work,work}', array['1', '1']::jsonb[], p_idempotency_keys => '{k,k}')"
        ids = conn.execute(send).fetchone()
        assert ids is not None
        assert len(set(ids[0])) == 1
