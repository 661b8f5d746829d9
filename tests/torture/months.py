"""Months of the bodies: what happens around the first of a month, as SQL."""

from __future__ import annotations

#: The months after this one, which are empty.
DROP_AHEAD = """
do $$
declare
  v_month timestamptz;
begin
  lock table only menzil.message in access exclusive mode;   -- before its partitions, as readers do
  for v_month in select a.month_start from menzil.archive_month a where a.month_start > clock_timestamp() loop
    perform menzil._drop_archive_month(v_month, null);
  end loop;
end $$"""

#: Functions with the month before in their text: what they are on the first of a month, until a job makes them anew.
SET_BACK = """
select menzil._renew_hot(h.name, clock_timestamp() - interval '1 month')
  from (select h.name from menzil.hot_function h order by h.name for update) h"""

#: When a month begins, by the clock of the server, and a little later.
NEXT_MONTH = "date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' + interval '1 month' + interval '2 s'"
SOON = "clock_timestamp() + interval '1 s'"

_JOBS = "('partitions', 'hot_functions', 'retention')"


def jobs_due(when: str) -> str:
    """Let the jobs that look after months be due at this time."""
    return f"update menzil.job set next_at = {when} where name in {_JOBS}"
