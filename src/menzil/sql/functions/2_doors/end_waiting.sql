-- Ends messages that were not in flight: expired or cancelled. Their ordering keys and their room in the channel are free.
create or replace function menzil._end_waiting(p_ids bigint[], p_status text, p_now timestamptz) returns void
language plpgsql as $$
declare
  v_ids bigint[] := array(select u.id from unnest(p_ids) u(id) order by u.id);
  v_group record;
begin
  for v_group in
    select coalesce(r.attempts, 0) as attempt, array_agg(u.id order by u.id) as ids
      from unnest(v_ids) u(id) left join lateral (select r.attempts from menzil.returned r where r.id = u.id offset 0) r on true group by 1
  loop
    perform menzil._end(v_group.ids, p_status, v_group.attempt, null, null, p_now);
  end loop;
  perform menzil._free_keys(v_ids);
  perform menzil._shrink(v_ids);
end $$;
