-- Messages that were sent because of these: redriven or replayed, at most p_limit. What was sent before this release is found when the job
-- lookups has come to it; until then redrives are found through their dead letters.
create or replace function menzil._children_of(p_ids bigint[], p_limit integer) returns table (id bigint, parent_id bigint, relation text)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off as $$
begin
  return query
    select distinct k.id, u.id, case when k.redrive_of = u.id then 'redrive' else 'replay' end from unnest(p_ids) u(id)
      cross join lateral (
        select m.id, m.redrive_of from (select l.message_id from menzil.lineage l where l.parent_id = u.id limit p_limit) l
          cross join lateral (select m.id, m.redrive_of from menzil.message m where m.id = l.message_id offset 0) m
        union all
        select d.redriven_id, d.original_message_id from menzil.dead_letter d where d.original_message_id = u.id and d.redriven_id is not null
           and (select s.written_to < s.told_from from menzil.lookup_state s order by s.id desc limit 1)) k
     limit p_limit;
end $$;
