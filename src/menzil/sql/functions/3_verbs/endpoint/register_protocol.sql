-- Makes a protocol known that a package of the worker brings along, or changes its rules. p_rules is a JSON array with
-- one object per key of a config: path (nested keys with dots), kind, minimum, maximum, choices.
create or replace function menzil.register_protocol(p_name text, p_rules jsonb) returns void
language plpgsql security definer set search_path = pg_catalog, menzil, pg_temp as $$
declare
  v_kinds constant text[] := '{object,boolean,choice,integer,number,text,secret,url,headers,certificate,private key}';
  v_rule jsonb;
begin
  if p_name is null or p_rules is null then
    perform menzil._refuse_null('A name and the rules of a protocol');
  elsif p_name !~ '^[a-z][a-z0-9_-]{0,62}$' or p_name = any (menzil._built_in_protocols()) then
    perform menzil._refuse_value(format('%s cannot be the name of a protocol.', quote_literal(menzil._shown(p_name))),
      format('Use lower-case letters, digits, _ and -; %s are built in.', array_to_string(menzil._built_in_protocols(), ', ')));
  elsif jsonb_typeof(p_rules) <> 'array' then
    perform menzil._refuse_value('The rules of a protocol must be a JSON array of objects.', 'For instance [{"path": "topic", "kind": "text", "minimum": 1, "maximum": 249}].');
  end if;
  for v_rule in select e.value from jsonb_array_elements(p_rules) e loop
    if jsonb_typeof(v_rule) <> 'object' or (v_rule ->> 'path') is null or (v_rule ->> 'path') !~ E'^[a-z0-9_]+(\\.[a-z0-9_]+)*$'
       or (v_rule ->> 'kind' = any (v_kinds)) is not true
       or exists (select 1 from jsonb_object_keys(v_rule) k(key) where k.key not in ('path', 'kind', 'minimum', 'maximum', 'choices'))
       or coalesce(jsonb_typeof(v_rule -> 'minimum'), 'number') <> 'number' or coalesce(jsonb_typeof(v_rule -> 'maximum'), 'number') <> 'number'
       or coalesce(jsonb_typeof(v_rule -> 'choices'), 'array') <> 'array' then
      perform menzil._refuse_value(format('This is not a rule for the config of a protocol: %s.', left(v_rule::text, 200)),
        format('A rule has path, kind, minimum, maximum and choices; kinds are %s.', array_to_string(v_kinds, ', ')));
    elsif v_rule ->> 'kind' in ('integer', 'number', 'text', 'secret', 'headers', 'certificate', 'private key') and not v_rule ? 'maximum' then
      perform menzil._refuse_value(format('The rule for %s needs a maximum.', v_rule ->> 'path'), 'A number, a length, or a count of headers.');
    end if;
  end loop;
  insert into menzil.protocol (name, rules) values (p_name, p_rules)
    on conflict (name) do update set rules = excluded.rules;
  perform menzil._event('protocol.registered', 'protocol', p_name, null, p_rules);
end $$;
