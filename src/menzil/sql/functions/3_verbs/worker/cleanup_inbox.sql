-- Forgets what the inbox need not remember any longer. Returns how many.
create or replace function menzil.cleanup_inbox(p_limit integer default 10000) returns integer
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_until timestamptz := clock_timestamp() - (select s.inbox_retention * interval '1 s' from menzil.setting_value s);
  v_count integer;
begin
  perform menzil._check_limit(p_limit, 1000000);
  delete from menzil.inbox i where i.ctid = any (array(
    select o.ctid from menzil.inbox o where o.seen_at < v_until limit p_limit for update skip locked));
  get diagnostics v_count = row_count;
  return v_count;
end $$;
