"""Retry policies: whatever is accepted gives a delay between nothing and its longest, at every retry there can be."""

from __future__ import annotations

from typing import Any

import psycopg
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.asking import refusal
from tests.fuzz.json_values import Token, written
from tests.fuzz.pace import examples

seconds = st.one_of(
    st.integers(-1, 86401),
    st.floats(0, 86400),
    st.sampled_from([0, 1e-300, 1e-9, 86400, Token("1e400"), Token("1e-400"), Token("0.1e1"), "5", None, True]),
)
policies = st.fixed_dictionaries(
    {},
    optional={
        "max_retries": st.integers(-1, 1001) | st.sampled_from([1.5, "3", None, Token("1e3"), Token("1e400")]),
        "backoff": st.sampled_from(["exponential", "linear", "fixed", "Linear", "", None]),
        "base_delay_seconds": seconds,
        "max_delay_seconds": seconds,
        "increment_seconds": seconds,
        "jitter": st.floats(0, 1) | st.sampled_from([True, False, -0.1, 1.1, "true", None, Token("1e-400")]),
    },
)
DELAYS = """select menzil._retry_delay(%s::jsonb, s, n),
                   coalesce((%s::jsonb ->> 'max_delay_seconds')::numeric,
                            greatest(s.retry_max_delay, (%s::jsonb ->> 'base_delay_seconds')::numeric))
              from menzil.setting_value s, unnest(array[0, 1, 2, 39, 40, 41, 999, 1000]) n"""


@examples(200)
@given(policy=policies)
def test_an_accepted_policy_always_gives_a_delay(conn: psycopg.Connection, policy: dict[str, Any]) -> None:
    text = written(policy)
    if refused := refusal(conn, "select menzil.validate_retry_policy(%s::jsonb)", text):
        assert refused.diag.message_hint
        return
    for delay, longest in conn.execute(DELAYS, [text, text, text]):
        assert 0 <= delay <= float(longest) + 0.000001  # rounded to what a clock can show
    with conn.transaction(force_rollback=True):
        conn.execute("select menzil.channel_set('policy')")
        conn.execute("select menzil.set_retry_policy('policy', %s::jsonb)", [text])
        conn.execute("select menzil.send('policy', '{}')")
        conn.execute(
            "select menzil.message_fail(id, num_attempts, 'no') from menzil.message_dequeue(60000, 1, array['policy'])"
        )
