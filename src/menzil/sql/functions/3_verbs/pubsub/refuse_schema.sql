create or replace function menzil._refuse_schema(p_at text, p_why text) returns void
language plpgsql immutable as $$
begin
  perform menzil._refuse_value(format('The schema is wrong at "%s": %s.', menzil._shown(p_at), p_why),
    'Schemas are JSON Schema, draft 2020-12; the page on events lists the keywords.');
end $$;
