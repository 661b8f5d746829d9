-- Writes down that a person did something that leaves no line of its own in the event log, such as a send by hand. In the
-- transaction of the act; the line says who and via what. Its event_type is act. and the name of the act: no other can be made.
create or replace function menzil.note_act(p_act text, p_entity_type text, p_entity_id text) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
begin
  if p_act is null or p_entity_type is null or p_entity_id is null then
    perform menzil._refuse_null('An act and what it was done to');
  elsif p_act !~ '^[a-z][a-z0-9-]{0,59}$' or p_entity_type !~ '^[a-z][a-z0-9_]{0,59}$' or length(p_entity_id) > 255 then
    perform menzil._refuse_value('The names of an act and of a kind of entity have up to 60 small letters, digits and hyphens, an id up to 255 characters.',
      'Write it as message-cancel, message and the id.');
  end if;
  perform menzil._event('act.' || p_act, p_entity_type, p_entity_id, null, null);
end $$;
