-- The keywords for arrays.
create or replace function menzil._array_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_first jsonb := p_schema -> 'prefixItems';
  v_firsts integer := coalesce(jsonb_array_length(v_first), 0);
  v_items jsonb := p_schema -> 'items';
  v_at integer := 0;
  v_item jsonb;
  v_schema jsonb;
  v_fault text[];
begin
  if jsonb_array_length(p_value) < (p_schema -> 'minItems')::numeric then
    return menzil._broken('minItems', p_schema -> 'minItems');
  elsif jsonb_array_length(p_value) > (p_schema -> 'maxItems')::numeric then
    return menzil._broken('maxItems', p_schema -> 'maxItems');
  elsif p_schema -> 'uniqueItems' = 'true'
        and (select count(distinct e.item) from jsonb_array_elements(p_value) e(item)) < jsonb_array_length(p_value) then
    return menzil._broken('uniqueItems', 'true');
  end if;
  if p_schema ? 'contains' then
    v_fault := menzil._contains_fault(p_schema, p_value, p_root, p_depth);
    if v_fault is not null then
      return v_fault;
    end if;
  end if;
  if v_first is null and v_items is null then
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

create or replace function menzil._contains_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_count bigint := (select count(*) from jsonb_array_elements(p_value) e(item)
                      where menzil._schema_fault(p_schema -> 'contains', e.item, p_root, p_depth) is null);
begin
  if v_count < coalesce((p_schema -> 'minContains')::numeric, 1) then
    return case when p_schema ? 'minContains' then menzil._broken('minContains', p_schema -> 'minContains')
                else menzil._broken('contains', p_schema -> 'contains') end;
  elsif v_count > (p_schema -> 'maxContains')::numeric then
    return menzil._broken('maxContains', p_schema -> 'maxContains');
  end if;
  return null;
end $$;
