"""An endpoint that answers that it is gone."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.types.json import Jsonb


@pytest.mark.parametrize(("asked", "enabled"), [(True, False), (False, True)])
def test_endpoint_that_is_gone_is_disabled_when_its_config_asks_for_it(db: str, asked: bool, enabled: bool) -> None:
    with psycopg.connect(db, autocommit=True) as conn:
        config = Jsonb({"url": "https://example.com/hook", "auto_disable_on_gone": asked})
        conn.execute("select menzil.create_endpoint('hook', 'http', %s)", [config])
        conn.execute("select menzil.send('hook', '{}')")
        message = conn.execute("select id, num_attempts from menzil.message_dequeue(30000)").fetchone()
        assert message is not None
        fail = "select menzil.message_fail(%s, %s, '[PERMANENT] [DISABLE] 410 Gone')"
        assert conn.execute(fail, message).fetchone() == ("dead",)
        assert conn.execute("select enabled from menzil.endpoints where name = 'hook'").fetchone() == (enabled,)
        events = "select count(*) from menzil.event_log where event_type = 'endpoint.disabled'"
        assert conn.execute(events).fetchone() == (int(asked),)
