-- The months (UTC) of the archive, oldest first, and whether each is still open: the current one or a later one, or one
-- in which a live message or a dead letter was created. An open month cannot be dropped. Live messages are looked for once for all
-- months: a page asks this beside a deep queue.
drop function if exists menzil.archive_months();
create or replace function menzil.archive_months() returns table (month timestamptz, is_open boolean)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set timezone = 'UTC' set jit = off as $$
#variable_conflict use_column
declare
  v_now timestamptz := menzil._month_of(clock_timestamp());
  v_months timestamptz[];
  v_live bigint[];
begin
  -- The parent is locked before a partition of it, as _make_archive_month does it.
  v_months := array(
    select m.month from (select b.created_at as month from menzil.message b where false union select a.month_start from menzil.archive_month a
                         union select menzil._month_of(d.created_at) from menzil.archive_default d) m order by 1);
  if v_months[1] < v_now then
    v_live := array(select i.id from menzil._live_ids_to((select s.last_id from menzil.archive_span(v_months[1], v_now) s)) i);
  end if;
  return query
    select m.month, m.month >= v_now
             or exists (select 1 from menzil.dead_letter d where d.created_at >= m.month and d.created_at < m.month + interval '1 month')
             or exists (select 1 from unnest(v_live) u(id)
                          cross join lateral (select 1 from menzil.message b where b.id = u.id and b.created_at >= m.month and b.created_at < m.month + interval '1 month' limit 1) b)
      from unnest(v_months) m(month) order by 1;
end $$;
