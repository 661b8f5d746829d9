-- Deletes tries older than the setting archive_retention_months whose message neither lives nor is a dead letter.
-- Returns how many.
create or replace function menzil.cleanup_attempts(p_limit integer default 10000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_before timestamptz := (select menzil._archive_horizon(clock_timestamp(), s.archive_retention_months) from menzil.setting_value s);
  v_count integer;
begin
  perform menzil._check_limit(p_limit, 1000000);
  delete from menzil.attempt t where t.ctid = any (array(
    select o.ctid from menzil.attempt o
     where o.ended_at < v_before
       and ((menzil._end_of(o.message_id)).lo_id is not null or not exists (select 1 from menzil.message m where m.id = o.message_id))
       and (select 1 from menzil.dead_letter d where d.original_message_id = o.message_id) is null
     limit p_limit for update skip locked));
  get diagnostics v_count = row_count;
  return v_count;
end $$;
