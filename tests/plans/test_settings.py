"""Functions that forbid a kind of scan also switch the JIT compiler off."""

from __future__ import annotations

import psycopg

_FORBIDDING = """
select p.oid::regprocedure::text from pg_proc p
where p.pronamespace = 'menzil'::regnamespace
  and 'enable_seqscan=off' = any (p.proconfig) and 'jit=off' <> all (p.proconfig)"""


def test_functions_that_price_plans_absurdly_high_are_never_compiled(db: str) -> None:
    # Before PostgreSQL 18 a forbidden scan that cannot be avoided (a sequence has no index) costs ten milliards, and
    # any plan as dear as that is handed to the JIT compiler: hundreds of milliseconds in every call.
    with psycopg.connect(db) as conn:
        assert conn.execute(_FORBIDDING).fetchall() == []
