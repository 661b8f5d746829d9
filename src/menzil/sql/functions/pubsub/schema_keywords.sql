-- The keywords that are enforced, and what each takes; then those that only describe. A keyword that is not here is
-- refused when an event type is created: better no schema than one that is half believed.
create or replace function menzil._schema_keywords() returns table (keyword text, kind text)
language sql immutable parallel safe as $$
  values ('type', 'type'), ('enum', 'list'), ('const', 'anything'),
         ('properties', 'schemas'), ('patternProperties', 'schemas by pattern'), ('additionalProperties', 'schema'), ('propertyNames', 'schema'),
         ('required', 'names'), ('dependentRequired', 'lists of names'), ('dependentSchemas', 'schemas'),
         ('minProperties', 'count'), ('maxProperties', 'count'),
         ('items', 'schema'), ('prefixItems', 'list of schemas'), ('contains', 'schema'), ('minContains', 'count'), ('maxContains', 'count'),
         ('minItems', 'count'), ('maxItems', 'count'), ('uniqueItems', 'boolean'),
         ('minLength', 'count'), ('maxLength', 'count'), ('pattern', 'pattern'),
         ('minimum', 'number'), ('maximum', 'number'), ('exclusiveMinimum', 'number'), ('exclusiveMaximum', 'number'),
         ('multipleOf', 'positive number'),
         ('allOf', 'list of schemas'), ('anyOf', 'list of schemas'), ('oneOf', 'list of schemas'), ('not', 'schema'),
         ('if', 'schema'), ('then', 'schema'), ('else', 'schema'), ('$ref', 'reference'), ('$defs', 'schemas'),
         ('title', 'text'), ('description', 'text'), ('default', 'anything'), ('examples', 'list'), ('$comment', 'text'), ('$schema', 'dialect'),
         ('$id', 'text'), ('deprecated', 'boolean'), ('readOnly', 'boolean'), ('writeOnly', 'boolean'), ('format', 'text')
$$;

-- The schemas inside a schema, each with its step of the pointer; here: for the same place of the payload.
create or replace function menzil._inner_schemas(p_schema jsonb) returns table (step text, schema jsonb, here boolean)
language sql immutable as $$
  select menzil._step(k.key) || i.step, i.schema, k.key in ('allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentSchemas')
    from jsonb_each(case when jsonb_typeof(p_schema) = 'object' then p_schema else '{}' end) k
    join menzil._schema_keywords() w on w.keyword = k.key
   cross join lateral (
     select '' as step, k.value as schema where w.kind = 'schema'
     union all
     select menzil._step(e.key), e.value
       from jsonb_each(case when w.kind like 'schemas%' and jsonb_typeof(k.value) = 'object' then k.value else '{}' end) e
     union all
     select '/' || (e.n - 1), e.value
       from jsonb_array_elements(case when w.kind = 'list of schemas' and jsonb_typeof(k.value) = 'array' then k.value else '[]' end)
            with ordinality e(value, n)
   ) i
$$;
