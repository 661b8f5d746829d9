-- Functions that menzil put here and that its code no longer has go. Functions that others put into the schema stay, and so
-- does a function of menzil that others depend on. Before the roles: a grant would look like a replacement.
do $gone$
declare
  v_gone text[];
  v_name text;
begin
  select array_agg('menzil.' || o.name) into v_gone
    from ({objects}) o join menzil.installed_object was on was.kind = o.kind and was.name = o.name
   where was.ours and o.kind <> 'view' and not o.made_now;
  if v_gone is null then
    return;
  end if;
  begin
    execute 'drop routine ' || array_to_string(v_gone, ', ');   -- together: they may depend on each other
    return;
  exception when dependent_objects_still_exist then
    null;
  end;
  foreach v_name in array v_gone loop
    begin
      execute 'drop routine ' || v_name;
    exception when dependent_objects_still_exist then
      raise notice '% is no longer part of menzil and stays because other objects depend on it', v_name;
    end;
  end loop;
end
$gone$;
insert into menzil.installed_object as was (kind, name, fingerprint, ours)
select o.kind, o.name, o.fingerprint, o.made_now from ({objects}) o
    on conflict (kind, name) do update set fingerprint = excluded.fingerprint, ours = was.ours or excluded.ours;
delete from menzil.installed_object was
 where not exists (select from ({objects}) o where o.kind = was.kind and o.name = was.name);
