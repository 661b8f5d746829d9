-- Every $ref leads to a schema of the same document, and following them for one place of a payload comes to an end soon.
create or replace function menzil._check_references(p_schema jsonb) returns void
language plpgsql immutable as $$
declare
  v_steps jsonb;   -- from each schema to those that judge the same place of a payload
  v_bad record;
begin
  with place as materialized (
    select p.at, p.schema, p.parent, p.here from menzil._schema_places(p_schema) p
  ), reference as materialized (
    select p.at, p.schema ->> '$ref' as target from place p where p.schema ? '$ref'
  )
  select jsonb_agg(jsonb_build_array(s.source, s.target)) filter (where s.known),
         min(s.source) filter (where not s.known) as lost
    into v_bad
    from (select p.parent as source, p.at as target, true as known from place p where p.here
          union all
          select r.at, substr(r.target, 2), exists (select 1 from place p where '#' || p.at = r.target) from reference r) s;
  if v_bad.lost is not null then
    perform menzil._refuse_schema(v_bad.lost || '/$ref', 'a reference leads to a schema of this document, as "#", "#/$defs/name" or "#anchor"; other documents are not read');
  end if;
  v_steps := v_bad.jsonb_agg;
  if exists (
    with recursive step as materialized (select e ->> 0 as source, e ->> 1 as target from jsonb_array_elements(v_steps) e),
    reached(start, at) as (
      select s.source, s.target from step s
      union
      select r.start, s.target from reached r join step s on s.source = r.at)
    select 1 from reached r where r.start = r.at) then
    perform menzil._refuse_value('The schema refers to itself without going deeper into the payload.', 'Let the $ref stand below properties or items.');
  end if;
  -- Short schemas can unfold without end: ten levels of twice the level below are a thousand.
  if (with recursive step as materialized (select e ->> 0 as source, e ->> 1 as target from jsonb_array_elements(v_steps) e),
      unfolded(at) as (
        select distinct s.source from step s
        union all
        select s.target from unfolded u join step s on s.source = u.at)
      select count(*) from (select 1 from unfolded limit 10001) u) > 10000 then
    perform menzil._refuse_value('The references of the schema unfold to more than 10000 schemas for one place.', 'Refer to each part once.');
  end if;
end $$;
