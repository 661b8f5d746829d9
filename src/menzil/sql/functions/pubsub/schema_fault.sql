-- JSON Schema, draft 2020-12: does a value fit? Null when it does, otherwise the rule it breaks and the JSON pointer of
-- the place, built on the way out so that a value that fits pays nothing for it.
-- Keywords that do not apply to the kind of the value are not looked at.
create or replace function menzil._schema_fault(p_schema jsonb, p_value jsonb, p_root jsonb, p_depth integer) returns text[]
language plpgsql immutable as $$
declare
  v_kind text := jsonb_typeof(p_value);
  v_type jsonb := p_schema -> 'type';
  v_fault text[];
begin
  -- A lone jsonb text has its own content as its only key, so one question serves "type": "a" and "type": ["a", "b"].
  if v_type is not null and not v_type ? v_kind
     and not (v_kind = 'number' and v_type ? 'integer' and p_value::numeric = trunc(p_value::numeric)) then
    return menzil._broken('type', v_type);
  end if;
  if v_kind = 'string' then
    if p_schema ?| '{minLength,maxLength,pattern}' then
      v_fault := menzil._text_fault(p_schema, p_value #>> '{}');
    end if;
  elsif v_kind = 'number' then
    if p_schema ?| '{minimum,maximum,exclusiveMinimum,exclusiveMaximum,multipleOf}' then
      v_fault := menzil._number_fault(p_schema, p_value);
    end if;
  elsif v_kind = 'object' then
    if p_depth > 128 then
      perform menzil._refuse_depth();
    end if;
    v_fault := menzil._object_fault(p_schema, p_value, p_root, p_depth + 1);
  elsif v_kind = 'array' then
    if p_depth > 128 then
      perform menzil._refuse_depth();
    end if;
    v_fault := menzil._array_fault(p_schema, p_value, p_root, p_depth + 1);
  end if;
  if v_fault is null and p_schema ?| '{enum,const,$ref,allOf,anyOf,oneOf,not,if}' then
    return menzil._choice_fault(p_schema, p_value, p_root, p_depth + 1);
  elsif p_schema = 'false' then
    return array['false', ''];
  end if;
  return v_fault;
end $$;

create or replace function menzil._broken(p_keyword text, p_rule jsonb, p_pointer text default '') returns text[]
language sql immutable parallel safe
return array[concat_ws(' ', p_keyword, left(p_rule::text, 100)), p_pointer];

-- Both a schema that follows itself and a value that is nested without end stop here, before the server's stack does.
create or replace function menzil._refuse_depth() returns void
language plpgsql immutable as $$
begin
  perform menzil._refuse_value('The payload is nested deeper than the 128 levels a schema is followed.',
    'Send a flatter payload, or an event type without a schema.');
end $$;

-- A key as one step of a JSON pointer.
create or replace function menzil._step(p_key text) returns text
language sql immutable parallel safe
return '/' || replace(replace(p_key, '~', '~0'), '/', '~1');

create or replace function menzil._text_fault(p_schema jsonb, p_text text) returns text[]
language plpgsql immutable as $$
begin
  if length(p_text) < (p_schema -> 'minLength')::numeric then
    return menzil._broken('minLength', p_schema -> 'minLength');
  elsif length(p_text) > (p_schema -> 'maxLength')::numeric then
    return menzil._broken('maxLength', p_schema -> 'maxLength');
  elsif not menzil._matches(p_text, p_schema ->> 'pattern') then
    return menzil._broken('pattern', p_schema -> 'pattern');
  end if;
  return null;
end $$;

-- The same answer in every database, whatever its locale: classes and ranges are those of ASCII, as in ECMA-262.
create or replace function menzil._matches(p_text text, p_pattern text) returns boolean
language sql immutable parallel safe
return p_text collate "C" ~ p_pattern;

-- jsonb numbers compare as numbers, exactly; a keyword that is not there is null and decides nothing.
create or replace function menzil._number_fault(p_schema jsonb, p_value jsonb) returns text[]
language plpgsql immutable as $$
begin
  if p_value < p_schema -> 'minimum' then
    return menzil._broken('minimum', p_schema -> 'minimum');
  elsif p_value > p_schema -> 'maximum' then
    return menzil._broken('maximum', p_schema -> 'maximum');
  elsif p_value <= p_schema -> 'exclusiveMinimum' then
    return menzil._broken('exclusiveMinimum', p_schema -> 'exclusiveMinimum');
  elsif p_value >= p_schema -> 'exclusiveMaximum' then
    return menzil._broken('exclusiveMaximum', p_schema -> 'exclusiveMaximum');
  elsif mod(p_value::numeric, (p_schema -> 'multipleOf')::numeric) <> 0 then
    return menzil._broken('multipleOf', p_schema -> 'multipleOf');
  end if;
  return null;
end $$;
