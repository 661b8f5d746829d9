-- The newest event of one kind about one channel or endpoint: when it was, and who did it.
create or replace function menzil._last_act(p_entity_type text, p_entity_id text, p_event_type text, out at timestamptz, out actor text)
language sql stable as $$
  select a.at, a.actor from menzil._last_acts(array[p_entity_type], array[p_entity_id], array[p_event_type]) a
$$;
