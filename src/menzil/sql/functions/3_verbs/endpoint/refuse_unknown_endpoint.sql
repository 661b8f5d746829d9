create or replace function menzil._refuse_unknown_endpoint(p_name text) returns void
language plpgsql as $$
begin
  raise exception using errcode = '42704', message = format('There is no endpoint named %s.', quote_literal(menzil._shown(p_name))),
    hint = case when exists (select 1 from menzil.channel c where c.name = p_name and c.dropped_at is null)
                then 'That name is a plain channel, which has no destination.'
                else 'Create it with menzil.create_endpoint(name, protocol, config); the view menzil.endpoints lists them.' end;
end $$;
