-- The months (UTC) of the archive, oldest first, and whether each is still open: the current one or a later one, or one
-- in which a live message or a dead letter was created. An open month cannot be dropped.
drop function if exists menzil.archive_months();
create or replace function menzil.archive_months() returns table (month timestamptz, is_open boolean)
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp set jit = off as $$
  select m.month, m.month >= menzil._month_of(clock_timestamp()) or menzil._month_stays(m.month)
    -- The parent is locked before a partition of it, as _make_archive_month does it.
    from (select b.created_at as month from menzil.message b where false union select a.month_start from menzil.archive_month a union select menzil._month_of(d.created_at) from menzil.archive_default d) m
   order by 1
$$;
