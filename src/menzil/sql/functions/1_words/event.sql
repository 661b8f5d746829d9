-- Writes one line of the event log.
create or replace function menzil._event(
  p_event_type text, p_entity_type text, p_entity_id text, p_old jsonb, p_new jsonb, p_metadata jsonb default null
) returns void
language plpgsql as $$
begin
  insert into menzil.event (event_type, entity_type, entity_id, old_value, new_value, metadata)
  values (p_event_type, p_entity_type, p_entity_id, p_old, p_new, p_metadata);
end $$;
