-- Refuses a schema that could not be enforced whole: unknown keywords, wrong shapes, references that lead nowhere.
create or replace function menzil._check_schema(p_schema jsonb) returns void
language plpgsql immutable as $$
declare
  v_place record;   -- a schema inside the schema, and one of its keywords
  v_here text;
  v_value jsonb;
  v_type text;
  v_wrong text;
  v_at text;
  v_list jsonb;
begin
  if octet_length(p_schema::text) > 65536 then
    perform menzil._refuse_value(format('The schema has %s bytes, the limit is 65536.', octet_length(p_schema::text)), 'Leave descriptions and examples out.');
  end if;
  for v_place in
    select p.at, p.schema, p.depth, k.key as keyword, k.value, w.kind
      from menzil._schema_places(p_schema) p
      left join lateral jsonb_each(case when jsonb_typeof(p.schema) = 'object' then p.schema else '{}' end) k on true
      left join menzil._schema_keywords() w on w.keyword = k.key
     order by p.depth
  loop
    v_here := v_place.at || menzil._step(v_place.keyword);
    v_value := v_place.value;
    v_type := jsonb_typeof(v_value);
    if v_place.depth > 64 then
      perform menzil._refuse_value('The schema is nested deeper than 64 levels.', 'Move parts of it into $defs and refer to them.');
    elsif jsonb_typeof(v_place.schema) not in ('object', 'boolean') then
      perform menzil._refuse_schema(v_place.at, 'a schema is an object, true or false');
    elsif v_place.kind is null and v_place.keyword not like 'x-%' then
      perform menzil._refuse_keyword(v_place.keyword, v_place.at);
    elsif v_place.keyword = 'nullable' and v_value = 'true' and not v_place.schema -> 'type' ? 'null' then
      raise warning using message = format('The schema keyword nullable at "%s" is ignored.', menzil._shown(v_place.at)),
        hint = format('Draft 2020-12 writes {"type": %s}.', case jsonb_typeof(v_place.schema -> 'type') when 'array' then v_place.schema -> 'type' else jsonb_build_array(v_place.schema -> 'type') end || '"null"');
    end if;
    continue when v_place.kind is null;
    v_wrong := case
      when (v_place.kind like 'schemas%' or v_place.kind = 'lists of names') and v_type <> 'object' then 'an object is expected'
      when v_place.kind = 'list' and v_type <> 'array' then 'a list is expected'
      when v_place.kind = 'list of schemas' and (v_type <> 'array' or v_value = '[]') then 'a list of one or more schemas is expected'
      when v_place.kind = 'boolean' and v_type <> 'boolean' then 'true or false is expected'
      when v_place.kind in ('text', 'pattern', 'reference', 'dialect', 'anchor') and v_type <> 'string' then 'a text is expected'
      when v_place.kind in ('count', 'number', 'positive number') and v_type <> 'number' then 'a number is expected'
      when v_place.kind = 'count' and (v_value < '0' or v_value::numeric <> trunc(v_value::numeric)) then 'a whole number from 0 on is expected'
      when v_place.kind = 'positive number' and v_value <= '0' then 'a number above 0 is expected'
      when v_place.kind = 'dialect' and rtrim(v_value #>> '{}', '#') <> 'https://json-schema.org/draft/2020-12/schema'
        then 'only draft 2020-12 is known, https://json-schema.org/draft/2020-12/schema'
      when v_place.kind = 'anchor' and v_value #>> '{}' !~ '^[A-Za-z_][A-Za-z0-9._-]*$' then 'a letter and then letters, digits, dots, dashes are expected'
      when v_place.keyword = '$id' and v_place.at <> '' then 'only the whole schema may have an $id, because references start from it'
    end;
    if v_wrong is not null then
      perform menzil._refuse_schema(v_here, v_wrong);
    elsif v_place.kind in ('pattern', 'schemas by pattern') then
      -- What is compared with a pattern is no longer than this: of a text its own limit, of a name that of propertyNames.
      perform menzil._check_pattern(v_here, u.pattern, v_place.schema #> case v_place.kind when 'pattern' then '{maxLength}'::text[] else '{propertyNames,maxLength}' end)
         from unnest(case v_place.kind when 'pattern' then array[v_value #>> '{}'] else array(select jsonb_object_keys(v_value)) end) u(pattern);
    end if;
    for v_at, v_list in
      select v_here || menzil._step(e.key), e.value from jsonb_each(case v_place.kind when 'lists of names' then v_value end) e
      union all
      select v_here, case v_type when 'string' then jsonb_build_array(v_value) else v_value end where v_place.kind = 'type'
      union all
      select v_here, v_value where v_place.kind = 'names'
    loop
      v_wrong := case
        when jsonb_typeof(v_list) <> 'array' or exists (select 1 from jsonb_array_elements(v_list) e(name) where jsonb_typeof(e.name) <> 'string')
          then 'a list of names is expected'
        when (select count(distinct e.name) from jsonb_array_elements(v_list) e(name)) < jsonb_array_length(v_list) then 'a name is there twice'
        when v_place.kind = 'type' and (v_list = '[]' or not v_list <@ '["object", "array", "string", "number", "integer", "boolean", "null"]')
          then 'object, array, string, number, integer, boolean or null is expected'
      end;
      if v_wrong is not null then
        perform menzil._refuse_schema(v_at, v_wrong);
      end if;
    end loop;
  end loop;
  select p.schema ->> '$anchor' as name into v_place from menzil._schema_places(p_schema) p where p.schema ? '$anchor' group by 1 having count(*) > 1 limit 1;
  if found then
    perform menzil._refuse_value(format('Two schemas have the anchor %s.', quote_literal(menzil._shown(v_place.name))), 'Give each a name of its own.');
  end if;
  perform menzil._check_references(p_schema);
end $$;

-- Patterns are those of PostgreSQL. What would be read there in silence as something else than in ECMA-262 is refused.
create or replace function menzil._check_pattern(p_here text, p_pattern text, p_longest jsonb) returns void
language plpgsql immutable as $$
declare
  v_rest text := regexp_replace(p_pattern, E'\\\\(u[0-9A-Fa-f]{4}|[dDsSwWtnrfv]|[^[:alnum:]])', '', 'g');
begin
  if v_rest ~ E'\\\\[1-9]' then   -- the one construct whose time grows without bound with the length of a text
    perform menzil._refuse_schema(p_here, format('the pattern refers back to a group, %s, which can take seconds for one text', substring(v_rest from E'\\\\[1-9]')));
  elsif v_rest ~ E'\\\\' then
    perform menzil._refuse_schema(p_here, format('the pattern has an escape that is not known here, %s', substring(v_rest from E'\\\\.?')));
  elsif v_rest ~ E'\\[[.:=]' or v_rest ~ E'^\\*\\*\\*' then
    perform menzil._refuse_schema(p_here, 'the pattern has a bracket that means something else in PostgreSQL');
  elsif (jsonb_typeof(p_longest) = 'number' and p_longest <= '2000') is not true and menzil._slow_lookahead(p_pattern) then
    perform menzil._refuse_value(format('The schema is wrong at "%s": the pattern looks ahead from every place of a text, so one long text can take minutes.', menzil._shown(p_here)),
      format('Put the lookahead right after a ^, or limit the length: %s.', case when p_here like '%/pattern' then '{"maxLength": 2000}' else '{"propertyNames": {"maxLength": 2000}}' end));
  end if;
  begin
    perform '' collate "C" ~ p_pattern;
  exception when invalid_regular_expression or program_limit_exceeded or internal_error then   -- the last two: too large to compile
    perform menzil._refuse_schema(p_here, format('the pattern cannot be used: %s', left(menzil._shown(sqlerrm), 100)));
  end;
end $$;
