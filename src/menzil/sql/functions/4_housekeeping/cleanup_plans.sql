-- Deletes drafts that were not run for a day, and plans that ended longer ago than the event log is kept (event_log_retention_days).
-- SKIP LOCKED leaves plans that another session is at. Returns how many.
create or replace function menzil._cleanup_plans(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_now timestamptz := clock_timestamp();
  v_old timestamptz := (select v_now - s.event_log_retention_days * interval '1 day' from menzil.setting_value s);
  v_count integer;
begin
  delete from menzil.plan p where p.id = any (array(
    select o.id from menzil.plan o
     where o.status in ('draft', 'stopped', 'done') and not o.takes_back and coalesce(o.ended_at, o.created_at) < v_now - interval '1 day'
       and (o.status = 'draft' or coalesce(o.ended_at, o.created_at) < v_old)
     order by coalesce(o.ended_at, o.created_at) limit p_limit for update skip locked));
  get diagnostics v_count = row_count;
  return v_count;
end $$;
