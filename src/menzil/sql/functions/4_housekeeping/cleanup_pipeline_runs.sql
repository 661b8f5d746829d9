-- Deletes runs of the pipeline older than the setting event_log_retention_days. Returns how many.
create or replace function menzil._cleanup_pipeline_runs(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  v_before timestamptz := (select clock_timestamp() - s.event_log_retention_days * interval '1 day' from menzil.setting_value s);
  v_count integer;
begin
  delete from menzil.pipeline_run r where r.ctid = any (array(
    select o.ctid from (select o.ctid, o.started_at from menzil.pipeline_run o order by o.id limit p_limit for update skip locked) o where o.started_at < v_before));
  get diagnostics v_count = row_count;
  return v_count;
end $$;
