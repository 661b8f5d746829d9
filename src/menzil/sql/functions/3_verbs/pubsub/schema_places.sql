-- A schema and the schemas inside it, each with its JSON pointer; here: for the same place of the payload as its parent. Looks
-- one level deeper than a schema may be nested.
create or replace function menzil._schema_places(p_schema jsonb) returns table (at text, schema jsonb, parent text, here boolean, depth integer)
language sql immutable as $$
  with recursive place(at, schema, parent, here, depth) as (
    select '', p_schema, null::text, false, 0
    union all
    select p.at || menzil._step(k.key) || i.step, i.schema, p.at,
           k.key in ('allOf', 'anyOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentSchemas'), p.depth + 1
      from place p
      cross join lateral jsonb_each(case when jsonb_typeof(p.schema) = 'object' then p.schema else '{}' end) k
      join menzil._schema_keywords() w on w.keyword = k.key
      cross join lateral (
        select '' as step, k.value as schema where w.kind = 'schema'
        union all
        select menzil._step(e.key), e.value
          from jsonb_each(case when w.kind like 'schemas%' and jsonb_typeof(k.value) = 'object' then k.value else '{}' end) e
        union all
        select '/' || (e.n - 1), e.value
          from jsonb_array_elements(case when w.kind = 'list of schemas' and jsonb_typeof(k.value) = 'array' then k.value else '[]' end)
               with ordinality e(value, n)) i
     where p.depth <= 64)
  select p.at, p.schema, p.parent, p.here, p.depth from place p
$$;
