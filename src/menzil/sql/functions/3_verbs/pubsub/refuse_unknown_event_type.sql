create or replace function menzil._refuse_unknown_event_type(p_name text) returns void
language plpgsql as $$
begin
  perform menzil._refuse_null('The name of an event type') where p_name is null;
  raise exception using errcode = '42704', message = format('There is no event type named %s.', quote_literal(menzil._shown(p_name))),
    hint = 'Create it with menzil.create_event_type(name); the view menzil.event_types lists them.';
end $$;
