-- Refuses a schema that could not be enforced whole: unknown keywords, wrong shapes, references that lead nowhere.
create or replace function menzil._check_schema(p_schema jsonb) returns void
language plpgsql immutable as $$
declare
  v_place record;
begin
  if octet_length(p_schema::text) > 65536 then
    perform menzil._refuse_value(format('The schema has %s bytes, the limit is 65536.', octet_length(p_schema::text)), 'Leave descriptions and examples out.');
  end if;
  for v_place in
    with recursive place(at, schema, depth) as (
      select '', p_schema, 0
      union all
      select p.at || i.step, i.schema, p.depth + 1 from place p cross join lateral menzil._inner_schemas(p.schema) i where p.depth <= 64)
    select p.at, p.schema, p.depth from place p order by p.depth
  loop
    if v_place.depth > 64 then
      perform menzil._refuse_value('The schema is nested deeper than 64 levels.', 'Move parts of it into $defs and refer to them.');
    elsif jsonb_typeof(v_place.schema) not in ('object', 'boolean') then
      perform menzil._refuse_schema(v_place.at, 'a schema is an object, true or false');
    end if;
    perform menzil._check_keyword(v_place.at, k.key, k.value)
       from jsonb_each(case when jsonb_typeof(v_place.schema) = 'object' then v_place.schema else '{}' end) k;
  end loop;
  perform menzil._check_references(p_schema);
end $$;

create or replace function menzil._refuse_schema(p_at text, p_why text) returns void
language plpgsql immutable as $$
begin
  perform menzil._refuse_value(format('The schema is wrong at "%s": %s.', menzil._shown(p_at), p_why),
    'Schemas are JSON Schema, draft 2020-12; the page on events lists the keywords.');
end $$;

-- One keyword of one schema.
create or replace function menzil._check_keyword(p_at text, p_keyword text, p_value jsonb) returns void
language plpgsql immutable as $$
declare
  v_kind text := (select w.kind from menzil._schema_keywords() w where w.keyword = p_keyword);
  v_here text := p_at || menzil._step(p_keyword);
  v_type text := jsonb_typeof(p_value);
begin
  if v_kind is null then
    perform menzil._refuse_value(format('The schema keyword %s at "%s" is not enforced.', quote_literal(left(menzil._shown(p_keyword), 80)), menzil._shown(p_at)),
      concat_ws(' ', 'Did you mean ' || menzil._nearest_word(p_keyword, array(select w.keyword from menzil._schema_keywords() w)) || '?',
        'Leave it out, or put notes into $comment; the page on events lists the keywords.'));
  elsif v_kind like any (array['schemas%', 'lists of names']) and v_type <> 'object' then
    perform menzil._refuse_schema(v_here, 'an object is expected');
  elsif v_kind = 'list' and v_type <> 'array' then
    perform menzil._refuse_schema(v_here, 'a list is expected');
  elsif v_kind = 'list of schemas' and (v_type <> 'array' or p_value = '[]') then
    perform menzil._refuse_schema(v_here, 'a list of one or more schemas is expected');
  elsif v_kind = 'boolean' and v_type <> 'boolean' then
    perform menzil._refuse_schema(v_here, 'true or false is expected');
  elsif v_kind in ('text', 'pattern', 'reference', 'dialect') and v_type <> 'string' then
    perform menzil._refuse_schema(v_here, 'a text is expected');
  elsif v_kind in ('count', 'number', 'positive number') and v_type <> 'number' then
    perform menzil._refuse_schema(v_here, 'a number is expected');
  elsif v_kind = 'count' and (p_value < '0' or p_value::numeric <> trunc(p_value::numeric)) then
    perform menzil._refuse_schema(v_here, 'a whole number from 0 on is expected');
  elsif v_kind = 'positive number' and p_value <= '0' then
    perform menzil._refuse_schema(v_here, 'a number above 0 is expected');
  elsif v_kind = 'names' then
    perform menzil._check_names(v_here, p_value);
  elsif v_kind = 'lists of names' then
    perform menzil._check_names(v_here || menzil._step(e.key), e.value) from jsonb_each(p_value) e;
  elsif v_kind = 'type' then
    perform menzil._check_types(v_here, p_value);
  elsif v_kind = 'pattern' then
    perform menzil._check_pattern(v_here, p_value #>> '{}');
  elsif v_kind = 'schemas by pattern' then
    perform menzil._check_pattern(v_here, e.key) from jsonb_object_keys(p_value) e(key);
  elsif v_kind = 'dialect' and rtrim(p_value #>> '{}', '#') <> 'https://json-schema.org/draft/2020-12/schema' then
    perform menzil._refuse_schema(v_here, 'only draft 2020-12 is known, https://json-schema.org/draft/2020-12/schema');
  elsif p_keyword = '$id' and p_at <> '' then
    perform menzil._refuse_schema(v_here, 'only the whole schema may have an $id, because references start from it');
  end if;
end $$;

create or replace function menzil._check_names(p_here text, p_value jsonb) returns void
language plpgsql immutable as $$
begin
  if jsonb_typeof(p_value) <> 'array' or exists (select 1 from jsonb_array_elements(p_value) e(name) where jsonb_typeof(e.name) <> 'string') then
    perform menzil._refuse_schema(p_here, 'a list of names is expected');
  elsif (select count(distinct e.name) from jsonb_array_elements(p_value) e(name)) < jsonb_array_length(p_value) then
    perform menzil._refuse_schema(p_here, 'a name is there twice');
  end if;
end $$;

create or replace function menzil._check_types(p_here text, p_value jsonb) returns void
language plpgsql immutable as $$
declare
  v_types jsonb := case when jsonb_typeof(p_value) = 'string' then jsonb_build_array(p_value) else p_value end;
begin
  perform menzil._check_names(p_here, v_types);
  if v_types = '[]' or not v_types <@ '["object", "array", "string", "number", "integer", "boolean", "null"]' then
    perform menzil._refuse_schema(p_here, 'object, array, string, number, integer, boolean or null is expected');
  end if;
end $$;
