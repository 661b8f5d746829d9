-- The plan that made this message; null: none did.
create or replace function menzil.plan_of(p_message_id bigint) returns bigint
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
begin
  if p_message_id is null then
    perform menzil._refuse_null('A message id');
  elsif p_message_id < 1 then   -- no message has such an id, and the subtraction below must not overflow
    return null;
  end if;
  return (select t.plan_id from menzil.plan_part t
           where t.lo_id > p_message_id - 4096 and t.lo_id <= p_message_id and t.hi_id >= p_message_id and (t.ids is null or p_message_id = any (t.ids))
           order by t.lo_id desc limit 1);
end $$;
