-- The newest event of one kind about each of several channels or endpoints: when it was, and who did it. Looks at the newest 1,000
-- events of each. Where another transaction has locked the event log, no rows: what asks goes on without these two facts.
create or replace function menzil._last_acts(p_entity_types text[], p_entity_ids text[], p_event_types text[])
returns table (entity_type text, entity_id text, at timestamptz, actor text)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off set lock_timeout = '100ms' as $$
begin
  return query
    select t.entity_type, t.entity_id, a.created_at, a.actor
      from unnest(p_entity_types, p_entity_ids, p_event_types) t (entity_type, entity_id, event_type)
      -- Lines are read until the first of the kind: menzil._events_of would read and shape all 1,000 of each.
      cross join lateral (
        select e.created_at, e.actor
          from (select e.id, e.event_type, e.created_at, e.actor from menzil.event e
                 where e.entity_type = t.entity_type and e.entity_id = t.entity_id order by e.id desc limit 1000) e
         where e.event_type = t.event_type order by e.id desc limit 1) a;
exception when lock_not_available then
  return;
end $$;
