-- The identifier of this cluster: initdb gives it, standbys and physical copies have the same. Null without the right to read it.
create or replace function menzil._system_identifier() returns bigint
language plpgsql stable as $$
begin
  -- IF, because a query asks for the right before it runs.
  if has_function_privilege('pg_catalog.pg_control_system()', 'execute') then
    return (select c.system_identifier from pg_control_system() c);
  end if;
  return null;
end $$;
