-- The newest event of one kind about a channel or endpoint: when it was, and who did it. Looks at the newest 1,000 events of it.
create or replace function menzil._last_act(p_entity_type text, p_entity_id text, p_event_type text, out at timestamptz, out actor text)
language sql stable set enable_seqscan = off set jit = off as $$
  select e.created_at, e.actor from menzil._events_of(p_entity_type, p_entity_id, 1000) e where e.event_type = p_event_type order by e.id desc limit 1
$$;
