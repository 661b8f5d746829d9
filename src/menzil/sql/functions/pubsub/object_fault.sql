-- The keywords for objects. The members are walked once, for all keywords that look at members.
create or replace function menzil._object_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_required jsonb := p_schema -> 'required';
  v_properties jsonb := p_schema -> 'properties';
  v_others jsonb := p_schema -> 'additionalProperties';
  v_more boolean := p_schema ?| '{patternProperties,propertyNames}';
  v_key text;
  v_value jsonb;
  v_schema jsonb;
  v_fault text[];
begin
  for i in 0 .. coalesce(jsonb_array_length(v_required), 0) - 1 loop
    if not p_value ? (v_required ->> i) then
      return menzil._broken('required', v_required -> i);
    end if;
  end loop;
  if p_schema ?| '{minProperties,maxProperties,dependentRequired,dependentSchemas}' then
    v_fault := menzil._members_fault(p_schema, p_value, p_root, p_depth);
    if v_fault is not null then
      return v_fault;
    end if;
  end if;
  if v_properties is null and v_others is null and not v_more then
    return null;
  end if;
  for v_key, v_value in select e.key, e.value from jsonb_each(p_value) e loop
    v_schema := v_properties -> v_key;
    if v_more then
      v_fault := menzil._member_fault(p_schema, v_key, v_value, p_root, p_depth);
    elsif v_schema is null then
      v_fault := case when v_others = 'false' then menzil._broken('additionalProperties', v_others)
                      when v_others is not null then menzil._schema_fault(v_others, v_value, p_root, p_depth) end;
    end if;
    if v_fault is null and v_schema is not null then
      v_fault := menzil._schema_fault(v_schema, v_value, p_root, p_depth);
    end if;
    if v_fault is not null then
      return array[v_fault[1], menzil._step(v_key) || v_fault[2]];
    end if;
  end loop;
  return null;
end $$;

-- One member against its name, the patterns that fit its name, and additionalProperties if nothing else claims it.
create or replace function menzil._member_fault(p_schema jsonb, p_key text, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_others jsonb := p_schema -> 'additionalProperties';
  v_claimed boolean := coalesce(p_schema -> 'properties' ? p_key, false);
  v_pattern text;
  v_schema jsonb;
  v_fault text[];
begin
  if p_schema ? 'propertyNames' and menzil._schema_fault(p_schema -> 'propertyNames', to_jsonb(p_key), p_root, p_depth) is not null then
    return menzil._broken('propertyNames', p_schema -> 'propertyNames');
  end if;
  for v_pattern, v_schema in select e.key, e.value from jsonb_each(p_schema -> 'patternProperties') e loop
    continue when not menzil._matches(p_key, v_pattern);
    v_claimed := true;
    v_fault := menzil._schema_fault(v_schema, p_value, p_root, p_depth);
    if v_fault is not null then
      return v_fault;
    end if;
  end loop;
  if v_claimed or v_others is null then
    return null;
  elsif v_others = 'false' then
    return menzil._broken('additionalProperties', v_others);
  end if;
  return menzil._schema_fault(v_others, p_value, p_root, p_depth);
end $$;

-- How many members, and which of them ask for others.
create or replace function menzil._members_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_count integer := (select count(*) from jsonb_object_keys(p_value));
  v_key text;
  v_rule jsonb;
  v_fault text[];
begin
  if v_count < (p_schema -> 'minProperties')::numeric then
    return menzil._broken('minProperties', p_schema -> 'minProperties');
  elsif v_count > (p_schema -> 'maxProperties')::numeric then
    return menzil._broken('maxProperties', p_schema -> 'maxProperties');
  end if;
  for v_key, v_rule in select e.key, e.value from jsonb_each(p_schema -> 'dependentRequired') e loop
    if p_value ? v_key and exists (select 1 from jsonb_array_elements_text(v_rule) n(name) where not p_value ? n.name) then
      return menzil._broken('dependentRequired', jsonb_build_object(v_key, v_rule));
    end if;
  end loop;
  for v_key, v_rule in select e.key, e.value from jsonb_each(p_schema -> 'dependentSchemas') e loop
    if p_value ? v_key then
      v_fault := menzil._schema_fault(v_rule, p_value, p_root, p_depth);
      if v_fault is not null then
        return v_fault;
      end if;
    end if;
  end loop;
  return null;
end $$;
