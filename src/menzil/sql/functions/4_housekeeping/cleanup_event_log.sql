-- Deletes lines of the event log older than the setting event_log_retention_days. Returns how many.
create or replace function menzil.cleanup_event_log(p_limit integer default 10000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_before timestamptz := (select clock_timestamp() - s.event_log_retention_days * interval '1 day' from menzil.setting_value s);
  v_gone record;
begin
  perform menzil._check_limit(p_limit, 1000000);
  with gone as (
    delete from menzil.event e where e.ctid = any (array(
      select o.ctid from menzil.event o where o.created_at < v_before limit p_limit for update skip locked))
    returning e.xid, e.id
  ), last as (select g.xid, g.id from gone g order by g.xid desc, g.id desc limit 1)
  select (select count(*)::integer from gone) as lines, (select l.xid from last l) as xid, (select l.id from last l) as id into v_gone;
  perform menzil._feed_dropped('event_log', v_gone.xid, v_gone.id);   -- readers of the change feed may want to know
  return v_gone.lines;
end $$;
