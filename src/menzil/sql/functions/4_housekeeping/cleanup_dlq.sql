-- Deletes dead letters, failed or redriven, that are older than the setting dlq_retention_days. One that blocks its
-- ordering key lets it go. SKIP LOCKED leaves those that another transaction is redriving. Returns how many.
create or replace function menzil.cleanup_dlq(p_limit integer default 10000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
declare
  v_before timestamptz := (select clock_timestamp() - s.dlq_retention_days * interval '1 day' from menzil.setting_value s);
  v_gone record;
begin
  perform menzil._check_limit(p_limit, 1000000);
  with gone as (
    delete from menzil.dead_letter d where d.ctid = any (array(
      select o.ctid from menzil.dead_letter o where o.failed_at < v_before order by o.failed_at limit p_limit for update skip locked))
    returning d.original_message_id, d.blocks_key
  )
  select count(*)::integer as letters, array_agg(g.original_message_id) filter (where g.blocks_key) as ids into v_gone from gone g;
  if v_gone.ids is not null then
    perform menzil._free_keys(v_gone.ids);
  end if;
  return v_gone.letters;
end $$;
