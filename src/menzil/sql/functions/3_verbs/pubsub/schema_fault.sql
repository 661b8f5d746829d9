-- JSON Schema, draft 2020-12: does a value fit? Null when it does, otherwise the rule it breaks and the JSON pointer of
-- the place, built on the way out so that a value that fits pays nothing for it.
-- Keywords that do not apply to the kind of the value are not looked at; one that is not there is null and decides nothing.
create or replace function menzil._schema_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_kind text := jsonb_typeof(p_value);
  v_type jsonb := p_schema -> 'type';
  v_text text;
  v_broken text;   -- the keyword that the value breaks
  v_fault text[];
begin
  -- Both a schema that follows itself and a value that is nested without end stop here, before the server's stack does.
  if p_depth > 127 and (p_depth > 128 and v_kind in ('object', 'array') or p_schema ?| '{enum,const,$ref,allOf,anyOf,oneOf,not,if}') then
    perform menzil._refuse_value('The payload is nested deeper than the 128 levels a schema is followed.',
      'Send a flatter payload, or an event type without a schema.');
  end if;
  if v_kind in ('object', 'array') and p_schema ?| '{unevaluatedProperties,unevaluatedItems}' then
    return (select s.fault from menzil._schema_seen(p_schema, p_value, p_root, p_depth) s);
  end if;
  -- A lone jsonb text has its own content as its only key, so one question serves "type": "a" and "type": ["a", "b"].
  if v_type is not null and not v_type ? v_kind
     and not (v_kind = 'number' and v_type ? 'integer' and p_value::numeric = trunc(p_value::numeric)) then
    v_broken := 'type';
  elsif v_kind = 'string' and p_schema ?| '{minLength,maxLength,pattern}' then
    v_text := p_value #>> '{}';
    -- Collation C: the same answer in every database. Classes and ranges are those of ASCII, as in ECMA-262.
    v_broken := case when length(v_text) < (p_schema -> 'minLength')::numeric then 'minLength'
                     when length(v_text) > (p_schema -> 'maxLength')::numeric then 'maxLength'
                     when v_text collate "C" !~ (p_schema ->> 'pattern') then 'pattern' end;
  elsif v_kind = 'number' and p_schema ?| '{minimum,maximum,exclusiveMinimum,exclusiveMaximum,multipleOf}' then
    v_broken := case when p_value < p_schema -> 'minimum' then 'minimum'   -- jsonb numbers compare as numbers, exactly
                     when p_value > p_schema -> 'maximum' then 'maximum'
                     when p_value <= p_schema -> 'exclusiveMinimum' then 'exclusiveMinimum'
                     when p_value >= p_schema -> 'exclusiveMaximum' then 'exclusiveMaximum'
                     when mod(p_value::numeric, (p_schema -> 'multipleOf')::numeric) <> 0 then 'multipleOf' end;
  elsif v_kind = 'object' then
    v_fault := menzil._object_fault(p_schema, p_value, p_root, p_depth + 1);
  elsif v_kind = 'array' then
    v_fault := menzil._array_fault(p_schema, p_value, p_root, p_depth + 1);
  end if;
  if v_broken = 'type' and v_kind = 'null' and p_schema -> 'nullable' = 'true' then
    return array[format('type %s (nullable is not part of draft 2020-12: list null among the types)', v_type), ''];
  elsif v_broken is not null then
    return menzil._broken(v_broken, p_schema -> v_broken);
  elsif v_fault is null and p_schema ?| '{enum,const,$ref,allOf,anyOf,oneOf,not,if}' then
    return menzil._choice_fault(p_schema, p_value, p_root, p_depth + 1);
  elsif p_schema = 'false' then
    return array['false', ''];
  end if;
  return v_fault;
end $$;

-- The keywords for objects. The members are walked once, for all keywords that look at members.
create or replace function menzil._object_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_required jsonb := p_schema -> 'required';
  v_properties jsonb := p_schema -> 'properties';
  v_others jsonb := p_schema -> 'additionalProperties';
  v_more boolean := p_schema ?| '{patternProperties,propertyNames}';
  v_count integer;
  v_key text;
  v_value jsonb;
  v_schema jsonb;
  v_claimed boolean;   -- whether properties or a pattern speak of the member
  v_name text;
  v_rule jsonb;
  v_fault text[];
begin
  for i in 0 .. coalesce(jsonb_array_length(v_required), 0) - 1 loop
    if not p_value ? (v_required ->> i) then
      return menzil._broken('required', v_required -> i);
    end if;
  end loop;
  if p_schema ?| '{minProperties,maxProperties,dependentRequired,dependentSchemas}' then
    v_count := (select count(*) from jsonb_object_keys(p_value));
    v_name := case when v_count < (p_schema -> 'minProperties')::numeric then 'minProperties'
                   when v_count > (p_schema -> 'maxProperties')::numeric then 'maxProperties' end;
    if v_name is not null then
      return menzil._broken(v_name, p_schema -> v_name);
    end if;
    for v_name, v_rule in select e.key, e.value from jsonb_each(p_schema -> 'dependentRequired') e where p_value ? e.key loop
      if exists (select 1 from jsonb_array_elements_text(v_rule) n(name) where not p_value ? n.name) then
        return menzil._broken('dependentRequired', jsonb_build_object(v_name, v_rule));
      end if;
    end loop;
    for v_rule in select e.value from jsonb_each(p_schema -> 'dependentSchemas') e where p_value ? e.key loop
      v_fault := menzil._schema_fault(v_rule, p_value, p_root, p_depth);
      if v_fault is not null then
        return v_fault;
      end if;
    end loop;
  end if;
  if v_properties is null and v_others is null and not v_more then
    return null;
  end if;
  for v_key, v_value in select e.key, e.value from jsonb_each(p_value) e loop
    v_schema := v_properties -> v_key;
    v_claimed := v_schema is not null;
    if v_more then
      if p_schema ? 'propertyNames' and menzil._schema_fault(p_schema -> 'propertyNames', to_jsonb(v_key), p_root, p_depth) is not null then
        v_fault := menzil._broken('propertyNames', p_schema -> 'propertyNames');
      end if;
      for v_name, v_rule in select e.key, e.value from jsonb_each(p_schema -> 'patternProperties') e loop
        exit when v_fault is not null;
        if v_key collate "C" ~ v_name then
          v_claimed := true;
          v_fault := menzil._schema_fault(v_rule, v_value, p_root, p_depth);
        end if;
      end loop;
    end if;
    if v_fault is null and not v_claimed and v_others is not null then
      v_fault := case when v_others = 'false' then menzil._broken('additionalProperties', v_others)
                      else menzil._schema_fault(v_others, v_value, p_root, p_depth) end;
    elsif v_fault is null and v_schema is not null then
      v_fault := menzil._schema_fault(v_schema, v_value, p_root, p_depth);
    end if;
    if v_fault is not null then
      return array[v_fault[1], menzil._step(v_key) || v_fault[2]];
    end if;
  end loop;
  return null;
