-- Messages that were sent because of these: redriven or replayed, at most p_limit. While `menzil migrate` has not built the indexes of
-- every month, only redrives are found, through their dead letters.
create or replace function menzil._children_of(p_ids bigint[], p_limit integer) returns table (id bigint, parent_id bigint, relation text)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
  if (select count(*) from pg_index x where x.indexrelid in (to_regclass('menzil.message_redrive_of'), to_regclass('menzil.message_replay_of')) and x.indisvalid) < 2 then
    return query
      select d.redriven_id, d.original_message_id, 'redrive' from unnest(p_ids) u(id)
        cross join lateral (select d.redriven_id, d.original_message_id from menzil.dead_letter d where d.original_message_id = u.id offset 0) d
       where d.redriven_id is not null limit p_limit;
    return;
  end if;
  return query
    select c.id, u.id, c.relation from unnest(p_ids) u(id)
      cross join lateral (
        (select m.id, 'redrive' as relation from menzil.message m where m.redrive_of = u.id limit p_limit)
        union all
        (select m.id, 'replay' from menzil.message m where m.replay_of = u.id limit p_limit)) c limit p_limit;
end $$;
