create or replace function menzil._refuse_unknown_bridge(p_name text) returns void
language plpgsql as $$
declare
  v_near text := menzil._nearest_word(p_name, array(select b.name from menzil.bridge b order by b.name limit 1000));
begin
  raise exception using errcode = '42704', message = format('There is no bridge named %s.', quote_literal(menzil._shown(p_name))),
    hint = concat_ws(' ', 'Did you mean ' || v_near || '?', 'Create it with menzil.bridge_create(name, protocol, config, channel); the view menzil.bridges lists them.');
end $$;
