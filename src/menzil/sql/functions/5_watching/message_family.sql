-- A message, the messages it was sent again for (depth -1, -2, ...) and the messages that were sent again because of it (1, 2, ...).
-- At most 50 of each, and 20 steps. A relative that was cleaned up has no channel and no status. Reads only.
create or replace function menzil.message_family(p_id bigint) returns table (
  message_id bigint, parent_id bigint, relation text, depth integer, channel text, status text, created_at timestamptz
)
language plpgsql stable security definer set search_path = pg_catalog, menzil, pg_temp set enable_seqscan = off set jit = off as $$
#variable_conflict use_column
declare
  v_one record;
  v_next bigint;
  v_level bigint[] := array[p_id];
  v_next_level bigint[];
  v_count integer := 0;
begin
  perform menzil._check_known(p_id);
  v_one := menzil._family_member(p_id);
  return query select p_id, coalesce(v_one.redrive_of, v_one.replay_of), 'self', 0, v_one.channel, v_one.status, v_one.created_at;
  for v_depth in 1 .. 20 loop   -- upwards: each has one parent at most
    v_next := coalesce(v_one.redrive_of, v_one.replay_of);
    exit when v_next is null;
    relation := case when v_one.redrive_of is not null then 'redrive' else 'replay' end;
    v_one := menzil._family_member(v_next);
    return query select v_next, coalesce(v_one.redrive_of, v_one.replay_of), relation, - v_depth, v_one.channel, v_one.status, v_one.created_at;
  end loop;
  for v_depth in 1 .. 20 loop   -- downwards: any number of children
    v_next_level := '{}';
    for v_one in
      select k.id, k.parent_id, k.relation, f.channel, f.status, f.created_at
        from menzil._children_of(v_level, 50 - v_count) k cross join lateral menzil._family_member(k.id) f order by k.id
    loop
      v_next_level := v_next_level || v_one.id;
      v_count := v_count + 1;
      return query select v_one.id, v_one.parent_id, v_one.relation, v_depth, v_one.channel, v_one.status, v_one.created_at;
    end loop;
    exit when v_next_level = '{}' or v_count >= 50;
    v_level := v_next_level;
  end loop;
end $$;
