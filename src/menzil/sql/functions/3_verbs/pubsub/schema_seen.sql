-- Does a value fit, and which of its members or items does the schema speak of? unevaluatedProperties and unevaluatedItems judge the
-- others. Every schema for this place is followed once: asking it twice, first whether it fits and then what it has seen, would double
-- the work at every level of a payload. A member is seen by its name, an item by its number.
create or replace function menzil._schema_seen(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer, out fault text[], out seen text[])
language plpgsql immutable as $$
declare
  v_here constant text[] := '{$ref,allOf,anyOf,oneOf,not,if,then,else,dependentSchemas,contains,minContains,maxContains,unevaluatedProperties,unevaluatedItems}';
  v_object boolean := jsonb_typeof(p_value) = 'object';
  v_keyword text;
  v_part jsonb;
  v_fits boolean;
  v_count integer;
  v_found record;
begin
  seen := '{}';
  fault := menzil._schema_fault(case jsonb_typeof(p_schema) when 'object' then p_schema - v_here else p_schema end, p_value, p_root, p_depth + 1);
  if fault is not null or jsonb_typeof(p_schema) <> 'object' then
    return;
  end if;
  seen := menzil._seen_by_name(p_schema, p_value);
  if p_schema ? 'contains' and not v_object then
    v_found := menzil._seen_by_contains(p_schema, p_value, p_root, p_depth + 1);
    fault := v_found.fault;
    seen := seen || v_found.seen;
  end if;
  -- Schemas that the value must fit: each adds what it has seen.
  for v_part in
    select menzil._schema_at(p_root, p_schema ->> '$ref') where p_schema ? '$ref'
    union all
    select e.schema from jsonb_array_elements(p_schema -> 'allOf') e(schema)
    union all
    select e.value from jsonb_each(p_schema -> 'dependentSchemas') e where v_object and p_value ? e.key
  loop
    exit when fault is not null;
    v_found := menzil._schema_seen(v_part, p_value, p_root, p_depth + 1);
    fault := v_found.fault;
    seen := seen || v_found.seen;
  end loop;
  foreach v_keyword in array '{anyOf,oneOf}'::text[] loop
    continue when fault is not null or not p_schema ? v_keyword;
    v_count := 0;
    for v_part in select e.schema from jsonb_array_elements(p_schema -> v_keyword) e(schema) loop
      v_found := menzil._schema_seen(v_part, p_value, p_root, p_depth + 1);
      if v_found.fault is null then
        v_count := v_count + 1;
        seen := seen || v_found.seen;
      end if;
    end loop;
    if v_count = 0 or v_keyword = 'oneOf' and v_count > 1 then
      fault := menzil._broken(v_keyword, null);
    end if;
  end loop;
  if fault is null and p_schema ? 'not' and menzil._schema_fault(p_schema -> 'not', p_value, p_root, p_depth + 1) is null then
    fault := menzil._broken('not', p_schema -> 'not');
  end if;
  if fault is null and p_schema ? 'if' then
    v_found := menzil._schema_seen(p_schema -> 'if', p_value, p_root, p_depth + 1);
    v_fits := v_found.fault is null;
    if v_fits then
      seen := seen || v_found.seen;
    end if;
    v_part := p_schema -> case when v_fits then 'then' else 'else' end;
    if v_part is not null then
      v_found := menzil._schema_seen(v_part, p_value, p_root, p_depth + 1);
      fault := v_found.fault;
      seen := seen || v_found.seen;
    end if;
  end if;
  v_keyword := case when v_object then 'unevaluatedProperties' else 'unevaluatedItems' end;
  if fault is null and p_schema ? v_keyword then
    for v_found in
      select m.name, m.value
        from (select e.key as name, e.value from jsonb_each(case when v_object then p_value else '{}' end) e
              union all
              select (e.n - 1)::text, e.item from jsonb_array_elements(case when v_object then '[]' else p_value end) with ordinality e(item, n)) m
       where m.name <> all (seen)
    loop
      fault := case when p_schema -> v_keyword = 'false' then menzil._broken(v_keyword, p_schema -> v_keyword)
                    else menzil._schema_fault(p_schema -> v_keyword, v_found.value, p_root, p_depth + 1) end;
      if fault is not null then
        fault[2] := menzil._step(v_found.name) || fault[2];
        exit;
      end if;
    end loop;
    seen := menzil._seen_by_name('{"items": true, "additionalProperties": true}', p_value);
  end if;
end $$;

-- What the keywords for members and items of one schema speak of.
create or replace function menzil._seen_by_name(p_schema jsonb, p_value jsonb) returns text[]
language plpgsql immutable as $$
begin
  if jsonb_typeof(p_value) = 'object' then
    return array(select k.name from jsonb_object_keys(p_value) k(name)
                  where p_schema ? 'additionalProperties' or p_schema -> 'properties' ? k.name
                     or exists (select 1 from jsonb_object_keys(p_schema -> 'patternProperties') p(pattern) where k.name collate "C" ~ p.pattern));
  end if;
  return array(select i.n::text from generate_series(0, jsonb_array_length(p_value) - 1) i(n)
                where p_schema ? 'items' or i.n < jsonb_array_length(p_schema -> 'prefixItems'));
end $$;

-- The items that fit contains, and whether there are as many as asked for.
create or replace function menzil._seen_by_contains(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer, out fault text[], out seen text[])
language plpgsql immutable as $$
declare
  v_broken text;
begin
  seen := array(select (e.n - 1)::text from jsonb_array_elements(p_value) with ordinality e(item, n)
                 where menzil._schema_fault(p_schema -> 'contains', e.item, p_root, p_depth) is null);
  v_broken := case when cardinality(seen) < (p_schema -> 'minContains')::numeric then 'minContains'
                   when seen = '{}' and not p_schema ? 'minContains' then 'contains'
                   when cardinality(seen) > (p_schema -> 'maxContains')::numeric then 'maxContains' end;
  fault := case when v_broken is not null then menzil._broken(v_broken, p_schema -> v_broken) end;
end $$;
