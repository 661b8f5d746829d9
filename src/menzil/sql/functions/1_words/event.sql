-- Writes one line of the event log, in the transaction of the act: both commit or neither does.
create or replace function menzil._event(
  p_event_type text, p_entity_type text, p_entity_id text, p_old jsonb, p_new jsonb, p_metadata jsonb default null
) returns void
language plpgsql as $$
begin
  insert into menzil.event (event_type, entity_type, entity_id, old_value, new_value, metadata, actor, via)
  values (p_event_type, p_entity_type, p_entity_id, p_old, p_new, p_metadata, menzil._actor(), menzil._via());
end $$;
