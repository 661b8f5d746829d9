-- The months (UTC) of the archive, oldest first, and whether each is still open: the current one or a later one, or one
-- in which a live message was created. An open month can still grow.
drop function if exists menzil.archive_months();
create or replace function menzil.archive_months() returns table (month timestamptz, is_open boolean)
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp set jit = off as $$
  select m.month, m.month >= menzil._month_of(clock_timestamp()) or menzil._month_lives(m.month)
    from (select a.month_start as month from menzil.archive_month a union select menzil._month_of(d.created_at) from menzil.archive_default d) m
   order by 1
$$;
