drop function if exists menzil.archive_months();

-- The months (UTC) of the archive, oldest first, and whether each is still open: the current one or a later one, or one
-- in which a live message was created. An open month can still grow.
create or replace function menzil.archive_months() returns table (month timestamptz, is_open boolean)
language plpgsql stable security definer
set search_path = pg_catalog, menzil, pg_temp
set jit = off as $$
begin
  return query
    select m.month, m.month >= menzil._month_of(clock_timestamp()) or l.month is not null
      from (select a.month_start as month from menzil.archive_month a
            union select menzil._month_of(d.created_at) from menzil.archive_default d) m
      left join (select distinct menzil._month_of(q.created_at) as month from menzil.message q) l on l.month = m.month
     order by 1;
end $$;

drop function if exists menzil.drop_exported_month(timestamptz, bigint, numeric, bigint);

-- Drops the archive's partition of a month (UTC) that lies in a lake, if what lies there is all of it: p_count, p_sum and
-- p_xor are the fingerprint of the rows in the lake, and the partition must have the same while nobody can write to it.
-- Answers dropped; absent, when there is no such partition; open, when the month can still grow; changed, when it has
-- other rows than the lake; busy, when somebody reads or writes it. Nothing is dropped unless it says dropped.
create or replace function menzil.drop_exported_month(p_month timestamptz, p_count bigint, p_sum numeric, p_xor bigint) returns text
language plpgsql security definer
set search_path = pg_catalog, menzil, pg_temp
set lock_timeout = '200ms' set timezone = 'UTC' set jit = off as $$
declare
  v_month timestamptz := menzil._exported_month(p_month);
  v_name text := 'archive_' || to_char(v_month, 'YYYY_MM');
  v_found record;
begin
  if p_month is null or p_count is null or p_sum is null or p_xor is null then
    perform menzil._refuse_null('A month and the fingerprint of its rows in the lake');
  elsif to_regclass('menzil.' || v_name) is null then
    return 'absent';
  elsif v_month >= menzil._month_of(clock_timestamp()) then
    return 'open';
  end if;
  -- Writers to this month wait from here on, readers and writers of other months do not. Whoever is in the middle of
  -- ending a message of this month holds the partition, so there is none; and what lives now is seen by the next statement.
  execute format('lock table menzil.%I in share mode', v_name);
  if exists (select 1 from menzil.message m where m.created_at >= v_month and m.created_at < v_month + interval '1 month') then
    return 'open';
  end if;
  select f.row_count, f.hash_sum, f.hash_xor into v_found from menzil.archive_fingerprint(v_month) f;
  if (v_found.row_count, v_found.hash_sum, v_found.hash_xor) is distinct from (p_count, p_sum, p_xor) then
    return 'changed';
  end if;
  lock table only menzil.archive in access exclusive mode;
  if menzil._drop_archive_month(v_month) = 0 then
    return 'busy';
  end if;
  perform menzil._event('archive.exported', 'archive', v_name, null, null,
    jsonb_build_object('messages', p_count, 'hash_sum', p_sum::text, 'hash_xor', p_xor::text));
  return 'dropped';
exception when lock_not_available or deadlock_detected then
  return 'busy';
end $$;
