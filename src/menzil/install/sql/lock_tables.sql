-- Before anything is changed: a client that holds one table and waits for another must not meet this script half way.
do $lock_tables$
declare
  v_name text;
begin
  if (select max(version) from menzil.migration) < {version} and exists (select from menzil.installed_code) then
    for v_name in
{tables}
    loop
      execute format('lock table only menzil.%I in access exclusive mode', v_name);
    end loop;
  end if;
end
$lock_tables$;
