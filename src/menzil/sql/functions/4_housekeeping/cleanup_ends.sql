-- Ends and returns of messages whose month was dropped. Everything below the oldest id that is left goes, in bounded rounds. The end of
-- a message that an idempotency key names stays until the job keys has forgotten the key: the end says until when the key is held.
-- Returns how many rows went.
create or replace function menzil._cleanup_ends(p_limit integer) returns integer
language plpgsql set enable_seqscan = off set jit = off as $$
declare
  -- ids of one moment may lie in two months: a margin of 4096
  v_oldest bigint := coalesce((select min(m.id) from menzil.message m), menzil._register('menzil.message_id')) - 4096;
  v_named int8multirange := '{}';
  v_count integer;
  v_total integer := 0;
begin
  if exists (select 1 from menzil.done o where o.lo_id < v_oldest) then   -- else nothing was dropped, and the keys need not be read
    v_named := coalesce((select range_agg(int8range(k.message_id, k.message_id, '[]')) from menzil.key k where k.message_id < v_oldest), '{}');
  end if;
  delete from menzil.done d where d.ctid = any (array(
    select o.ctid from menzil.done o where o.lo_id < v_oldest and o.hi_id < v_oldest and not v_named && int8range(o.lo_id, o.hi_id, '[]')
     order by o.lo_id limit p_limit for update skip locked));
  get diagnostics v_total = row_count;
  delete from menzil.returned r where r.ctid = any (array(
    select o.ctid from menzil.returned o where o.id < v_oldest order by o.id limit p_limit for update skip locked));
  get diagnostics v_count = row_count;
  return v_total + v_count;
end $$;
