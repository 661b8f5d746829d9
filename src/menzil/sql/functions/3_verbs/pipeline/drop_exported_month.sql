-- How the archive lies, for readers that divide it: of each month (UTC) that has messages, live ones too, the table and how
-- many blocks it has, the first and the last id, and whether messages ended together with others or one by one.
create or replace function menzil.archive_layout() returns table (
  month timestamptz, partition oid, blocks bigint, first_id bigint, last_id bigint, ended_together boolean
)
language sql stable security definer set search_path = pg_catalog, menzil, pg_temp set timezone = 'UTC' set enable_seqscan = off set jit = off as $$
  select m.month, p.partition, pg_relation_size(p.partition) / current_setting('block_size')::integer, s.first_id, s.last_id,
         -- Eight or more at once, on the average of a sample.
         (select coalesce(avg(e.n) >= 8, true) from (select d.n from menzil.done d where d.lo_id >= s.first_id + (s.last_id - s.first_id) / 2 and d.lo_id <= s.last_id
                                                      order by d.lo_id limit 500) e)
    from (select a.month_start as month from menzil.archive_month a union select menzil._month_of(d.created_at) from menzil.archive_default d) m
    cross join lateral (select coalesce(to_regclass('menzil.archive_' || to_char(m.month, 'YYYY_MM')), 'menzil.archive_default'::regclass)::oid as partition) p
    cross join lateral menzil.archive_span(m.month, m.month + interval '1 month') s
   where s.first_id is not null order by 1
$$;

drop function if exists menzil.drop_exported_month(timestamptz, bigint, numeric, bigint);

-- Drops the archive's partition of a month (UTC) that lies in a lake, if what lies there is all of it: p_count, p_sum and
-- p_xor are the fingerprint of the rows in the lake, and the partition must have the same while no transaction can write to
-- it. Answers dropped; absent, when there is no such partition; open, when the month can still grow or has dead letters;
-- changed, when it has other rows than the lake; busy, when it is read or written now. Nothing is dropped unless it says
-- dropped. What is compared stays as it is until the transaction ends, so a lock that others hold is asked for again for three
-- seconds: to compare a month of millions takes minutes.
create or replace function menzil.drop_exported_month(p_month timestamptz, p_count bigint, p_sum numeric, p_xor bigint) returns text
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set lock_timeout = '200ms' set timezone = 'UTC' set jit = off as $$
declare
  v_month timestamptz := menzil._exported_month(p_month);
  v_name text := 'archive_' || to_char(v_month, 'YYYY_MM');
  v_found record;
  v_last menzil.feed_drop;
begin
  if p_month is null or p_count is null or p_sum is null or p_xor is null then
    perform menzil._refuse_null('A month and the fingerprint of its rows in the lake');
  elsif to_regclass('menzil.' || v_name) is null then
    return 'absent';
  elsif v_month >= menzil._month_of(clock_timestamp()) then
    return 'open';
  end if;
  -- Writers of bodies of this month wait from here on; readers, and writers of other months, do not. An end is written only
  -- for a live message, and a message whose end is not committed yet is live for the next statement. So when nothing of the
  -- month lives, its ends stay as they are.
  -- Autovacuum gives way to who has waited for deadlock_timeout, and takes minutes for a month of millions otherwise. It vacuums long values
  -- as a table of their own, which LOCK cannot name: taking back an option locks it, too.
  perform set_config('lock_timeout', (least(15000, s.setting::integer) + 500)::text, true) from pg_settings s where s.name = 'deadlock_timeout';
  execute format('lock table menzil.%I in share row exclusive mode', v_name);
  execute format('alter table menzil.%I reset (toast.log_autovacuum_min_duration)', v_name);
  if menzil._month_stays(v_month) then
    return 'open';
  end if;
  select f.row_count, f.hash_sum, f.hash_xor into v_found from menzil.archive_fingerprint(v_month) f;
  if (v_found.row_count, v_found.hash_sum, v_found.hash_xor) is distinct from (p_count, p_sum, p_xor) then
    return 'changed';
  end if;
  v_last := menzil._last_end(v_month);
  perform set_config('lock_timeout', '50ms', true);   -- senders wait for as long, and as long again for each part of the month that another has
  for v_try in 1 .. 10 loop
    -- A writer that waits for the month holds the parent, which is not to be had before it goes on: to wait for each other would be a
    -- deadlock, and the writer would be told of it.
    if exists (select from pg_locks l where l.relation = ('menzil.' || v_name)::regclass and l.database = (select d.oid from pg_database d where d.datname = current_database())
                 and l.mode = 'RowExclusiveLock' and not l.granted) then
      return 'busy';
    end if;
    begin
      lock table only menzil.message in access exclusive mode;
      if menzil._drop_archive_month(v_month, v_last) = 0 then
        raise lock_not_available;   -- gives back the lock of message
      end if;
      exit;
    exception when lock_not_available or deadlock_detected then
      if v_try = 10 then
        return 'busy';
      end if;
      perform pg_sleep(0.3);
    end;
  end loop;
  perform menzil._event('archive.exported', 'archive', v_name, null, null,
    jsonb_build_object('messages', p_count, 'hash_sum', p_sum::text, 'hash_xor', p_xor::text));
  return 'dropped';
exception when lock_not_available or deadlock_detected then
  return 'busy';
end $$;
