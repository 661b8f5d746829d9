-- The newest events about one thing, with who did it and through what, newest first.
create or replace function menzil._events_of(p_entity_type text, p_entity_id text, p_limit integer)
returns table (id bigint, event_type text, metadata jsonb, created_at timestamptz, actor text, via text)
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  select e.id, e.event_type, e.metadata, e.created_at, e.actor, e.via
    from menzil.event e where e.entity_type = p_entity_type and e.entity_id = p_entity_id order by e.id desc limit p_limit
$$;
