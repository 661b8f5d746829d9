-- Checks every key of a config, at every level, against the rules of its protocol.
create or replace function menzil._check_config(p_protocol text, p_config jsonb, p_parent text default null) returns void
language plpgsql stable as $$
declare
  v_key text;
  v_value jsonb;
  v_path text;
  v_rule record;
begin
  for v_key, v_value in select e.key, e.value from jsonb_each(p_config) e loop
    v_path := concat_ws('.', p_parent, v_key);
    select r.kind, r.minimum, r.maximum, r.choices into v_rule from menzil._config_rules(p_protocol) r where r.path = v_path;
    if not found or v_key like '%.%' then
      perform menzil._refuse_config_key(p_protocol, v_path, p_parent);
    end if;
    perform menzil._check_config_value(v_path, v_rule.kind, v_rule.minimum, v_rule.maximum, v_rule.choices, v_value);
    if v_rule.kind in ('object', 'limit object') and v_value <> 'null' then
      perform menzil._check_config(p_protocol, v_value, v_path);
    end if;
  end loop;
end $$;

create or replace function menzil._refuse_config_key(p_protocol text, p_path text, p_parent text) returns void
language plpgsql stable as $$
declare
  v_known text[] := array(select r.path from menzil._config_rules(p_protocol) r
                           where regexp_replace(r.path, '\.?[^.]*$', '') = coalesce(p_parent, ''));
begin
  perform menzil._refuse_value(format('%s is not a key of the config of an %s endpoint.', quote_literal(menzil._shown(p_path)), p_protocol),
    concat_ws(' ', 'Did you mean ' || menzil._nearest_word(p_path, v_known) || '?', format('Known keys here are %s.', array_to_string(v_known, ', '))));
end $$;
