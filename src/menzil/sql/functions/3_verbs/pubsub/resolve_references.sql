-- Writes every $ref of a schema that leads into the schema itself as a JSON pointer, which is followed at once at a publish: anchors
-- (#name), the $id of the schema before the #, and percent signs. A reference that leads nowhere is left for menzil._check_references.
create or replace function menzil._resolve_references(p_schema jsonb) returns jsonb
language plpgsql immutable as $$
declare
  v_id text := case when jsonb_typeof(p_schema) = 'object' then split_part(p_schema ->> '$id', '#', 1) end;
  v_place record;
begin
  if octet_length(p_schema::text) > 65536 then
    return p_schema;   -- menzil._check_schema refuses it
  end if;
  for v_place in
    with place as materialized (select p.at, p.schema from menzil._schema_places(p_schema) p)
    select r.at, r.target, coalesce(n.at, case when exists (select 1 from place p where '#' || p.at = r.target) then substr(r.target, 2) end) as found
      from (select p.at, p.schema ->> '$ref' as given,
                   menzil._percent_decoded(case when v_id <> '' and (p.schema ->> '$ref' = v_id or starts_with(p.schema ->> '$ref', v_id || '#'))
                                                then '#' || split_part(p.schema ->> '$ref', '#', 2) else p.schema ->> '$ref' end) as target
              from place p where jsonb_typeof(p.schema -> '$ref') = 'string') r
      left join lateral (select min(p.at) as at from place p where '#' || (p.schema ->> '$anchor') = r.target) n on true
     where r.given <> r.target or n.at is not null
  loop
    if v_place.found is not null then
      p_schema := jsonb_set(p_schema, menzil._pointer_path(v_place.at) || '$ref'::text, to_jsonb('#' || v_place.found));
    end if;
  end loop;
  return p_schema;
end $$;

-- A text without its percent escapes; one whose escapes are no UTF-8 stays as it is.
create or replace function menzil._percent_decoded(p_text text) returns text
language plpgsql immutable as $$
begin
  if p_text !~ '%[0-9A-Fa-f]{2}' then
    return p_text;
  end if;
  return (select convert_from(string_agg(case when m.part[1] ~ '^%..' then decode(substr(m.part[1], 2), 'hex') else convert_to(m.part[1], 'UTF8') end,
                                         '' order by m.n), 'UTF8')
            from regexp_matches(p_text, '%[0-9A-Fa-f]{2}|[^%]+|%', 'g') with ordinality m(part, n));
exception when character_not_in_repertoire or untranslatable_character then
  return p_text;
end $$;
