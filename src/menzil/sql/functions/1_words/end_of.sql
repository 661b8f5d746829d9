-- How a message ended; a row of nulls: it has not. No row of done spans more than 4096 ids, so a short look downwards from
-- the id is enough, and usually the first row is the one.
create or replace function menzil._end_of(p_id bigint) returns menzil.done
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_done menzil.done;
begin
  if p_id < 1 then   -- no message has such an id, and the subtraction below must not overflow
    return null;
  end if;
  select d.* into v_done from menzil.done d
   where d.lo_id > p_id - 4096 and d.lo_id <= p_id and d.hi_id >= p_id and (d.ids is null or p_id = any (d.ids))
   order by d.lo_id desc limit 1;
  return v_done;
end $$;
