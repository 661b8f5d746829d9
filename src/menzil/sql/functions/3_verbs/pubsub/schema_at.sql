-- The schema that a reference leads to: '#' is the path {}, '#/$defs/a~1b' is {$defs,a/b}.
create or replace function menzil._schema_at(p_root jsonb, p_reference text) returns jsonb
language plpgsql immutable parallel safe as $$
begin
  if strpos(p_reference, '~') > 0 then
    return p_root #> menzil._pointer_path(substr(p_reference, 2));
  end if;
  return p_root #> string_to_array(substr(p_reference, 3), '/');
end $$;