end $$;

-- The keywords for arrays.
create or replace function menzil._array_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_first jsonb := p_schema -> 'prefixItems';
  v_firsts integer := coalesce(jsonb_array_length(v_first), 0);
  v_items jsonb := p_schema -> 'items';
  v_count integer := jsonb_array_length(p_value);
  v_at integer := 0;
  v_item jsonb;
  v_schema jsonb;
  v_broken text;
  v_fault text[];
begin
  v_broken := case when v_count < (p_schema -> 'minItems')::numeric then 'minItems'
                   when v_count > (p_schema -> 'maxItems')::numeric then 'maxItems'
                   when p_schema -> 'uniqueItems' = 'true'
                        and (select count(distinct e.item) from jsonb_array_elements(p_value) e(item)) < v_count then 'uniqueItems' end;
  if v_broken is null and p_schema ? 'contains' then
    v_count := (select count(*) from jsonb_array_elements(p_value) e(item)
                 where menzil._schema_fault(p_schema -> 'contains', e.item, p_root, p_depth) is null);
    v_broken := case when v_count < (p_schema -> 'minContains')::numeric then 'minContains'
                     when v_count < 1 and not p_schema ? 'minContains' then 'contains'
                     when v_count > (p_schema -> 'maxContains')::numeric then 'maxContains' end;
  end if;
  if v_broken is not null then
    return menzil._broken(v_broken, p_schema -> v_broken);
  elsif v_first is null and v_items is null then
    return null;
  end if;
  for v_item in select e.item from jsonb_array_elements(p_value) e(item) loop
    v_schema := case when v_at < v_firsts then v_first -> v_at else v_items end;
    exit when v_schema is null;
    v_fault := menzil._schema_fault(v_schema, v_item, p_root, p_depth);
    if v_fault is not null then
      return array[case when v_fault[1] = 'false' and v_at >= v_firsts then 'items false' else v_fault[1] end, '/' || v_at || v_fault[2]];
    end if;
    v_at := v_at + 1;
  end loop;
  return null;
end $$;

-- The keywords for values of any kind: fixed values, and schemas made of other schemas for the same place.
create or replace function menzil._choice_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_enum jsonb := p_schema -> 'enum';
  v_schema jsonb;
  v_broken text;
  v_fault text[];
begin
  -- For text, numbers and the like containment is membership; for objects and arrays it asks for less.
  if not v_enum @> jsonb_build_array(p_value) or (v_enum is not null and jsonb_typeof(p_value) in ('object', 'array')
       and not exists (select 1 from jsonb_array_elements(v_enum) e(value) where e.value = p_value)) then
    return menzil._broken('enum', v_enum);
  elsif p_value <> p_schema -> 'const' then
    return menzil._broken('const', p_schema -> 'const');
  end if;
  if p_schema ? '$ref' then
    v_fault := menzil._schema_fault(menzil._schema_at(p_root, p_schema ->> '$ref'), p_value, p_root, p_depth);
  end if;
  if v_fault is null and p_schema ? 'allOf' then
    for v_schema in select e.schema from jsonb_array_elements(p_schema -> 'allOf') e(schema) loop
      v_fault := menzil._schema_fault(v_schema, p_value, p_root, p_depth);
      exit when v_fault is not null;
    end loop;
  end if;
  if v_fault is null and p_schema ?| '{anyOf,oneOf,not}' then
    v_broken := case
      when p_schema ? 'anyOf' and not exists (select 1 from jsonb_array_elements(p_schema -> 'anyOf') e(schema)
                                               where menzil._schema_fault(e.schema, p_value, p_root, p_depth) is null) then 'anyOf'
      when p_schema ? 'oneOf' and (select count(*) from jsonb_array_elements(p_schema -> 'oneOf') e(schema)
                                    where menzil._schema_fault(e.schema, p_value, p_root, p_depth) is null) <> 1 then 'oneOf'
      when p_schema ? 'not' and menzil._schema_fault(p_schema -> 'not', p_value, p_root, p_depth) is null then 'not' end;
    if v_broken is not null then
      return menzil._broken(v_broken, case v_broken when 'not' then p_schema -> 'not' end);
    end if;
  end if;
  if v_fault is null and p_schema ? 'if' then
    v_schema := p_schema -> case when menzil._schema_fault(p_schema -> 'if', p_value, p_root, p_depth) is null then 'then' else 'else' end;
    v_fault := case when v_schema is not null then menzil._schema_fault(v_schema, p_value, p_root, p_depth) end;
  end if;
  return v_fault;
end $$;
