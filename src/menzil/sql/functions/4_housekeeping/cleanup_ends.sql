-- Ends, returns and expiries of messages whose month was dropped. Everything below the oldest id that is left goes, in bounded
-- rounds. Returns how many rows went.
create or replace function menzil._cleanup_ends(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  -- ids of one moment may lie in two months: a margin of 4096
  v_oldest bigint := coalesce((select min(m.id) from menzil.message m), menzil._register('menzil.message_id')) - 4096;
  v_count integer;
  v_total integer := 0;
begin
  delete from menzil.done d where d.ctid = any (array(
    select o.ctid from menzil.done o where o.lo_id < v_oldest and o.hi_id < v_oldest order by o.lo_id limit p_limit for update skip locked));
  get diagnostics v_total = row_count;
  delete from menzil.returned r where r.ctid = any (array(
    select o.ctid from menzil.returned o where o.id < v_oldest order by o.id limit p_limit for update skip locked));
  get diagnostics v_count = row_count;
  return v_total + v_count;
end $$;
