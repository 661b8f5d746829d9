-- Scheduled messages that are due go to where they belong: behind their ordering key, or into the log of their lane, at
-- their position. Looks only as far back as p_since; a deep look looks at all.
create or replace function menzil._promote(p_now timestamptz, p_since timestamptz, p_limit integer) returns integer
language plpgsql as $$
declare
  v_group record;
  v_count integer := 0;
begin
  for v_group in
    with due as materialized (
      select s.ctid as at from menzil.scheduled s where s.due_at >= p_since and s.due_at <= p_now order by s.due_at, s.id limit p_limit for update skip locked
    ), moved as (
      delete from menzil.scheduled s where s.ctid = any (array(select d.at from due d)) returning s.*
    )
    select m.channel_id, m.rank, m.place_at, m.ordering_key is not null and not m.holds_key as keyed, array_agg(m.id order by m.id) as ids,
           array_agg(m.ordering_key order by m.id) as keys, bit_or(m.flags) as flags
      from moved m group by 1, 2, 3, 4
  loop
    if v_group.keyed then
      insert into menzil.key_queue (channel_id, ordering_key, waits, id)
        select v_group.channel_id, u.key, 1, u.id from unnest(v_group.keys, v_group.ids) u(key, id);
      perform menzil._tell_keys(array_fill(v_group.channel_id, array[cardinality(v_group.ids)]), v_group.keys);
    else
      perform menzil._tell(v_group.channel_id, v_group.rank, v_group.place_at, v_group.ids, v_group.flags);
    end if;
    v_count := v_count + cardinality(v_group.ids);
  end loop;
  return v_count;
end $$;
