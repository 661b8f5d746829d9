-- The refusals that more than one function gives, each worded once.
create or replace function menzil._refuse_unknown(p_name text) returns void
language plpgsql as $$
begin
  if p_name is null then
    raise exception using errcode = '22004', message = 'A channel or endpoint name is needed, NULL was given.',
      hint = 'Pass the name of the channel or endpoint.';
  end if;
  raise exception using errcode = '42704', message = format('There is no channel or endpoint named %s.', quote_literal(menzil._shown(p_name))),
    hint = 'Create it with menzil.channel_set(name) or menzil.create_endpoint(name, protocol, config).';
end $$;
