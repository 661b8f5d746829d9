-- Messages that were in flight wait again, as returned says of them: in their lane at once when due, else on the schedule.
-- Their ordering key stays theirs.
create or replace function menzil._return_these(p_ids bigint[], p_flags smallint, p_now timestamptz) returns void
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_group record;
  v_found integer := 0;
begin
  for v_group in
    select m.channel_id, (10 - m.priority)::smallint as rank, r.place_at, r.due_at > p_now as later, array_agg(m.id order by m.id) as ids,
           array_agg(r.due_at order by m.id) as due_ats, array_agg(m.ordering_key order by m.id) as keys
      from unnest(p_ids) u(id)
      cross join lateral (select r.created_at, r.place_at, r.due_at from menzil.returned r where r.id = u.id offset 0) r
      cross join lateral (select m.id, m.channel_id, m.priority, m.ordering_key from menzil.message m where m.id = u.id and m.created_at = r.created_at offset 0) m
     group by 1, 2, 3, 4
  loop
    v_found := v_found + cardinality(v_group.ids);
    if v_group.later then
      insert into menzil.scheduled (due_at, id, channel_id, rank, place_at, flags, ordering_key, holds_key)
        select u.due_at, u.id, v_group.channel_id, v_group.rank, v_group.place_at, p_flags | 1, u.key, u.key is not null
          from unnest(v_group.due_ats, v_group.ids, v_group.keys) u(due_at, id, key);
    else
      perform menzil._tell(v_group.channel_id, v_group.rank, v_group.place_at, v_group.ids, (p_flags | 1)::smallint);
    end if;
  end loop;
  if v_found <> cardinality(p_ids) then   -- its lease would be gone and the message without a place
    raise exception using errcode = '40001', message = format('Only %s of %s messages were found that are to wait again.', v_found, cardinality(p_ids)),
      hint = 'Nothing was changed. Try again.';
  end if;
end $$;
