-- The refusals that more than one function gives, each worded once.
create or replace function menzil._refuse_unknown(p_name text) returns void
language plpgsql as $$
declare
  v_near text;
begin
  if p_name is null then
    raise exception using errcode = '22004', message = 'A channel or endpoint name is needed, NULL was given.',
      hint = 'Pass the name of the channel or endpoint.';
  end if;
  -- At most 1,000 names are compared: a program that repeats a wrong name must not cost more with every channel there is.
  select menzil._nearest_word(p_name, array_agg(n.name)) into v_near
    from (select c.name from menzil.channel c where c.dropped_at is null limit 1000) n
   where abs(length(n.name) - length(p_name)) <= 2;
  raise exception using errcode = '42704', message = format('There is no channel or endpoint named %s.', quote_literal(menzil._shown(p_name))),
    hint = coalesce('Did you mean ' || quote_literal(v_near) || '? ', '') || 'Create it with menzil.channel_set(name) or menzil.create_endpoint(name, protocol, config).';
end $$;
