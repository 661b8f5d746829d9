-- The keywords for values of any kind: fixed values, and schemas made of other schemas for the same place.
create or replace function menzil._choice_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_enum jsonb := p_schema -> 'enum';
  v_schema jsonb;
  v_fault text[];
begin
  if p_depth > 128 then
    perform menzil._refuse_depth();
  end if;
  -- For text, numbers and the like containment is membership; for objects and arrays it asks for less.
  if not v_enum @> jsonb_build_array(p_value) or (v_enum is not null and jsonb_typeof(p_value) in ('object', 'array')
       and not exists (select 1 from jsonb_array_elements(v_enum) e(value) where e.value = p_value)) then
    return menzil._broken('enum', v_enum);
  elsif p_value <> p_schema -> 'const' then
    return menzil._broken('const', p_schema -> 'const');
  end if;
  if p_schema ? '$ref' then
    v_fault := menzil._schema_fault(p_root #> menzil._reference_path(p_schema ->> '$ref'), p_value, p_root, p_depth);
  end if;
  if v_fault is null and p_schema ? 'allOf' then
    for v_schema in select e.schema from jsonb_array_elements(p_schema -> 'allOf') e(schema) loop
      v_fault := menzil._schema_fault(v_schema, p_value, p_root, p_depth);
      exit when v_fault is not null;
    end loop;
  end if;
  if v_fault is null and p_schema ?| '{anyOf,oneOf,not}' then
    v_fault := menzil._alternatives_fault(p_schema, p_value, p_root, p_depth);
  end if;
  if v_fault is null and p_schema ? 'if' then
    v_schema := p_schema -> case when menzil._schema_fault(p_schema -> 'if', p_value, p_root, p_depth) is null then 'then' else 'else' end;
    if v_schema is not null then
      v_fault := menzil._schema_fault(v_schema, p_value, p_root, p_depth);
    end if;
  end if;
  return v_fault;
end $$;

create or replace function menzil._alternatives_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_count bigint;
begin
  if p_schema ? 'anyOf' and not exists (select 1 from jsonb_array_elements(p_schema -> 'anyOf') e(schema)
                                         where menzil._schema_fault(e.schema, p_value, p_root, p_depth) is null) then
    return menzil._broken('anyOf', null);
  end if;
  if p_schema ? 'oneOf' then
    v_count := (select count(*) from jsonb_array_elements(p_schema -> 'oneOf') e(schema)
                 where menzil._schema_fault(e.schema, p_value, p_root, p_depth) is null);
    if v_count <> 1 then
      return menzil._broken('oneOf', null);
    end if;
  end if;
  if p_schema ? 'not' and menzil._schema_fault(p_schema -> 'not', p_value, p_root, p_depth) is null then
    return menzil._broken('not', p_schema -> 'not');
  end if;
  return null;
end $$;

-- '#', or '#/$defs/a~1b' as the path {$defs,a/b}.
create or replace function menzil._reference_path(p_reference text) returns text[]
language sql immutable parallel safe as $$
  select case when p_reference = '#' then '{}'
              when strpos(p_reference, '~') = 0 then string_to_array(substr(p_reference, 3), '/')
              else array(select replace(replace(u.step, '~1', '/'), '~0', '~') from unnest(string_to_array(substr(p_reference, 3), '/'))
                           with ordinality u(step, n) order by u.n) end
$$;
